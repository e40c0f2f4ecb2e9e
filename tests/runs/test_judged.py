"""``verify`` on logs that it was not made for: an independent writer knows the truth, and nothing that is said may be false."""

from __future__ import annotations

import json
import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from npuprof.runs.evidence.reading import read_evidence
from npuprof.runs.verdicts import judge_process
from support.adapterlogs import cases, files, judge, wire
from support.adapterlogs.process import play
from support.adapterlogs.stage import Epoch, Plan, Session
from support.adapterlogs.truth import VERDICTS
from support.building import build_store
from support.running import Run

#: Seeds of the quick lane, a test for each dozen; NPUPROF_SEEDS judges as many more, from another end.
DOZENS = 4
MORE = int(os.environ.get("NPUPROF_SEEDS", "100"))
#: How much of what the evidence proves has to be told, of a dozen seeds: what is doubtful is not told, such as a block that goes on in
#: another file, and half of them have damage.
FLOOR = 0.83


def read_verdicts(document: Any) -> list[judge.Said]:
    return [
        judge.Said(process["pid"], verdict["setting"], verdict["state"], process["place"])
        for process in document["processes"]
        for verdict in process["verdicts"]
    ]


def verify(run: Run, folder: Path, seed: int) -> judge.Report:
    case = cases.draw_case(folder / str(seed), seed)
    store = build_store(folder / str(seed) / "store", {"asked": case.text})
    single = len(case.paths) == 1 and case.paths[0].is_file() and seed % 3 == 0
    words = ["-"] if single else [str(path) for path in case.paths]
    answer = run("verify", "asked", *words, "--store", store, "--format", "json", stdin=case.paths[0].read_bytes() if single else b"")
    assert answer.code in (0, 1, 2), f"seed {seed} {case.title}\n{answer.err}"
    if not answer.out:
        assert (answer.code, "nothing in" in answer.err) == (2, True), f"seed {seed} {case.title}\n{answer.err}"
        return judge.judge(case, [])
    return judge.judge(case, read_verdicts(json.loads(answer.out)), answer.code)


def hold(run: Run, folder: Path, seeds: range) -> None:
    report = judge.Report()
    for seed in seeds:
        report.add(verify(run, folder, seed))
    assert not report.faults
    assert report.recall >= FLOOR, "\n".join([f"{report.told} of {report.tellable} told", *report.missed])


@pytest.mark.parametrize("dozen", range(DOZENS))
def test_nothing_that_verify_says_of_a_run_is_false(run: Run, tmp_path: Path, dozen: int) -> None:
    hold(run, tmp_path, range(12 * dozen, 12 * dozen + 12))


def test_nothing_that_verify_says_of_many_runs_is_false(run: Run, tmp_path: Path) -> None:
    hold(run, tmp_path, range(10_000, 10_000 + MORE))


def write_run(path: Path, *settings: dict[str, Any]) -> bytes:
    """Write what ranks with these settings log among each other; return it."""
    known = wire.list_options()
    made = []
    for number, each in enumerate(settings):
        session = Session({name: (known[name].field, value) for name, value in each.items()})
        played = play(Plan("g", 4242 + number, [Epoch([session])]), random.Random(0))
        made.append(files.Process(played.pid, "python3.7", played.lines, datetime(2026, 7, 24, 10, 11, 12, 345000)))
    files.write_screen(path, made, files.Damage(), random.Random(0))
    return path.read_bytes()


def write_process(snapshot: str, modules: frozenset[str], **settings: Any) -> list[bytes]:
    """Return the lines that a process with these settings logs."""
    known = wire.list_options()
    session = Session({name: (known[name].field, value) for name, value in {**CUT, **settings}.items()})
    played = play(Plan(snapshot, 4242, [Epoch([session])], modules), random.Random(0))
    process = files.Process(played.pid, "python3.7", played.lines, datetime(2026, 7, 24, 10, 11, 12, 345000))
    stamped = [files.write_line(process, line, process.start + timedelta(microseconds=137 * at)) for at, line in enumerate(played.lines)]
    return [raw + b"\n" for raw, _ in stamped]


def judge_folder(folder: Path) -> list[tuple[str, str]]:
    """Return the verdicts on what the process asked for that left a folder."""
    processes = read_evidence([str(folder)]).processes
    return [(verdict.setting, verdict.state) for process in processes for verdict in judge_process(CUT, process)]


def test_a_log_that_still_grows_is_never_held_against_its_preset(run: Run, tmp_path: Path) -> None:
    preset = {"precision_mode_v2": "mixed_float16", "hcom_parallel": False, "graph_memory_max_size": "1024", "iterations_per_loop": 10}
    raw = write_run(tmp_path / "log", preset)
    store = build_store(tmp_path / "store", {"asked": cases.write_preset(preset)})
    for end in [*range(200, len(raw), len(raw) // 40), len(raw)]:
        answer = run("verify", "asked", "-", "--store", store, "--format", "json", stdin=raw[:end])
        said = read_verdicts(json.loads(answer.out)) if answer.out else []
        assert not [each for each in said if each.verdict in judge.AGAINST], end
    assert {each.verdict for each in said} == {"in force"}


#: What a process asks for that is cut in two in every place: in the blocks, between them, and in front of what ends them.
CUT = {"precision_mode": "force_fp16", "hcom_parallel": False, "debug_dir": "/a", "op_debug_config": "/a.cfg", "dump_layer": "a/b"}


@pytest.mark.parametrize(("snapshot", "modules"), [("g", {"FMK"}), ("g", {"GE"}), ("d", {"FMK"}), ("c", {"FMK"})])
def test_a_log_that_goes_on_in_another_file_says_nothing_else(tmp_path: Path, snapshot: str, modules: set[str]) -> None:
    lines = write_process(snapshot, frozenset(modules))
    cut = tmp_path / "plog-4242_20260724101112001.log", tmp_path / "plog-4242_20260724101112002.log"
    cut[0].write_bytes(b"".join(lines))
    whole = judge_folder(tmp_path)
    states = {state for _, state in whole}
    assert states == {"in force"} if snapshot == "g" else "in force" in states
    for place in range(1, len(lines)):
        for path, part in zip(cut, (lines[:place], lines[place:]), strict=True):
            path.write_bytes(b"".join(part))
        assert all(verdict in (known, (known[0], "cannot tell")) for verdict, known in zip(judge_folder(tmp_path), whole, strict=True)), (
            place
        )


@pytest.mark.parametrize(
    ("lost", "modules", "setting", "value", "state"),
    [
        ("", {"FMK"}, "precision_mode_v2", "fp16", "changed"),  # two lines of the block
        ("", {"GE"}, "precision_mode_v2", "fp16", "changed"),
        ("", {"GE"}, "oo_constant_folding", True, "changed"),
        (" op_debug_level: ", {"FMK"}, "precision_mode_v2", "fp16", "changed"),  # nobody set this one either
        (" ge.graphRunMode: ", {"FMK"}, "precision_mode_v2", "fp16", "cannot tell"),
        (" something", {"FMK"}, "graph_memory_max_size", "1024", "cannot tell"),  # one line, and that may be lost
        ("", {"GE"}, "graph_memory_max_size", "1024", "cannot tell"),
        ("", {"FMK", "GE"}, "graph_memory_max_size", "1024", "changed"),
        ("", {"FMK", "GE"}, "graph_memory_max_size", "", "default or set"),
        (" ge.hcomParallel: ", {"FMK", "GE"}, "graph_memory_max_size", "1024", "cannot tell"),
        ("option: ge.hcomParallel, ", {"FMK", "GE"}, "graph_memory_max_size", "1024", "cannot tell"),
    ],
)
def test_two_lines_that_are_missing_in_whole_blocks_prove_that_nobody_set_it(
    tmp_path: Path, lost: str, modules: set[str], setting: str, value: Any, state: str
) -> None:
    lines = write_process("g", frozenset(modules))
    kept = [line for line in lines if not lost or lost.encode() not in line]
    (tmp_path / "plog-4242_1.log").write_bytes(b"".join(kept))
    (process,) = read_evidence([str(tmp_path)]).processes
    assert judge_process({setting: value}, process)[0].state == state


@pytest.mark.nightly("runs/test_judged.py::test_nothing_that_verify_says_of_a_run_is_false")
def test_the_judge_finds_what_is_false(tmp_path: Path) -> None:
    drawn = [cases.draw_case(tmp_path / str(seed), seed) for seed in range(40)]
    for word in VERDICTS:
        report = judge.Report()
        for case in drawn:
            said = [judge.Said(pid, name, word) for pid, settings in case.truths.items() for name in settings]
            report.add(judge.judge(case, said))
        assert bool(report.faults) == (word not in ("cannot tell",)), word
        assert report.recall < FLOOR


def test_the_judge_accepts_who_tells_what_can_be_proven(tmp_path: Path) -> None:
    for seed in range(40):
        case = cases.draw_case(tmp_path / str(seed), seed)
        report = judge.judge(case, judge.tell_all(case))
        assert not report.faults
        assert report.recall == 1
