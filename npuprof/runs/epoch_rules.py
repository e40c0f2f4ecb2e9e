"""Rules that turn the outcomes of one engine start into a verdict on a setting.

Each rule returns a verdict, or None if it does not apply; the first that applies decides. Log lines
in docstrings are cut to file and message: ``[npu_attrs.cc:77]100 KEY: TEXT`` is a line of a block.
``catalog/wire.toml`` lists the adapter releases with each block, and ``source`` files of each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npuprof.catalog.wire import (
    NO_KEY,
    Wire,
    find_wire,
    list_standing_keys,
    load_generations,
    load_known_keys,
)
from npuprof.model import Record
from npuprof.runs import adapters
from npuprof.runs.evidence import Epoch, Process
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
    find_forcing,
    find_texts,
    judge_text,
)

#: What the stages say together, if none of them has the option.
_SILENT = "silent"


class EpochCase(Record):
    """A setting in one epoch: the outcome of each stage that has it, and their joint outcome."""

    expected: ExpectedSetting
    epoch: Epoch
    process: Process
    outcomes: Mapping[str, Outcome]
    joined: Outcome

    @property
    def wire(self) -> Wire:
        """The log output of the option."""
        return self.expected.wire

    def decide(self, state: str, note: str, tell: str = "") -> Verdict:
        """Return a verdict with the texts of the stages."""
        return Verdict(self.wire.name, state, self.joined.texts, note, tell)

    def leave_open(self, note: str) -> Verdict:
        """Return "cannot tell", with the variable that makes the next run log the option."""
        return self.decide(CANNOT_TELL, note, adapters.find_logging_switch(self.wire, self.process))

    def report_missing(self, note: str) -> Verdict:
        """Return the verdict on a value that did not arrive.

        It is ``absent`` only if an empty text, or none, proves that.
        """
        is_proof = adapters.logs_unset_options(self.wire, self.process)
        return self.decide(ABSENT if is_proof else CHANGED, note)


def _judge_overridden(case: EpochCase) -> Verdict | None:
    """Return the verdict on a logged value that another option overrides.

    ``[npu_attrs.cc:77]100 precision_mode: force_fp16``
    ``[npu_attrs.cc:77]100 precision_mode_v2: fp16``
    """
    name = case.wire.overridden_by
    if not name or all(outcome.says != SAME for outcome in case.outcomes.values()):
        return None
    text = _find_overriding_text(case)
    if not text:
        return None
    # without a title, the log may be that of TensorFlow 2, whose adapter passes both
    state = CHANGED if case.process.generation else CANNOT_TELL
    return Verdict(case.wire.name, state, (f"{name} = {text}",), f"where {name} is set it wins")


def _judge_contradiction(case: EpochCase) -> Verdict | None:
    """Return "cannot tell" if the stages do not agree, or a text is incomplete.

    ``[npu_attrs.cc:77]100 ge.exec.hcclExecuteTimeOut: 7`` in the block ``Init options:``
    ``[npu_attrs.cc:77]100 ge.exec.hcclExecuteTimeOut: `` in the block ``Session options:``
    """
    note = case.joined.note
    if not note and len({outcome.says for outcome in case.outcomes.values()}) > 1:
        note = "its places in the log do not agree"
    # a dump has the text that a line of plog (at most 1,022 bytes) has cut
    return case.decide(CANNOT_TELL, note, adapters.DUMPS if "cut" in note else "")


def _judge_lost_lines(case: EpochCase) -> Verdict | None:
    """Return "cannot tell" if the option's lines may be lost: blocks are missing or incomplete.

    ``[ge_plugin.cc:77]100 [GePlugin] Ge has already initialized``
    """
    if _is_left_out(case):
        return None
    return case.leave_open(adapters.explain_missing(case.wire, case.epoch))


_UNSET = "an otherwise complete block has no line of it, as if it were unset"


def _judge_unset_default(case: EpochCase) -> Verdict | None:
    """Return "default or set" if complete blocks without the option mean its expected value.

    ``[ge_plugin.cc:77]100 Init options: `` and all other lines of the block
    """
    return case.decide(DEFAULT_OR_SET, _UNSET) if case.expected.is_default(()) else None


def _judge_late_option(case: EpochCase) -> Verdict | None:
    """Return "too late" if an operator requested the value while the engine was running.

    ``[ge_plugin.cc:77]100 [GePlugin] Ge has already initialized``
    ``[npu_attrs.cc:77]100 ge.deterministic: 1`` in the operator's block ``init options:``
    """
    return case.decide(TOO_LATE, case.epoch.late) if _came_too_late(case) else None


def _judge_absent(case: EpochCase) -> Verdict | None:
    """Return the verdict on an option that complete blocks do not have.

    ``[session_manager.cc:77]100 Session options: `` and all other lines of the block
    """
    return case.report_missing(_UNSET)


def _judge_unpassed(case: EpochCase) -> Verdict | None:
    """Return "changed" if no adapter that may have written the log passes the option on.

    ``[npu_attrs.cc:77]100 ge.autoTuneMode: `` of an adapter since 2023-04
    """
    if not adapters.passes_no_options(case.wire, case.process, case.epoch):
        return None
    return case.decide(CHANGED, "this adapter never passes it on")


def _judge_late_start(case: EpochCase) -> Verdict | None:
    """Return "too late" if the engine was started with another value, and this one came later.

    ``[npu_attrs.cc:77]100 ge.deterministic: 0`` in the block of the start
    ``[ge_plugin.cc:77]100 [GePlugin] Ge has already initialized``
    ``[npu_attrs.cc:77]100 ge.deterministic: 1`` in the block of a later operator
    """
    if "init" not in case.outcomes or "session" in case.outcomes:
        return None
    return _judge_late_option(case)


def _judge_graph_mode(case: EpochCase) -> Verdict | None:
    """Return "cannot tell" if only graphs have another value of an option of the engine start.

    ``[npu_attrs.cc:77]100 ge.exec.precision_mode: allow_mix_precision`` in ``Graph options:``
    """
    wire = case.wire
    if case.outcomes.keys() != {"graph"} or not wire.init:
        return None
    if wire.session or wire.graph or wire.lines:
        return None
    return case.leave_open(
        "graphs have another, as a mode of training may "
        "demand; with what the engine was started is not there"
    )


def _judge_unread(case: EpochCase) -> Verdict | None:
    """Return "changed" for an option that is only read if another one is on.

    ``[npu_attrs.cc:77]100 ge.exec.enableDump: 0``
    ``[npu_attrs.cc:77]100 ge.exec.dumpPath: ``
    """
    needs = case.wire.needs
    if not needs:
        return None
    return case.decide(
        CHANGED, case.joined.note or f"it is read only where {' or '.join(needs)} is on"
    )


def _judge_empty(case: EpochCase) -> Verdict | None:
    """Return the verdict on an option with an empty text, as if it were unset.

    ``[npu_attrs.cc:77]100 ge.externalWeight: ``
    """
    if not case.joined.unset or case.joined.texts != ("",):
        return None
    return case.report_missing(case.joined.note or adapters.EMPTY)


def _judge_other_value(case: EpochCase) -> Verdict | None:
    """Return "changed" if another value is effective.

    ``[npu_attrs.cc:77]100 ge.topoSortingMode: 0``
    """
    return case.decide(CHANGED, case.joined.note)


def _judge_unlogged_start(case: EpochCase) -> Verdict | None:
    """Return "cannot tell" if sessions have the value, but the engine start is not in the log.

    ``[npu_attrs.cc:77]100 ge.graphRunMode: 1`` in the block ``Session options:`` only
    """
    if not case.wire.init or "init" in case.outcomes:
        return None
    # early adapters write lines of the start for a few options only, and no block
    if not case.process.generation and case.epoch.has("single init"):
        return None
    return case.leave_open("the sessions have it; with what the engine was started is not there")


def _judge_unlogged_sessions(case: EpochCase) -> Verdict | None:
    """Return "cannot tell" if the engine start has the value, but no session does.

    ``[npu_attrs.cc:77]100 ge.exec.hcclExecuteTimeOut: 7`` in the block ``Init options:`` only
    """
    wire = case.wire
    if not wire.init or not wire.session or "session" in case.outcomes:
        return None
    if case.epoch.has("single session") and not case.epoch.joined:
        return None
    return case.leave_open("the engine was started with it; what its sessions got is not there")


def _judge_crowded(case: EpochCase) -> Verdict | None:
    """Return "cannot tell" if maps of sessions or graphs were dropped: others may differ.

    ``[session_manager.cc:77]100 Session options: `` of more than 64 (``MOST_MAPS``) sessions
    """
    if case.epoch.crowded.isdisjoint(("session", "graph", *case.wire.lines)):
        return None
    return case.decide(
        CANNOT_TELL, "there are more kinds of sessions or graphs than npuprof keeps apart"
    )


def _judge_default(case: EpochCase) -> Verdict | None:
    """Return "default or set" if the value would also be effective without the preset.

    ``[npu_attrs.cc:77]100 ge.exec.profilingMode: 0``
    """
    names = adapters.find_names(case.process, case.epoch)
    if not (case.expected.is_default(names) or _is_forced(case) or _is_tf2_default(case)):
        return None
    return case.decide(DEFAULT_OR_SET, case.joined.note)


def _judge_effective(case: EpochCase) -> Verdict | None:
    """Return "in force".

    ``[npu_attrs.cc:77]100 ge.deterministic: 1`` in the block ``Init options:``
    """
    return case.decide(IN_FORCE, case.joined.note)


#: The rules by what the stages say together, in the order in which they are tried.
_RULES: dict[str, tuple[Callable[[EpochCase], Verdict | None], ...]] = {
    # first: that only some stages have the value does not matter if it is overridden
    UNSURE: (_judge_overridden, _judge_contradiction),
    _SILENT: (_judge_lost_lines, _judge_unset_default, _judge_late_option, _judge_absent),
    OTHER: (
        # first: the text of an option that is not passed on means nothing
        _judge_unpassed,
        _judge_late_start,
        _judge_graph_mode,
        # before empty texts: that of an unread option does not show that it is absent
        _judge_unread,
        _judge_empty,
        _judge_other_value,
    ),
    SAME: (
        _judge_overridden,
        _judge_unlogged_start,
        _judge_unlogged_sessions,
        _judge_crowded,
        _judge_default,
        _judge_effective,
    ),
}


def judge_case(case: EpochCase) -> Verdict:
    """Return the verdict of the first rule that applies; the last one always does."""
    says = case.joined.says if case.outcomes else _SILENT
    for judge in _RULES[says]:
        verdict = judge(case)
        if verdict is not None:
            return verdict
    raise AssertionError(f"no rule applies to {says}")


def _find_overriding_text(case: EpochCase) -> str:
    """Return the text of the option that overrides another, empty if it is not set."""
    winner = find_wire(case.wire.overridden_by)
    assert winner is not None
    for stage in ("init", "graph"):
        for block in case.epoch.blocks(stage):
            for text in find_texts(winner, stage, block.values).values():
                if text.text not in ("", "None"):
                    return text.text
    return ""


def _is_left_out(case: EpochCase) -> bool:
    """Return whether complete blocks show that an option was not set: two of its lines are missing.

    A single line may be lost without a trace.
    """
    wire, epoch = case.wire, case.epoch
    newest = load_generations()[0]
    stages = [stage for stage in ("init", "session") if wire.keys(stage)]
    if len(stages) != 1 or case.process.generation not in (None, newest):
        return False
    stage = stages[0]
    if set(wire.keys(stage).values()) != {NO_KEY} or stage in epoch.crowded:
        return False
    standing = set(list_standing_keys(newest.name, stage))
    blocks = epoch.blocks(stage)
    if not all(block.whole and standing <= block.values.keys() for block in blocks):
        return False
    # the adapter and the engine each write a block
    writers = {block.engine for block in blocks}
    return len(wire.keys(stage)) * len(writers) > 1


def _came_too_late(case: EpochCase) -> bool:
    """Return whether a setting for the engine start arrived after it.

    For adapters that do not log this, any session counts.
    """
    wire, epoch = case.wire, case.epoch
    if not wire.init or wire.session or not epoch.late:
        return False
    if not epoch.requested:
        return epoch.joined
    for block in epoch.requested:
        for key, text in find_texts(wire, "init", block.values).items():
            if judge_text(case.expected, key, text).says == SAME:
                return True
    return False


def _is_forced(case: EpochCase) -> bool:
    """Return whether another option forces the value in any case."""
    wire = case.wire
    if not wire.forced or case.expected.plain != wire.forced:
        return False
    blocks = case.epoch.blocks("session", "graph", "operator")
    return any(find_forcing(wire, block.values) for block in blocks)


def _is_tf2_default(case: EpochCase) -> bool:
    """Return whether the value is a default of TensorFlow 2, and its adapter may have run.

    The engine's lines do not name the adapter. A key that TensorFlow 2 never sends rules it out.
    """
    expected = case.expected
    unset = expected.wire.tf2.get("unset")
    if unset is None or case.process.generation:
        return False
    by_engine = [
        block
        for epoch in case.process.epochs
        for blocks in epoch.maps.values()
        for block in blocks
        if block.engine
    ]
    never_sent = load_known_keys()["tf1"]
    if not by_engine or not all(never_sent.isdisjoint(block.values) for block in by_engine):
        return False
    as_tf2 = ExpectedSetting(expected.wire, expected.value, tf2=True)
    return unset in (expected.plain, as_tf2.plain) or as_tf2.is_default(())
