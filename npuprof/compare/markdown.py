"""Changes as markdown for a pull-request comment: what is broken first, then by risk; what does not fit is counted."""

from __future__ import annotations

from collections.abc import Container, Sequence
from html import escape
from typing import NamedTuple

from npuprof.compare.changes import Change
from npuprof.compare.crowds import format_crowd
from npuprof.compare.faults import is_broken
from npuprof.compare.folds import fold_changes, format_pair_headline, format_pair_verdicts, identify_change
from npuprof.compare.longvalues import format_short_sentence, list_full_values, shorten_text
from npuprof.compare.pagehead import RISKS, format_head, rank_risk
from npuprof.compare.spans import (
    Page,
    collect_revisions,
    format_code_list,
    format_code_span,
    format_listed_span,
    measure_listed,
    show_place,
)
from npuprof.report.text import escape_controls, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.folds import Fold
    from npuprof.compare.pairs import Pair
    from npuprof.compare.survey import Survey

_HEAD = "| | change | risk | cause |\n|---|---|---|---|\n"
#: How much room is kept for the sentence that counts what is left out, besides the command in it.
_RESERVE = 200


class _Piece(NamedTuple):
    """A part of a page: the presets and changes it tells, how many changes it leaves out, and whether it is values in full."""

    text: str
    presets: tuple[str, ...]
    changes: int
    cut: int = 0
    full: bool = False


def format_survey_markdown(survey: Survey, page: Page | None = None) -> str:
    """Return a survey as markdown of at most as many characters as a page may have.

    What is broken or removed is told whatever else is left out; of what has no room, as many presets are named as fit, and all is
    counted.
    """
    page = (page or Page())._replace(revisions=collect_revisions(survey.pairs))
    limit = page.limit - _RESERVE - len(page.command)
    pieces = _list_pieces(survey, page)
    if len(survey.pairs) == 1:  # whoever asks for one preset wants to see it
        pieces = [piece._replace(text=piece.text.replace("<details>", "<details open>", 1)) for piece in pieces]
    out, known = format_head(survey, page, limit)
    names_room = 0
    if len(out) + sum(len(piece.text) for piece in pieces) > limit:
        names_room = min(page.names_room, _measure_names(pieces, known))
        if len(out) > limit - names_room:
            out, known = format_head(survey, page, limit - names_room)
    room = limit - names_room - len(out)
    told = 0
    for piece in pieces:
        room -= len(piece.text)
        if room < 0:
            break
        out += piece.text
        told += 1
    return out + _format_left(pieces[:told], pieces[told:], known, page.command, limit - len(out))


def _measure_names(pieces: Sequence[_Piece], known: Container[str]) -> int:
    """Return how many characters the names of presets take of which the head says nothing, with the words around them."""
    names = dict.fromkeys(name for piece in pieces for name in piece.presets if name not in known)
    return measure_listed(list(map(format_listed_span, names))) + _RESERVE if names else 0


def _format_left(told: Sequence[_Piece], left: Sequence[_Piece], known: frozenset[str], command: str, room: int) -> str:
    """Return the count of what is not on a page, with the names of presets of which nothing else is said."""
    changes = sum(piece.cut for piece in told) + sum(piece.changes for piece in left)
    parts = sum(not piece.full for piece in left)
    full = len(left) - parts
    places = f" in {format_count(parts, 'part')}" if parts else ""
    counts = [f"{format_count(changes, 'change')}{places}"] if changes or parts else []
    counts += [f"{format_count(full, 'value')} in full"] if full else []
    if not counts:
        return ""
    known = known.union(name for piece in told for name in piece.presets)
    names = [name for name in dict.fromkeys(name for piece in left for name in piece.presets) if name not in known]
    listed = f"\n\nNothing more is said of {format_count(len(names), 'preset')}: {format_crowd(names, room - _RESERVE)}" if names else ""
    return f"\nLeft out: {' and '.join(counts)} ({format_code_span(command)} shows them).{listed}\n"


def format_change_table(changes: Sequence[Change], page: Page) -> str:
    """Return changes as a table: sign, change, risk, cause; values that have no room there follow, folded."""
    return _HEAD + "".join(_format_markdown_row(change, page) for change in changes) + "".join(list_full_values(changes).values())


def _format_table(changes: Sequence[Change], page: Page) -> tuple[str, int]:
    """Return changes as a table, as many as have room in a third of a page, and how many are left out."""
    out = _HEAD
    for place, change in enumerate(changes):
        row = _format_markdown_row(change, page)
        if len(out) + len(row) > page.limit // 3:
            return f"{out}\nand {format_count(len(changes) - place, 'change')} more\n", len(changes) - place
        out += row
    return out, 0


def format_shared_changes(wide: Sequence[Fold], page: Page) -> str:
    """Return changes that presets share as tables, by cause, each with its presets."""
    full = list_full_values(fold.change for fold in wide)
    return "".join([*(piece.text for piece in _list_groups(wide, page)[0]), *full.values()])


def _rank_change(change: Change) -> int:
    return min(map(rank_risk, change.risk), default=len(RISKS) + 1)


def _list_pieces(survey: Survey, page: Page) -> list[_Piece]:
    """Return what follows the head, what is most at risk first: changes that presets share, then each preset's own, folded."""
    touched = survey.touched_pairs
    wide = [fold for fold in fold_changes(touched) if len(fold.presets) > 1]
    pieces, told = _list_groups(wide, page)
    shared = {identify_change(fold.change) for fold in wide}
    verdicts: dict[str, list[str]] = {}
    for pair in touched:
        for line in _list_verdicts(pair):
            verdicts.setdefault(line, []).append(pair.name)
    common = {line: tuple(names) for line, names in verdicts.items() if len(names) > 1}
    for line, names in common.items():
        pieces.append(_format_verdict(line, names, told, page))
        told.append(names)
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
    return pieces + [_Piece(text, (), 0, full=True) for text in list_full_values(every).values()]


def _list_groups(wide: Sequence[Fold], page: Page) -> tuple[list[_Piece], list[tuple[str, ...]]]:
    """Return changes that presets share, those of the same presets as one, what is most at risk first; and the lists that are told."""
    groups: dict[tuple[str, ...], list[Fold]] = {}
    for fold in wide:
        groups.setdefault(fold.presets, []).append(fold)
    ranked = [(min(_rank_change(fold.change) for fold in folds), -len(names), names, folds) for names, folds in groups.items()]
    pieces: list[_Piece] = []
    told: list[tuple[str, ...]] = []
    for _, _, names, folds in sorted(ranked, key=lambda row: row[:3]):
        pieces.append(_format_group(names, folds, told, page))
        told.append(names)
    return pieces, told


def _format_group(names: tuple[str, ...], folds: list[Fold], told: Sequence[tuple[str, ...]], page: Page) -> _Piece:
    """Return changes that the same presets share, with the list of those once; ``told`` are the lists that stand above."""
    changes = sorted((fold.change for fold in folds), key=_rank_change)
    causes = list(dict.fromkeys(show_place(origin, page) for change in changes if (origin := change.origins[1] or change.origins[0])))
    shown = ", ".join(causes[:3]) + (f" and {len(causes) - 3} more" if len(causes) > 3 else "")
    out = f"\n**{shown or 'one cause'} → {len(names)} presets**\n\n"
    table, cut = _format_table(changes, page)
    return _Piece(out + table + _format_reach(names, told, page), names, len(changes), cut)


def _format_reach(names: tuple[str, ...], told: Sequence[tuple[str, ...]], page: Page) -> str:
    """Return a list of presets, folded; what it lacks of one above, where it is nearly that."""
    if alike := _find_like_list(names, told):
        return f"\nThe {len(alike)} presets above{_describe_difference(names, alike)}.\n"
    return f"\n<details><summary>{len(names)} presets</summary>\n\n{format_crowd(names, page.names_room)}\n\n</details>\n"


def _find_like_list(names: tuple[str, ...], told: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the one list above of its length from which names differ by little, an empty one where there is none."""
    close = [other for other in told if len(set(names) ^ set(other)) <= min(3, len(names) // 4)]
    best = min(close, key=lambda other: len(set(names) ^ set(other)), default=())
    return best if sum(len(other) == len(best) for other in told) == 1 else ()


def _describe_difference(names: tuple[str, ...], other: tuple[str, ...]) -> str:
    without = [name for name in other if name not in names]
    more = [name for name in names if name not in other]
    return (f" without {format_code_list(without)}" if without else "") + (f" and {format_code_list(more)}" if more else "")


def _list_verdicts(pair: Pair) -> list[str]:
    """Return the findings that came or went, but for what the head tells."""
    return [line for line in format_pair_verdicts(pair) if not line.startswith("breaks ")]


def _format_verdict(line: str, names: tuple[str, ...], told: Sequence[tuple[str, ...]], page: Page) -> _Piece:
    """Return a finding that came to many presets, or went, with the list of those."""
    out = f"\n**{len(names)} presets**: {format_listed_span(shorten_text(line))}\n{_format_reach(names, told, page)}"
    return _Piece(out, names, 0)


def _format_single(pair: Pair, own: list[Change], common: Container[str], page: Page) -> _Piece | None:
    """Return a preset's own changes and findings, folded under its name; None where there is nothing to say of it alone."""
    said = format_pair_headline(pair, escape_controls)
    judged = [line for line in _list_verdicts(pair) if line not in common]
    if not own and not judged:
        return None  # the head says that it is new, gone or renamed
    counts = said or format_count(len(own), "change") if own or said else format_count(len(judged), "finding")
    risks = list(dict.fromkeys(risk for change in own for risk in change.risk)) if pair.status == "changed" else []
    more = f"; {', '.join(sorted(risks, key=rank_risk))}" if risks else ""
    out = f"\n<details><summary><code>{escape(escape_controls(pair.name))}</code> ({escape(counts)}{more})</summary>\n"
    table, cut = _format_table(own, page) if own else ("", 0)
    out += f"\n{table}" if own else ""
    if judged:
        out += "\n" + "".join(f"- {format_listed_span(shorten_text(line))}\n" for line in judged)
    return _Piece(f"{out}\n</details>\n", (pair.name,), len(own), cut)


def _format_markdown_row(change: Change, page: Page) -> str:
    said = f"{format_code_span(change.sign)} | {format_code_span(format_short_sentence(change))}"
    return f"| {said} | {', '.join(change.risk)} | {_show_cause(change, page)} |\n"


def _show_cause(change: Change, page: Page) -> str:
    """Return who brought a change about, with the place on the other side where that is in another file."""
    was, now = change.origins
    if now is None:
        return f"was set by {show_place(was, page, True)}" if was else ""
    unset = "unset by " if change.kind == "removed" and now.layer == "unset" else ""
    before = f", before {show_place(was, page, True)}" if was and was.file != now.file else ""
    return f"{unset}{show_place(now, page, True)}{before}"
