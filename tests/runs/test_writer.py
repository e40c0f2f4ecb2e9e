"""The writer of logs that the judge of ``verify`` needs: that it writes what the facts say, and knows the truth of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from support.adapterlogs import cases, truth, wire
from support.adapterlogs.process import play
from support.adapterlogs.stage import Epoch, Plan, Played, Session


def play_one(snapshot: str, *sessions: dict[str, Any], **plan: Any) -> Played:
    known = wire.list_options()
    made = [
        Session({name: value if isinstance(value, tuple) else (known[name].field, value) for name, value in each.items()})
        for each in sessions
    ]
    return play(Plan(snapshot, 42, [Epoch(made)], **plan), random.Random(0))


def find(played: Played, name: str, value: Any) -> truth.Truth:
    return truth.find_truth(played, name, value, set(range(len(played.lines))), set())


def test_as_many_options_can_be_proven_as_the_adapter_of_2026_lets_be() -> None:
    shown: dict[str, int] = {"exact": 0, "where it differs": 0, "none": 0}
    for option in wire.list_options().values():
        needs = {name: (wire.list_options()[name].field, value) for name, value in wire.NEEDS.get(option.name, {}).items()}
        unset = wire.build_maps(needs, "g")[:3]
        maps = [wire.build_maps({**needs, option.name: (option.field, value)}, "g")[:3] for value in option.values]
        if not wire.list_keys(option, "g"):
            shown["none"] += 1
        else:
            shown["where it differs" if unset in maps else "exact"] += 1
    assert shown == {"exact": 56, "where it differs": 33, "none": 16}  # three of the exact ones only by the values drawn here


@pytest.mark.parametrize(
    ("snapshot", "name", "sessions", "wanted", "holds", "right"),
    [
        ("g", "precision_mode", [{"precision_mode": "force_fp16"}], "force_fp16", (True,), {"in force"}),
        ("g", "precision_mode", [{"precision_mode": "force_fp32"}], "force_fp16", (False,), {"changed", "too late"}),
        ("g", "precision_mode", [{"precision_mod": ("s", "force_fp16")}], "force_fp16", (False,), {"changed", "too late", "absent"}),
        ("g", "deterministic", [{"deterministic": ("b", True)}], 1, (False,), {"changed", "too late", "absent"}),
        ("g", "deterministic", [{}], 0, (True,), {"default or set"}),
        ("g", "enable_small_channel", [{"graph_run_mode": 0, "enable_small_channel": 0}], 0, (False,), {"changed", "too late"}),
        ("g", "dump_path", [{"dump_path": "/data/x"}], "/data/x", (False,), {"changed", "too late"}),
        ("g", "dump_path", [{"dump_path": "/data/link/dump", "enable_dump": True}], "/data/link/dump", (True,), {"in force"}),
        ("g", "auto_tune_mode", [{"auto_tune_mode": "GA"}], "GA", (False,), {"changed", "too late"}),
        ("c", "auto_tune_mode", [{"auto_tune_mode": "GA"}], "GA", (True,), {"in force", "default or set"}),
        ("c", "deterministic", [{"deterministic": 1}], 1, (False,), {"changed", "too late"}),
    ],
)
def test_the_truth_of_a_setting_is_what_the_engine_was_given(
    snapshot: str, name: str, sessions: list[dict[str, Any]], wanted: Any, holds: tuple[bool, ...], right: set[str]
) -> None:
    found = find(play_one(snapshot, *sessions), name, wanted)
    assert found.holds == holds
    assert found.list_right() - ({"absent"} if not found.read else set()) == right


def test_the_seeds_bring_every_generation_and_every_verdict(tmp_path: Path) -> None:
    drawn = [cases.draw_case(tmp_path / str(seed), seed) for seed in range(120)]
    assert {" ".join(case.title.split()[:3]) for case in drawn} == {
        *(f"TF 1 {name}" for name in wire.SNAPSHOTS.values()),
        *(f"TF 2 {name}" for key, name in wire.SNAPSHOTS.items() if key > "a"),
    }
    told = [found for case in drawn for truths in case.truths.values() for found in truths.values() if found.told]
    assert set().union(*(found.list_right() for found in told)) == set(truth.VERDICTS) - {"cannot tell"}
