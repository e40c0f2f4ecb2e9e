"""Places of a script before and after literals in it changed, or went with their lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from npuprof.model import Finding
from npuprof.scripts.migration.places import Change, Places

_LINE = re.compile(r"\bline (\d+)\b")


class Shift:
    """Where each place of a text is once changes have been made, or was before they were."""

    def __init__(self, before: Places, after: Places, changes: Sequence[Change]) -> None:
        self._before, self._after = before, after
        self._starts = [change.start for change in changes]
        self._ends = [change.end for change in changes]
        self._gains = [0, *accumulate(len(change.text) - (change.end - change.start) for change in changes)]
        self._new_starts = [start + gain for start, gain in zip(self._starts, self._gains, strict=False)]

    def find_new(self, line: int, column: int) -> tuple[int, int]:
        """Return where a place is afterwards; of what is gone, where it was."""
        at = self._before.find(line, max(column, 1))
        number = bisect_right(self._starts, at)
        inside = number and at < self._ends[number - 1]
        return self._after.locate(self._new_starts[number - 1] if inside else at + self._gains[number])

    def find_old(self, line: int, column: int) -> tuple[int, int]:
        """Return where a place was before."""
        at = self._after.find(line, max(column, 1))
        number = bisect_right(self._new_starts, at)
        inside = number and at < self._ends[number - 1] + self._gains[number]
        return self._before.locate(self._starts[number - 1] if inside else at - self._gains[number])

    def move_finding(self, finding: Finding, to_new: bool) -> Finding:
        """Return a finding, and the lines that it speaks of, at their places after the changes, or before them."""
        find = self.find_new if to_new else self.find_old

        def name_line(match: re.Match[str]) -> str:
            return f"line {find(int(match[1]), 1)[0]}" if self._is_line(int(match[1]), to_new) else match[0]

        message, why, hint = (_LINE.sub(name_line, text) for text in (finding.message, finding.why, finding.hint))
        moved = finding._replace(message=message, why=why, hint=hint)
        where = finding.where
        if where is None or not self._is_line(where.line, to_new):
            return moved
        line, column = find(where.line, where.column)
        return moved._replace(where=where._replace(line=line, column=column if where.column else 0))

    def _is_line(self, line: int, to_new: bool) -> bool:
        return 0 < line <= (self._before if to_new else self._after).line_count
