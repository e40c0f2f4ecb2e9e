"""Whole command lines of every verb: output and files equal the recordings, byte by byte."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

import pytest
from end_to_end.recorded import record

from support.lanes import ACCEPT
from support.running import Run

pytestmark = pytest.mark.accepted

SCENARIOS = record.scenarios()
#: Verbs that become another program, or hand on bytes that are no text.
APART = {"run", "git"}


@pytest.fixture
def command(run: Run, monkeypatch: pytest.MonkeyPatch) -> record.Command:
    """Run npuprof in this process, which is faster, where that is the same."""

    def called(
        arguments: Sequence[str], stdin: bytes, environ: Mapping[str, str], folder: Path
    ) -> record.Result:
        if APART.intersection(arguments[:1]) or "_NPUPROF_COMPLETE" in environ:
            return record.work_tree(arguments, stdin, environ, folder)
        monkeypatch.chdir(folder)
        with mock.patch.dict(os.environ, environ, clear=True):
            done = run(*arguments, stdin=stdin)
        return record.Result(done.code, done.out.encode(), done.err.encode())

    return called


@pytest.mark.parametrize(
    "scenario",
    SCENARIOS,
    ids=lambda scenario: f"{scenario.room}: {scenario.name}",
)
def test_a_scenario_goes_as_it_was_recorded(
    scenario: record.Scenario,
    tmp_path: Path,
    command: record.Command,
    request: pytest.FixtureRequest,
) -> None:
    before = scenario.recording.read_bytes().decode() if scenario.recording.exists() else ""
    now = record.play(scenario, tmp_path / "recorded", command)
    if request.config.getoption("--update-golden"):
        scenario.recording.parent.mkdir(parents=True, exist_ok=True)
        scenario.recording.write_bytes(now.encode())
    elif now != before:
        rows = difflib.unified_diff(
            before.split("\n"), now.split("\n"), "recorded", "now", lineterm="", n=5
        )
        pytest.fail("\n".join([*rows, "", ACCEPT]), pytrace=False)


def test_every_recording_belongs_to_a_scenario_and_names_are_unique() -> None:
    assert sorted(record.RECORDINGS.rglob("*.txt")) == sorted(
        scenario.recording for scenario in SCENARIOS
    )
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
