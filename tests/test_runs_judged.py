"""``verify`` on logs that it was not made for: an independent writer knows the truth, and nothing that is said may be false."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from adapterlogs import cases, files, judge, wire
from adapterlogs.process import play
from adapterlogs.stage import Epoch, Plan, Session
from adapterlogs.truth import VERDICTS
from building import build_store

Run = Callable[..., Any]
#: Seeds of the quick lane, a test for each dozen; NPUPROF_SEEDS judges as many more, from another end.
DOZENS = 4
MORE = int(os.environ.get("NPUPROF_SEEDS", "100"))
#: How much of what the evidence proves has to be told: blocks that go on in another file are not joined, what is doubtful is not told.
FLOOR = 0.85


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


@pytest.mark.slow
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


def test_a_log_that_still_grows_is_never_held_against_its_preset(run: Run, tmp_path: Path) -> None:
    preset = {"precision_mode_v2": "mixed_float16", "hcom_parallel": False, "graph_memory_max_size": "1024", "iterations_per_loop": 10}
    raw = write_run(tmp_path / "log", preset)
    store = build_store(tmp_path / "store", {"asked": cases.write_preset(preset)})
    for end in [*range(200, len(raw), len(raw) // 40), len(raw)]:
        answer = run("verify", "asked", "-", "--store", store, "--format", "json", stdin=raw[:end])
        said = read_verdicts(json.loads(answer.out)) if answer.out else []
        assert not [each for each in said if each.verdict in judge.AGAINST], end
    assert {each.verdict for each in said} == {"in force"}


def test_ranks_that_disagree_are_told_apart(run: Run, tmp_path: Path) -> None:
    preset = {"precision_mode": "force_fp16", "hcom_parallel": False}
    write_run(tmp_path / "log", preset, preset | {"precision_mode": "force_fp32"}, preset)
    store = build_store(tmp_path / "store", {"asked": cases.write_preset(preset)})
    answer = run("verify", "asked", tmp_path / "log", "--store", store, "--format", "json")
    document = json.loads(answer.out)
    said = {(each.pid, each.name): each.verdict for each in read_verdicts(document)}
    assert said == {(pid, name): "in force" for pid in (4242, 4243, 4244) for name in preset} | {(4243, "precision_mode"): "changed"}
    assert "precision_mode" in json.dumps(document["disagree"])
    assert "hcom_parallel" not in json.dumps(document["disagree"])
    assert answer.code == 1


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
