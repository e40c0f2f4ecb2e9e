"""Verdicts from graph dumps: what the adapter read from the parameter map.

It may differ from what the engine was started with.
"""

from __future__ import annotations

from npuprof.catalog.wire import find_wire
from npuprof.runs.adapters import BLOCKS, DUMPS
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

#: Another session, or ``init_resource``, may have started the engine with the value.
_UNREQUESTED = "this session did not request it; only the log shows the engine's start options"
_BY_DUMP = "by the graph dump"


def judge_unknown(name: str, process: Process) -> Verdict:
    """Return the verdict on a key unknown to every adapter: a dump shows that it never arrives."""
    if any(dump.whole and kind == "node" for kind, dump in process.dumps):
        note = "no adapter knows the key, and the graph dump has no attribute of it"
        return Verdict(name, ABSENT, (), note)
    tell = "" if process.tf2 else DUMPS
    return Verdict(name, CANNOT_TELL, (), "no adapter is known to read it", tell)


def complete(verdict: Verdict, expected: ExpectedSetting, process: Process) -> Verdict:
    """Return a verdict of the log, completed by the graph dumps of the process."""
    wire = expected.wire
    dumped = _judge_dumps(expected, process)
    only_starts = wire.init and not wire.session
    if verdict.state == CHANGED and only_starts and dumped is not None and dumped.says == SAME:
        note = "the adapter read it, the engine was started without it"
        return Verdict(wire.name, TOO_LATE, verdict.found, note)
    if verdict.state != CANNOT_TELL or verdict.found:
        return verdict
    if dumped is None:
        return _complete_without_attribute(verdict, expected, process)
    if dumped.says == UNSURE:
        return verdict
    if dumped.says == SAME:
        return _complete_with_value(verdict, expected)
    if only_starts:
        return verdict._replace(note=_UNREQUESTED, tell=BLOCKS)
    is_default = expected.is_default(())
    is_unset = dumped.texts == ("",) and not _is_in_wrong_field(expected, process)
    if is_default and is_unset:
        return Verdict(wire.name, DEFAULT_OR_SET, (), _BY_DUMP)
    return Verdict(wire.name, CHANGED, dumped.texts, _BY_DUMP)


def _complete_without_attribute(
    verdict: Verdict, expected: ExpectedSetting, process: Process
) -> Verdict:
    """Return the verdict if the dumps do not have the option, although a complete one could."""
    wire = expected.wire
    names_by_kind = {"node": wire.node, "operator": wire.operator}
    if not any(dump.whole and names_by_kind[kind] for kind, dump in process.dumps):
        return verdict
    if wire.init and not wire.session:
        return verdict._replace(note=_UNREQUESTED, tell=BLOCKS)
    note = "the graph dump has no attribute of it"
    if expected.is_default(()):
        return Verdict(wire.name, DEFAULT_OR_SET, (), f"{note}, as if it were unset")
    return Verdict(wire.name, ABSENT, (), note)


def _complete_with_value(verdict: Verdict, expected: ExpectedSetting) -> Verdict:
    """Return the verdict if the dumps have the expected value."""
    if expected.wire.init:
        note = "the adapter read it; only the log shows the engine's start options"
        return verdict._replace(note=note, tell=BLOCKS)
    state = DEFAULT_OR_SET if expected.is_default(()) else IN_FORCE
    return Verdict(expected.wire.name, state, (), _BY_DUMP)


def _judge_dumps(expected: ExpectedSetting, process: Process) -> Outcome | None:
    """Return the joint outcome of all dumps, None if none has an attribute of the option."""
    outcomes = []
    for dump, texts in list_dumped(expected.wire, process):
        if texts:
            by_attribute = [
                Outcome(_judge_attribute(expected, name, text), (text.text,))
                for name, text in texts.items()
            ]
            outcomes.append(merge(by_attribute, dump))
    return join_outcomes(outcomes) if outcomes else None


def _is_in_wrong_field(expected: ExpectedSetting, process: Process) -> bool:
    """Return whether an empty text came in a wrong field of the map.

    An unset option has another text. An option that depends on another one is only read if that one
    is on.
    """
    wire = expected.wire
    if wire.form != "text" or not expected.unset or "" in expected.unset:
        return False
    if not wire.needs:
        return True
    for name in wire.needs:
        needed = find_wire(name)
        for attribute in (*needed.node, *needed.operator) if needed is not None else ():
            for _, dump in process.dumps:
                if attribute in dump.values and dump.values[attribute].text == "1":
                    return True
    return False


def _judge_attribute(expected: ExpectedSetting, name: str, text: Text) -> str:
    """Return the result of comparing an attribute: a short name may have the user's own text."""
    says = expected.judge(name.removeprefix("_"), text)
    if says == OTHER and isinstance(expected.value, str) and text.text == expected.value:
        return SAME
    return says
