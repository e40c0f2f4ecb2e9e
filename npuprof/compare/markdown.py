"""Changes as markdown for a pull-request comment: what is broken first, then by risk; what does not fit is counted."""

from __future__ import annotations

from collections.abc import Container, Sequence
from html import escape
from itertools import accumulate
from typing import NamedTuple

from npuprof.compare.changes import Change
from npuprof.compare.folds import fold_changes, format_moved_origin, format_pair_headline, format_pair_verdicts, identify_change
from npuprof.compare.longvalues import format_short_sentence, list_full_values, shorten_text
from npuprof.compare.pagehead import RISKS, format_head, is_broken, rank_risk
from npuprof.compare.spans import Page, collect_revisions, format_listed_span, list_names, show_place
from npuprof.report.tables import Table, format_code_span
from npuprof.report.text import Code, Markup, count_rest, escape_controls, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.folds import Fold
    from npuprof.compare.pairs import Pair
    from npuprof.compare.survey import Survey

_COLUMNS = ("", "change", "risk", "cause")
#: How much room is kept for the sentence that counts what is left out, besides the command in it.
_RESERVE = 200


class _Piece(NamedTuple):
    """A part of a page: its text, its number of changes, how many of them it leaves out, and whether it is a value in full."""

    text: str
    changes: int
    cut: int = 0
    full: bool = False


def format_survey_markdown(survey: Survey, page: Page | None = None) -> str:
    """Return a survey as markdown within the limit of a page: first what is broken or removed; what has no room is counted."""
    page = (page or Page())._replace(revisions=collect_revisions(survey.pairs))
    head, pieces = format_head(survey, page), _list_pieces(survey, page)
    if len(survey.pairs) == 1:  # whoever asks for one preset wants to see it
        pieces = [piece._replace(text=piece.text.replace("<details>", "<details open>", 1)) for piece in pieces]
    room = page.limit - _RESERVE - len(page.command) - len(head)
    fitting = sum(end <= room for end in accumulate(len(piece.text) for piece in pieces))
    return head + "".join(piece.text for piece in pieces[:fitting]) + _count_left_out(pieces[:fitting], pieces[fitting:], page.command)


def _count_left_out(shown: Sequence[_Piece], others: Sequence[_Piece], command: str) -> str:
    """Return the sentence that counts what is not on a page; an empty text if all is."""
    changes = sum(piece.cut for piece in shown) + sum(piece.changes for piece in others)
    parts = sum(not piece.full for piece in others)
    places = f" in {format_count(parts, 'part')}" if parts else ""
    counts = [f"{format_count(changes, 'change')}{places}"] if changes or parts else []
    counts += [f"{format_count(len(others) - parts, 'value')} in full"] if len(others) > parts else []
    return f"\nLeft out: {' and '.join(counts)} ({format_code_span(command)} shows them).\n" if counts else ""


def format_change_table(changes: Sequence[Change], page: Page) -> str:
    """Return changes as a table: sign, change, risk, cause; values that have no room there follow, folded."""
    return _format_table(changes, page, None)[0] + "".join(list_full_values(changes).values())


def _format_table(changes: Sequence[Change], page: Page, room: int | None) -> tuple[str, int]:
    """Return changes as a table, as many as fit in ``room`` characters, and how many are left out."""
    rows = [
        (Code(change.sign), Code(format_short_sentence(change)), ", ".join(change.risk), Markup(_show_cause(change, page)))
        for change in changes
    ]
    table, shown = Table(rows, header=_COLUMNS).format_markdown(room)
    left_out = len(changes) - shown
    return table + (f"\nand {format_count(left_out, 'change')} more\n" if left_out else ""), left_out


def format_shared_changes(wide: Sequence[Fold], page: Page) -> str:
    """Return changes that presets share as tables, by cause, each with its presets."""
    full = list_full_values(fold.change for fold in wide)
    return "".join([*(piece.text for piece in _list_groups(wide, page)), *full.values()])


def _rank_change(change: Change) -> int:
    return min(map(rank_risk, change.risk), default=len(RISKS) + 1)


def _list_pieces(survey: Survey, page: Page) -> list[_Piece]:
    """Return what follows the head, what is most at risk first: changes that presets share, then each preset's own, folded."""
    touched = survey.touched_pairs
    wide = [fold for fold in fold_changes(touched) if len(fold.presets) > 1]
    pieces = _list_groups(wide, page)
    shared = {identify_change(fold.change) for fold in wide}
    verdicts: dict[str, list[str]] = {}
    for pair in touched:
        for line in _list_verdicts(pair):
            verdicts.setdefault(line, []).append(pair.name)
    common = {line: names for line, names in verdicts.items() if len(names) > 1}
    for line, names in common.items():
        headline = f"\n**{len(names)} presets**: {format_listed_span(shorten_text(line))}\n"
        pieces.append(_Piece(headline + _format_reach(names, page), 0))
    singles = []
    every = [fold.change for fold in wide]
    for pair in touched:
        own = [change for change in pair.changes if pair.status != "changed" or identify_change(change) not in shared]
        own.sort(key=_rank_change)
        every += own
        if piece := _format_single(pair, own, common, page):
            rank = min(map(_rank_change, own), default=len(RISKS) + 2) if pair.status == "changed" else len(RISKS) + 2
            singles.append((not is_broken(pair), rank, pair.name, piece))
    pieces += [piece for _, _, _, piece in sorted(singles, key=lambda row: row[:3])]
    return pieces + [_Piece(text, 0, full=True) for text in list_full_values(every).values()]


def _list_groups(wide: Sequence[Fold], page: Page) -> list[_Piece]:
    """Return changes that presets share, those of the same presets as one, what is most at risk first."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for fold in wide:
        groups.setdefault(fold.presets, []).append(fold.change)
    ranked = sorted(groups.items(), key=lambda group: (min(map(_rank_change, group[1])), -len(group[0]), group[0]))
    return [_format_group(names, sorted(changes, key=_rank_change), page) for names, changes in ranked]


def _format_group(names: Sequence[str], changes: Sequence[Change], page: Page) -> _Piece:
    """Return changes that the same presets share, with the list of those once."""
    causes = list(dict.fromkeys(show_place(change.cause, page) for change in changes if change.cause))
    table, cut = _format_table(changes, page, page.limit // 3)
    out = f"\n**{count_rest(causes) or 'one cause'} → {len(names)} presets**\n\n{table}"
    return _Piece(out + _format_reach(names, page), len(changes), cut)


def _format_reach(names: Sequence[str], page: Page) -> str:
    """Return a list of presets, folded."""
    return f"\n<details><summary>{len(names)} presets</summary>\n\n{list_names(names, page)}\n\n</details>\n"


def _list_verdicts(pair: Pair) -> list[str]:
    """Return the findings that came or went, but for what the head tells."""
    return [line for line in format_pair_verdicts(pair) if not line.startswith("breaks ")]


def _format_single(pair: Pair, own: list[Change], common: Container[str], page: Page) -> _Piece | None:
    """Return a preset's own changes and findings, folded under its name; None where there is nothing to say of it alone."""
    headline = format_pair_headline(pair, escape_controls)
    verdicts = [line for line in _list_verdicts(pair) if line not in common]
    if not own and not verdicts:
        return None  # the head says that it is new, gone or renamed
    counts = headline or format_count(len(own), "change") if own or headline else format_count(len(verdicts), "finding")
    risks = list(dict.fromkeys(risk for change in own for risk in change.risk)) if pair.status == "changed" else []
    more = f"; {', '.join(sorted(risks, key=rank_risk))}" if risks else ""
    out = f"\n<details><summary><code>{escape(escape_controls(pair.name))}</code> ({escape(counts)}{more})</summary>\n"
    table, cut = _format_table(own, page, page.limit // 3) if own else ("", 0)
    out += f"\n{table}" if own else ""
    if verdicts:
        out += "\n" + "".join(f"- {format_listed_span(shorten_text(line))}\n" for line in verdicts)
    return _Piece(f"{out}\n</details>\n", len(own), cut)


def _show_cause(change: Change, page: Page) -> str:
    """Return who brought a change about, with the place on the other side where that is in another file."""
    was, now = change.origins
    if change.extends:
        places = (show_place(origin, page, True) if origin else "" for origin in change.origins)
        return f"{show_place(change.extends, page, True)}: {format_moved_origin(*places)}"
    if now is None:
        return f"was set by {show_place(was, page, True)}" if was else ""
    unset = "unset by " if change.kind == "removed" and now.layer == "unset" else ""
    before = f", before {show_place(was, page, True)}" if was and was.file != now.file else ""
    return f"{unset}{show_place(now, page, True)}{before}"
