"""The result of a bisection, as text and as JSON fields.

It is the smallest set of changes, and the runs that show each matters.
"""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_cause, format_change_sentence
from npuprof.compare.json_changes import build_change_dict
from npuprof.document import keys
from npuprof.model import Fields, Record
from npuprof.report.findings import build_finding_dict
from npuprof.report.text import escape_controls, format_count
from npuprof.system import join_lines
from npuprof.trials.bisecting import Bisection
from npuprof.trials.outcomes import describe_counts, describe_run
from npuprof.trials.search import UNKNOWN, Cause, list_bits

SCHEMA = "npuprof.bisect/1"


class Member(Record):
    """A unit of a cause and the changes that depend on it.

    It also has the rest of the cause without them, and whether that is good.
    """

    changes: int
    needed_by: int
    without: int
    verdict: str | None


def list_members(bisection: Bisection, cause: Cause) -> Iterator[Member]:
    """Yield the members of a cause."""
    for unit in bisection.units:
        if unit & cause.units:
            gone = bisection.find_dropped(unit) & cause.units
            without = cause.units & ~gone
            yield Member(unit, gone & ~unit, without, bisection.find_verdict(without))


# -- text -----------------------------------------------------------------------------------------


def format_answer_text(bisection: Bisection) -> str:
    """Return the answer in words."""
    cause = bisection.cause
    counts = (
        f"of {format_count(len(bisection.difference.changes), 'change')}; "
        f"{format_count(bisection.count_runs(), 'run')}"
    )
    if cause is None:
        lines = _list_open_lines(bisection, counts)
    else:
        lines = _list_cause_lines(bisection, cause, counts)
    return join_lines(lines)


def _list_cause_lines(bisection: Bisection, cause: Cause, counts: str) -> Iterator[str]:
    count = cause.units.bit_count()
    if count > 1:
        together = "together" if cause.undecided else "only together"
        yield f"{count} changes make the difference, {together} ({counts}):"
    else:
        yield f"One change makes the difference ({counts}):"
    for member in list_members(bisection, cause):
        yield ""
        yield from _list_member_lines(bisection, member)
    undecided = bisection.difference.select(cause.undecided)
    if undecided or bisection.difference.untried:
        yield ""
    for change in undecided:
        yield (
            f"undecided: whether {name_change(change)} matters; "
            "its runs could not be judged, or are not allowed"
        )
    for change in bisection.difference.untried:
        yield f"not tried: {change.key} differs, which is the scope of a preset"


def _list_member_lines(bisection: Bisection, member: Member) -> Iterator[str]:
    changes = bisection.difference.select(member.changes)
    for change in changes:
        yield f"  {change.sign} {escape_controls(format_change_sentence(change))}"
        details = [f"[{', '.join(change.risk)}]"] if change.risk else []
        cause = format_change_cause(change)
        if cause:
            details.append(escape_controls(cause))
        if details:
            yield f"      {'  '.join(details)}"
    removed = "it" if len(changes) == 1 else "them"
    if member.needed_by:
        dependents = bisection.difference.select(member.needed_by)
        removed += f", and what needs it ({', '.join(map(name_change, dependents))})"
    yield f"    without {removed}: {_describe_without(bisection, member)}"


def _describe_without(bisection: Bisection, member: Member) -> str:
    """Return the effect that remains without a member of a cause."""
    verdict = "undecided" if member.verdict in (None, UNKNOWN) else member.verdict
    if member.without in bisection.barred:
        codes = dict.fromkeys(finding.code for finding in bisection.barred[member.without])
        return f"{verdict} (the checks do not allow it: {', '.join(codes)})"
    results = bisection.list_results(member.without)
    runs = describe_counts(bisection.judgement, results) or describe_run(results[-1])
    return f"{verdict} ({runs})"


def name_change(change: Change) -> str:
    """Return the name of a change: its key, and for lists the element."""
    value = change.after if change.kind == "added" else change.before
    element = f" {keys.format_short_value(value)}" if change.element else ""
    return escape_controls(f"{change.key}{element}")


def _list_open_lines(bisection: Bisection, counts: str) -> Iterator[str]:
    changes = bisection.difference.select(bisection.in_question)
    question = f"{format_count(len(changes), 'change')} still in question ({counts})"
    yield (
        f"Not found yet: {question}; run the same command "
        "again, or with a greater --max-runs, to go on:"
    )
    for change in changes:
        yield f"  {change.sign} {escape_controls(format_change_sentence(change))}"


# -- JSON -----------------------------------------------------------------------------------------


def build_answer_fields(bisection: Bisection, command: list[str]) -> Fields:
    """Return the answer, with all trials, as the fields of its JSON form.

    Changes are indexes into ``changes``.
    """
    difference = bisection.difference
    cause, effect = bisection.cause, bisection.judgement.effect
    return {
        "schema": SCHEMA,
        "good": {"name": difference.before.name, "digest": difference.before.digest},
        "bad": {"name": difference.after.name, "digest": difference.after.digest},
        "context": difference.before.context.build_fields(),
        "command": command,
        "changes": [build_change_dict(change) for change in difference.changes],
        "units": [list_bits(unit) for unit in bisection.units],
        "runs": bisection.count_runs(),
        "found": cause is not None,
        "complete": cause is not None and not cause.undecided,
        "causes": [_build_cause_fields(bisection, cause)] if cause else [],
        "in_question": [] if cause else list_bits(bisection.in_question),
        "untried": [build_change_dict(change) for change in difference.untried],
        "metric": {"pattern": bisection.judgement.metric, **effect._asdict()} if effect else None,
        "trials": list(_list_trial_fields(bisection)),
        "barred": [
            {"changes": list_bits(mask), "findings": list(map(build_finding_dict, errors))}
            for mask, errors in bisection.barred.items()
        ],
    }


def _list_trial_fields(bisection: Bisection) -> Iterator[Fields]:
    for mask, digest in bisection.requested.items():
        results = bisection.list_results(mask)
        if results:
            yield {
                "digest": digest,
                "changes": list_bits(mask),
                "verdict": bisection.find_verdict(mask),
                "runs": [result._asdict() for result in results],
            }


def _build_cause_fields(bisection: Bisection, cause: Cause) -> Fields:
    return {
        "changes": list_bits(cause.units),
        "digest": bisection.find_digest(cause.units),
        "undecided": list_bits(cause.undecided),
        "members": [
            {
                "changes": list_bits(member.changes),
                "needed_by": list_bits(member.needed_by),
                "without": {
                    "digest": bisection.find_digest(member.without),
                    "verdict": member.verdict,
                },
            }
            for member in list_members(bisection, cause)
        ],
    }
