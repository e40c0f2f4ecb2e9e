"""``verify`` on incomplete logs: a loss proves nothing.

They are cut while they are written, in another file, or inside a block.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.verdicts import judge_process
from support.adapterlogs import wire
from support.adapterlogs.process import play, write_lines
from support.building import build_store
from support.running import Run

#: What a process asks for that is cut in two in every place: in the blocks, between them, and in
#: front of what ends them.
CUT = {
    "precision_mode": "force_fp16",
    "hcom_parallel": False,
    "debug_dir": "/a",
    "op_debug_config": "/a.cfg",
    "dump_layer": "a/b",
}
PRESET = """[options]
precision_mode = "force_fp16"
hcom_parallel = false
debug_dir = "/a"
op_debug_config = "/a.cfg"
dump_layer = "a/b"
"""


def write_process(snapshot: str, modules: str, **settings: Any) -> list[bytes]:
    """Return the lines that a process with these settings logs."""
    known = wire.list_options()
    entries = {name: (known[name].field, value) for name, value in {**CUT, **settings}.items()}
    return [line + b"\n" for line in write_lines(play(snapshot, [entries], modules))]


def judge_folder(folder: Path) -> list[tuple[str, str]]:
    """Return the verdicts on what the process asked for that left a folder."""
    processes = read_evidence([str(folder)]).processes
    return [
        (verdict.setting, verdict.state)
        for process in processes
        for verdict in judge_process(CUT, process)
    ]


def test_a_log_that_still_grows_is_never_held_against_its_preset(run: Run, tmp_path: Path) -> None:
    raw = b"".join(write_process("g", "FMK"))
    store = build_store(tmp_path / "store", {"asked": PRESET})
    states = set()
    for end in [*range(200, len(raw), len(raw) // 40), len(raw)]:
        answer = run("verify", "asked", "-", "--store", store, "--format", "json", stdin=raw[:end])
        processes = json.loads(answer.out)["processes"] if answer.out else []
        states = {verdict["state"] for process in processes for verdict in process["verdicts"]}
        assert states <= {"in force", "default or set", "cannot tell"}, end
    assert states == {"in force"}


@pytest.mark.parametrize(
    ("snapshot", "modules"), [("g", "FMK"), ("g", "GE"), ("d", "FMK"), ("c", "FMK")]
)
def test_a_log_that_goes_on_in_another_file_says_nothing_else(
    tmp_path: Path, snapshot: str, modules: str
) -> None:
    lines = write_process(snapshot, modules)
    cut = tmp_path / "plog-42_20260724101112001.log", tmp_path / "plog-42_20260724101112002.log"
    cut[0].write_bytes(b"".join(lines))
    verdicts = judge_folder(tmp_path)
    states = {state for _, state in verdicts}
    assert states == {"in force"} if snapshot == "g" else "in force" in states
    assert len(lines) > 10
    for end in range(1, len(lines)):
        for path, part in zip(cut, (lines[:end], lines[end:]), strict=True):
            path.write_bytes(b"".join(part))
        for verdict, known in zip(judge_folder(tmp_path), verdicts, strict=True):
            assert verdict in (known, (known[0], "cannot tell")), end


class LossCase(NamedTuple):
    """A lost line of a log, a setting of the preset, and the state that the rest proves."""

    lost: str
    modules: str
    setting: str
    value: Any
    state: str


@pytest.mark.parametrize(
    "case",
    [
        # two lines of the block
        LossCase(
            lost="", modules="FMK", setting="precision_mode_v2", value="fp16", state="changed"
        ),
        LossCase(lost="", modules="GE", setting="precision_mode_v2", value="fp16", state="changed"),
        LossCase(lost="", modules="GE", setting="oo_constant_folding", value=True, state="changed"),
        # nobody set this one either
        LossCase(
            lost=" op_debug_level: ",
            modules="FMK",
            setting="precision_mode_v2",
            value="fp16",
            state="changed",
        ),
        LossCase(
            lost=" ge.graphRunMode: ",
            modules="FMK",
            setting="precision_mode_v2",
            value="fp16",
            state="cannot tell",
        ),
        # one line, and that may be lost
        LossCase(
            lost=" something",
            modules="FMK",
            setting="graph_memory_max_size",
            value="1024",
            state="cannot tell",
        ),
        LossCase(
            lost="",
            modules="GE",
            setting="graph_memory_max_size",
            value="1024",
            state="cannot tell",
        ),
        LossCase(
            lost="",
            modules="FMK GE",
            setting="graph_memory_max_size",
            value="1024",
            state="changed",
        ),
        LossCase(
            lost="",
            modules="FMK GE",
            setting="graph_memory_max_size",
            value="",
            state="default or set",
        ),
        LossCase(
            lost=" ge.hcomParallel: ",
            modules="FMK GE",
            setting="graph_memory_max_size",
            value="1024",
            state="cannot tell",
        ),
        LossCase(
            lost="option: ge.hcomParallel, ",
            modules="FMK GE",
            setting="graph_memory_max_size",
            value="1024",
            state="cannot tell",
        ),
    ],
    ids=lambda case: f"{case.setting}={case.value} {case.state}",
)
def test_two_lines_that_are_missing_in_whole_blocks_prove_that_nobody_set_it(
    case: LossCase,
    tmp_path: Path,
) -> None:
    lines = write_process("g", case.modules)
    remaining = [line for line in lines if not case.lost or case.lost.encode() not in line]
    (tmp_path / "plog-42_1.log").write_bytes(b"".join(remaining))
    (process,) = read_evidence([str(tmp_path)]).processes
    assert judge_process({case.setting: case.value}, process)[0].state == case.state
