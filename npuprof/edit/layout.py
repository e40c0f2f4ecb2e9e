"""A TOML text as its statements: headers, key-value pairs, and the comments and blank lines between them.

Joined, the statements are the text, so whoever changes one of them leaves all others as they were.
"""

from __future__ import annotations

from typing import Any

from npuprof.document import keys
from npuprof.document.positions import Positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.model import Path


class Statement:
    """Some whole lines: ``kind`` is ``header``, ``pair``, ``comment`` or ``blank``.

    ``path`` is what a header opens or a pair sets, ``table`` the table a pair stands in, ``value`` where its
    value starts and ends in ``text``.
    """

    __slots__ = ("kind", "path", "table", "text", "value")

    def __init__(self, kind: str, text: str, path: Path = (), table: Path = (), value: tuple[int, int] = (0, 0)) -> None:
        self.kind = kind
        self.text = text
        self.path = path
        self.table = table
        self.value = value

    @property
    def indent(self) -> str:
        """The blanks before it."""
        return self.text[: len(self.text) - len(self.text.lstrip(" \t"))]

    def __repr__(self) -> str:
        return f"Statement({self.kind!r}, {self.text!r})"


class _Spans(Positions):
    """Positions that also know where values end, and which keys are statements."""

    def __init__(self, text: str) -> None:
        self.heads: list[int] = []
        self.pairs: list[tuple[int, Path, tuple[int, int]]] = []
        self._deep = 0
        self._last: tuple[Path, tuple[int, int]] = ((), (0, 0))
        super().__init__(text)

    def scan_key(self, position: int, base: Path) -> Any:
        found = super().scan_key(position, base)
        if not self._deep:
            self.heads.append(found[1].offset)
        return found

    def scan_pair(self, position: int, base: Path) -> int:
        self._deep += 1
        end = super().scan_pair(position, base)
        self._deep -= 1
        if not self._deep:
            self.pairs.append((position, *self._last))
        return end

    def scan_value(self, position: int, path: Path) -> int:
        end = super().scan_value(position, path)
        self._last = (path, (position, position + len(self._text[position:end].rstrip(" \t"))))
        return end

    def list_header_paths(self) -> list[tuple[int, Path]]:
        """Return the offset and the path of each header."""
        longest: dict[int, Path] = {}
        for path, offset in self._at.items():
            if len(path) > len(longest.get(offset, ())):
                longest[offset] = path
        return [(offset, longest[offset]) for offset in self.heads]


def parse_statements(text: str) -> list[Statement]:
    """Return the statements of a valid TOML text whose lines all end in a line feed."""
    spans = _Spans(text)
    marks: list[tuple[int, int, Path, tuple[int, int] | None]] = []
    for offset, path in spans.list_header_paths():
        marks.append((offset, offset, path, None))
    for offset, path, span in spans.pairs:
        marks.append((offset, span[1], path, span))
    found: list[Statement] = []
    table: Path = ()
    done = 0
    for offset, end, path, value in sorted(marks, key=lambda mark: mark[0]):
        start = text.rfind("\n", 0, offset) + 1
        found += _parse_loose_lines(text[done:start])
        done = text.find("\n", end) + 1 or len(text)
        if value is None:
            table = path
            found.append(Statement("header", text[start:done], path, path))
        else:
            found.append(Statement("pair", text[start:done], path, table, (value[0] - start, value[1] - start)))
    return found + _parse_loose_lines(text[done:])


def _parse_loose_lines(text: str) -> list[Statement]:
    return [Statement("comment" if line.strip() else "blank", line) for line in text.splitlines(keepends=True)]


def join_statements(rows: list[Statement]) -> str:
    """Return the text of statements."""
    return "".join(row.text for row in rows)


def has_path_prefix(path: Path, prefix: Path) -> bool:
    """Return whether a path is ``prefix`` or lies below it."""
    return path[: len(prefix)] == prefix


def find_lead_start(rows: list[Statement], index: int) -> int:
    """Return where the comment lines begin that stand directly above a statement."""
    while index and rows[index - 1].kind == "comment":
        index -= 1
    return index


def find_table_end(rows: list[Statement], index: int) -> int:
    """Return where the statements of a header end: behind its last pair, or behind the header itself."""
    last = index + 1
    for place in range(index + 1, len(rows)):
        if rows[place].kind == "header":
            break
        if rows[place].kind == "pair":
            last = place + 1
    return last


def format_dotted_key(path: Path) -> str:
    """Return a path of names as a TOML key."""
    return ".".join(keys.format_key_segment(str(part)) for part in path)


def keep_line_endings(old: str, new: str) -> str:
    """Return ``new``, which has line feeds only, with the line endings of ``old``.

    Where they are mixed, lines that are still there keep theirs and new ones get the more frequent ending.
    """
    crlf = old.count("\r\n")
    if not crlf:
        return new
    if crlf == old.count("\n"):
        return new.replace("\n", "\r\n")
    from difflib import SequenceMatcher

    common = "\r\n" if crlf * 2 > old.count("\n") else "\n"
    before, after = old.split("\n"), new.split("\n")
    stripped = [line.removesuffix("\r") for line in before]
    lines = [line + common[:-1] for line in after]
    for tag, first, _, start, end in SequenceMatcher(None, stripped, after, False).get_opcodes():
        if tag == "equal":
            lines[start:end] = before[first : first + end - start]
    if not new.endswith("\n") or new == "":
        lines[-1] = after[-1]
    lines[-1] = lines[-1].removesuffix("\r")
    return "\n".join(lines)
