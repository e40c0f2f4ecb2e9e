"""What is taken out of a file and put into it, by bytes; what is around it stays as it is."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from npuprof.model import Finding, NpuprofError, Place, Record


class Edit(Record):
    """Bytes of a file, from ``start`` to before ``end``, and what becomes of them."""

    start: int
    end: int
    text: bytes


class Stand(Record):
    """A block that stands for lines: the byte it goes before, how far in, what its header tells, and what goes or changes for it.

    ``left`` are remarks on hand-written lines that stay.
    """

    start: int
    indent: bytes
    facts: dict[str, str]
    edits: tuple[Edit, ...] = ()
    left: tuple[str, ...] = ()


class Lines:
    """The lines of a file, and where each begins."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.split(b"\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def build_cut(self, first: int, last: int, comments: list[bytes]) -> Edit:
        """Return the edit that takes whole lines out, counted from 1, and leaves comments, each as a line as deep as the first."""
        indent = self.find_indent(first)
        ending = b"\r\n" if self.lines[first - 1].endswith(b"\r") else b"\n"
        end = min(self.starts[last], len(self.data))
        return Edit(self.starts[first - 1], end, b"".join(indent + comment + ending for comment in comments))

    def find_indent(self, line: int) -> bytes:
        """Return the blanks that a line begins with."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(b" \t\f"))]

    def find_offset(self, line: int, column: int) -> int:
        """Return the byte at which a place of the tree lies: a line, from 1, and a column in bytes."""
        mark = 3 if line == 1 and self.data.startswith(b"\xef\xbb\xbf") else 0
        return self.starts[line - 1] + mark + column

    def find_line(self, offset: int) -> int:
        """Return the line, from 1, that a byte lies in."""
        return bisect_right(self.starts, offset)


def build_refusal(path: str, what: str, why: str, line: int = 0, hint: str = "") -> NpuprofError:
    """Return the error for lines that nothing can take the place of; ``line`` counts from 1."""
    hint = hint or "take these lines out by hand, or write them so that they stand alone"
    return NpuprofError([Finding("NP830", what, why, hint, where=Place(path, line))])


def open_stands(data: bytes, stands: list[Stand]) -> tuple[bytes, list[int]]:
    """Return the bytes with an empty pair of marks for each block in place of what goes, and the lines (from 0) of the opening marks."""
    ending = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    marks = {
        Edit(stand.start, stand.start, b"%s# >>> npuprof ? >>>%s%s# <<< npuprof <<<%s" % (stand.indent, ending, stand.indent, ending))
        for stand in stands
    }
    made: list[bytes] = []
    lines: list[int] = []
    at = line = 0
    for edit in sorted([*marks, *(one for stand in stands for one in stand.edits)], key=lambda one: (one.start, one.end)):
        made.append(data[at : edit.start])
        line += made[-1].count(b"\n")
        if edit in marks:
            lines.append(line)
        made.append(edit.text)
        line += edit.text.count(b"\n")
        at = edit.end
    return b"".join([*made, data[at:]]), lines
