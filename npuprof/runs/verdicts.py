"""Verdicts: what the logs of a process prove about the settings of a preset.

A setting is ``in force`` (effective), ``changed`` (another value is effective), ``too late`` (the
engine was already running), ``absent`` (it never arrived), ``default or set`` (effective, also
without the preset), or ``cannot tell``. Any uncertainty gives ``cannot tell``: a wrong ``in force``
would be worse than no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from npuprof.catalog.wire import (
    NO_KEY,
    STAGES,
    Wire,
    find_wire,
)
from npuprof.runs import adapters, dumps, tf2verdicts
from npuprof.runs.epoch_rules import EpochCase, judge_case
from npuprof.runs.evidence import Epoch, Map, Process
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    EFFECTIVE,
    NOT_IN_FORCE,
    OTHER,
    SAME,
    UNSURE,
    ExpectedSetting,
    Outcome,
    Verdict,
    find_texts,
    join_outcomes,
    judge_text,
    merge,
)


def judge_process(options: Mapping[str, Any], process: Process) -> list[Verdict]:
    """Return the verdict on each option of a preset, in order."""
    return [_judge_setting(name, value, process) for name, value in options.items()]


def _judge_setting(name: str, value: Any, process: Process) -> Verdict:
    wire = find_wire(name)
    if wire is None:
        return dumps.judge_unknown(name, process)
    expected = ExpectedSetting(wire, value, process.tf2)
    if process.tf2:
        return tf2verdicts.judge(expected, process)
    if expected.plain is None:
        return Verdict(name, CANNOT_TELL, _list_texts(wire, process), expected.why)
    if wire.proves == "nothing" and not wire.init:
        return Verdict(name, CANNOT_TELL, (), "nothing of it is written down anywhere")
    # without sessions, an epoch proves nothing about session options
    stages = ("session", "graph", "add graph", "single session", "partition", "operator")
    verdicts = [
        _judge_epoch(expected, epoch, process)
        for epoch in process.epochs
        if wire.init or epoch.has(*stages)
    ]
    if verdicts:
        verdict = _join_epochs(verdicts)
    else:
        verdict = Verdict(name, CANNOT_TELL, (), "", adapters.find_logging_switch(wire, process))
    verdict = _weigh_damage(verdict, wire, process)
    return dumps.complete(verdict, expected, process) if process.dumps else verdict


def _weigh_damage(verdict: Verdict, wire: Wire, process: Process) -> Verdict:
    """Return a verdict, or "cannot tell" if the log is damaged."""
    if verdict.state in NOT_IN_FORCE and process.is_truncated:
        note = "lines of this log are cut, or run into each other"
        return verdict._replace(state=CANNOT_TELL, note=note)
    keys = (*wire.keys("init"), *wire.keys("session"))
    if verdict.state in EFFECTIVE and not process.keys_without_header.isdisjoint(keys):
        note = "the log has lines of a block whose title is lost"
        return verdict._replace(state=CANNOT_TELL, note=note)
    return verdict


def _judge_epoch(expected: ExpectedSetting, epoch: Epoch, process: Process) -> Verdict:
    """Return the verdict on a setting in one epoch, by the stages that have it."""
    outcomes = {
        "init": _judge_init(expected, epoch),
        "session": _judge_sessions(expected, epoch, process),
        "graph": _judge_graphs(expected, epoch),
    }
    logged = {stage: outcome for stage, outcome in outcomes.items() if outcome is not None}
    joined = join_outcomes([*logged.values()])
    return judge_case(EpochCase(expected, epoch, process, logged, joined))


def _judge_stage(expected: ExpectedSetting, epoch: Epoch, stage: str) -> list[Outcome]:
    """Return the outcomes of an option in a stage's blocks.

    If no block has it, those of its single lines.
    """
    name = expected.wire.name
    known = _judge_blocks(expected, stage, epoch.blocks(stage))
    return known or [
        judge_text(expected, name, text) for text in epoch.texts(name, f"single {stage}")
    ]


def _judge_blocks(expected: ExpectedSetting, stage: str, blocks: Iterable[Map]) -> list[Outcome]:
    """Return the outcome of each block that has the option under a key of a stage."""
    outcomes = []
    for block in blocks:
        texts = find_texts(expected.wire, stage, block.values)
        if texts:
            by_key = [judge_text(expected, key, text) for key, text in texts.items()]
            outcomes.append(merge(by_key, block))
    return outcomes


def _judge_init(expected: ExpectedSetting, epoch: Epoch) -> Outcome | None:
    """Return the outcome of the engine start, None if it is not in the log."""
    outcomes = _judge_stage(expected, epoch, "init")
    if not outcomes:
        return None
    joined = join_outcomes(outcomes)
    by_engine = [outcome for outcome in outcomes if outcome.engine]
    # the engine logs last, after everything that the adapter adds
    if joined.says == UNSURE and any(outcome.says == OTHER for outcome in by_engine):
        joined = join_outcomes(by_engine)
    if epoch.doubtful:
        note = "nothing says whether this block was in force, or came when the engine was running"
        return joined._replace(says=UNSURE, note=note)
    return joined


def _judge_sessions(expected: ExpectedSetting, epoch: Epoch, process: Process) -> Outcome | None:
    """Return the outcome of the sessions, None if no session has the option.

    If each session has its own block, one with the unset text was not created for this preset. The
    blocks may belong to several processes if lines have no process number.
    """
    outcomes = _judge_stage(expected, epoch, "session")
    if not outcomes:
        return None
    outcomes += _judge_lacking(expected, epoch)
    joined = join_outcomes(outcomes)
    generation = process.generation
    is_apart = process.pid is not None and (generation is None or generation.per == "start")
    others = [outcome for outcome in outcomes if outcome.says != SAME]
    are_others_unset = all(outcome.says == OTHER and outcome.unset for outcome in others)
    if joined.says == UNSURE and is_apart and len(others) < len(outcomes) and are_others_unset:
        return Outcome(SAME, joined.texts, "not in all of its sessions; in the others it is unset")
    return joined


def _judge_lacking(expected: ExpectedSetting, epoch: Epoch) -> list[Outcome]:
    """Return the outcomes of sessions without a line of the option, if other sessions have one.

    It is unset there, or the line was lost.
    """
    without = []
    writers = set()  # adapter and engine: only blocks of the same writer are alike
    for block in epoch.blocks("session"):
        if find_texts(expected.wire, "session", block.values):
            writers.add(block.engine)
        else:
            without.append(block)
    lacking = [block for block in without if block.engine in writers]
    is_unlogged = set(expected.wire.keys("session").values()) == {NO_KEY}  # if it is unset
    if is_unlogged and all(block.whole for block in lacking):
        outcome = Outcome(OTHER, ("",), "one of its sessions has no line of it", unset=True)
    else:
        outcome = Outcome(UNSURE, (), "one of its sessions has no line of it, which may be lost")
    return [outcome] * len(lacking)


def _judge_graphs(expected: ExpectedSetting, epoch: Epoch) -> Outcome | None:
    """Return the outcome of graphs and operators, None if none has the option."""
    wire = expected.wire
    outcomes = _judge_blocks(expected, "graph", epoch.blocks("graph"))
    if wire.graph and not wire.init and not wire.session:  # early adapters passed it to the session
        outcomes += _judge_blocks(expected, "graph", epoch.blocks("session"))
    for stage, name in wire.lines.items():
        for text in epoch.texts(name, stage):
            if text.text or not wire.needs:  # empty: the option that it needs is off
                outcomes.append(judge_text(expected, wire.name, text))
    operator_stages = ("session", "graph", "operator", "add graph", "single session")
    if wire.any_operator and epoch.has(*operator_stages):
        note = "an operator was made, which is not done without it"
        if expected.plain == wire.any_operator:
            outcomes.append(Outcome(SAME, (), note))
        else:
            outcomes.append(Outcome(OTHER, (wire.any_operator,), note))
    return join_outcomes(outcomes) if outcomes else None


def _join_epochs(verdicts: list[Verdict]) -> Verdict:
    """Return the joint verdict of all epochs: a setting must be effective in each of them."""
    first = verdicts[0]
    if all(verdict._replace(tell=first.tell) == first for verdict in verdicts):
        return first
    for states in (NOT_IN_FORCE, (CANNOT_TELL,)):
        numbers = [number for number, verdict in enumerate(verdicts, 1) if verdict.state in states]
        if numbers:
            verdict = _name_starts(verdicts[numbers[0] - 1], numbers, len(verdicts))
            # it arrived at another start
            return verdict._replace(state=CHANGED) if verdict.state == ABSENT else verdict
    for number, verdict in enumerate(verdicts, 1):
        if verdict.note:
            return _name_starts(verdict, [number], len(verdicts))
    return first


def _name_starts(verdict: Verdict, numbers: list[int], count: int) -> Verdict:
    """Return a verdict with the engine starts that it is about in its note."""
    starts = f"at start {', '.join(map(str, numbers))} of {count} of the engine"
    return verdict._replace(note=f"{starts}: {verdict.note}" if verdict.note else starts)


def _list_texts(wire: Wire, process: Process) -> tuple[str, ...]:
    """Return the different texts of an option in all blocks of a process."""
    texts = (
        text.text
        for epoch in process.epochs
        for stage, blocks in epoch.maps.items()
        if stage in STAGES
        for block in blocks
        for text in find_texts(wire, stage, block.values).values()
    )
    return tuple(dict.fromkeys(texts))
