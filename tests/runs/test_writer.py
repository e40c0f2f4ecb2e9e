"""The writer of logs that the judge of ``verify`` needs: that it writes what the facts say, and knows the truth of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from support.adapterlogs import cases, dumps, files, truth, wire
from support.adapterlogs.process import play
from support.adapterlogs.stage import Epoch, Plan, Played, Session
from support.adapterlogs.tf2 import Plan2, play2


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
        ("g", "precision_mode", [{}, {"precision_mode": "force_fp16"}], "force_fp16", (False, False), {"changed", "too late"}),
        ("g", "deterministic", [{"deterministic": ("b", True)}], 1, (False,), {"changed", "too late", "absent"}),
        ("g", "deterministic", [{}], 0, (True,), {"default or set"}),
        ("g", "hcom_parallel", [{}, {"hcom_parallel": False}], False, (False, True), {"changed", "too late"}),
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


@pytest.mark.parametrize("snapshot", list("abcdefg"))
def test_a_line_says_what_an_adapter_of_its_time_says(snapshot: str) -> None:
    played = play_one(snapshot, {"precision_mode": "force_fp16", "hcom_parallel": False})
    process = files.Process(42, "python3.7", played.lines, cases._choose_start(snapshot, random.Random(1)))
    said = [files.write_line(process, line, process.start)[0].decode() for line in played.lines]
    text = "\n".join(said)
    block, single = "] ge.exec.precision_mode: force_fp16", "] [GePlugin] precision_mode : force_fp16"
    assert ("adp_logger.cc" in text) == (snapshot < "e")
    assert (f"{42} ge.exec.precision_mode: force_fp16" in text) == (snapshot >= "e")
    assert (block in text, single in text) == ("b" <= snapshot < "e", snapshot < "e")
    assert all(line.startswith("[INFO] FMK(42,python3.7):2") for line in said)


def test_an_old_adapter_repeats_its_options_for_a_session_that_they_do_not_reach() -> None:
    played = play_one("d", {"op_debug_level": 1}, {"op_debug_level": 2})
    said = [line.text.partition("] [")[2] for line in played.lines]
    assert sum(text.endswith("ge.opDebugLevel: 2") for text in said) == 1
    assert find(played, "op_debug_level", 2).holds == (False, False)
    assert find(played, "op_debug_level", 1).holds == (True, True)


def test_a_line_is_cut_at_a_byte_and_no_longer_proves_anything(tmp_path: Path) -> None:
    played = play_one("g", {"dump_layer": "层" * 400})
    process = files.Process(42, "python3.7", played.lines, cases._choose_start("g", random.Random(1)))
    written = files.write_screen(tmp_path / "log", [process], files.Damage(), random.Random(1))
    lines = (tmp_path / "log").read_bytes().splitlines()
    assert max(map(len, lines)) == files.LIMIT
    with pytest.raises(UnicodeDecodeError):
        next(line for line in lines if len(line) == files.LIMIT).decode()
    assert not truth.find_truth(played, "dump_layer", "层" * 400, written.whole[0], set()).told
    assert truth.find_truth(played, "precision_mode", "force_fp16", written.whole[0], set()).told


def test_a_dumped_graph_shows_what_was_asked_for_and_not_what_was_in_force() -> None:
    played = play_one("g", {"op_debug_config": "/a.cfg"}, {"op_debug_config": '/"层".cfg'})
    graph = dumps.write_graph(played.sessions[1], after=True)
    assert 's: "/\\"\\345\\261\\202\\".cfg"' in graph
    assert find(played, "op_debug_config", '/"层".cfg').holds == (False, False)


def test_the_adapter_of_tf2_warns_of_what_it_hands_over_all_the_same() -> None:
    played = play2(Plan2("g", 42, {"precision_mode_v2": "mixed_float16", "hcom_parallel": False}))
    warned = [line.text.rpartition(" ")[2] for line in played.lines if "Unrecognized" in line.text]
    assert "hcom_parallel:0" in warned
    assert "precision_mode_v2:mixed_float16" in warned
    assert sum("  ge.exec.precision_mode_v2:mixed_float16" in line.text for line in played.lines) == 1


def test_a_seed_is_a_run(tmp_path: Path) -> None:
    for seed in range(30):
        one, two = (cases.draw_case(tmp_path / name / str(seed), seed) for name in "ab")
        assert (one.title, one.preset, one.truths) == (two.title, two.preset, two.truths)
        for path in (tmp_path / "a" / str(seed)).rglob("*.log"):
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_the_seeds_bring_every_generation_and_every_verdict(tmp_path: Path) -> None:
    drawn = [cases.draw_case(tmp_path / str(seed), seed) for seed in range(120)]
    assert {" ".join(case.title.split()[:3]) for case in drawn} == {
        *(f"TF 1 {name}" for name in wire.SNAPSHOTS.values()),
        *(f"TF 2 {name}" for key, name in wire.SNAPSHOTS.items() if key > "a"),
    }
    told = [found for case in drawn for truths in case.truths.values() for found in truths.values() if found.told]
    assert set().union(*(found.list_right() for found in told)) == set(truth.VERDICTS) - {"cannot tell"}
