"""Verdicts on processes of TensorFlow 2: one block, and warnings about options missing in it."""

from __future__ import annotations

from npuprof.catalog.wire import Wire, load_wires
from npuprof.runs.evidence import Map, Process, Text
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    DEFAULT_OR_SET,
    EFFECTIVE,
    IN_FORCE,
    OTHER,
    SAME,
    ExpectedSetting,
    Verdict,
    find_forcing,
    judge_text,
)

#: Makes the next run log the adapter's lines.
SHOWN = "TF_CPP_MIN_LOG_LEVEL=0"
_APART = "a launcher that labels lines keeps them apart (mpirun -tag-output, srun -l)"


def judge(expected: ExpectedSetting, process: Process) -> Verdict:
    """Return the verdict on a setting, also if another option forces its value."""
    blocks = [block for epoch in process.epochs for block in epoch.blocks("init")]
    block = blocks[0] if len(blocks) == 1 else None
    verdict = _judge_alone(expected, process, block)
    if process.is_truncated and verdict.state in (ABSENT, CHANGED):
        note = "lines of this log are truncated, lost, or interleaved, which may explain it"
        return verdict._replace(state=CANNOT_TELL, note=note, tell=SHOWN)
    wire = expected.wire
    if not wire.forced or block is None or verdict.state not in EFFECTIVE:
        return verdict
    forcing_key = find_forcing(wire, block.values)
    if not forcing_key:
        return verdict
    if expected.plain == wire.forced:
        return verdict._replace(state=DEFAULT_OR_SET)
    # options with their own line are passed to each graph, independent of its session
    state = CANNOT_TELL if wire.lines else CHANGED
    note = f"{forcing_key} = {wire.forced_by[forcing_key]} forces it"
    return Verdict(wire.name, state, (wire.forced,), note)


def _judge_alone(expected: ExpectedSetting, process: Process, block: Map | None) -> Verdict:
    """Return the verdict on a setting: by the block, else by the warnings."""
    wire = expected.wire
    if not wire.tf2:
        return _leave_open(wire, "global_options() of TensorFlow 2 has no such attribute")
    if expected.plain is None:
        return _leave_open(wire, expected.why)
    if any(epoch.doubtful for epoch in process.epochs):
        return _leave_open(wire, f"the blocks of several processes are interleaved: {_APART}")
    for level in ("global", "session"):
        key = wire.tf2.get(level)
        if key is not None and block is not None and key in block.values:
            return _conclude(expected, process, key, block.values[key])
    if _has_one_map(process) and block is not None:
        return _judge_missing_key(wire, process, block)
    if "global" in wire.tf2:
        return _judge_missing_global(wire, process, block)
    return _judge_warnings(expected, process, block)


def _leave_open(wire: Wire, note: str, tell: str = "") -> Verdict:
    return Verdict(wire.name, CANNOT_TELL, (), note, tell)


def _has_one_map(process: Process) -> bool:
    """Return whether the adapter's block has all options, also those of sessions."""
    return process.generation is not None and process.generation.maps == 1


def _judge_missing_key(wire: Wire, process: Process, block: Map) -> Verdict:
    """Return the verdict on an option that the one block of all options does not have.

    ``[core/npu_wrapper.cpp:195] Unrecognized graph engine option LEAF:TEXT``
    """
    if wire.tf2["leaf"] in process.warned:
        return Verdict(wire.name, ABSENT, (), "the adapter does not know it, and says so")
    if block.whole and "unset" not in wire.tf2:
        return Verdict(wire.name, ABSENT, (), "the one block of all options has no line of it")
    return _leave_open(wire, "the block has no line of it", SHOWN)


def _judge_missing_global(wire: Wire, process: Process, block: Map | None) -> Verdict:
    """Return the verdict on an option of the engine start that the block does not have."""
    if block is None:
        return _leave_open(wire, "", SHOWN)
    warned = process.warned.get(wire.tf2["leaf"], [])
    if warned and process.generation:
        texts = tuple(text.text for text in warned)
        note = "a warning has it, its line of the block is lost"
        return Verdict(wire.name, CANNOT_TELL, texts, note)
    if "unset" not in wire.tf2 and _are_lines_whole(block, process, ""):
        return Verdict(wire.name, ABSENT, (), "the block of options has no line of it")
    return _leave_open(wire, "the block has no line of it", SHOWN)


def _judge_warnings(expected: ExpectedSetting, process: Process, block: Map | None) -> Verdict:
    """Return the verdict on an option of sessions, which only warnings show.

    ``[core/npu_wrapper.cpp:195] Unrecognized graph engine option LEAF:TEXT``
    """
    wire = expected.wire
    if "session" not in wire.tf2:
        return _leave_open(wire, "the adapter passes it to no component")
    warned = process.warned.get(wire.tf2["leaf"], [])
    if warned and (block is None or not process.generation):
        note = "the block of options, needed to interpret a warning, is cut or missing"
        return _leave_open(wire, note, SHOWN)
    if process.warnings_mixed or len(warned) > 1:
        note = f"it is not known which of several processes warned: {_APART}"
        return _leave_open(wire, note)
    if warned:
        return _conclude(expected, process, wire.tf2["leaf"], warned[0])
    if (
        block is not None
        and "unset" not in wire.tf2
        and _are_lines_whole(block, process, "session")
    ):
        note = "no warning has it, and those of all others are there"
        return Verdict(wire.name, ABSENT, (), note)
    return _leave_open(wire, "", SHOWN)


def _conclude(expected: ExpectedSetting, process: Process, key: str, text: Text) -> Verdict:
    """Return the verdict on a setting by the text of its key or warning."""
    outcome = judge_text(expected, key, text)
    wire = expected.wire
    if outcome.says != SAME:
        state = CHANGED if outcome.says == OTHER else CANNOT_TELL
        return Verdict(wire.name, state, outcome.texts, outcome.note)
    # adapters with one map are those of 2021 to 2023, some with other defaults
    early = wire.unset_in.values() if _has_one_map(process) else ()
    is_default = expected.plain in (wire.tf2.get("unset"), *early) or expected.is_default(())
    return Verdict(wire.name, DEFAULT_OR_SET if is_default else IN_FORCE)


def _are_lines_whole(block: Map, process: Process, stage: str) -> bool:
    """Return whether all mandatory adapter lines are present: the block's, and warnings.

    If one is lost, others may be too. Warnings may be missing entirely unless they belong to the
    ``stage``; and without a session, the second map is never filled.
    """
    if not block.whole:
        return False
    for level, other in (("global", "session"), ("session", "global")):
        has_warning = [
            wire.tf2["leaf"] in process.warned
            for wire in load_wires().values()
            if "unset" in wire.tf2 and level in wire.tf2 and other not in wire.tf2
        ]
        may_be_missing = level != stage
        if not all(has_warning) and not (may_be_missing and not any(has_warning)):
            return False
    return True
