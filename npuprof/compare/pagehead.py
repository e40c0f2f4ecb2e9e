"""The head of a page of changes: the counts, what is broken, what is gone, new or renamed, whose presets are reached."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.folds import format_survey_totals
from npuprof.compare.longvalues import shorten_text
from npuprof.compare.spans import Page, format_code_list, format_listed_span, join_fitting, show_place
from npuprof.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.pairs import Pair
    from npuprof.compare.survey import Survey

#: What a change puts at risk, what matters most first; all else comes after them.
RISKS = ("numerics", "distributed", "memory", "performance")


def count_survey(survey: Survey) -> str:
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
    said = ", ".join(f"{number} {word}" for number, word in numbers if number)
    risks: dict[str, int] = {}
    for pair in touched:
        for risk in {risk for change in pair.changes if pair.status == "changed" for risk in change.risk}:
            risks[risk] = risks.get(risk, 0) + 1
    risky = ", ".join(f"{risk} {risks[risk]}" for risk in sorted(risks, key=lambda risk: (rank_risk(risk), risk)))
    return (said or "no preset differs") + (f"; {risky}" if risky else "")


def is_broken(pair: Pair) -> bool:
    """Return whether a preset has errors that it had not, or cannot be read."""
    return pair.unread or any(finding.severity == "error" for finding in pair.broken)


def rank_risk(risk: str) -> int:
    """Return where a risk stands among those that a change may bring, the gravest first."""
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def format_head(survey: Survey, page: Page) -> str:
    """Return what is always told: the counts, what is broken, what is gone, the owners."""
    sides = f"{format_listed_span(survey.before)} → {format_listed_span(survey.after)}"
    out = [f"### Presets: {count_survey(survey)}\n\n{sides}; {format_survey_totals(survey, format_listed_span).partition(';')[0]}\n"]
    out.append(_format_broken(survey, page))
    for title, names in _list_fates(survey).items():
        out.append(f"\n**{title}**: {', '.join(names)}\n" if names else "")
    reached: dict[str, int] = {}
    for pair in survey.different_pairs:
        for owner in page.owners.get(pair.name, ()):
            reached[owner] = reached.get(owner, 0) + 1
    if reached:
        named = [
            f"{format_listed_span(owner)} ({number})" for owner, number in sorted(reached.items(), key=lambda item: (-item[1], item[0]))
        ]
        out.append(f"\nOwners of what is reached: {', '.join(named)}\n")
    return "".join(out)


def _list_fates(survey: Survey) -> dict[str, list[str]]:
    """Return the presets that are gone, new or renamed, as they are shown."""
    touched = survey.touched_pairs
    return {
        "Removed": [format_listed_span(pair.name) for pair in touched if pair.status == "removed"],
        "New": [format_listed_span(pair.name) for pair in touched if pair.status == "added"],
        "Renamed": [f"{format_listed_span(pair.was)} → {format_listed_span(pair.name)}" for pair in touched if pair.was],
    }


def format_short_head(survey: Survey, limit: int) -> str:
    """Return the same where there is so much of it that only names have room: as many as fit, the others counted."""
    broken = [pair.name for pair in survey.touched_pairs if is_broken(pair)]
    gone = [pair.name for pair in survey.touched_pairs if pair.status == "removed"]
    out = f"### Presets: {count_survey(survey)}\n"
    for title, names in (("Broken", broken), ("Removed", gone)):
        out += f"\n**{title}**: {format_code_list(names, limit - len(out) - 100)}\n" if names else ""
    for title, shown in _list_fates(survey).items():
        room = min(limit // 8, limit - len(out) - 100)
        if shown and title != "Removed":
            out += f"\n**{title}**: {join_fitting(shown, room)}\n"
    return out


def _format_broken(survey: Survey, page: Page) -> str:
    """Return the errors that came, each once with all presets that have it."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for pair in survey.touched_pairs:
        if is_broken(pair):
            untold = [(f"cannot be told here: {_describe_fault(one, pair.name)}", _show_finding_place(one, page)) for one in pair.untold]
            errors = [one for one in pair.broken if one.severity == "error"]
            told = untold or [(_describe_fault(one, pair.name), _show_finding_place(one, page)) for one in errors]
            for line, place in dict.fromkeys(told or [("cannot be read or resolved", "")]):
                names, places = found.setdefault(line, ([], []))
                names.append(pair.name)
                places.append(place)
    if not found:
        return ""
    lines = [f"- {line}{_list_places(places)}: {_count_names(names)}\n" for line, (names, places) in found.items()]
    return "\n**Broken**\n\n" + "".join(lines)


def _count_names(names: Sequence[str]) -> str:
    known = list(dict.fromkeys(names))
    return f"{len(known)} presets, {format_code_list(known)}" if len(known) > 3 else format_code_list(known)


def _describe_fault(finding: Finding, name: str) -> str:
    """Return what is wrong with a preset in words that are the same for others with the same fault."""
    return f"{finding.code} {format_listed_span(shorten_text(finding.message.removeprefix(f'{name} ')))}"


def _show_finding_place(finding: Finding, page: Page) -> str:
    """Return where something is wrong, with a link to the line."""
    if finding.origin:
        return show_place(finding.origin, page)
    return format_listed_span(finding.place) if finding.place else ""


def _list_places(places: Sequence[str]) -> str:
    known = list(dict.fromkeys(filter(None, places)))
    return f" ({known[0]}{f' and {len(known) - 1} more' if known[1:] else ''})" if known else ""
