"""Changes as Markdown for a pull-request comment: broken presets first, then by risk.

The omitted rest is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from html import escape
from itertools import accumulate

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
    format_location,
    format_short_sentence,
    join_fitting,
    list_names,
    shorten_text,
)
from npuprof.compare.survey import Survey
from npuprof.model import Finding, Record, select_errors
from npuprof.report.tables import Table, format_code_span
from npuprof.report.text import Code, Markup, count_rest, escape_controls, format_count
from npuprof.system import group_pairs

_COLUMNS = ("", "change", "risk", "cause")
#: Characters reserved for the sentence that counts omissions, besides its command.
_RESERVE = 200


class _Piece(Record):
    """A part of a page: its text, its number of changes, and how many of them are omitted."""

    text: str
    changes: int
    cut: int = 0


def format_survey_markdown(survey: Survey, page: Page | None = None) -> str:
    """Return a survey as Markdown within a page's limit: broken and removed presets first.

    Omissions are counted.
    """
    page = (page or Page())._replace(revisions=collect_revisions(survey.pairs))
    head = format_head(survey, page)
    pieces = _list_pieces(survey, page)
    if len(survey.pairs) == 1:  # a single requested preset is not folded
        pieces = [
            piece._replace(text=piece.text.replace("<details>", "<details open>", 1))
            for piece in pieces
        ]
    # the sentence about omissions must fit in any case
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
    if not changes and not others:
        return ""
    parts = f" in {format_count(len(others), 'part')}" if others else ""
    return (
        f"\nLeft out: {format_count(changes, 'change')}{parts} "
        f"({format_code_span(command)} shows them).\n"
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
    causes = [_format_cause(change, page) for change in changes]
    # a column that repeats the heading would take the room of changes
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
    omitted = len(changes) - shown
    if omitted:
        table += f"\nand {format_count(omitted, 'change')} more\n"
    return table, omitted


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
    singles = {}
    for pair in touched:
        own = [
            change
            for change in pair.changes
            # new and removed presets take no part in shared changes
            if pair.status != "changed" or identify_change(change) not in shared
        ]
        own.sort(key=_rank_change)
        piece = _format_single(pair, own, common, page)
        if piece:
            unranked = len(RISKS) + (1 if own and pair.status == "changed" else 2)
            risk_rank = min(map(rank_risk, _list_risks(pair, own)), default=unranked)
            # sorted by this key: what is cut at the end matters least
            singles[not is_broken(pair), risk_rank, pair.name] = piece
    return pieces + [singles[rank] for rank in sorted(singles)]


def _list_groups(wide: Sequence[Fold], page: Page) -> list[_Piece]:
    """Return shared changes, grouped by equal sets of presets, highest risk first."""
    groups = group_pairs((fold.presets, fold.change) for fold in wide)
    ranked = sorted(
        groups,
        key=lambda names: (min(map(_rank_change, groups[names])), -len(names), names),
    )
    return [_format_group(names, sorted(groups[names], key=_rank_change), page) for names in ranked]


def _format_group(names: Sequence[str], changes: Sequence[Change], page: Page) -> _Piece:
    """Return the changes that the same presets share, with one list of these presets."""
    cited = [format_location(change.cause, page) for change in changes if change.cause]
    causes = count_rest(list(dict.fromkeys(cited)))
    table, cut = _format_table(changes, page, page.limit // 3, causes)
    out = f"\n**{causes or 'one cause'} → {len(names)} presets**\n\n{table}"
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
    verdicts = [line for line in _list_verdicts(pair) if line not in common]
    if not own and not verdicts:
        return None  # the head lists it as new, removed or renamed
    number, noun = (len(own), "change") if own else (len(verdicts), "finding")
    summary = escape(format_pair_headline(pair) or format_count(number, noun))
    risks = sorted(_list_risks(pair, own), key=rank_risk)
    if risks:
        summary += f"; {', '.join(risks)}"
    name = escape(escape_controls(pair.name))
    out = f"\n<details><summary><code>{name}</code> ({summary})</summary>\n"
    cut = 0
    if own:
        table, cut = _format_table(own, page, page.limit // 3)
        out += f"\n{table}"
    if verdicts:
        out += "\n" + "".join(f"- {format_listed_span(line)}\n" for line in verdicts)
    return _Piece(f"{out}\n</details>\n", len(own), cut)


def _format_cause(change: Change, page: Page) -> str:
    """Return the cause of a change, with the other side's line if it is in another file."""
    was, now = change.origins
    if change.extends:
        locations = (
            format_location(origin, page, True) if origin else "" for origin in change.origins
        )
        return f"{format_location(change.extends, page, True)}: {format_moved_origin(*locations)}"
    if now is None:
        return f"was set by {format_location(was, page, True)}" if was else ""
    unset = "unset by " if change.kind == "removed" and now.layer == "unset" else ""
    before = f", before {format_location(was, page, True)}" if was and was.file != now.file else ""
    return f"{unset}{format_location(now, page, True)}{before}"


#: What changes may affect, most important first; everything else comes last.
RISKS = (EXECUTES, "numerics", "distributed", "memory", "performance")


class _Fault(Record):
    """A fault of a preset.

    ``advice`` is the line below it, and ``name`` is empty if it belongs to none.
    """

    line: str
    location: str = ""
    advice: str = ""
    name: str = ""


class _FaultGroup(Record):
    """Faults under one title of a page."""

    title: str
    faults: Sequence[_Fault]


def count_survey(survey: Survey, more: Sequence[str]) -> str:
    """Return the first line: ``1 broken, 24 changed, 1 new, 1 removed, 1 renamed``."""
    touched = survey.touched_pairs
    numbers = {
        "broken": sum(map(is_broken, touched)),
        "changed": sum(pair.status == "changed" and not pair.was for pair in touched),
        "new": sum(pair.status == "added" for pair in touched),
        "removed": sum(pair.status == "removed" for pair in touched),
        "renamed": sum(bool(pair.was) for pair in touched),
        "valid again": sum(pair.valid == (False, True) for pair in touched),
        "with newly accepted findings": sum(bool(pair.accepted) for pair in touched),
    }
    counts = [f"{number} {state}" for state, number in numbers.items() if number]
    return ", ".join([*counts, *more]) or "no preset differs"


def count_risks(survey: Survey) -> str:
    """Return the number of changed presets by risk, such as ``numerics 25, distributed 24``.

    Highest risk first; empty without risks.
    """
    risks = Counter(
        risk for pair in survey.touched_pairs for risk in _list_risks(pair, pair.changes)
    )
    ranked = sorted(risks, key=lambda risk: (rank_risk(risk), risk))
    return ", ".join(f"{risk} {risks[risk]}" for risk in ranked)


def _list_risks(pair: Pair, changes: Iterable[Change]) -> list[str]:
    """Return what changes of a preset put at risk.

    A new preset can only put execution at risk, a removed one nothing.
    """
    return [
        risk
        for risk in dict.fromkeys(risk for change in changes for risk in change.risk)
        # a new preset changes no results yet, but its values may be executed
        if pair.status == "changed" or (pair.status == "added" and risk == EXECUTES)
    ]


def rank_risk(risk: str) -> int:
    """Return the rank of a risk, highest first."""
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def is_broken(pair: Pair) -> bool:
    """Return whether a preset has new errors, or cannot be read."""
    return pair.unread or bool(select_errors(pair.broken))


def format_head(survey: Survey, page: Page) -> str:
    """Return the head of a page, at most about nine tenths of its room.

    Faults take half of it, each other list a tenth.
    """
    sides = f"{format_listed_span(survey.before)} → {format_listed_span(survey.after)}"
    totals = format_survey_totals(survey).partition(";")[0]
    counts = count_survey(survey, [faults.counted for faults in page.faults])
    touched = survey.touched_pairs
    own = {
        "Broken": _list_broken(touched, page),
        "Newly accepted": _list_accepted_faults(touched, page),
    }
    groups = [_FaultGroup(title, faults) for title, faults in own.items() if faults]
    groups += _list_other_faults(page)
    out = f"### Presets: {counts}\n\n{sides}; {totals}\n"
    if risks := count_risks(survey):
        out += f"\nAt risk: {risks}\n"
    out += _format_faults(groups, page)
    for title, entries in {
        "**Removed**": [
            format_listed_span(pair.name) for pair in touched if pair.status == "removed"
        ],
        "**New**": [format_listed_span(pair.name) for pair in touched if pair.status == "added"],
        "**Renamed**": [
            f"{format_listed_span(pair.was)} → {format_listed_span(pair.name)}"
            for pair in touched
            if pair.was
        ],
        "**Outputs**": [*map(format_listed_span, survey.outputs)],
        "Owners of affected presets": _list_owners(survey, page),
    }.items():
        if entries:
            out += f"\n{title}: {join_fitting(entries, page.list_limit)}\n"
    return out


def format_faults(page: Page) -> str:
    """Return a page with faults only, for unknown changes."""
    heading = "### Presets: the changes are unknown"
    counts = ", ".join(faults.counted for faults in page.faults)
    if counts:
        heading += f"; {counts}"
    return f"{heading}\n" + _format_faults(_list_other_faults(page), page)


def _list_broken(pairs: Iterable[Pair], page: Page) -> list[_Fault]:
    """Return the new errors of presets."""
    faults = []
    for pair in filter(is_broken, pairs):
        before = "unknown here: " if pair.unavailable else ""
        faults += [
            _build_fault(finding, pair.name, page, before)
            for finding in pair.unavailable or select_errors(pair.broken)
        ] or [_Fault("cannot be read or resolved", name=pair.name)]
    return list(dict.fromkeys(faults))


def _list_accepted_faults(pairs: Iterable[Pair], page: Page) -> list[_Fault]:
    """Return the newly accepted findings with their reasons.

    Reasons are cut: a long one would take the room of the others.
    """
    return [
        _build_fault(accepted.finding, name, page)._replace(
            advice=f"reason: {format_listed_span(shorten_text(accepted.ignore.reason))} "
            f"({format_location(accepted.ignore.origin, page)})"
        )
        for name, accepted in list_accepted(pairs)
    ]


def _list_other_faults(page: Page) -> list[_FaultGroup]:
    """Return the other findings by title, one for each affected preset."""
    return [
        _FaultGroup(
            group.title,
            [
                _build_fault(finding, name, page)
                for finding in group.findings
                for name in finding.profiles or [_find_preset_name(finding)]
            ],
        )
        for group in page.faults
    ]


def _find_preset_name(finding: Finding) -> str:
    """Return the preset whose file has a finding; empty for other files."""
    origin = finding.origin
    return origin.profile if origin and origin.profile != origin.file else ""


def _build_fault(finding: Finding, name: str, page: Page, before: str = "") -> _Fault:
    """Return a preset's fault as a line that is equal for other presets with that fault."""
    message = finding.message.removeprefix(f"{name} ") if name else finding.message
    location = ""
    if finding.origin:
        location = format_location(finding.origin, page)
    elif finding.place:
        location = format_listed_span(finding.place)
    advice = f"try: {format_listed_span(finding.hint)}" if finding.hint else ""
    return _Fault(f"{before}{finding.code} {format_listed_span(message)}", location, advice, name)


def _format_faults(groups: Sequence[_FaultGroup], page: Page) -> str:
    """Return faults under their titles, each once with all its presets.

    Omissions of a group are counted.
    """
    out = ""
    half = page._replace(limit=page.limit // 2)
    for group in groups:
        equal_faults = group_pairs(((fault.line, fault.advice), fault) for fault in group.faults)
        entries = [_format_fault(faults, half) for faults in equal_faults.values()]
        room = half.limit // len(groups)
        fitting = sum(end <= room for end in accumulate(map(len, entries)))
        out += f"\n**{group.title}**\n\n{''.join(entries[:fitting])}"
        if fitting < len(entries):
            out += f"- and {format_count(len(entries) - fitting, 'other fault')}\n"
    return out


def _format_fault(faults: Sequence[_Fault], page: Page) -> str:
    """Return faults with the same line and advice as one entry, with their presets."""
    line = f"- {faults[0].line}"
    advice = faults[0].advice
    locations = list(dict.fromkeys(fault.location for fault in faults if fault.location))
    if locations:
        line += f" ({count_rest(locations, 1)})"
    names = list(dict.fromkeys(fault.name for fault in faults if fault.name))
    if len(names) > 3:
        line += f": {len(names)} presets, {list_names(names, page)}"
    elif names:
        line += f": {list_names(names, page)}"
    return f"{line}  \n  {advice}\n" if advice else f"{line}\n"


def _list_owners(survey: Survey, page: Page) -> list[str]:
    """Return the owners of presets that differ, with counts, highest first."""
    reached = Counter(
        owner for pair in survey.different_pairs for owner in page.owners.get(pair.name, ())
    )
    ranked = sorted(reached, key=lambda owner: (-reached[owner], owner))
    return [f"{format_listed_span(owner)} ({reached[owner]})" for owner in ranked]
