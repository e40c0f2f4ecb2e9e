"""Changes as Markdown for a pull-request comment: broken presets first, then by risk.

The omitted rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from html import escape
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from npuprof.catalog.risks import EXECUTES
from npuprof.compare.changes import Change
from npuprof.compare.folds import (
    Fold,
    fold_shared_changes,
    format_moved_origin,
    format_pair_headline,
    format_pair_verdicts,
    format_survey_totals,
    group_shared_verdicts,
    identify_change,
    list_accepted,
)
from npuprof.compare.preset_states import Pair
from npuprof.compare.spans import (
    Page,
    collect_revisions,
    format_listed_span,
    format_short_sentence,
    join_fitting,
    list_names,
    shorten_text,
    show_place,
)
from npuprof.compare.survey import Survey
from npuprof.model import Finding
from npuprof.report.tables import Table, format_code_span
from npuprof.report.text import Code, Markup, count_rest, escape_controls, format_count
from npuprof.system import group_pairs

_COLUMNS = ("", "change", "risk", "cause")
#: Characters reserved for the sentence that counts omissions, besides its command.
_RESERVE = 200


class _Piece(NamedTuple):
    """A part of a page: its text, its number of changes, and how many of them are omitted."""

    text: str
    changes: int
    cut: int = 0


def format_survey_markdown(survey: Survey, page: Page | None = None) -> str:
    """Return a survey as Markdown within a page's limit: broken and removed presets first.

    Omissions are counted.
    """
    page = (page or Page())._replace(revisions=collect_revisions(survey.pairs))
    head, pieces = format_head(survey, page), _list_pieces(survey, page)
    if len(survey.pairs) == 1:  # a single requested preset is not folded
        pieces = [
            piece._replace(text=piece.text.replace("<details>", "<details open>", 1))
            for piece in pieces
        ]
    room = page.limit - _RESERVE - len(page.command) - len(head)
    fitting = sum(end <= room for end in accumulate(len(piece.text) for piece in pieces))
    return (
        head
        + "".join(piece.text for piece in pieces[:fitting])
        + _count_left_out(pieces[:fitting], pieces[fitting:], page.command)
    )


def _count_left_out(shown: Sequence[_Piece], others: Sequence[_Piece], command: str) -> str:
    """Return the sentence that counts the omissions of a page; empty if there are none."""
    changes = sum(piece.cut for piece in shown) + sum(piece.changes for piece in others)
    places = f" in {format_count(len(others), 'part')}" if others else ""
    return (
        (
            f"\nLeft out: {format_count(changes, 'change')}{places} "
            f"({format_code_span(command)} shows them).\n"
        )
        if changes or others
        else ""
    )


def format_change_table(changes: Sequence[Change], page: Page) -> str:
    """Return changes as a table: sign, change, risk, cause."""
    return _format_table(changes, page, None)[0]


def _format_table(
    changes: Sequence[Change], page: Page, room: int | None, title: str = ""
) -> tuple[str, int]:
    """Return a table of the changes that fit, and the number of omitted ones.

    ``room`` is the space in characters. The cause column is omitted if all causes equal the
    ``title`` of the block.
    """
    causes = [_show_cause(change, page) for change in changes]
    columns = _COLUMNS[:-1] if set(causes) == {title} else _COLUMNS
    rows = [
        (
            Code(change.sign),
            Code(format_short_sentence(change)),
            ", ".join(change.risk),
            Markup(cause),
        )[: len(columns)]
        for change, cause in zip(changes, causes, strict=True)
    ]
    table, shown = Table(rows, header=columns).format_markdown(room)
    left_out = len(changes) - shown
    return table + (
        f"\nand {format_count(left_out, 'change')} more\n" if left_out else ""
    ), left_out


def format_shared_changes(wide: Sequence[Fold], page: Page) -> str:
    """Return changes shared by presets as tables, by cause, each with its presets."""
    return "".join(piece.text for piece in _list_groups(wide, page))


def _rank_change(change: Change) -> int:
    return min(map(rank_risk, change.risk), default=len(RISKS) + 1)


def _list_pieces(survey: Survey, page: Page) -> list[_Piece]:
    """Return the parts after the head, highest risk first.

    Shared changes come first, then each preset's own, folded.
    """
    touched = survey.touched_pairs
    wide, shared = fold_shared_changes(touched)
    pieces = _list_groups(wide, page)
    common = group_shared_verdicts({pair.name: _list_verdicts(pair) for pair in touched})
    for line, names in common.items():
        headline = f"\n**{len(names)} presets**: {format_listed_span(line)}\n"
        pieces.append(_Piece(headline + _format_reach(names, page), 0))
    singles = []
    for pair in touched:
        own = [
            change
            for change in pair.changes
            if pair.status != "changed" or identify_change(change) not in shared
        ]
        own.sort(key=_rank_change)
        if piece := _format_single(pair, own, common, page):
            unranked = len(RISKS) + (1 if own and pair.status == "changed" else 2)
            rank = min(map(rank_risk, _list_risks(pair, own)), default=unranked)
            singles.append((not is_broken(pair), rank, pair.name, piece))
    return pieces + [piece for _, _, _, piece in sorted(singles, key=lambda row: row[:3])]


def _list_groups(wide: Sequence[Fold], page: Page) -> list[_Piece]:
    """Return shared changes, grouped by equal sets of presets, highest risk first."""
    groups = group_pairs((fold.presets, fold.change) for fold in wide)
    ranked = sorted(
        groups.items(),
        key=lambda group: (min(map(_rank_change, group[1])), -len(group[0]), group[0]),
    )
    return [
        _format_group(names, sorted(changes, key=_rank_change), page) for names, changes in ranked
    ]


def _format_group(names: Sequence[str], changes: Sequence[Change], page: Page) -> _Piece:
    """Return the changes that the same presets share, with one list of these presets."""
    causes = list(
        dict.fromkeys(show_place(change.cause, page) for change in changes if change.cause)
    )
    table, cut = _format_table(changes, page, page.limit // 3, count_rest(causes))
    out = f"\n**{count_rest(causes) or 'one cause'} → {len(names)} presets**\n\n{table}"
    return _Piece(out + _format_reach(names, page), len(changes), cut)


def _format_reach(names: Sequence[str], page: Page) -> str:
    """Return a list of presets, folded."""
    return (
        f"\n<details><summary>{len(names)} presets</summary>\n"
        f"\n{list_names(names, page)}\n\n</details>\n"
    )


def _list_verdicts(pair: Pair) -> list[str]:
    """Return the new and fixed findings, except those of the head."""
    return [line for line in format_pair_verdicts(pair) if not line.startswith("breaks ")]


def _format_single(
    pair: Pair, own: list[Change], common: Container[str], page: Page
) -> _Piece | None:
    """Return a preset's own changes and findings, folded under its name; None if there are none."""
    headline = format_pair_headline(pair)
    verdicts = [line for line in _list_verdicts(pair) if line not in common]
    if not own and not verdicts:
        return None  # the head lists it as new, removed or renamed
    counts = (
        headline or format_count(len(own), "change")
        if own or headline
        else format_count(len(verdicts), "finding")
    )
    more = (
        f"; {', '.join(sorted(risks, key=rank_risk))}" if (risks := _list_risks(pair, own)) else ""
    )
    out = (
        f"\n<details><summary><code>{escape(escape_controls(pair.name))}</code> "
        f"({escape(counts)}{more})</summary>\n"
    )
    table, cut = _format_table(own, page, page.limit // 3) if own else ("", 0)
    out += f"\n{table}" if own else ""
    if verdicts:
        out += "\n" + "".join(f"- {format_listed_span(line)}\n" for line in verdicts)
    return _Piece(f"{out}\n</details>\n", len(own), cut)


def _show_cause(change: Change, page: Page) -> str:
    """Return the cause of a change, with the other side's place if it is in another file."""
    was, now = change.origins
    if change.extends:
        places = (show_place(origin, page, True) if origin else "" for origin in change.origins)
        return f"{show_place(change.extends, page, True)}: {format_moved_origin(*places)}"
    if now is None:
        return f"was set by {show_place(was, page, True)}" if was else ""
    unset = "unset by " if change.kind == "removed" and now.layer == "unset" else ""
    before = f", before {show_place(was, page, True)}" if was and was.file != now.file else ""
    return f"{unset}{show_place(now, page, True)}{before}"


#: What changes may affect, most important first; everything else comes last.
RISKS = (EXECUTES, "numerics", "distributed", "memory", "performance")


class _Fault(NamedTuple):
    """A fault of a preset.

    ``advice`` is the line below it, and ``name`` is empty if it belongs to none.
    """

    line: str
    place: str = ""
    advice: str = ""
    name: str = ""


def count_survey(survey: Survey, more: Sequence[str]) -> str:
    """Return the first line: ``1 broken, 24 changed, 1 new, 1 removed, 1 renamed``."""
    touched = survey.touched_pairs
    numbers = [
        (sum(map(is_broken, touched)), "broken"),
        (sum(pair.status == "changed" and not pair.was for pair in touched), "changed"),
        (sum(pair.status == "added" for pair in touched), "new"),
        (sum(pair.status == "removed" for pair in touched), "removed"),
        (sum(bool(pair.was) for pair in touched), "renamed"),
        (sum(pair.valid == (False, True) for pair in touched), "valid again"),
        (sum(bool(pair.accepted) for pair in touched), "with newly accepted findings"),
    ]
    return (
        ", ".join([*(f"{number} {word}" for number, word in numbers if number), *more])
        or "no preset differs"
    )


def count_risks(survey: Survey) -> str:
    """Return the number of changed presets by risk, such as ``numerics 25, distributed 24``.

    Highest risk first; empty without risks.
    """
    risks = Counter(
        risk for pair in survey.touched_pairs for risk in _list_risks(pair, pair.changes)
    )
    return ", ".join(
        f"{risk} {risks[risk]}" for risk in sorted(risks, key=lambda risk: (rank_risk(risk), risk))
    )


def _list_risks(pair: Pair, changes: Iterable[Change]) -> list[str]:
    """Return what changes of a preset put at risk.

    A new preset can only put execution at risk, a removed one nothing.
    """
    risks = dict.fromkeys(risk for change in changes for risk in change.risk)
    return [
        risk
        for risk in risks
        if pair.status == "changed" or (pair.status == "added" and risk == EXECUTES)
    ]


def rank_risk(risk: str) -> int:
    """Return the rank of a risk, highest first."""
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def is_broken(pair: Pair) -> bool:
    """Return whether a preset has new errors, or cannot be read."""
    return pair.unread or any(finding.severity == "error" for finding in pair.broken)


def format_head(survey: Survey, page: Page) -> str:
    """Return the head of a page, at most about nine tenths of its room.

    Faults take half of it, each other list a tenth.
    """
    sides = f"{format_listed_span(survey.before)} → {format_listed_span(survey.after)}"
    totals = format_survey_totals(survey, format_listed_span).partition(";")[0]
    counts = count_survey(survey, [faults.counted for faults in page.faults])
    touched = survey.touched_pairs
    groups = [
        ("Broken", _list_broken(touched, page)),
        ("Newly accepted", _list_accepted_faults(touched, page)),
    ]
    groups = [*filter(itemgetter(1), groups), *_list_other_faults(page)]
    risks = f"\nAt risk: {risky}\n" if (risky := count_risks(survey)) else ""
    out = f"### Presets: {counts}\n\n{sides}; {totals}\n{risks}" + _format_faults(groups, page)
    lists = {
        "**Removed**": [
            format_listed_span(pair.name) for pair in touched if pair.status == "removed"
        ],
        "**New**": [format_listed_span(pair.name) for pair in touched if pair.status == "added"],
        "**Renamed**": [
            f"{format_listed_span(pair.was)} → {format_listed_span(pair.name)}"
            for pair in touched
            if pair.was
        ],
        "Owners of affected presets": _list_owners(survey, page),
    }
    return out + "".join(
        f"\n{title}: {join_fitting(shown, page.list_limit)}\n"
        for title, shown in lists.items()
        if shown
    )


def format_faults(page: Page) -> str:
    """Return a page with faults only, for unknown changes."""
    counts = ", ".join(faults.counted for faults in page.faults)
    return (
        f"### Presets: the changes are unknown{f'; {counts}' if counts else ''}\n"
        + _format_faults(_list_other_faults(page), page)
    )


def _list_broken(pairs: Iterable[Pair], page: Page) -> list[_Fault]:
    """Return the new errors of presets."""
    faults = []
    for pair in filter(is_broken, pairs):
        untold = [
            _build_fault(finding, pair.name, page, "unknown here: ") for finding in pair.untold
        ]
        came = untold or [
            _build_fault(finding, pair.name, page)
            for finding in pair.broken
            if finding.severity == "error"
        ]
        faults += came or [_Fault("cannot be read or resolved", name=pair.name)]
    return list(dict.fromkeys(faults))


def _list_accepted_faults(pairs: Iterable[Pair], page: Page) -> list[_Fault]:
    """Return the newly accepted findings with their reasons.

    Reasons are cut: a long one would take the room of the others.
    """
    faults = []
    for name, one in list_accepted(pairs):
        reason = (
            f"reason: {format_listed_span(shorten_text(one.ignore.reason))} "
            f"({show_place(one.ignore.origin, page)})"
        )
        faults.append(_build_fault(one.finding, name, page)._replace(advice=reason))
    return faults


def _list_other_faults(page: Page) -> list[tuple[str, list[_Fault]]]:
    """Return the other findings by title, one for each affected preset."""
    return [
        (
            group.title,
            [
                _build_fault(finding, name, page)
                for finding in group.findings
                for name in finding.profiles or [_name_author(finding)]
            ],
        )
        for group in page.faults
    ]


def _name_author(finding: Finding) -> str:
    return (
        finding.origin.profile
        if finding.origin is not None and finding.origin.profile != finding.origin.file
        else ""
    )


def _build_fault(finding: Finding, name: str, page: Page, before: str = "") -> _Fault:
    """Return a preset's fault as a line that is equal for other presets with that fault."""
    message = format_listed_span(
        finding.message.removeprefix(f"{name} ") if name else finding.message
    )
    place = (
        show_place(finding.origin, page)
        if finding.origin
        else format_listed_span(finding.place)
        if finding.place
        else ""
    )
    return _Fault(
        f"{before}{finding.code} {message}",
        place,
        f"try: {format_listed_span(finding.hint)}" if finding.hint else "",
        name,
    )


def _format_faults(groups: Sequence[tuple[str, list[_Fault]]], page: Page) -> str:
    """Return faults under their titles, each once with all its presets.

    Omissions of a group are counted.
    """
    out = ""
    for title, faults in groups:
        same = group_pairs(((fault.line, fault.advice), fault) for fault in faults)
        entries = [
            _format_fault(alike, page._replace(limit=page.limit // 2)) for alike in same.values()
        ]
        room = page.limit // 2 // len(groups)
        fitting = sum(end <= room for end in accumulate(map(len, entries)))
        out += f"\n**{title}**\n\n{''.join(entries[:fitting])}"
        out += (
            f"- and {format_count(len(entries) - fitting, 'other fault')}\n"
            if fitting < len(entries)
            else ""
        )
    return out


def _format_fault(alike: Sequence[_Fault], page: Page) -> str:
    places = list(dict.fromkeys(fault.place for fault in alike if fault.place))
    shown = f"- {alike[0].line}" + (f" ({count_rest(places, 1)})" if places else "")
    if names := list(dict.fromkeys(fault.name for fault in alike if fault.name)):
        shown += f": {f'{len(names)} presets, ' if len(names) > 3 else ''}{list_names(names, page)}"
    return f"{shown}  \n  {alike[0].advice}\n" if alike[0].advice else f"{shown}\n"


def _list_owners(survey: Survey, page: Page) -> list[str]:
    """Return the owners of presets that differ, with counts, highest first."""
    reached = Counter(
        owner for pair in survey.different_pairs for owner in page.owners.get(pair.name, ())
    )
    ranked = sorted(reached.items(), key=lambda item: (-item[1], item[0]))
    return [f"{format_listed_span(owner)} ({number})" for owner, number in ranked]
