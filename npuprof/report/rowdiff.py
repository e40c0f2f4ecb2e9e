"""A unified diff of long JSON lists that are sorted: row by row, so that it costs what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise

from npuprof.report.text import escape_file_line

#: What a change does, from where to where in the old and in the new.
_Code = tuple[str, int, int, int, int]


def format_row_difference(source: str, old: str, new: str, row: str) -> str:
    """Return a change of a text as a unified diff; ``row`` is the line with which a row of the list begins."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    shown: list[str] = []
    for group in _Known(list(_compare_rows(before, after, f"{row}\n"))).get_grouped_opcodes():
        first, last = group[0], group[-1]
        shown.append(f"@@ -{_format_range(first[1], last[2])} +{_format_range(first[3], last[4])} @@\n")
        for word, start, end, begin, stop in group:
            if word == "equal":
                shown += [f" {line}" for line in before[start:end]]
            else:
                shown += [f"-{line}" for line in before[start:end]] + [f"+{line}" for line in after[begin:stop]]
    return "".join(map(escape_file_line, [f"--- a/{source}\n", f"+++ b/{source}\n", *shown])) if shown else ""


class _Known(SequenceMatcher[str]):
    """What is known of two lists already: only how it is told in groups is asked for."""

    def __init__(self, codes: list[_Code]) -> None:
        super().__init__()
        self._known = codes

    def get_opcodes(self) -> list[_Code]:  # type: ignore[override]
        return self._known


def _compare_rows(before: list[str], after: list[str], row: str) -> Iterator[_Code]:
    """Yield what is equal and what is not, by lines; a row counts as a whole, and is looked for once."""
    olds, news = list(_split_rows(before, row)), list(_split_rows(after, row))
    old_texts, new_texts = {text for _, _, text in olds}, {text for _, _, text in news}
    place = other = at = to = 0
    equal = True
    while place < len(olds) or other < len(news):
        same = place < len(olds) and other < len(news) and olds[place][2] == news[other][2]
        start, begin = _find_line(olds, place), _find_line(news, other)
        if same is not equal and (start, begin) != (at, to):
            yield "equal" if equal else "replace", at, start, to, begin
            at, to = start, begin
        equal = same
        if same:
            place, other = place + 1, other + 1
        elif place < len(olds) and (other == len(news) or olds[place][2] not in new_texts or news[other][2] in old_texts):
            place += 1
        else:
            other += 1
    if (at, to) != (len(before), len(after)):
        yield "equal" if equal else "replace", at, len(before), to, len(after)


def _split_rows(lines: list[str], row: str) -> Iterator[tuple[int, int, str]]:
    starts = [0, *(number for number, line in enumerate(lines) if line == row and number), len(lines)]
    for start, end in pairwise(starts):
        if start < end:
            yield start, end, "".join(lines[start:end])


def _find_line(rows: list[tuple[int, int, str]], place: int) -> int:
    return rows[place][0] if place < len(rows) else rows[-1][1] if rows else 0


def _format_range(start: int, end: int) -> str:
    return f"{start + 1}" if end - start == 1 else f"{start + (end > start)},{end - start}"
