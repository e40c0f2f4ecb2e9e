"""Changes as markdown for a pull-request comment: what is broken first, then by risk; what does not fit is counted."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from html import escape
from typing import NamedTuple

from npuprof.compare.changes import Change
from npuprof.compare.folds import (
    fold_changes,
    format_change_sentence,
    format_pair_headline,
    format_pair_verdicts,
    format_survey_totals,
    identify_change,
)
from npuprof.model import Finding, Origin
from npuprof.report.text import escape_controls, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.folds import Fold
    from npuprof.compare.survey import Pair, Survey

#: GitHub takes 65,536 characters in a comment; some room is left for a heading above.
COMMENT_LIMIT = 60_000
#: What a change puts at risk, what matters most first; all else comes after them.
RISKS = ("numerics", "distributed", "memory", "performance")
_PIPE = re.compile(r"(?<!\\)(\\*)\|")
_HEAD = "| | change | risk | cause |\n|---|---|---|---|\n"
_ADDRESS = re.compile(r"https?://[^\s()<>\[\]`|]+")
#: How much room is kept for the sentence that counts what is left out.
_RESERVE = 200


class Page(NamedTuple):
    """What a page can say beside the changes: the address of the repository, and the owners of presets."""

    address: str = ""
    owners: Mapping[str, Sequence[str]] = {}


class _Piece(NamedTuple):
    """A part of a page, and what of it is counted where it does not fit."""

    text: str
    presets: int
    changes: int


def format_survey_markdown(survey: Survey, limit: int = COMMENT_LIMIT, page: Page | None = None) -> str:
    """Return a survey as markdown of at most ``limit`` characters; what is broken or removed is told whatever else is left out."""
    page = page or Page()
    out = _format_head(survey, page)
    if len(out) > limit:
        out = _format_short_head(survey)[:limit]
    left = [0, 0]
    pieces = _list_pieces(survey, page)
    if len(survey.pairs) == 1:  # whoever asks for one preset wants to see it
        pieces = [piece._replace(text=piece.text.replace("<details>", "<details open>", 1)) for piece in pieces]
    for piece in pieces:
        if not any(left) and len(out) + len(piece.text) + _RESERVE <= limit:
            out += piece.text
        else:
            left = [left[0] + piece.presets, left[1] + piece.changes]
    if any(left):
        told = f"\nLeft out: {format_count(left[1], 'change')} in {format_count(left[0], 'part')} (`npuprof diff` shows them).\n"
        out += told if len(out) + len(told) <= limit else ""
    return out


def format_change_table(changes: Sequence[Change]) -> str:
    """Return changes as a table: sign, change, risk, cause."""
    return _HEAD + "".join(_format_markdown_row(change, Page()) for change in changes)


def format_shared_changes(wide: Sequence[Fold]) -> str:
    """Return changes that presets share as tables, by cause, each with its presets."""
    return "".join(piece.text for piece in _list_groups(wide, Page())[0])


def format_code_span(text: str, in_table: bool = True) -> str:
    """Return text as a code span, in which nothing is a link, a mention or a mark; it may stand in a table cell."""
    shown = escape_controls(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    span = f"{ticks}{pad}{shown}{pad}{ticks}"
    return _PIPE.sub(_escape_pipe, span) if in_table else span


def is_address(text: str) -> bool:
    """Return whether a text can be the address of a repository's pages."""
    return _ADDRESS.fullmatch(text) is not None


def count_survey(survey: Survey) -> str:
    """Return the first line: ``24 changed, 1 new, 1 removed, 1 renamed, 1 broken; numerics 25, distributed 24``."""
    touched = survey.touched_pairs
    numbers = [
        (sum(pair.status == "changed" and not pair.was for pair in touched), "changed"),
        (sum(pair.status == "added" for pair in touched), "new"),
        (sum(pair.status == "removed" for pair in touched), "removed"),
        (sum(bool(pair.was) for pair in touched), "renamed"),
        (sum(map(_is_broken, touched)), "broken"),
        (sum(pair.valid == (False, True) for pair in touched), "valid again"),
    ]
    said = ", ".join(f"{number} {word}" for number, word in numbers if number)
    risks: dict[str, int] = {}
    for pair in touched:
        for risk in {risk for change in pair.changes if pair.status == "changed" for risk in change.risk}:
            risks[risk] = risks.get(risk, 0) + 1
    risky = ", ".join(f"{risk} {risks[risk]}" for risk in sorted(risks, key=lambda risk: (_rank_risk(risk), risk)))
    return (said or "no preset differs") + (f"; {risky}" if risky else "")


def _escape_pipe(found: re.Match[str]) -> str:
    """Return a pipe that ends no cell, whatever stands before it: backslashes escape each other there, so an odd number."""
    before: str = found[1]
    return before + ("\\" if len(before) % 2 == 0 else "\\\\") + "|"


def _format_listed_span(text: str) -> str:
    return format_code_span(text, in_table=False)


def _is_broken(pair: Pair) -> bool:
    return pair.unread or any(finding.severity == "error" for finding in pair.broken)


def _rank_risk(risk: str) -> int:
    return RISKS.index(risk) if risk in RISKS else len(RISKS)


def _rank_change(change: Change) -> int:
    return min(map(_rank_risk, change.risk), default=len(RISKS) + 1)


def _format_head(survey: Survey, page: Page) -> str:
    """Return what is always told: the counts, what is broken, what is gone, the owners."""
    sides = f"{_format_listed_span(survey.before)} → {_format_listed_span(survey.after)}"
    out = [f"### Presets: {count_survey(survey)}\n\n{sides}; {format_survey_totals(survey, _format_listed_span).partition(';')[0]}\n"]
    out.append(_format_broken(survey, page))
    for title, names in _list_fates(survey).items():
        out.append(f"\n**{title}**: {', '.join(names)}\n" if names else "")
    reached: dict[str, int] = {}
    for pair in survey.different_pairs:
        for owner in page.owners.get(pair.name, ()):
            reached[owner] = reached.get(owner, 0) + 1
    if reached:
        named = [
            f"{_format_listed_span(owner)} ({number})" for owner, number in sorted(reached.items(), key=lambda item: (-item[1], item[0]))
        ]
        out.append(f"\nOwners of what is reached: {', '.join(named)}\n")
    return "".join(out)


def _list_fates(survey: Survey) -> dict[str, list[str]]:
    """Return the presets that are gone, new or renamed, as they are shown."""
    touched = survey.touched_pairs
    return {
        "Removed": [_format_listed_span(pair.name) for pair in touched if pair.status == "removed"],
        "New": [_format_listed_span(pair.name) for pair in touched if pair.status == "added"],
        "Renamed": [f"{_format_listed_span(pair.was)} → {_format_listed_span(pair.name)}" for pair in touched if pair.was],
    }


def _format_short_head(survey: Survey) -> str:
    """Return the same where there is so much of it that only names have room."""
    broken = [pair.name for pair in survey.touched_pairs if _is_broken(pair)]
    gone = [pair.name for pair in survey.touched_pairs if pair.status == "removed"]
    out = f"### Presets: {count_survey(survey)}\n"
    for title, names in (("Broken", broken), ("Removed", gone)):
        out += f"\n**{title}**: {_format_code_list(names)}\n" if names else ""
    return out


def _format_broken(survey: Survey, page: Page) -> str:
    """Return the errors that came, each once with all presets that have it."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for pair in survey.touched_pairs:
        if _is_broken(pair):
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
    return f"{len(known)} presets, {_format_code_list(known)}" if len(known) > 3 else _format_code_list(known)


def _describe_fault(finding: Finding, name: str) -> str:
    """Return what is wrong with a preset in words that are the same for others with the same fault."""
    return f"{finding.code} {_format_listed_span(finding.message.removeprefix(f'{name} '))}"


def _show_finding_place(finding: Finding, page: Page) -> str:
    """Return where something is wrong, with a link to the line."""
    if finding.origin:
        return _show_place(finding.origin, page)
    return _format_listed_span(finding.place) if finding.place else ""


def _list_places(places: Sequence[str]) -> str:
    known = list(dict.fromkeys(filter(None, places)))
    return f" ({known[0]}{f' and {len(known) - 1} more' if known[1:] else ''})" if known else ""


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
        pieces.append(_format_verdict(line, names, told))
        told.append(names)
    singles = []
    for pair in touched:
        own = [change for change in pair.changes if pair.status != "changed" or identify_change(change) not in shared]
        own.sort(key=_rank_change)
        if piece := _format_single(pair, own, common, page):
            rank = min(map(_rank_change, own), default=len(RISKS) + 2) if pair.status == "changed" else len(RISKS) + 2
            singles.append((not _is_broken(pair), rank, pair.name, piece))
    return pieces + [piece for _, _, _, piece in sorted(singles, key=lambda row: row[:3])]


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
    causes = list(dict.fromkeys(_show_place(origin, page) for change in changes if (origin := change.origins[1] or change.origins[0])))
    shown = ", ".join(causes[:3]) + (f" and {len(causes) - 3} more" if len(causes) > 3 else "")
    out = f"\n**{shown or 'one cause'} → {len(names)} presets**\n\n{_HEAD}"
    out += "".join(_format_markdown_row(change, page) for change in changes)
    return _Piece(out + _format_reach(names, told), 1, len(changes))


def _format_reach(names: tuple[str, ...], told: Sequence[tuple[str, ...]]) -> str:
    """Return a list of presets, folded; what it lacks of one above, where it is nearly that."""
    if alike := _find_like_list(names, told):
        return f"\nThe {len(alike)} presets above{_describe_difference(names, alike)}.\n"
    return f"\n<details><summary>{len(names)} presets</summary>\n\n{_format_code_list(names)}\n\n</details>\n"


def _find_like_list(names: tuple[str, ...], told: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the one list above of its length from which names differ by little, an empty one where there is none."""
    close = [other for other in told if len(set(names) ^ set(other)) <= min(3, len(names) // 4)]
    best = min(close, key=lambda other: len(set(names) ^ set(other)), default=())
    return best if sum(len(other) == len(best) for other in told) == 1 else ()


def _describe_difference(names: tuple[str, ...], other: tuple[str, ...]) -> str:
    without = [name for name in other if name not in names]
    more = [name for name in names if name not in other]
    return (f" without {_format_code_list(without)}" if without else "") + (f" and {_format_code_list(more)}" if more else "")


def _list_verdicts(pair: Pair) -> list[str]:
    """Return the findings that came or went, but for what the head tells."""
    return [line for line in format_pair_verdicts(pair) if not line.startswith("breaks ")]


def _format_verdict(line: str, names: tuple[str, ...], told: Sequence[tuple[str, ...]]) -> _Piece:
    """Return a finding that came to many presets, or went, with the list of those."""
    out = f"\n**{len(names)} presets**: {_format_listed_span(line)}\n{_format_reach(names, told)}"
    return _Piece(out, 1, 0)


def _format_single(pair: Pair, own: list[Change], common: Container[str], page: Page) -> _Piece | None:
    """Return a preset's own changes and findings, folded under its name; None where there is nothing to say of it alone."""
    said = format_pair_headline(pair, escape_controls)
    judged = [line for line in _list_verdicts(pair) if line not in common]
    if not own and not judged:
        return None  # the head says that it is new, gone or renamed
    counts = said or format_count(len(own), "change") if own or said else format_count(len(judged), "finding")
    risks = list(dict.fromkeys(risk for change in own for risk in change.risk)) if pair.status == "changed" else []
    more = f"; {', '.join(sorted(risks, key=_rank_risk))}" if risks else ""
    out = f"\n<details><summary><code>{escape(escape_controls(pair.name))}</code> ({escape(counts)}{more})</summary>\n"
    if own:
        out += "\n" + _HEAD + "".join(_format_markdown_row(change, page) for change in own)
    if judged:
        out += "\n" + "".join(f"- {_format_listed_span(line)}\n" for line in judged)
    return _Piece(f"{out}\n</details>\n", 1, len(own))


def _format_markdown_row(change: Change, page: Page) -> str:
    said = f"{format_code_span(change.sign)} | {format_code_span(format_change_sentence(change))}"
    return f"| {said} | {', '.join(change.risk)} | {_show_cause(change, page)} |\n"


def _show_cause(change: Change, page: Page) -> str:
    """Return who brought a change about, with the place on the other side where that is in another file."""
    was, now = change.origins
    if now is None:
        return f"was set by {_show_place(was, page, True)}" if was else ""
    unset = "unset by " if change.kind == "removed" and now.layer == "unset" else ""
    before = f", before {_show_place(was, page, True)}" if was and was.file != now.file else ""
    return f"{unset}{_show_place(now, page, True)}{before}"


def _show_place(origin: Origin, page: Page, in_table: bool = False) -> str:
    """Return where something stands, with a link to the line where there is an address; the head says which commits are compared."""
    shown = format_code_span(f"{origin.file}:{origin.line}" if origin.line else origin.file, in_table)
    link = build_link(origin, page.address)
    return f"[{shown}]({link})" if link else shown


def build_link(origin: Origin, address: str) -> str:
    """Return the address of the line that set a value, as GitHub and GitLab have it; empty for what is in no commit."""
    if not address or not origin.revision or not origin.line:
        return ""
    from urllib.parse import quote

    between = "/-/blob/" if "gitlab" in address.split("/")[2] or address.endswith("/-") else "/blob/"
    return f"{address.removesuffix('/-').rstrip('/')}{between}{origin.revision}/{quote(origin.file)}#L{origin.line}"


def _format_code_list(names: Sequence[str]) -> str:
    return ", ".join(map(_format_listed_span, names))
