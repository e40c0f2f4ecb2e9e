"""What a bisection found: its causes as members with what shows that each matters, in words, and as the fields of a JSON answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npuprof.compare.changes import Change
from npuprof.compare.data import build_change_dict
from npuprof.compare.folds import format_change_cause, format_change_sentence
from npuprof.document import keys
from npuprof.model import Record
from npuprof.report.findings import build_finding_dict
from npuprof.report.tables import format_code_span
from npuprof.report.text import escape_controls, format_count
from npuprof.trials.bisecting import Bisection
from npuprof.trials.judging import describe_counts, describe_run, find_median_value
from npuprof.trials.search import BAD, GOOD, MOST_CAUSES, Cause, join_masks, list_bits

SCHEMA = "npuprof.bisect/1"
_MOST_SHOWN = 20  # changes that are still in question
_GO_ON = "run the same command again, or with a greater --max-runs, to go on"


class Member(Record):
    """A part of a cause: changes that rules tie together, what the cause is without them, and what needs them and goes with them."""

    changes: int
    without: int
    verdict: str | None
    tied: bool
    needed_by: int = 0


def list_members(bisection: Bisection, cause: Cause) -> list[Member]:
    """Return the members of a cause: what can be taken away, each with what only it needs; and what several of them need."""
    units = [unit for unit in bisection.units if unit & cause.units]
    barred = [unit for unit in units if cause.units & ~unit in bisection.barred]
    groups = {unit: unit & cause.units for unit in units if unit not in barred}
    for unit in barred:
        gone = bisection.find_dropped(unit) & cause.units & ~unit
        needing = [dependent for dependent in groups if dependent & gone and dependent not in barred]
        if len(needing) == 1:
            groups[needing[0]] |= unit & cause.units
        else:
            groups[gone] = groups.get(gone, 0) | unit & cause.units
    members = []
    for key, group in sorted(groups.items(), key=lambda item: item[1] & -item[1]):
        shared = 0 if group & key else key & ~group  # what needs it, and goes with it
        without = cause.units & ~(key if group & key else group | shared)
        members.append(Member(group, without, bisection.find_verdict(without), group.bit_count() > 1 or bool(shared), shared))
    return members


# -- in words ----------------------------------------------------------------------------------------------------------


def format_answer_text(bisection: Bisection) -> str:
    """Return the answer in words."""
    return "".join(f"{line}\n" for line in _list_lines(bisection))


def _list_lines(bisection: Bisection) -> Iterator[str]:
    total = len(bisection.difference.changes)
    counts = f"of {format_count(total, 'change')}; {format_count(bisection.count_runs(), 'run')}"
    if bisection.outcome is None:
        yield from _list_partial_lines(bisection, counts)
        return
    causes = bisection.outcome.causes
    for number, cause in enumerate(causes, 1):
        members = list_members(bisection, cause)
        if len(causes) > 1:
            lead = f"Any of {len(causes)} causes is enough ({counts}).\n" if number == 1 else ""
            yield f"{lead}\ncause {number}: " + _describe_size(members)
        else:
            size = _describe_size(members)
            yield f"{size[:1].upper()}{size[1:]} ({counts}):"
        for member in members:
            yield ""
            yield from _list_member_lines(bisection, cause, member, alone=len(members) == 1)
    yield from _list_cure_lines(bisection)
    yield from list_doubts(bisection)


def _describe_size(members: list[Member]) -> str:
    count = sum(member.changes.bit_count() for member in members)
    if len(members) == 1:
        return "one change makes the difference" if count == 1 else f"{count} changes that rules tie together make the difference"
    only = "only together" if all(member.verdict == GOOD for member in members) else "together"
    return f"{count} changes make the difference, {only}"


def _list_member_lines(bisection: Bisection, cause: Cause, member: Member, alone: bool) -> Iterator[str]:
    for change in bisection.difference.select(member.changes):
        yield f"  {change.sign} {escape_controls(format_change_sentence(change))}"
        details = [f"[{', '.join(change.risk)}]"] if change.risk else []
        details += [escape_controls(by)] if (by := format_change_cause(change)) else []
        if details:
            yield f"      {'  '.join(details)}"
    if member.needed_by:
        yield f"    the checks allow none of these without it: {_name_changes(bisection, member.needed_by)}"
    elif member.tied and not alone:
        yield "    tied by rules: the checks do not allow the one without the other"
    if not member.needed_by or bisection.list_results(member.without):
        yield f"    without {_name_removed(bisection, cause, member)}: {describe_without(bisection, member)}"


def _name_removed(bisection: Bisection, cause: Cause, member: Member) -> str:
    """Return what was taken away: where rules tie changes, the one that can be by itself."""
    if member.needed_by:
        return "it and them"
    gone = cause.units & ~member.without
    return "it" if gone == member.changes else _name_changes(bisection, gone & member.changes)


def _name_changes(bisection: Bisection, mask: int) -> str:
    return ", ".join(escape_controls(name_change(change)) for change in bisection.difference.select(mask))


def describe_without(bisection: Bisection, member: Member) -> str:
    """Return what is left of the effect without a member of a cause."""
    if member.without in bisection.barred:
        codes = dict.fromkeys(finding.code for finding in bisection.barred[member.without])
        return f"cannot be told, the checks do not allow it ({', '.join(codes)})"
    results = bisection.list_results(member.without)
    counts = describe_counts(bisection.judgement, results)
    if member.verdict not in (GOOD, BAD):
        return f"cannot be told ({counts or describe_run(results[-1])})" if results else "cannot be told"
    metric = bisection.judgement.metric
    value = find_median_value(results, metric) if metric else None
    end = format(value, "g") if value is not None else "" if counts else describe_run(results[-1])
    return ", ".join(filter(None, (counts or member.verdict, end)))


def _list_cure_lines(bisection: Bisection) -> Iterator[str]:
    assert bisection.outcome is not None
    causes, cures = bisection.outcome.causes, bisection.outcome.cures
    if len(causes) > 1 and cures:
        yield ""
        yield "Each of these, put back as it was, cures it:"
        for cure in cures:
            keys = " and ".join(f"{change.sign} {escape_controls(name_change(change))}" for change in bisection.difference.select(cure))
            yield f"  {keys}"


def list_doubts(bisection: Bisection) -> list[str]:
    """Return a line for each change that stayed undecided or was not tried."""
    lines: list[str] = []
    outcome = bisection.outcome
    if outcome is not None:
        untold = join_masks([cause.undecided for cause in outcome.causes])
        lines += [
            f"not told: whether {escape_controls(name_change(change))} matters; its runs could not be judged, or are not allowed"
            for change in bisection.difference.select(untold)
        ]
        if len(outcome.causes) >= MOST_CAUSES:
            lines.append(f"not told: whether there are more causes than these {MOST_CAUSES}")
        elif not outcome.complete:
            lines.append(
                "not told: whether there is another cause; some of the runs that would tell could not be judged, or are not allowed"
            )
    lines += [f"not tried: {change.key} differs, which says what a preset is for" for change in bisection.difference.untried]
    return ["", *lines] if lines else []


def name_change(change: Change) -> str:
    """Return what a change is about: its key, and of a list the element."""
    value = change.after if change.kind == "added" else change.before
    return f"{change.key} {keys.format_short_value(value)}" if change.element else change.key


def _list_partial_lines(bisection: Bisection, counts: str) -> Iterator[str]:
    state = bisection.state
    open_changes = bisection.difference.select(state.bad)
    limit = "" if bisection.limit is None else f", --max-runs {bisection.limit} the limit in force"
    known_so_far = f"{format_count(len(open_changes), 'change')} still in question ({counts}{limit})"
    yield f"Not found yet: {known_so_far}; {_GO_ON}:"
    for change in open_changes[:_MOST_SHOWN]:
        known = "  (needed)" if change in bisection.difference.select(state.needed) else ""
        yield f"  {change.sign} {escape_controls(format_change_sentence(change))}{known}"
    if len(open_changes) > _MOST_SHOWN:
        yield f"  and {len(open_changes) - _MOST_SHOWN} more"


# -- for an issue ------------------------------------------------------------------------------------------------------


def format_answer_markdown(bisection: Bisection, command: str) -> str:
    """Return the answer as a text for an issue."""
    before, after = bisection.difference.before, bisection.difference.after
    return (
        f"### {format_code_span(after.name, False)} is bad, {format_code_span(before.name, False)} is good: why\n\n"
        f"{format_code_span(command, False)}\n\n"
        f"````text\n{format_answer_text(bisection)}````\n\n"
        f"good: `{before.digest}`, bad: `{after.digest}`, context: {before.context.describe()}\n"
    )


# -- for programs ------------------------------------------------------------------------------------------------------


def build_answer_fields(bisection: Bisection, command: list[str]) -> dict[str, Any]:
    """Return the answer, with all trials, as the fields of its JSON form; changes are named by their places in ``changes``."""
    difference = bisection.difference
    outcome = bisection.outcome
    known = {0: difference.before.digest, difference.every: difference.after.digest, **bisection.asked}
    return {
        "schema": SCHEMA,
        "good": {"name": difference.before.name, "digest": difference.before.digest},
        "bad": {"name": difference.after.name, "digest": difference.after.digest},
        "context": {name: value for name, value in difference.before.context._asdict().items() if value},
        "command": command,
        "changes": [build_change_dict(change) for change in difference.changes],
        "units": [list_bits(unit) for unit in bisection.units],
        "runs": bisection.count_runs(),
        "found": outcome is not None,
        "complete": bisection.is_told,
        "causes": [_build_cause_fields(bisection, cause) for cause in (outcome.causes if outcome else ())],
        "cures": [list_bits(cure) for cure in (outcome.cures if outcome else ())],
        "in_question": list_bits(bisection.state.bad) if outcome is None else [],
        "untried": [build_change_dict(change) for change in difference.untried],
        "metric": _build_metric_fields(bisection),
        "trials": [
            {
                "digest": digest,
                "changes": list_bits(mask),
                "verdict": bisection.find_verdict(mask),
                "runs": [result._asdict() for result in bisection.list_results(mask)],
            }
            for mask, digest in known.items()
            if bisection.list_results(mask)
        ],
        "barred": [
            {"changes": list_bits(mask), "findings": [build_finding_dict(error) for error in errors]}
            for mask, errors in bisection.barred.items()
        ],
    }  # fmt: skip


def _build_cause_fields(bisection: Bisection, cause: Cause) -> dict[str, Any]:
    return {
        "changes": list_bits(cause.units),
        "digest": bisection.find_digest(cause.units),
        "undecided": list_bits(cause.undecided),
        "members": [
            {
                "changes": list_bits(member.changes),
                "tied": member.tied,
                "needed_by": list_bits(member.needed_by),
                "without": {"digest": bisection.find_digest(member.without), "verdict": member.verdict},
            }
            for member in list_members(bisection, cause)
        ],
    }


def _build_metric_fields(bisection: Bisection) -> dict[str, Any] | None:
    effect = bisection.judgement.effect
    if effect is None:
        return None
    return {"pattern": bisection.judgement.metric, "good": effect.good, "bad": effect.bad, "tolerance": effect.tolerance}
