"""A model of a repository with releases, and a second resolver for it that shares no code with npuprof and reads no git.

A preset resolved is a tree: its name, its commit and the trees of its parents. A release keeps the tree it had.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from support.repositories import Repo
from support.running import Run

#: What a text extends, and the values it sets.
Text = tuple[tuple[str, ...], tuple[tuple[str, int], ...]]
Tree = tuple[str, str, tuple[Any, ...]]
NAMES = ("root", "base", "mix", "mid", "leaf")
KEYS = ("hccl_timeout", "graph_run_mode", "stream_sync_timeout")


class BrokenError(Exception):
    """The preset does not resolve."""


class Release(NamedTuple):
    commit: str
    tree: Tree


class Model:
    """Commits by id: their parents and presets. Releases by name and number."""

    def __init__(self) -> None:
        self.parents: dict[str, list[str]] = {}
        self.presets: dict[str, dict[str, Text]] = {}
        self.releases: dict[tuple[str, tuple[int, int, int]], Release] = {}

    def behind(self, commit: str) -> set[str]:
        seen, waiting = {commit}, [commit]
        while waiting:
            more = [parent for parent in self.parents[waiting.pop()] if parent not in seen]
            seen.update(more)
            waiting += more
        return seen

    def newest(self, name: str, wanted: tuple[int, ...], commit: str) -> tuple[int, int, int] | None:
        seen = self.behind(commit)
        fit = [no for (who, no), made in self.releases.items() if who == name and no[: len(wanted)] == wanted and made.commit in seen]
        return max(fit, default=None)

    def tree(self, name: str, commit: str) -> Tree:
        """Return a preset at a commit as a tree."""
        if name not in self.presets[commit]:
            raise BrokenError(name)
        parents = []
        for reference in self.presets[commit][name][0]:
            parent, at, version = reference.partition("@")
            if not at:
                parents.append(self.tree(parent, commit))
                continue
            wanted = tuple(int(part) for part in version.split("."))
            number = wanted if len(wanted) == 3 else self.newest(parent, wanted, commit)
            if number is None or (parent, number) not in self.releases:
                raise BrokenError(reference)
            parents.append(self.releases[parent, number].tree)
        return name, commit, tuple(parents)

    def settings(self, tree: Tree) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, commit, _ in reversed(linearise(tree)):
            found.update(dict(self.presets[commit][name][1]))
        return found

    def resolve(self, name: str, commit: str) -> dict[str, int] | str:
        """Return the settings of a preset at a commit, or that there are none."""
        try:
            return self.settings(self.tree(name, commit))
        except BrokenError:
            return "broken"


def linearise(tree: Tree) -> list[Tree]:
    """Return a tree and its ancestors, the strongest first: the textbook's C3 merge."""
    parents = list(tree[2][::-1])
    if len(set(parents)) < len(parents):
        raise BrokenError(tree[0])
    todo = [linearise(parent) for parent in parents] + [parents]
    order = [tree]
    while todo := [line for line in todo if line]:
        head = next((line[0] for line in todo if not any(line[0] in other[1:] for other in todo)), None)
        if head is None:
            raise BrokenError(tree[0])
        order.append(head)
        todo = [other[1:] if other[0] == head else other for other in todo]
    return order


def write(text: Text) -> str:
    lines = ["[profile]", f"extends = {json.dumps(text[0])}", "[options]", *(f"{key} = {value}" for key, value in text[1])]
    return "\n".join(lines) + "\n"


class Grower:
    """Makes the same random history in a repository and in a model."""

    def __init__(self, repo: Repo, run: Run, dice: random.Random, renames: bool = False) -> None:
        self.renames = renames
        self.repo, self.run, self.dice, self.model = repo, run, dice, Model()
        self.branches = ["main"]
        self.tree: dict[str, Text] = {name: self.text(name) for name in NAMES}
        self.commit([])

    def text(self, name: str) -> Text:
        dice, extends = self.dice, []
        for parent in NAMES[: NAMES.index(name)]:
            if dice.random() < 0.45:
                numbers = [number for who, number in self.model.releases if who == parent]
                kind = dice.random()
                if numbers and kind < 0.55:
                    number = dice.choice(numbers)
                    extends.append(f"{parent}@{'.'.join(map(str, number[: dice.choice((1, 1, 2, 3))]))}")
                else:
                    extends.append(parent)
        values = tuple((key, dice.randint(1, 9) if key != "graph_run_mode" else dice.randint(0, 1)) for key in KEYS if dice.random() < 0.4)
        return tuple(extends), values

    def commit(self, parents: list[str]) -> None:
        self.repo.write({name: write(text) for name, text in self.tree.items()})
        if self.dice.random() < 0.15:
            (self.repo.folder / f"other{len(self.model.parents)}").write_text("x")
        head = self.repo.commit({}, f"step {len(self.model.parents)}")
        self.model.parents[head], self.model.presets[head] = parents, dict(self.tree)

    def checkout(self, revision: str) -> None:
        self.repo.git("checkout", "-q", "-f", revision)
        self.tree = dict(self.model.presets[self.repo.head])

    def step(self) -> None:
        dice, action = self.dice, self.dice.random()
        self.checkout(dice.choice(self.branches))
        head = self.repo.head
        if action < 0.12 and len(self.branches) < 4:
            self.branches.append(f"b{len(self.branches)}")
            self.repo.git("checkout", "-q", "-b", self.branches[-1])
        elif action < 0.24 and len(self.branches) > 1:
            other = self.repo.git("rev-parse", dice.choice(self.branches))
            if other in self.model.behind(head) or head in self.model.behind(other):
                return
            self.repo.git("merge", "-q", "-s", "ours", "--no-commit", "--no-ff", other)
            sides = (self.tree, self.model.presets[other])
            if sides[0].keys() != sides[1].keys():
                self.repo.git("merge", "--abort")
                return
            self.tree = {name: dice.choice(sides)[name] for name in sides[0]}
            self.commit([head, other])
        elif action < 0.5:
            if dice.random() < 0.3:  # an older commit, released late
                self.checkout(dice.choice(list(self.model.parents)))
            self.release(dice.choice(sorted(self.tree)))
        elif action < 0.54 and self.renames and set(self.tree) == set(NAMES):  # whoever extends it is broken until it is back
            name = dice.choice(NAMES)
            self.repo.git("mv", f"profiles/{name}.toml", "profiles/renamed.toml")
            self.tree["renamed"] = self.tree.pop(name)
            self.commit([head])
        elif action < 0.58:
            (self.repo.folder / f"other{len(self.model.parents)}").write_text("x")
            self.commit([head])
        else:
            name = dice.choice(NAMES)
            if "renamed" in self.tree and name not in self.tree:
                self.repo.git("rm", "-q", "profiles/renamed.toml")
                del self.tree["renamed"]
            self.tree[name] = self.text(name)
            self.commit([head])

    def release(self, name: str) -> None:
        head = self.repo.head
        number = self.model.newest(name, (), head) or (1, 0, 0)
        place = self.dice.randint(0, 2)
        number = (*number[:place], number[place] + 1, *(0, 0)[: 2 - place])
        done = self.run("release", name, ".".join(map(str, number)))
        assert done.code in (0, 2), done.err
        if (name, number) in self.model.releases:
            assert "released already" in done.err or self.model.resolve(name, head) == "broken", done.err
        elif done.code == 0:
            self.model.releases[name, number] = Release(head, self.model.tree(name, head))
        elif self.model.resolve(name, head) != "broken":
            assert "it has errors" in done.err or "would go back" in done.err, done.err  # a former name's numbers count
