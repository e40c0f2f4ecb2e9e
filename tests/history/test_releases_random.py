"""Random repositories with releases, ranges, backports and merges, against a second resolver: at each commit and at each tag."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

import npuprof
from support.lanes import more_at_night
from support.released import NAMES, Grower
from support.repositories import Repo
from support.running import Run, expect

SEEDS = range(int(os.environ.get("NPUPROF_SEEDS", "4")))


def resolve(store: Any, spec: str) -> Any:
    try:
        return dict(store.resolve(spec).settings)
    except npuprof.NpuprofError:
        return "broken"


def compare(grown: Grower) -> None:
    """Compare every preset at every commit, and every release, with the model."""
    store, model = npuprof.open_store(), grown.model
    for commit in model.parents:
        for name in (*NAMES, "renamed"):
            assert resolve(store, f"{name}@{commit}") == model.resolve(name, commit), (name, commit)
    assert len(model.releases) > 2
    for (name, number), made in model.releases.items():
        assert resolve(store, f"{name}@{'.'.join(map(str, number))}") == model.settings(made.tree), (name, number)


@pytest.mark.parametrize("seed", more_at_night(SEEDS[:2], SEEDS[2:]))
def test_every_commit_and_every_release_resolves_as_a_second_resolver_says(repo: Repo, run: Run, seed: int) -> None:
    grown = Grower(repo, run, random.Random(seed), renames=True)
    for count in (25, 15):
        for _ in range(count):
            grown.step()
        compare(grown)
    expect(run("verify", "--tags"), 0)
    grown.checkout("main")
    store, head = npuprof.open_store(), repo.head
    for name in NAMES:  # the work tree is like its commit
        expected = grown.model.resolve(name, head)
        assert resolve(store, name) == expected or expected == "broken", name
        newest = grown.model.newest(name, (), head)
        rows = {row["name"]: row["version"] for row in json.loads(run("list", "--format", "json").out)["presets"]}
        shown = newest and ".".join(map(str, newest))
        assert rows.get(name) == shown or name not in rows or not newest  # that of a former name counts


@pytest.mark.parametrize("seed", more_at_night(SEEDS[:2], SEEDS[2:]))
def test_log_and_diff_tell_what_resolving_each_commit_tells(repo: Repo, run: Run, seed: int) -> None:
    dice = random.Random(500 + seed)
    grown = Grower(repo, run, dice)
    for _ in range(35):
        grown.step()
    model = grown.model
    branch = dice.choice(grown.branches)
    grown.checkout(branch)
    behind, judged = model.behind(repo.head), 0
    for name in NAMES[1:]:
        at = {commit: model.resolve(name, commit) for commit in behind}
        expected = {c for c in behind if all(at[c] != at.get(p, "broken") for p in model.parents[c] or ["-"])}
        done = run("log", name, "--format", "json")
        assert done.code == 0, done.err
        assert {entry["commit"] for entry in json.loads(done.out)["commits"]} == expected, name
        judged += len(expected)
        for key in ("hccl_timeout", "graph_run_mode"):
            there = {c: at[c] if isinstance(at[c], str) else at[c].get(key) for c in behind}
            differs = {c for c in behind if all(there[c] != there.get(p, "-") for p in model.parents[c] or ["-"])}
            quiet = {
                c for c in differs if all(value in (None, "-") for value in (there[c], *(there.get(p, "-") for p in model.parents[c])))
            }
            found = {entry["commit"] for entry in json.loads(run("log", name, key, "--format", "json").out)["commits"]}
            assert found == differs - quiet, (name, key)
    assert judged > 8
    for _ in range(6):
        left, right = dice.choice(sorted(model.parents)), dice.choice(sorted(model.parents))
        expected = {name for name in NAMES if model.resolve(name, left) != model.resolve(name, right)}
        done = run("diff", "--rev", f"{left}..{right}", "--format", "json")
        assert done.code == 0, done.err
        assert {pair["preset"] for pair in json.loads(done.out)["presets"] if pair["status"] != "unchanged"} == expected
