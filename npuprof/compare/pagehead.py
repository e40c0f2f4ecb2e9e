"""The head of a page of changes: the counts, what is broken, what is gone, new or renamed, whose presets are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from npuprof.compare.crowds import format_crowd, share_room
from npuprof.compare.faults import Entry, Row, fold_rows, fold_rows_briefly, is_broken, list_broken, list_faults
from npuprof.compare.folds import format_survey_totals
from npuprof.compare.spans import Page, format_listed_span, join_fitting, measure_listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.survey import Survey

#: What a change puts at risk, what matters most first; all else comes after them.
RISKS = ("numerics", "distributed", "memory", "performance")
#: Characters of the words around a list that is cut.
_WORDS = 60


class Head(NamedTuple):
    """The head of a page, and the presets that it names or counts by their folders."""

    text: str
    presets: frozenset[str]


def count_survey(survey: Survey, more: Sequence[str] = ()) -> str:
    """Return the first line: ``24 changed, 1 new, 1 removed, 1 renamed, 1 broken; numerics 25, distributed 24``."""
    touched = survey.touched_pairs
    numbers = [
        (sum(pair.status == "changed" and not pair.was for pair in touched), "changed"),
        (sum(pair.status == "added" for pair in touched), "new"),
        (sum(pair.status == "removed" for pair in touched), "removed"),
        (sum(bool(pair.was) for pair in touched), "renamed"),
        (sum(map(is_broken, touched)), "broken"),
        (sum(pair.valid == (False, True) for pair in touched), "valid again"),
    ]
    said = ", ".join([*(f"{number} {word}" for number, word in numbers if number), *more])
    risks: dict[str, int] = {}
    for pair in touched:
        for risk in {risk for change in pair.changes if pair.status == "changed" for risk in change.risk}:
            risks[risk] = risks.get(risk, 0) + 1
    risky = ", ".join(f"{risk} {risks[risk]}" for risk in sorted(risks, key=lambda risk: (rank_risk(risk), risk)))
    return (said or "no preset differs") + (f"; {risky}" if risky else "")


def rank_risk(risk: str) -> int:
    """Return where a risk stands among those that a change may bring, the gravest first."""
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def format_head(survey: Survey, page: Page, limit: int) -> Head:
    """Return what is always told: the counts, what is broken, what is gone, the owners.

    Where that is too much, hints go first, then names of presets: what is broken or gone is counted by its folders.
    """
    sides = f"{format_listed_span(survey.before)} → {format_listed_span(survey.after)}"
    totals = format_survey_totals(survey, format_listed_span).partition(";")[0]
    counts = count_survey(survey, [faults.counted for faults in page.faults])
    top = f"### Presets: {counts}\n\n{sides}; {totals}\n"
    touched = survey.touched_pairs
    gone = [pair.name for pair in touched if pair.status == "removed"]
    new = [pair.name for pair in touched if pair.status == "added"]
    renamed = [pair for pair in touched if pair.was]
    others = {
        "**New**": [format_listed_span(name) for name in new],
        "**Renamed**": [f"{format_listed_span(pair.was)} → {format_listed_span(pair.name)}" for pair in renamed],
        "Owners of what is reached": _list_owners(survey, page),
    }
    broken = list_broken(touched, page)
    groups = [("Broken", broken)] if broken else []
    groups += [(faults.title, list_faults(faults, page)) for faults in page.faults]
    presets = frozenset([*(row.name for row in broken), *gone, *new, *(pair.name for pair in renamed)])
    return Head(top + _format_lists(groups, gone, others, limit - len(top)), presets)


def format_faults(page: Page, limit: int) -> str:
    """Return a page of which only faults are known, as nobody can tell what changes."""
    counts = ", ".join(faults.counted for faults in page.faults)
    top = f"### Presets: what changes cannot be told{f'; {counts}' if counts else ''}\n"
    return top + _format_lists([(faults.title, list_faults(faults, page)) for faults in page.faults], [], {}, limit - len(top))


def _format_lists(groups: Sequence[tuple[str, list[Row]]], gone: Sequence[str], others: dict[str, list[str]], limit: int) -> str:
    """Return faults under their titles, then what is gone, then the rest: in full if that has room."""
    entries = [(title, fold_rows(rows)) for title, rows in groups]
    for hinted in (True, False):
        told = [(title, [entry if hinted else entry._replace(hint="") for entry in folded]) for title, folded in entries]
        out = _format_shared(told, gone, others, limit)
        if len(out) <= limit and not _is_cut(told, gone, others, limit):
            return out
    room = limit // 3 // max(len(groups), 1)
    return _format_shared([(title, fold_rows_briefly(rows, room)) for title, rows in groups], gone, others, limit)


def _measure_frame(groups: Sequence[tuple[str, list[Entry]]]) -> int:
    """Return how many characters faults take without the names of their presets."""
    return sum(len(title) + _WORDS + sum(len(entry.format_entry(0)) + _WORDS for entry in entries) for title, entries in groups)


def _is_cut(groups: Sequence[tuple[str, list[Entry]]], gone: Sequence[str], others: dict[str, list[str]], limit: int) -> bool:
    wanted = sum(entry.wanted for _, entries in groups for entry in entries) + measure_listed(list(map(format_listed_span, gone)))
    return _measure_frame(groups) + wanted + sum(measure_listed(shown) + _WORDS for shown in others.values()) > limit


def _format_shared(groups: Sequence[tuple[str, list[Entry]]], gone: Sequence[str], others: dict[str, list[str]], limit: int) -> str:
    """Return the same, each list with its share of the room: what is broken or gone before what is new, renamed or owned."""
    minor = [measure_listed(shown) for shown in others.values()]
    major = [entry.wanted for _, entries in groups for entry in entries] + [measure_listed(list(map(format_listed_span, gone)))]
    room = limit - _measure_frame(groups) - _WORDS * (1 + len(others))
    rests = share_room(minor, max(room - sum(major), min(sum(minor), limit // 8)))
    shares = iter(share_room(major, room - sum(rests)))
    out = ""
    for title, entries in groups:
        out += f"\n**{title}**\n\n" + "".join(entry.format_entry(next(shares)) for entry in entries)
    if gone:
        out += f"\n**Removed**: {format_crowd(gone, next(shares))}\n"
    for (title, shown), rest in zip(others.items(), rests, strict=True):
        out += f"\n{title}: {join_fitting(shown, rest)}\n" if shown else ""
    return out


def _list_owners(survey: Survey, page: Page) -> list[str]:
    """Return the owners of presets that differ, each with how many, those of most first."""
    reached: dict[str, int] = {}
    for pair in survey.different_pairs:
        for owner in page.owners.get(pair.name, ()):
            reached[owner] = reached.get(owner, 0) + 1
    ranked = sorted(reached.items(), key=lambda item: (-item[1], item[0]))
    return [f"{format_listed_span(owner)} ({number})" for owner, number in ranked]
