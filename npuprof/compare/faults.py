"""What is wrong, as a page tells it: each fault once with where it is, all presets that have it, and what to try."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from npuprof.compare.crowds import format_crowd
from npuprof.compare.longvalues import shorten_text
from npuprof.compare.spans import Faults, Page, format_listed_span, measure_listed, show_place
from npuprof.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.pairs import Pair


class Row(NamedTuple):
    """One fault of one preset; ``name`` is empty where it is of none."""

    code: str
    line: str
    place: str
    hint: str
    name: str


class Entry(NamedTuple):
    """What some presets have in common: ``lead`` says what, ``hint`` what to try."""

    lead: str
    names: tuple[str, ...]
    hint: str = ""

    def format_entry(self, room: int) -> str:
        """Return it as an item of a list, of its names as many as have room."""
        named = format_crowd(self.names, room) if self.names else ""
        counted = f"{len(self.names)} presets, " if len(self.names) > 3 else ""
        shown = f": {counted}{named}" if named else ""
        return f"- {self.lead}{shown}\n" + (f"  try: {format_listed_span(shorten_text(self.hint))}\n" if self.hint else "")

    @property
    def wanted(self) -> int:
        """How many characters all its names take."""
        return measure_listed(list(map(format_listed_span, self.names)))


def is_broken(pair: Pair) -> bool:
    """Return whether a preset has errors that it had not, or cannot be read."""
    return pair.unread or any(finding.severity == "error" for finding in pair.broken)


def list_broken(pairs: Iterable[Pair], page: Page) -> list[Row]:
    """Return the errors that came to presets."""
    rows = []
    for pair in filter(is_broken, pairs):
        untold = [_build_row(one, pair.name, page, "cannot be told here: ") for one in pair.untold]
        came = untold or [_build_row(one, pair.name, page) for one in pair.broken if one.severity == "error"]
        rows += came or [Row("", "cannot be read or resolved", "", "", pair.name)]
    return list(dict.fromkeys(rows))


def list_faults(faults: Faults, page: Page) -> list[Row]:
    """Return findings that are told beside the changes, one row for each preset that has one."""
    return [_build_row(one, name, page) for one in faults.findings for name in one.profiles or _list_author(one)]


def _list_author(finding: Finding) -> Iterator[str]:
    yield finding.origin.profile if finding.origin is not None and finding.origin.profile != finding.origin.file else ""


def _build_row(finding: Finding, name: str, page: Page, before: str = "") -> Row:
    """Return what is wrong with a preset in words that are the same for others with the same fault."""
    said = format_listed_span(shorten_text(finding.message.removeprefix(f"{name} ") if name else finding.message))
    place = show_place(finding.origin, page) if finding.origin else format_listed_span(finding.place) if finding.place else ""
    return Row(finding.code, f"{before}{finding.code} {said}", place, finding.hint, name)


def fold_rows(rows: Sequence[Row]) -> list[Entry]:
    """Return each fault once, with all presets that have it."""
    return [
        Entry(f"{line}{_list_places(same)}", tuple(dict.fromkeys(row.name for row in same if row.name)), same[0].hint)
        for line, same in _group_rows(rows, [row.line for row in rows]).items()
    ]


def fold_rows_briefly(rows: Sequence[Row], room: int) -> list[Entry]:
    """Return the same without hints where all faults have room, and else by their codes, each with one of them."""
    entries = [entry._replace(hint="") for entry in fold_rows(rows)]
    if sum(len(entry.format_entry(0)) for entry in entries) <= room:
        return entries
    codes: dict[str, set[str]] = {}
    for row in rows:
        codes.setdefault(row.name, set()).add(row.code)
    briefly = []
    for together, same in _group_rows(rows, [", ".join(sorted(filter(None, codes[row.name]))) for row in rows]).items():
        lines = len({row.line for row in same})
        lead = f"{same[0].line}{_list_places(same[:1])}" + (f" and {lines - 1} other faults of {together}" if lines > 1 else "")
        briefly.append(Entry(lead, tuple(dict.fromkeys(row.name for row in same if row.name))))
    return briefly


def _group_rows(rows: Sequence[Row], marks: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row, mark in zip(rows, marks, strict=True):
        found.setdefault(mark, []).append(row)
    return found


def _list_places(rows: Sequence[Row]) -> str:
    known = list(dict.fromkeys(row.place for row in rows if row.place))
    return f" ({known[0]}{f' and {len(known) - 1} more' if known[1:] else ''})" if known else ""
