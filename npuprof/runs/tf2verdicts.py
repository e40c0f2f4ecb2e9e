"""Verdicts on processes of TensorFlow 2: one block, and warnings about options missing in it."""

from __future__ import annotations

from functools import partial

from npuprof.catalog.wire import load_wires
from npuprof.runs.evidence import Map, Process, Text
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    DEFAULT_OR_SET,
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
    if not wire.forced or block is None or verdict.state not in (IN_FORCE, DEFAULT_OR_SET):
        return verdict
    if not (by := find_forcing(wire, block.values)):
        return verdict
    if expected.plain == wire.forced:
        return verdict._replace(state=DEFAULT_OR_SET)
    state = (
        CANNOT_TELL if wire.lines else CHANGED
    )  # options with their own line are passed to each graph, independent of its session
    return Verdict(wire.name, state, (wire.forced,), f"{by} = {wire.forced_by[by]} forces it")


def _judge_alone(expected: ExpectedSetting, process: Process, block: Map | None) -> Verdict:
    """Return the verdict on a setting: by the block, else by the warnings."""
    wire = expected.wire
    unknown, absent = (partial(Verdict, wire.name, state, ()) for state in (CANNOT_TELL, ABSENT))
    if not wire.tf2:
        return unknown("global_options() of TensorFlow 2 has no such attribute")
    if expected.plain is None:
        return unknown(expected.why)
    single = process.generation is not None and process.generation.maps == 1
    if any(epoch.doubtful for epoch in process.epochs):
        return unknown(f"the blocks of several processes are interleaved: {_APART}")
    keys = [wire.tf2[level] for level in ("global", "session") if level in wire.tf2]
    if (
        texts := [(key, block.values[key]) for key in keys if key in block.values]
        if block is not None
        else []
    ):
        return _conclude(expected, *texts[0], single)
    warned = process.warned.get(wire.tf2["leaf"], [])
    if single and block is not None:
        if warned:
            return absent("the adapter does not know it, and says so")
        if block.whole and "unset" not in wire.tf2:
            return absent("the one block of all options has no line of it")
        return unknown("the block has no line of it", SHOWN)
    if "global" in wire.tf2:
        if warned and block is not None and process.generation:
            return Verdict(
                wire.name,
                CANNOT_TELL,
                tuple(text.text for text in warned),
                "a warning has it, its line of the block is lost",
            )
        if block is not None and "unset" not in wire.tf2 and _are_lines_whole(block, process, ""):
            return absent("the block of options has no line of it")
        return unknown("" if block is None else "the block has no line of it", SHOWN)
    if "session" not in wire.tf2:
        return unknown("the adapter passes it to no component")
    if warned and (block is None or not process.generation):
        return unknown(
            "the block of options, needed to interpret a warning, is cut or missing", SHOWN
        )
    if process.warnings_mixed or len(warned) > 1:
        return unknown(f"it is not known which of several processes warned: {_APART}")
    if warned:
        return _conclude(expected, wire.tf2["leaf"], warned[0], single)
    if (
        block is not None
        and "unset" not in wire.tf2
        and _are_lines_whole(block, process, "session")
    ):
        return absent("no warning has it, and those of all others are there")
    return unknown("", SHOWN)


def _conclude(expected: ExpectedSetting, key: str, text: Text, single: bool) -> Verdict:
    outcome = judge_text(expected, key, text)
    name = expected.wire.name
    if outcome.says == SAME:
        defaults = (
            expected.wire.tf2.get("unset"),
            *(expected.wire.unset_in.values() if single else ()),
        )
        return Verdict(
            name,
            DEFAULT_OR_SET if expected.plain in defaults or expected.is_default(()) else IN_FORCE,
        )
    return Verdict(
        name, CHANGED if outcome.says == OTHER else CANNOT_TELL, outcome.texts, outcome.note
    )


def _are_lines_whole(block: Map, process: Process, stage: str) -> bool:
    """Return whether all mandatory adapter lines are present: those of the block, and warnings
    about missing options.

    If one is lost, others may be too. Warnings may be missing entirely unless they belong to the
    ``stage``; and without a session, the second map is never filled.
    """
    rows = [
        wire.tf2
        for wire in load_wires().values()
        if "unset" in wire.tf2 and ("global" in wire.tf2) != ("session" in wire.tf2)
    ]
    warned = {
        level: [row["leaf"] in process.warned for row in rows if level in row]
        for level in ("global", "session")
    }
    return block.whole and all(
        all(seen) or (level != stage and not any(seen)) for level, seen in warned.items()
    )
