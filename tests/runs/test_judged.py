"""``verify`` on incomplete logs: a loss proves nothing.

They are cut while they are written, in another file, or inside a block.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    whole = judge_folder(tmp_path)
    states = {state for _, state in whole}
    assert states == {"in force"} if snapshot == "g" else "in force" in states
    for place in range(1, len(lines)):
        for path, part in zip(cut, (lines[:place], lines[place:]), strict=True):
            path.write_bytes(b"".join(part))
        for verdict, known in zip(judge_folder(tmp_path), whole, strict=True):
            assert verdict in (known, (known[0], "cannot tell")), place


@pytest.mark.parametrize(
    ("lost", "modules", "setting", "value", "state"),
    [
        ("", "FMK", "precision_mode_v2", "fp16", "changed"),  # two lines of the block
        ("", "GE", "precision_mode_v2", "fp16", "changed"),
        ("", "GE", "oo_constant_folding", True, "changed"),
        (
            " op_debug_level: ",
            "FMK",
            "precision_mode_v2",
            "fp16",
            "changed",
        ),  # nobody set this one either
        (" ge.graphRunMode: ", "FMK", "precision_mode_v2", "fp16", "cannot tell"),
        (
            " something",
            "FMK",
            "graph_memory_max_size",
            "1024",
            "cannot tell",
        ),  # one line, and that may be lost
        ("", "GE", "graph_memory_max_size", "1024", "cannot tell"),
        ("", "FMK GE", "graph_memory_max_size", "1024", "changed"),
        ("", "FMK GE", "graph_memory_max_size", "", "default or set"),
        (" ge.hcomParallel: ", "FMK GE", "graph_memory_max_size", "1024", "cannot tell"),
        ("option: ge.hcomParallel, ", "FMK GE", "graph_memory_max_size", "1024", "cannot tell"),
    ],
)
def test_two_lines_that_are_missing_in_whole_blocks_prove_that_nobody_set_it(
    tmp_path: Path, lost: str, modules: str, setting: str, value: Any, state: str
) -> None:
    lines = write_process("g", modules)
    kept = [line for line in lines if not lost or lost.encode() not in line]
    (tmp_path / "plog-42_1.log").write_bytes(b"".join(kept))
    (process,) = read_evidence([str(tmp_path)]).processes
    assert judge_process({setting: value}, process)[0].state == state
