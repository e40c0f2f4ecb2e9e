"""What is taken out of a file and put into it, by bytes; what is around it stays as it is."""

from __future__ import annotations

import re
from itertools import accumulate

from npuprof.model import Finding, NpuprofError, Place, Record

#: In the marks of a block that has just been opened; no preset has that name.
NEW = "??"


class Edit(Record):
    """Bytes of a file, from ``start`` to before ``end``, and what becomes of them."""

    start: int
    end: int
    text: bytes


class Cut(Record):
    """One configuration that a block replaces: the byte the block goes before, its indentation, the facts of its header, the edits."""

    start: int
    indent: bytes
    facts: dict[str, str]
    edits: tuple[Edit, ...]


class Lines:
    """The lines of a file, and where each begins."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.split(b"\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def build_cut(self, first: int, last: int, comments: list[bytes]) -> Edit:
        """Return the edit that takes whole lines out, counted from 1, and leaves comments, each as a line as deep as the first."""
        end = min(self.starts[last], len(self.data))
        return Edit(self.starts[first - 1], end, b"".join(self.find_indent(first) + self.end_line(first, comment) for comment in comments))

    def end_line(self, line: int, text: bytes) -> bytes:
        """Return a text with the line ending that a line has."""
        return text + (b"\r\n" if self.lines[line - 1].endswith(b"\r") else b"\n")

    def find_indent(self, line: int) -> bytes:
        """Return the blanks that a line begins with."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(b" \t\f"))]

    def find_offset(self, line: int, column: int) -> int:
        """Return the byte at which a place of the tree lies: a line, from 1, and a column in bytes."""
        mark = 3 if line == 1 and self.data.startswith(b"\xef\xbb\xbf") else 0
        return self.starts[line - 1] + mark + column


def choose_free_name(name: str, text: str) -> str:
    """Return a name that a text does not have: the one given, if need be with underscores behind it."""
    while re.search(rf"\b{name}\b", text):
        name += "_"
    return name


def build_refusal(path: str, what: str, why: str, line: int = 0, hint: str = "") -> NpuprofError:
    """Return the error for lines that no block can replace; ``line`` counts from 1."""
    hint = hint or "take these lines out by hand, or write them so that they stand alone"
    return NpuprofError([Finding("NP830", what, why, hint, where=Place(path, line))])


def open_blocks(data: bytes, cuts: list[Cut]) -> bytes:
    """Return the bytes with an empty pair of marks, of the preset ``NEW``, for each block in place of what goes."""
    eol = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    pair = (f"# >>> npuprof {NEW} >>>".encode(), b"# <<< npuprof <<<")
    open_end = len(data) if data[-1:] not in (b"", b"\n") else -1
    marks = [Edit(cut.start, cut.start, eol * (cut.start == open_end) + b"".join(cut.indent + mark + eol for mark in pair)) for cut in cuts]
    edited = bytearray(data)
    edits = sorted([*marks, *(edit for cut in cuts for edit in cut.edits)], key=lambda edit: (edit.start, edit.end))
    for edit in reversed(edits):
        edited[edit.start : edit.end] = edit.text
    return bytes(edited)
