"""Verdicts: what the logs of a process prove about the settings of a preset.

A setting is ``in force`` (effective), ``changed`` (another value is effective), ``too late`` (the
engine was already running), ``absent`` (it never arrived), ``default or set`` (effective, also
without the preset), or ``cannot tell``. Any uncertainty gives ``cannot tell``: a wrong ``in force``
would be worse than no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from npuprof.catalog.wire import (
    NO_KEY,
    Wire,
    find_wire,
    list_standing_keys,
    load_generations,
    load_known_keys,
)
from npuprof.runs import adapters, dumps, tf2verdicts
from npuprof.runs.evidence import Epoch, Map, Process
from npuprof.runs.log_values import (
    ABSENT,
    CANNOT_TELL,
    CHANGED,
    DEFAULT_OR_SET,
    IN_FORCE,
    NOT_IN_FORCE,
    OTHER,
    SAME,
    TOO_LATE,
    UNSURE,
    ExpectedSetting,
    Outcome,
    Verdict,
    find_forcing,
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
        return Verdict(name, CANNOT_TELL, _show_texts(wire, process), expected.why)
    if wire.proves == "nothing" and not wire.init:
        return Verdict(name, CANNOT_TELL, (), "nothing of it is written down anywhere")
    # without sessions, an epoch proves nothing about session options
    stages = ("session", "graph", "add graph", "single session", "partition", "operator")
    verdicts = [
        _judge_epoch(expected, epoch, process)
        for epoch in process.epochs
        if wire.init or epoch.has(*stages)
    ]
    verdict = (
        _join_epochs(verdicts)
        if verdicts
        else Verdict(name, CANNOT_TELL, (), "", adapters.find_logging_switch(wire, process))
    )
    verdict = _weigh_damage(verdict, wire, process)
    return dumps.complete(verdict, expected, process) if process.dumps else verdict


def _weigh_damage(verdict: Verdict, wire: Wire, process: Process) -> Verdict:
    """Return a verdict, or "cannot tell" if the log is damaged."""
    note = ""
    if verdict.state in NOT_IN_FORCE and process.is_truncated:
        note = "lines of this log are cut, or run into each other"
    elif verdict.state in (IN_FORCE, DEFAULT_OR_SET) and not process.keys_without_header.isdisjoint(
        (*wire.keys("init"), *wire.keys("session"))
    ):
        note = "the log has lines of a block whose title is lost"
    return (
        Verdict(verdict.setting, CANNOT_TELL, verdict.found, note, verdict.tell)
        if note
        else verdict
    )


def _judge_epoch(expected: ExpectedSetting, epoch: Epoch, process: Process) -> Verdict:
    wire = expected.wire
    found = {
        "init": _judge_init(expected, epoch),
        "session": _judge_sessions(expected, epoch, process),
        "graph": _judge_graphs(expected, epoch),
    }
    stages = {stage: outcome for stage, outcome in found.items() if outcome is not None}
    says, joined = {outcome.says for outcome in stages.values()}, join_outcomes([*stages.values()])
    if wire.overridden_by and SAME in says and (outdone := _find_outdone(wire, epoch)):
        state = (
            CHANGED if process.generation else CANNOT_TELL
        )  # the adapter of TensorFlow 2 passes both
        return Verdict(
            wire.name,
            state,
            (f"{wire.overridden_by} = {outdone}",),
            f"where {wire.overridden_by} is set it wins",
        )
    if stages and joined.says == UNSURE:
        note = joined.note or ("its places in the log do not agree" if len(says) > 1 else "")
        return Verdict(
            wire.name, CANNOT_TELL, joined.texts, note, adapters.DUMPS if "cut" in note else ""
        )
    if not stages:
        state, note = _explain_silence(expected, epoch, process)
    else:
        state, note = (_explain_same if joined.says == SAME else _explain_other)(
            expected, epoch, process, stages.keys(), joined
        )
    tell = adapters.find_logging_switch(wire, process) if state == CANNOT_TELL else ""
    if (
        state in (IN_FORCE, DEFAULT_OR_SET)
        and stages
        and not epoch.crowded.isdisjoint(("session", "graph", *wire.lines))
    ):
        state, note = (
            CANNOT_TELL,
            "there are more kinds of sessions or graphs than npuprof keeps apart",
        )
    return Verdict(wire.name, state, joined.texts, note, tell)


def _explain_silence(expected: ExpectedSetting, epoch: Epoch, process: Process) -> tuple[str, str]:
    """Return the state of an option that no stage has, and why."""
    wire = expected.wire
    if not _is_left_out(wire, epoch, process):
        return CANNOT_TELL, adapters.explain_missing(wire, epoch)
    note = "an otherwise complete block has no line of it, as if it were unset"
    if expected.is_default(()):
        return DEFAULT_OR_SET, note
    if _came_too_late(expected, epoch):
        return TOO_LATE, epoch.late
    return ABSENT if adapters.logs_unset_options(wire, process) else CHANGED, note


def _explain_other(
    expected: ExpectedSetting, epoch: Epoch, process: Process, stages: Set[str], joined: Outcome
) -> tuple[str, str]:
    """Return the state of an option with another value in all stages that have it, and why."""
    wire = expected.wire
    if adapters.passes_no_options(wire, process, epoch):
        return CHANGED, "this adapter never passes it on"
    if "init" in stages and "session" not in stages and _came_too_late(expected, epoch):
        return TOO_LATE, epoch.late
    if stages == {"graph"} and wire.init and not (wire.session or wire.graph or wire.lines):
        return (
            CANNOT_TELL,
            (
                "graphs have another, as a mode of training may "
                "demand; with what the engine was started is not there"
            ),
        )
    if wire.needs:
        return CHANGED, joined.note or f"it is read only where {' or '.join(wire.needs)} is on"
    if joined.unset and joined.texts == ("",):
        return ABSENT if adapters.logs_unset_options(
            wire, process
        ) else CHANGED, joined.note or adapters.EMPTY
    return CHANGED, joined.note


def _explain_same(
    expected: ExpectedSetting, epoch: Epoch, process: Process, stages: Set[str], joined: Outcome
) -> tuple[str, str]:
    """Return the state of an option with the expected value in all stages that have it, and why."""
    wire = expected.wire
    if wire.init and "init" not in stages and (process.generation or not epoch.has("single init")):
        return CANNOT_TELL, "the sessions have it; with what the engine was started is not there"
    if (
        wire.init
        and wire.session
        and "session" not in stages
        and (epoch.joined or not epoch.has("single session"))
    ):
        return CANNOT_TELL, "the engine was started with it; what its sessions got is not there"
    is_default = (
        expected.is_default(adapters.find_names(process, epoch))
        or _is_forced(expected, epoch)
        or _is_tf2_default(expected, process)
    )
    return DEFAULT_OR_SET if is_default else IN_FORCE, joined.note


def _is_forced(expected: ExpectedSetting, epoch: Epoch) -> bool:
    """Return whether another option forces the value in any case."""
    wire = expected.wire
    if not wire.forced or expected.plain != wire.forced:
        return False
    return any(
        find_forcing(wire, block.values) for block in epoch.blocks("session", "graph", "operator")
    )


def _is_left_out(wire: Wire, epoch: Epoch, process: Process) -> bool:
    """Return whether complete blocks show that an option was not set: two of its lines are missing.

    A single line may be lost without a trace.
    """
    newest = load_generations()[0]
    stages = [stage for stage in ("init", "session") if wire.keys(stage)]
    if (
        len(stages) != 1
        or process.generation not in (None, newest)
        or set(wire.keys(stages[0]).values()) != {NO_KEY}
    ):
        return False
    standing = set(list_standing_keys(newest.name, stages[0]))
    maps = epoch.blocks(stages[0])
    if stages[0] in epoch.crowded or not all(
        block.whole and standing <= block.values.keys() for block in maps
    ):
        return False
    return len(wire.keys(stages[0])) * len({block.engine for block in maps}) > 1


def _is_tf2_default(expected: ExpectedSetting, process: Process) -> bool:
    """Return whether the adapter may be that of TensorFlow 2, which has other defaults: the
    engine's lines do not name it.
    """
    unset = expected.wire.tf2.get("unset")
    if unset is None or process.generation:
        return False
    seen = [
        block.values.keys()
        for epoch in process.epochs
        for maps in epoch.maps.values()
        for block in maps
        if block.engine
    ]
    if not seen or any(not keys.isdisjoint(load_known_keys()["tf1"]) for keys in seen):
        return False
    as_tf2 = ExpectedSetting(expected.wire, expected.value, tf2=True)
    return unset in (expected.plain, as_tf2.plain) or as_tf2.is_default(())


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
    texts = ((find_texts(expected.wire, stage, block.values).items(), block) for block in blocks)
    return [
        merge([judge_text(expected, key, text) for key, text in pairs], block)
        for pairs, block in texts
        if pairs
    ]


def _judge_init(expected: ExpectedSetting, epoch: Epoch) -> Outcome | None:
    known = _judge_stage(expected, epoch, "init")
    if not known:
        return None
    joined = join_outcomes(known)
    if joined.says == UNSURE and any(outcome.engine and outcome.says == OTHER for outcome in known):
        joined = join_outcomes([outcome for outcome in known if outcome.engine])
    if epoch.doubtful:
        return joined._replace(
            says=UNSURE,
            note="nothing says whether this block was in force, or came when the engine was running",
        )
    return joined


def _judge_sessions(expected: ExpectedSetting, epoch: Epoch, process: Process) -> Outcome | None:
    """Return the outcome of the sessions.

    If each has its own block, one with the unset text was not created for this preset.

    The blocks are not apart if they may belong to several processes.
    """
    apart = process.pid is not None and (
        process.generation is None or process.generation.per == "start"
    )
    known = _judge_stage(expected, epoch, "session")
    if not known:
        return None
    known += _judge_lacking(expected, epoch)
    joined = join_outcomes(known)
    rest = [outcome for outcome in known if outcome.says != SAME]
    if (
        joined.says == UNSURE
        and apart
        and len(rest) < len(known)
        and all(outcome.says == OTHER and outcome.unset for outcome in rest)
    ):
        return Outcome(SAME, joined.texts, "not in all of its sessions; in the others it is unset")
    return joined


def _judge_lacking(expected: ExpectedSetting, epoch: Epoch) -> list[Outcome]:
    """Return the outcomes of sessions without an option's line that others have: unset
    there, or lost.
    """
    maps = epoch.blocks("session")
    having = [bool(find_texts(expected.wire, "session", block.values)) for block in maps]
    engine = {block.engine for block, has in zip(maps, having, strict=True) if has}
    lacking = [
        block for block, has in zip(maps, having, strict=True) if not has and block.engine in engine
    ]
    unset = set(expected.wire.keys("session").values()) == {NO_KEY}
    if unset and all(block.whole for block in lacking):
        return [
            Outcome(OTHER, ("",), "one of its sessions has no line of it", unset=True)
            for block in lacking
        ]
    return [
        Outcome(UNSURE, (), "one of its sessions has no line of it, which may be lost")
        for block in lacking
    ]


def _judge_graphs(expected: ExpectedSetting, epoch: Epoch) -> Outcome | None:
    wire = expected.wire
    outcomes = _judge_blocks(expected, "graph", epoch.blocks("graph"))
    if wire.graph and not wire.init and not wire.session:  # early adapters passed it to the session
        outcomes += _judge_blocks(expected, "graph", epoch.blocks("session"))
    for stage, name in wire.lines.items():
        texts = epoch.texts(name, stage)
        outcomes += [
            judge_text(expected, wire.name, text) for text in texts if text.text or not wire.needs
        ]  # empty: its requirement is off
    if wire.any_operator and epoch.has(
        "session", "graph", "operator", "add graph", "single session"
    ):
        says = SAME if expected.plain == wire.any_operator else OTHER
        outcomes.append(
            Outcome(
                says,
                () if says == SAME else (wire.any_operator,),
                "an operator was made, which is not done without it",
            )
        )
    return join_outcomes(outcomes) if outcomes else None


def _join_epochs(verdicts: list[Verdict]) -> Verdict:
    """Return the joint verdict of all epochs of a process: a setting must be effective in each of
    them.
    """
    first = verdicts[0]
    if all(verdict[:4] == first[:4] for verdict in verdicts):
        return first
    for states in (NOT_IN_FORCE, (CANNOT_TELL,)):
        numbers = [number for number, verdict in enumerate(verdicts, 1) if verdict.state in states]
        if numbers:
            verdict = verdicts[numbers[0] - 1]
            where = f"at start {', '.join(map(str, numbers))} of {len(verdicts)} of the engine"
            state = (
                CHANGED if verdict.state == ABSENT else verdict.state
            )  # it arrived at another start
            return verdict._replace(
                state=state, note=f"{where}: {verdict.note}" if verdict.note else where
            )
    number, noted = next(
        ((number, verdict) for number, verdict in enumerate(verdicts, 1) if verdict.note),
        (0, first),
    )
    return (
        noted._replace(note=f"at start {number} of {len(verdicts)} of the engine: {noted.note}")
        if number
        else first
    )


def _came_too_late(expected: ExpectedSetting, epoch: Epoch) -> bool:
    """Return whether a setting for the engine start arrived after it.

    For adapters that do not log this, any session counts.
    """
    if not expected.wire.init or expected.wire.session or not epoch.late:
        return False
    if not epoch.requested:
        return epoch.joined
    texts = [
        item
        for block in epoch.requested
        for item in find_texts(expected.wire, "init", block.values).items()
    ]
    return any(judge_text(expected, key, text).says == SAME for key, text in texts)


def _find_outdone(wire: Wire, epoch: Epoch) -> str:
    """Return the text of an option that overrides another, empty if it is not set."""
    winner = find_wire(wire.overridden_by)
    assert winner is not None
    maps = [(stage, block.values) for stage in ("init", "graph") for block in epoch.blocks(stage)]
    texts = [
        text.text for stage, values in maps for text in find_texts(winner, stage, values).values()
    ]
    return next((text for text in texts if text not in ("", "None")), "")


def _show_texts(wire: Wire, process: Process) -> tuple[str, ...]:
    texts = (
        text.text
        for epoch in process.epochs
        for stage, maps in epoch.maps.items()
        if stage in ("init", "session", "graph")
        for block in maps
        for text in find_texts(wire, stage, block.values).values()
    )
    return tuple(dict.fromkeys(texts))
