"""The head of a page of changes: counts, broken presets, presets that are removed, new or renamed, owners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from npuprof.compare.folds import format_survey_totals
from npuprof.compare.longvalues import shorten_text
from npuprof.compare.spans import Page, format_listed_span, join_fitting, list_names, show_place
from npuprof.model import Finding
from npuprof.report.text import count_rest, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.pairs import Pair
    from npuprof.compare.survey import Survey

#: What a change puts at risk, what matters most first; all else comes after them.
RISKS = ("numerics", "distributed", "memory", "performance")


class _Fault(NamedTuple):
    """One fault of one preset; ``name`` is empty if it belongs to none."""

    line: str
    place: str = ""
    hint: str = ""
    name: str = ""


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
    counts = ", ".join([*(f"{number} {word}" for number, word in numbers if number), *more])
    risks: dict[str, int] = {}
    for pair in touched:
        for risk in {risk for change in pair.changes if pair.status == "changed" for risk in change.risk}:
            risks[risk] = risks.get(risk, 0) + 1
    risky = ", ".join(f"{risk} {risks[risk]}" for risk in sorted(risks, key=lambda risk: (rank_risk(risk), risk)))
    return (counts or "no preset differs") + (f"; {risky}" if risky else "")


def rank_risk(risk: str) -> int:
    """Return where a risk stands among those that a change may bring, the gravest first."""
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def is_broken(pair: Pair) -> bool:
    """Return whether a preset has errors that it had not, or cannot be read."""
    return pair.unread or any(finding.severity == "error" for finding in pair.broken)


def format_head(survey: Survey, page: Page) -> str:
    """Return the head of a page, in about nine tenths of its room at most: faults take half of it, each other list a tenth."""
    sides = f"{format_listed_span(survey.before)} → {format_listed_span(survey.after)}"
    totals = format_survey_totals(survey, format_listed_span).partition(";")[0]
    counts = count_survey(survey, [faults.counted for faults in page.faults])
    touched = survey.touched_pairs
    groups = [("Broken", broken)] if (broken := _list_broken(touched, page)) else []
    out = f"### Presets: {counts}\n\n{sides}; {totals}\n" + _format_faults([*groups, *_list_other_faults(page)], page)
    lists = {
        "**Removed**": [format_listed_span(pair.name) for pair in touched if pair.status == "removed"],
        "**New**": [format_listed_span(pair.name) for pair in touched if pair.status == "added"],
        "**Renamed**": [f"{format_listed_span(pair.was)} → {format_listed_span(pair.name)}" for pair in touched if pair.was],
        "Owners of what is reached": _list_owners(survey, page),
    }
    return out + "".join(f"\n{title}: {join_fitting(shown, page.list_limit)}\n" for title, shown in lists.items() if shown)


def format_faults(page: Page) -> str:
    """Return a page of which only faults are known, if the changes cannot be determined."""
    counts = ", ".join(faults.counted for faults in page.faults)
    return f"### Presets: what changes cannot be told{f'; {counts}' if counts else ''}\n" + _format_faults(_list_other_faults(page), page)


def _list_broken(pairs: Iterable[Pair], page: Page) -> list[_Fault]:
    """Return the errors that came to presets."""
    faults = []
    for pair in filter(is_broken, pairs):
        untold = [_build_fault(finding, pair.name, page, "cannot be told here: ") for finding in pair.untold]
        came = untold or [_build_fault(finding, pair.name, page) for finding in pair.broken if finding.severity == "error"]
        faults += came or [_Fault("cannot be read or resolved", name=pair.name)]
    return list(dict.fromkeys(faults))


def _list_other_faults(page: Page) -> list[tuple[str, list[_Fault]]]:
    """Return the findings besides those of the changes, by title, one for each preset that has it."""
    return [
        (
            group.title,
            [_build_fault(finding, name, page) for finding in group.findings for name in finding.profiles or [_name_author(finding)]],
        )
        for group in page.faults
    ]


def _name_author(finding: Finding) -> str:
    return finding.origin.profile if finding.origin is not None and finding.origin.profile != finding.origin.file else ""


def _build_fault(finding: Finding, name: str, page: Page, before: str = "") -> _Fault:
    """Return a fault of a preset, in a line that is the same for other presets with that fault."""
    message = format_listed_span(shorten_text(finding.message.removeprefix(f"{name} ") if name else finding.message))
    place = show_place(finding.origin, page) if finding.origin else format_listed_span(finding.place) if finding.place else ""
    return _Fault(f"{before}{finding.code} {message}", place, finding.hint, name)


def _format_faults(groups: Sequence[tuple[str, list[_Fault]]], page: Page) -> str:
    """Return faults under their titles, each once with all its presets; what has no room in a group is counted."""
    out = ""
    for title, faults in groups:
        same: dict[str, list[_Fault]] = {}
        for fault in faults:
            same.setdefault(fault.line, []).append(fault)
        entries = [_format_fault(line, alike, page) for line, alike in same.items()]
        room = page.limit // 2 // len(groups)
        fitting = sum(end <= room for end in accumulate(map(len, entries)))
        out += f"\n**{title}**\n\n{''.join(entries[:fitting])}"
        out += f"- and {format_count(len(entries) - fitting, 'other fault')}\n" if fitting < len(entries) else ""
    return out


def _format_fault(line: str, alike: Sequence[_Fault], page: Page) -> str:
    places = list(dict.fromkeys(fault.place for fault in alike if fault.place))
    shown = f"- {line}" + (f" ({count_rest(places, 1)})" if places else "")
    if names := list(dict.fromkeys(fault.name for fault in alike if fault.name)):
        shown += f": {f'{len(names)} presets, ' if len(names) > 3 else ''}{list_names(names, page)}"
    hint = alike[0].hint
    return f"{shown}\n" + (f"  try: {format_listed_span(shorten_text(hint))}\n" if hint else "")


def _list_owners(survey: Survey, page: Page) -> list[str]:
    """Return the owners of presets that differ, each with how many, those of most first."""
    reached: dict[str, int] = {}
    for pair in survey.different_pairs:
        for owner in page.owners.get(pair.name, ()):
            reached[owner] = reached.get(owner, 0) + 1
    ranked = sorted(reached.items(), key=lambda item: (-item[1], item[0]))
    return [f"{format_listed_span(owner)} ({number})" for owner, number in ranked]
