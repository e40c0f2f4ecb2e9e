"""Verdicts from graph dumps: what the adapter read from the parameter map, which may differ from the engine's start."""

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
    Outcome,
    Verdict,
    Wanted,
    join_outcomes,
    merge,
)

#: Makes the log show the engine's start options: a dump has only those of its session.
_BLOCKS = "ASCEND_MODULE_LOG_LEVEL=FMK=1"
_NOT_ASKED = "this session did not request it; only the log shows the engine's start options"


def judge_unknown(name: str, process: Process) -> Verdict:
    """Return the verdict on a key unknown to every adapter: a dump shows that it never arrives."""
    if any(dump.whole and kind == "node" for kind, dump in process.dumps):
        return Verdict(name, ABSENT, (), "no adapter knows the key, and the graph dump has no attribute of it")
    return Verdict(name, CANNOT_TELL, (), "no adapter is known to read it", "" if process.tf2 else "PRINT_MODEL=1")


def complete(verdict: Verdict, wanted: Wanted, process: Process) -> Verdict:
    """Return a verdict, completed by the dumps of the process."""
    wire = wanted.wire
    dumped = _judge_dumps(wanted, process)
    if verdict.state == CHANGED and wire.init and not wire.session and dumped is not None and dumped.says == SAME:
        return Verdict(verdict.setting, TOO_LATE, verdict.found, "the adapter read it, the engine was started without it")
    if verdict.state != CANNOT_TELL or verdict.found:
        return verdict
    if dumped is None:
        kinds = [(kind, dump) for kind, dump in process.dumps if dump.whole and (wire.node if kind == "node" else wire.operator)]
        if kinds and (wire.node or wire.operator):
            if wire.init and not wire.session:  # another session, or init_resource, may have started the engine with it
                return verdict._replace(note=_NOT_ASKED, tell=_BLOCKS)
            if wanted.is_default(()):
                return Verdict(verdict.setting, DEFAULT_OR_SET, (), "the graph dump has no attribute of it, as if it were unset")
            return Verdict(verdict.setting, ABSENT, (), "the graph dump has no attribute of it")
        return verdict
    if dumped.says == UNSURE:
        return verdict
    if dumped.says == OTHER:
        if wire.init and not wire.session:
            return verdict._replace(note=_NOT_ASKED, tell=_BLOCKS)
        # it was not set, and its default is the wanted value
        if dumped.texts == ("",) and wanted.is_default(()) and not _is_given_badly(wanted, process):
            return Verdict(verdict.setting, DEFAULT_OR_SET, (), "by the graph dump")
        return Verdict(verdict.setting, CHANGED, dumped.texts, "by the graph dump")
    if wire.init:
        note = "the adapter read it; only the log shows the engine's start options"
        return verdict._replace(note=note, tell=_BLOCKS)
    return Verdict(verdict.setting, DEFAULT_OR_SET if wanted.is_default(()) else IN_FORCE, (), "by the graph dump")


def _judge_dumps(wanted: Wanted, process: Process) -> Outcome | None:
    """Return the joint outcome of all dumps, None if none has an attribute of the option."""
    wire = wanted.wire
    outcomes = []
    for kind, dump in process.dumps:
        names = wire.node if kind == "node" else wire.operator
        if there := [(name, dump.values[name]) for name in names if name in dump.values]:
            outcomes.append(merge([Outcome(_judge(wanted, name, text), (text.text,)) for name, text in there], dump))
    return join_outcomes(outcomes) if outcomes else None


def _is_given_badly(wanted: Wanted, process: Process) -> bool:
    """Return whether an empty text came in a wrong field of the map: an unset option has another text.

    An option that depends on another one is only read if that one is on.
    """
    wire = wanted.wire
    if wire.form != "text" or not wanted.unset or "" in wanted.unset:
        return False
    needed = [attribute for name in wire.needs if (need := find_wire(name)) is not None for attribute in (*need.node, *need.operator)]
    return not wire.needs or any(dump.values[name].text == "1" for _, dump in process.dumps for name in needed if name in dump.values)


def _judge(wanted: Wanted, name: str, text: Text) -> str:
    """Return the outcome of an attribute: a short name may have the user's own text."""
    says = wanted.judge(name.removeprefix("_"), text)
    if says == OTHER and isinstance(wanted.value, str) and text.text == wanted.value:
        return SAME
    return says
