"""A TOML text as statements (headers and pairs), each with the lines before it.

Joined, they equal the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import StringIO
from typing import Any

from npuprof.document import keys
from npuprof.document.positions import Positions
from npuprof.edit.schemaline import measure_schema_head
from npuprof.model import Path
from npuprof.system import lazy_pattern, list_items


class Statement:
    """The lines of a header or a pair (``text``), and the other lines before it (``lead``).

    ``path`` is the table that a header opens or the key that a pair sets, ``table`` the table of a
    pair. In ``text``, ``key`` is the start of the last key segment, ``value`` and ``end`` are the
    start and end of the value (of a header: its brackets).
    """

    __slots__ = (
        "end",
        "following",
        "header",
        "key",
        "lead",
        "path",
        "preceding",
        "table",
        "text",
        "value",
    )

    def __init__(self, text: str, path: Path = (), table: Path = (), header: bool = False) -> None:
        self.lead = ""
        self.text = text
        self.path = path
        self.table = table
        self.header = header
        self.key = self.value = self.end = 0
        self.preceding = self
        self.following = self

    @property
    def indent(self) -> str:
        """The blanks before it."""
        return self.text[: len(self.text) - len(self.text.lstrip(" \t"))]

    @property
    def comments(self) -> str:
        """The comment lines directly above it."""
        return self.lead[_find_comments_start(self.lead) :]

    def replace_value(self, written: str) -> None:
        """Replace the value; the text around it stays."""
        self.text = self.text[: self.value] + written + self.text[self.end :]
        self.end = self.value + len(written)

    def rename_key(self, name: str) -> None:
        """Rename the last segment of the key, quoted if the old one was."""
        stop = len(self.text[: self.value].rstrip(" \t").removesuffix("=").rstrip(" \t"))
        written = keys.format_key_segment(name)
        quote = self.text[self.key]
        # a quoted key stays quoted, although it need not be
        if quote in "\"'" and written == name:
            written = f"{quote}{name}{quote}"
        self.text = self.text[: self.key] + written + self.text[stop:]
        added = self.key + len(written) - stop
        self.value += added
        self.end += added


class Statements:
    """The statements of a valid TOML text as a linked list, between two empty ones.

    ``last`` has the lines after all others.
    """

    def __init__(self, text: str) -> None:
        self.at: dict[Path, Statement] = {}
        self.first, self.last = Statement(""), Statement("")
        self.first.following = self.last
        self.last.preceding = self.first
        done = 0
        table: Path = ()
        for span in Positions(text).statements:
            start = text.rfind("\n", 0, span.key) + 1
            # with the comment behind the value
            stop = text.find("\n", span.end) + 1 or len(text)
            table = span.path if span.header else table
            row = Statement(text[start:stop], span.path, table, span.header)
            row.lead = text[done:start]
            row.key = span.key - start
            row.value = span.value - start
            row.end = row.value + len(text[span.value : span.end].rstrip(" \t"))
            self.insert(row, self.last.preceding)
            done = stop
        self.last.lead = text[done:]

    def __iter__(self) -> Iterator[Statement]:
        row = self.first.following
        while row is not self.last:
            yield row
            row = row.following

    def __str__(self) -> str:
        return "".join(row.lead + row.text for row in (*self, self.last))

    def find_statements(self, path: Path, value: Any) -> Iterator[Statement]:
        """Yield the statements that set ``value`` at a path."""
        row = self.at.get(path)
        if row:
            yield row
        # a table may continue below other headers, and a dotted key has no header at all
        if row is None or row.header:
            for part, item in list_items(value):
                yield from self.find_statements((*path, part), item)

    def insert(self, row: Statement, preceding: Statement) -> None:
        """Insert a statement after another."""
        following = preceding.following
        row.preceding = preceding
        row.following = following
        preceding.following = following.preceding = row
        self.at[row.path] = row
        if preceding is self.first:  # the schema line is valid only above the first statement
            head = measure_schema_head(following.lead)
            if head:
                row.lead = following.lead[:head] + row.lead
                following.lead = following.lead[head:]

    def remove(self, row: Statement) -> None:
        """Remove a statement; the lines before it stay, without doubled blank lines."""
        del self.at[row.path]
        row.preceding.following = row.following
        row.following.preceding = row.preceding
        above = row.lead
        below = row.following.lead
        if starts_with_blank(below) and (
            ends_with_blank(above) or (row.preceding is self.first and not above)
        ):
            below = below[below.index("\n") + 1 :]
        elif row.following is self.last and not below and ends_with_blank(above):
            above = above[: above.rfind("\n", 0, -1) + 1]
        row.following.lead = above + below


def find_line_ending(text: str) -> str:
    """Return the most common line ending of a text."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def normalize_line_endings(text: str) -> str:
    """Return a text whose every line ends in a line feed, the last one included."""
    return text.replace("\r\n", "\n") + "\n" * bool(text and text[-1] != "\n")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends.

    Only a line feed ends one: a comment may contain other separators.
    """
    return list(StringIO(text))


def starts_with_blank(lines: str) -> bool:
    """Return whether the first of some lines exists and is blank."""
    return bool(lines) and not lines.partition("\n")[0].strip()


def ends_with_blank(lines: str) -> bool:
    """Return whether the last of some lines exists and is blank."""
    return bool(lines) and not lines[lines.rfind("\n", 0, -1) + 1 :].strip()


def _find_comments_start(lead: str) -> int:
    """Return the start of the comment lines at the end of some lines."""
    start = len(lead)
    head = measure_schema_head(lead)  # belongs to the file, not to its first statement
    while start > head:
        line_start = lead.rfind("\n", 0, start - 1) + 1
        if not lead[line_start:start].strip():
            break
        start = line_start
    return start


#: Strings of all four kinds, which may contain ``#``, and comments.
_STRING_OR_COMMENT = lazy_pattern(
    r'"""(?:[^\\]|\\[\s\S])*?"{3,5}'
    r"|'''[\s\S]*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|(?P<comment>#[^\n]*)"
)


def collect_comments(text: str) -> Counter[str]:
    """Return the non-empty comments of a TOML text, with their counts.

    A part of a text must start and end outside strings.
    """
    comments = (match["comment"] or "" for match in _STRING_OR_COMMENT.finditer(text))
    return Counter(comment.rstrip() for comment in comments if comment.strip("# \t\r"))
