"""Byte edits of a file; the surrounding text stays unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate

from npuprof.model import NpuprofError, Place, Record, build_error

#: The preset name in the marks of a new block; no preset has that name.
NEW = "??"


class Edit(Record):
    """The replacement of a file's bytes from ``start`` up to ``end``."""

    start: int
    end: int
    text: bytes


class Cut(Record):
    """One configuration to replace: the byte position of the block, its indentation, its header
    facts, the edits.
    """

    start: int
    indent: bytes
    facts: dict[str, str]
    edits: tuple[Edit, ...]


class Lines:
    """The lines of a file, with their offsets."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lines = data.split(b"\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]

    def build_cut(self, first: int, last: int, comments: Iterable[bytes]) -> Edit:
        """Return the edit that removes whole lines, counted from 1, and keeps comments, indented
        like the first line.
        """
        end = min(self.starts[last], len(self.data))
        return Edit(
            self.starts[first - 1],
            end,
            b"".join(
                self.find_indent(first) + self.end_line(first, comment) for comment in comments
            ),
        )

    def place_cut(self, line: int, facts: dict[str, str], edits: Iterable[Edit]) -> Cut:
        """Return a replacement whose block goes before a line, counted from 1, with its
        indentation.
        """
        return Cut(self.starts[line - 1], self.find_indent(line), facts, tuple(edits))

    def end_line(self, line: int, text: bytes) -> bytes:
        """Return a text with the line ending of a line."""
        return text + (b"\r\n" if self.lines[line - 1].endswith(b"\r") else b"\n")

    def find_indent(self, line: int) -> bytes:
        """Return the indentation of a line."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(b" \t\f"))]

    def find_offset(self, line: int, column: int) -> int:
        """Return the byte offset of a place of the tree: line, from 1, and byte column."""
        mark = 3 if line == 1 and self.data.startswith(b"\xef\xbb\xbf") else 0
        return self.starts[line - 1] + mark + column


def choose_free_name(name: str, text: str) -> str:
    """Return a name that a text does not contain: the given one, if necessary with underscores
    appended.
    """
    while re.search(rf"\b{name}\b", text):
        name += "_"
    return name


def build_refusal(path: str, what: str, why: str, line: int = 0, hint: str = "") -> NpuprofError:
    """Return the error for lines that no block can replace; ``line`` counts from 1."""
    hint = hint or "remove these lines by hand, or write them as separate statements"
    return build_error("NP830", what, why, hint, where=Place(path, line))


def open_blocks(data: bytes, cuts: list[Cut]) -> bytes:
    """Return the bytes with an empty block of the preset ``NEW`` in place of each removed
    configuration.
    """
    eol = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    pair = (f"# >>> npuprof {NEW} >>>".encode(), b"# <<< npuprof <<<")
    open_end = len(data) if data[-1:] not in (b"", b"\n") else -1
    marks = [
        Edit(
            cut.start,
            cut.start,
            eol * (cut.start == open_end) + b"".join(cut.indent + mark + eol for mark in pair),
        )
        for cut in cuts
    ]
    edited = bytearray(data)
    edits = sorted(
        [*marks, *(edit for cut in cuts for edit in cut.edits)],
        key=lambda edit: (edit.start, edit.end),
    )
    for edit in reversed(edits):
        edited[edit.start : edit.end] = edit.text
    return bytes(edited)
