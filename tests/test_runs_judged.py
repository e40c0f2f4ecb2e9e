"""``verify`` on logs that it was not made for: an independent writer knows the truth, and nothing that is said may be false."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapterlogs import cases, judge
from adapterlogs.truth import VERDICTS
from building import build_store

Run = Callable[..., Any]
#: Seeds of the quick lane, a test for each dozen; NPUPROF_SEEDS judges as many more, from another end.
DOZENS = 4
MORE = int(os.environ.get("NPUPROF_SEEDS", "100"))
#: How much of what the evidence proves has to be told.
FLOOR = 0.9


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
