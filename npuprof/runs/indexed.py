"""What an index of history holds: which digests presets had, as differences from one state of the store to the next."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from npuprof.model import Finding, Record
from npuprof.store.gitstore.repository import Repository


class Digests(NamedTuple):
    """The digests of a preset: of its layers, and of what it resolves to, context by context."""

    preset: str
    resolved: tuple[str, ...]

    def match(self, wanted: str) -> bool:
        """Return whether one of them begins like this."""
        return self.preset.startswith(wanted) or any(digest.startswith(wanted) for digest in self.resolved)


class State(NamedTuple):
    """Commits that have the same presets, and how those differ from the state before: None is a preset that is gone."""

    commits: list[str]
    changed: dict[str, Digests | None]


class Holding(Record):
    """A preset at commits that have a digest, newest first."""

    name: str
    commits: tuple[str, ...]


class Index:
    """The digests of all presets at all commits of a repository."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.states: list[State] = []
        self.untold = False  #: whether some preset could not be resolved as a source is not on this machine
        self.lacking: Finding | None = None  #: what git lacks of some preset, where that is so: a partial clone may get it yet

    def find(self, wanted: str, order: dict[str, int]) -> list[Holding]:
        """Return the presets that had a digest which begins like this, each with its commits in an order."""
        holding: set[str] = set()
        found: dict[str, list[str]] = {}
        for state in self.states:
            for name, digests in state.changed.items():
                if digests is not None and digests.match(wanted):
                    holding.add(name)
                else:
                    holding.discard(name)
            for name in holding:
                found.setdefault(name, []).extend(commit for commit in state.commits if commit in order)
        return [Holding(name, tuple(sorted(commits, key=order.__getitem__))) for name, commits in found.items() if commits]


def group_commits(index: Index, names: Collection[str], order: dict[str, int]) -> list[list[str]]:
    """Return the commits that have all of some presets, in groups with the same digests of each; every group newest first."""
    present: dict[str, Digests] = {}
    groups: dict[tuple[Digests, ...], list[str]] = {}
    for state in index.states:
        for name, digests in state.changed.items():
            if name in names and digests is not None:
                present[name] = digests
            elif name in names:
                present.pop(name, None)
        if len(present) == len(names):
            groups.setdefault(tuple(present[name] for name in names), []).extend(commit for commit in state.commits if commit in order)
    return [sorted(commits, key=order.__getitem__) for commits in groups.values() if commits]
