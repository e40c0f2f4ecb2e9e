"""Random histories with branches, merges, renames and broken files, against resolving every commit one by one."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

import npuprof
from support.repositories import Repo
from support.running import Run

SEEDS = range(int(os.environ.get("NPUPROF_SEEDS", "4")))
NAMES = ["base", "mid", "side", "leaf"]
KEYS = ["hccl_timeout", "graph_run_mode", "dynamic_dims"]


def text(dice: random.Random, name: str, names: list[str]) -> str:
    """Return a random profile; rarely one that is broken, or that cannot be resolved."""
    if dice.random() < 0.03:
        return dice.choice(["broken = [", "[options]\nhccl_timeout = 1\n[append.options]\nhccl_timeout = [1]\n", ""])
    parents = [other for other in names[: names.index(name)] if dice.random() < 0.6] if name in names else []
    head = ["[profile]", f"extends = {json.dumps(parents)}"]
    if dice.random() < 0.2:
        head.append(f"unset = {json.dumps([dice.choice(KEYS)])}")
    values = {"hccl_timeout": [1, 2, 3], "graph_run_mode": [0, 1, True], "dynamic_dims": ["1,2;3,4", [[1, 2], [3, 4]], [[1, 2]]]}
    rows = [f"{key} = {json.dumps(dice.choice(values[key]))}" for key in KEYS if dice.random() < 0.5]
    if dice.random() < 0.3:
        rows.insert(0, "# a remark")
    body = ["[options]", *rows]
    if dice.random() < 0.2:
        body += ["[append.options]", "dynamic_dims = [[9, 9]]"]
    return "\n".join([*head, *body] if dice.random() < 0.7 else [*body, *head]) + "\n"


def tweak(dice: random.Random, old: str) -> str:
    """Return a text with one scalar changed in place, as most commits do."""
    lines = old.split("\n")
    places = [place for place, line in enumerate(lines) if line.startswith(("hccl_timeout = ", "graph_run_mode = "))]
    if places:
        place = dice.choice(places)
        lines[place] = f"{lines[place].split(' = ')[0]} = {dice.choice([0, 1, 2])}"
    return "\n".join(lines)


def grow(repo: Repo, dice: random.Random, steps: int) -> None:
    """Commit random changes on random branches, merging now and then."""
    repo.commit({name: text(dice, name, NAMES) for name in NAMES}, "start")
    branches = ["main"]
    for step in range(steps):
        repo.git("checkout", "-q", dice.choice(branches))
        action = dice.random()
        folder = repo.folder / "profiles"
        if action < 0.15 and len(branches) < 4:
            branches.append(f"b{step}")
            repo.git("checkout", "-q", "-b", branches[-1])
        elif action < 0.3 and len(branches) > 1:
            other = dice.choice(branches)
            repo.git("merge", "-q", "--no-ff", "--no-commit", "-X", dice.choice(["ours", "theirs"]), other, check=False)
            if repo.git("ls-files", "-u"):
                repo.git("checkout", "-q", "--ours", ".", check=False)
            evil = {dice.choice(NAMES): text(dice, "leaf", NAMES)} if dice.random() < 0.2 else {}
            repo.commit({"leaf": text(dice, "leaf", NAMES), **evil} if dice.random() < 0.1 else {}, f"merge {step}")
            continue
        name = dice.choice(NAMES)
        path = folder / f"{name}.toml"
        if path.exists() and dice.random() < 0.6:
            repo.commit({name: tweak(dice, path.read_text())}, f"tweak {step}")
        elif path.exists() and name != "leaf" and dice.random() < 0.1:
            repo.commit({name: None}, f"remove {step}")
        else:
            repo.commit({name: text(dice, name, NAMES)}, f"write {step}")
    repo.git("checkout", "-q", "main")
    for branch in branches[1:]:
        repo.git("merge", "-q", "-X", "ours", "--no-edit", branch, check=False)
        if repo.git("ls-files", "-u"):
            repo.git("checkout", "-q", "--ours", ".", check=False)
            repo.commit({}, "settle")


def seen(store: Any, spec: str, key: str | None) -> Any:
    """Return what a preset is at a commit, as something that compares: its digest, one value, or why there is none."""
    try:
        config = store.resolve(spec)
    except npuprof.NpuprofError as error:
        return "absent" if error.findings[0].code == "NP023" else "broken"
    if key is None:
        return config.digest
    value = config.options.get(key, "not set")
    return repr(npuprof.catalog.values.build_canonical_value(key, value)) if key in config.options else value


@pytest.mark.parametrize("seed", SEEDS)
def test_log_lists_what_resolving_each_commit_says(repo: Repo, run: Run, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import npuprof.catalog.values
    import npuprof.store.gitstore.commits

    dice = random.Random(seed)
    grow(repo, dice, 30)
    store = npuprof.open_store()
    graph = {line.split()[0]: line.split()[1:] for line in repo.git("rev-list", "--parents", "HEAD").splitlines()}
    for key in (None, *KEYS):
        at = {oid: seen(store, f"leaf@{oid}", key) for oid in graph}
        expected = {oid for oid, parents in graph.items() if all(at[oid] != at.get(parent, "absent") for parent in parents or ["-"])}
        if key:  # coming and going matters only where the key is there
            expected = {oid for oid in expected if not _nothing(at[oid], [at.get(p, "absent") for p in graph[oid] or ["-"]])}
        expected = {oid for oid in expected if not (at[oid] == "absent" and not graph[oid])}
        done = run("log", "leaf", *([key] if key else []), "--format", "json")
        assert done.code == 0, done.err
        assert {entry["commit"] for entry in json.loads(done.out)["commits"]} == expected, key


def _nothing(now: Any, before: list[Any]) -> bool:
    quiet = ("absent", "not set")
    return now in quiet and all(then in quiet for then in before)


@pytest.mark.parametrize("seed", SEEDS)
def test_diff_names_what_resolving_both_sides_says(repo: Repo, run: Run, seed: int) -> None:
    import npuprof.catalog.values

    dice = random.Random(1000 + seed)
    grow(repo, dice, 20)
    store = npuprof.open_store()
    ids = repo.git("rev-list", "HEAD").splitlines()
    for _ in range(4):
        left, right = dice.choice(ids), dice.choice(ids)
        expected = {name for name in NAMES if seen(store, f"{name}@{left}", None) != seen(store, f"{name}@{right}", None)}
        done = run("diff", "--rev", f"{left}..{right}", "--format", "json")
        there = repo.git("ls-tree", "-r", "--name-only", right, "profiles/").splitlines()
        broken = {
            name for name in NAMES if f"profiles/{name}.toml" in there and seen(store, f"{name}@{right}", None) in ("broken", "absent")
        }
        assert done.code in ((2,) if broken & expected else (0, 2) if broken else (0,)), done.err
        found = {pair["preset"] for pair in json.loads(done.out)["presets"] if pair["status"] != "unchanged"}
        renamed = {pair["renamed_from"] for pair in json.loads(done.out)["presets"] if pair["renamed_from"]}
        assert expected - renamed == found - renamed or renamed
