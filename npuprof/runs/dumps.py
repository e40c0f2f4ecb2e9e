"""Verdicts from graph dumps: what the adapter read from the parameter map, which may differ from
the engine's start.
"""

from __future__ import annotations

from npuprof.catalog.wire import find_wire
from npuprof.runs.evidence import Process, Text
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    DEFAULT_OR_SET,
    IN_FORCE,
    OTHER,
    SAME,
    TOO_LATE,
    UNSURE,
    ExpectedSetting,
    Outcome,
    Verdict,
    join_outcomes,
    list_dumped,
    merge,
)

#: Makes the log show the engine's start options: a dump has only those of its session.
_BLOCKS = "ASCEND_MODULE_LOG_LEVEL=FMK=1"
_NOT_ASKED = "this session did not request it; only the log shows the engine's start options"


def judge_unknown(name: str, process: Process) -> Verdict:
    """Return the verdict on a key unknown to every adapter: a dump shows that it never arrives."""
    if any(dump.whole and kind == "node" for kind, dump in process.dumps):
        return Verdict(
            name, ABSENT, (), "no adapter knows the key, and the graph dump has no attribute of it"
        )
    return Verdict(
        name,
        CANNOT_TELL,
        (),
        "no adapter is known to read it",
        "" if process.tf2 else "PRINT_MODEL=1",
    )


def complete(verdict: Verdict, expected: ExpectedSetting, process: Process) -> Verdict:
    """Return a verdict, completed by the dumps of the process."""
    wire, name = expected.wire, verdict.setting
    dumped = _judge_dumps(expected, process)
    only_starts = wire.init and not wire.session
    if verdict.state == CHANGED and only_starts and dumped is not None and dumped.says == SAME:
        return Verdict(
            name, TOO_LATE, verdict.found, "the adapter read it, the engine was started without it"
        )
    if (
        verdict.state != CANNOT_TELL
        or verdict.found
        or (dumped is not None and dumped.says == UNSURE)
    ):
        return verdict
    has_room = any(
        dump.whole and (wire.node if kind == "node" else wire.operator)
        for kind, dump in process.dumps
    )
    if dumped is None and not has_room:
        return verdict
    if only_starts and (
        dumped is None or dumped.says == OTHER
    ):  # another session, or init_resource, may have started the engine with it
        return verdict._replace(note=_NOT_ASKED, tell=_BLOCKS)
    is_default = expected.is_default(())
    if dumped is None:
        note = "the graph dump has no attribute of it"
        return (
            Verdict(name, DEFAULT_OR_SET, (), f"{note}, as if it were unset")
            if is_default
            else Verdict(name, ABSENT, (), note)
        )
    if dumped.says == OTHER and not (
        dumped.texts == ("",) and is_default and not _is_given_badly(expected, process)
    ):
        return Verdict(name, CHANGED, dumped.texts, "by the graph dump")
    if dumped.says == SAME and wire.init:
        return verdict._replace(
            note="the adapter read it; only the log shows the engine's start options", tell=_BLOCKS
        )
    return Verdict(name, DEFAULT_OR_SET if is_default else IN_FORCE, (), "by the graph dump")


def _judge_dumps(expected: ExpectedSetting, process: Process) -> Outcome | None:
    """Return the joint outcome of all dumps, None if none has an attribute of the option."""
    outcomes = [
        merge(
            [Outcome(_judge(expected, name, text), (text.text,)) for name, text in texts.items()],
            dump,
        )
        for dump, texts in list_dumped(expected.wire, process)
        if texts
    ]
    return join_outcomes(outcomes) if outcomes else None


def _is_given_badly(expected: ExpectedSetting, process: Process) -> bool:
    """Return whether an empty text came in a wrong field of the map: an unset option
    has another text.

    An option that depends on another one is only read if that one is on.
    """
    wire = expected.wire
    if wire.form != "text" or not expected.unset or "" in expected.unset:
        return False
    needed = [
        attribute
        for name in wire.needs
        if (need := find_wire(name)) is not None
        for attribute in (*need.node, *need.operator)
    ]
    return not wire.needs or any(
        dump.values[name].text == "1"
        for _, dump in process.dumps
        for name in needed
        if name in dump.values
    )


def _judge(expected: ExpectedSetting, name: str, text: Text) -> str:
    """Return the outcome of an attribute: a short name may have the user's own text."""
    says = expected.judge(name.removeprefix("_"), text)
    if says == OTHER and isinstance(expected.value, str) and text.text == expected.value:
        return SAME
    return says
