"""Byte edits of a file; the surrounding text stays unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate
from operator import attrgetter

from npuprof.model import NpuprofError, Place, Record, build_error

#: The preset name in the markers of a new block; no preset has that name.
NEW = "??"


class Edit(Record):
    """The replacement of a file's bytes from ``start`` up to ``end``."""

    start: int
    end: int
    text: bytes


class Cut(Record):
    """One configuration to replace.

    ``start`` is the byte offset of the block, ``indent`` its indentation, ``facts`` its header.
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
        """Return the edit that removes lines, counted from 1, except for comments.

        Comments are indented like the first line.
        """
        indent = self.find_indent(first)
        text = b"".join(indent + self.end_line(first, comment) for comment in comments)
        return Edit(self.starts[first - 1], min(self.starts[last], len(self.data)), text)

    def place_cut(self, line: int, facts: dict[str, str], edits: Iterable[Edit]) -> Cut:
        """Return a replacement with a block before a line, counted from 1, indented like it."""
        return Cut(self.starts[line - 1], self.find_indent(line), facts, tuple(edits))

    def end_line(self, line: int, text: bytes) -> bytes:
        """Return a text with the line ending of a line."""
        return text + (b"\r\n" if self.lines[line - 1].endswith(b"\r") else b"\n")

    def find_indent(self, line: int) -> bytes:
        """Return the indentation of a line."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip(b" \t\f"))]

    def find_offset(self, line: int, column: int) -> int:
        """Return the byte offset of a node of the tree: line, from 1, and byte column."""
        # columns of the tree do not count the byte order mark
        byte_order_mark = 3 if line == 1 and self.data.startswith(b"\xef\xbb\xbf") else 0
        return self.starts[line - 1] + byte_order_mark + column


def choose_free_name(name: str, text: str) -> str:
    """Return a name that a text does not contain, with underscores appended if necessary."""
    while re.search(rf"\b{name}\b", text):
        name += "_"
    return name


def build_refusal(path: str, what: str, why: str, line: int = 0, hint: str = "") -> NpuprofError:
    """Return the error for lines that no block can replace; ``line`` counts from 1."""
    hint = hint or "remove these lines by hand, or write them as separate statements"
    return build_error("NP830", what, why, hint, where=Place(path, line))


def open_blocks(data: bytes, cuts: list[Cut]) -> bytes:
    """Return the bytes with an empty block of ``NEW`` in place of each removed configuration."""
    eol = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    has_open_end = data[-1:] not in (b"", b"\n")
    edits = []
    for cut in cuts:
        begin = cut.indent + f"# >>> npuprof {NEW} >>>".encode() + eol
        end = cut.indent + b"# <<< npuprof <<<" + eol
        # the mark must not continue a last line without an end
        before = eol if has_open_end and cut.start == len(data) else b""
        edits += [Edit(cut.start, cut.start, before + begin + end), *cut.edits]
    edits.sort(key=attrgetter("start", "end"))
    edited = bytearray(data)
    for edit in reversed(edits):  # from the end, as offsets are those of the old bytes
        edited[edit.start : edit.end] = edit.text
    return bytes(edited)
