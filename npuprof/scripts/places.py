"""Places of a text that was put together from parts of a file: where each of its lines stands there, and as part of what."""

from __future__ import annotations

import json
import re

from npuprof.model import Finding, Record

_LINE = re.compile(r"\bline (\d+)\b")


class PartLine(Record):
    """One line: where the JSON text it is from begins in the file, that text, the number of the cell, its own number in the cell.

    ``start`` is where the line begins in the text.
    """

    line: int
    column: int
    text: str
    cell: int
    number: int
    start: int = 0


class PartPlaces:
    """The lines of a text, and where they are from."""

    def __init__(self, lines: list[PartLine], text: str) -> None:
        self._lines = lines
        self.text = text

    def find_place(self, line: int, column: int) -> tuple[int, int, str]:
        """Return line and column in the file, and the part as people count: ``cell 3, line 5``."""
        if not 0 < line <= len(self._lines):
            return line, column, ""
        part = self._lines[line - 1]
        before = json.dumps(part.text[: part.start + max(column - 1, 0)], ensure_ascii=False)  # as Jupyter writes it
        return part.line, part.column + len(before) - 1, f"cell {part.cell}, line {part.number}" if part.cell else ""

    def place_finding(self, finding: Finding) -> Finding:
        """Return a finding at its place in the file; its text says which cell that is."""
        if finding.where is None or not finding.where.line:
            return finding
        line, column, part = self.find_place(finding.where.line, finding.where.column)
        told = finding._replace(where=finding.where._replace(line=line, column=column if finding.where.column else 0))
        texts = (finding.message, finding.why, finding.hint)
        message, why, hint = (_LINE.sub(lambda match: self.find_place(int(match[1]), 1)[2] or match[0], text) for text in texts)
        return told._replace(message=message, why=f"It is in {part}. {why}".rstrip() if part else why, hint=hint)
