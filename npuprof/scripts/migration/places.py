"""Places in the text of a script, and what is to stand there instead."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any, NamedTuple

from npuprof import catalog
from npuprof.scripts.migration.planning import DueStep


class Change(NamedTuple):
    """What stands between two places of a text, by character, gets another text."""

    start: int
    end: int
    text: str


class StuckError(Exception):
    """A setting is not written so that a literal could be changed; the message says why."""


class Places:
    """The characters of a text by line and column."""

    def __init__(self, text: str, python: bool) -> None:
        self.text = text
        ends = r"\r\n|\r|\n" if python else r"\n"
        self._sizes: dict[int, list[int]] = {}
        self._starts = [0, *(match.end() for match in re.finditer(ends, text))]

    def find(self, line: int, column: int) -> int:
        """Return the place of a character, both counted from 1."""
        return self._starts[line - 1] + column - 1

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self._starts)

    def locate(self, place: int) -> tuple[int, int]:
        """Return line and column of a character, both counted from 1."""
        number = bisect_right(self._starts, place)
        return number, place - self._starts[number - 1] + 1

    def find_byte(self, line: int, offset: int) -> int:
        """Return the place of a character from its offset in UTF-8, as trees count."""
        sizes = self._measure_line(line)
        return self._starts[line - 1] + (bisect_left(sizes, offset) if sizes else offset)

    def count_bytes(self, line: int, column: int) -> int:
        """Return the offset in UTF-8 of a character, as trees count, from its column."""
        sizes = self._measure_line(line)
        return sizes[min(column, len(sizes)) - 1] if sizes else column - 1

    def _measure_line(self, line: int) -> list[int]:
        """Return where each character of a line begins in UTF-8; nothing where all of them are ASCII."""
        if line not in self._sizes:
            end = self._starts[line] if line < len(self._starts) else len(self.text)
            text = self.text[self._starts[line - 1] : end]
            self._sizes[line] = [] if text.isascii() else [0, *accumulate(len(char.encode(errors="replace")) for char in text)]
        return self._sizes[line]

    def is_line_start(self, place: int) -> bool:
        """Return whether nothing but blanks stands before a place in its line."""
        start = self._starts[bisect_right(self._starts, place) - 1]
        return not self.text[start:place].strip(" \t")

    def find_line_start(self, place: int) -> int:
        """Return where the line of a place begins."""
        return self._starts[bisect_right(self._starts, place) - 1]

    def find_next_line(self, place: int) -> int:
        """Return where the line after that of a place begins."""
        number = bisect_right(self._starts, place)
        return self._starts[number] if number < len(self._starts) else len(self.text)


def find_new_words(due: DueStep) -> tuple[str, Any]:
    """Return the name and the value of a setting as its surface writes them after a step. Raises StuckError where there is no such."""
    one = due.setting
    option = catalog.find_option(due.key)
    if option is None:
        raise StuckError("the catalogue does not know the option")
    name = option.spelling.get(one.surface, "")
    if not name:
        raise StuckError(f"{one.surface} has no {due.key}")
    possible, value = option.write_on(one.surface, due.value)
    if not possible:
        raise StuckError(f"{one.surface} has no word for {due.value}")
    return (one.name if due.key == one.key else name), value
