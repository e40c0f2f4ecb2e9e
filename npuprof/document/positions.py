"""Line and column of every key and list element of a valid TOML text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from io import StringIO
from itertools import accumulate

from npuprof.document.keys import unquote_basic_string
from npuprof.model import Path, Record
from npuprof.system import lazy_pattern

_BLANK = lazy_pattern(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = lazy_pattern(r"[ \t]*")
_STRING = lazy_pattern(
    r'''"""(?:[^\\]|\\[\s\S])*?"{3,5}|\'\'\'[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''',
)
_KEY = lazy_pattern(r"""(?P<bare>[A-Za-z0-9_-]+)|(?P<quoted>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""")
_SCALAR = lazy_pattern(r"[^,\]}#\r\n]+")
#: The common statement up to the next one: ``[table]``, or a bare key with a one-line value that is
#: neither a table nor a list.
_PLAIN = lazy_pattern(
    r"""(?:\[(?P<table>[A-Za-z0-9_-]+)\]|(?P<name>[A-Za-z0-9_-]+)[ \t]*=[ \t]*"""
    r"""(?P<value>"[^"\\\n]*"(?!")|'[^'\n]*'(?!')|[^\s\[{"'][^#\r\n]*))"""
    rf"""{_BLANK.pattern}"""
)


class StatementSpan(Record):
    """The offsets of a statement: of the last segment of its key, of its value, and of its end.

    The key of a ``header`` is its bracket.
    """

    path: Path
    header: bool
    key: int
    value: int
    end: int


class Positions:
    """Offsets of the keys and elements of one document, as lines and columns.

    The text must have been accepted by a TOML parser: this scanner does not validate. (TOML parsers
    keep no columns, and no positions inside inline tables.) The text is scanned as far as needed.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at: dict[Path, int] = {}
        self._statements: list[StatementSpan] = []
        self._scan = self._scan_text()
        # only "\n" ends a line
        self._starts = list(accumulate(map(len, StringIO(text, newline="\n")), initial=0))

    @property
    def statements(self) -> list[StatementSpan]:
        """All statements in file order."""
        for _ in self._scan:
            pass
        return self._statements

    def find_position(self, path: Path) -> tuple[int, int]:
        """Return line and column, from 1, of a path, or of its nearest ancestor in the text."""
        while path and path not in self:
            path = path[:-1]
        offset = self._at.get(path, 0)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def __contains__(self, path: Path) -> bool:
        return path in self._at or any(path in self._at for _ in self._scan)

    def _scan_text(self) -> Iterator[None]:
        """Yield after each statement."""
        text = self._text
        header: Path = ()
        last_indexes: dict[Path, int] = {}  # of arrays of tables
        position = _find_match_end(_BLANK, text, 0)
        # a table that is continued later has the position of its first header
        while position < len(text):
            # nearly all statements are plain: one match is faster than the scanner below
            if plain := _PLAIN.match(text, position):
                header = self._add_plain_statement(plain, header)
                position = plain.end()
                yield
                continue
            if text[position] == "[":
                statement = self._scan_header(position, last_indexes)
                header = statement.path
            else:
                statement = self._scan_pair(position, header)
            self._statements.append(statement)
            position = _find_match_end(_BLANK, text, statement.end)
            yield

    def _add_plain_statement(self, plain: re.Match[str], header: Path) -> Path:
        """Record the position of a statement; return the table that contains the next one."""
        start = plain.start()
        if table := plain["table"]:
            header = (table,)
            # a table may have been opened by the header of a subtable before
            self._at.setdefault(header, start + 1)
            span = StatementSpan(header, True, start, start, plain.end("table") + 1)
        else:
            path = (*header, plain["name"])
            self._at.setdefault(path, start)
            span = StatementSpan(path, False, start, *plain.span("value"))
        self._statements.append(span)
        return header

    def _scan_header(self, start: int, last_indexes: dict[Path, int]) -> StatementSpan:
        """Read ``[table]`` or ``[[table]]``, record its positions, and return its span.

        ``last_indexes`` are the indexes of the last tables in arrays, which it updates.
        """
        brackets = 2 if self._text.startswith("[[", start) else 1
        position, names, offsets = self._scan_key(start + brackets)
        path: Path = ()
        for name, offset in zip(names[:-1], offsets, strict=False):
            path = (*path, name)
            # a table may be defined only by the headers of its subtables
            self._at.setdefault(path, offset)
            if path in last_indexes:  # continues inside an array of tables: [[a]] [a.b]
                path = (*path, last_indexes[path])
        path = (*path, names[-1])
        if brackets == 2:
            self._at.setdefault(path, offsets[-1])
            last_indexes[path] = last_indexes.get(path, -1) + 1
            path = (*path, last_indexes[path])
        self._at.setdefault(path, offsets[-1])
        return StatementSpan(path, True, start, start, position + brackets)

    def _scan_key(self, position: int) -> tuple[int, list[str], list[int]]:
        """Read a dotted key and the blanks after it.

        Return its end, its segments and the offset of each.
        """
        names = []
        offsets = []
        while True:
            position = _find_match_end(_SPACE, self._text, position)
            match = _KEY.match(self._text, position)
            assert match is not None, "the text has been parsed before"
            names.append(match["bare"] or _unquote_key_segment(match["quoted"]))
            offsets.append(position)
            position = _find_match_end(_SPACE, self._text, match.end())
            if not self._text.startswith(".", position):
                return position, names, offsets
            position += 1

    def _scan_pair(self, position: int, base: Path) -> StatementSpan:
        """Read ``key = value`` below ``base``, record its positions, and return its span."""
        position, names, offsets = self._scan_key(position)
        for name, offset in zip(names, offsets, strict=True):
            base = (*base, name)
            self._at.setdefault(base, offset)
        value = _find_match_end(_SPACE, self._text, position + 1)
        return StatementSpan(base, False, offsets[-1], value, self._scan_value(value, base))

    def _scan_value(self, position: int, path: Path) -> int:
        """Read the value at ``path``, record the positions of its elements, and return its end."""
        text = self._text
        if text[position] == "[":
            index, position = 0, _find_match_end(_BLANK, text, position + 1)
            while text[position] != "]":
                self._at[(*path, index)] = position
                position = _find_match_end(_BLANK, text, self._scan_value(position, (*path, index)))
                position = _find_match_end(_BLANK, text, position + (text[position] == ","))
                index += 1
            return position + 1
        if text[position] == "{":
            position = _find_match_end(_BLANK, text, position + 1)
            while text[position] != "}":
                position = _find_match_end(_BLANK, text, self._scan_pair(position, path).end)
                position = _find_match_end(_BLANK, text, position + (text[position] == ","))
            return position + 1
        match = (_STRING if text[position] in "\"'" else _SCALAR).match(text, position)
        assert match is not None, "the text has been parsed before"
        return match.end()


def _find_match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _unquote_key_segment(text: str) -> str:
    if text[0] == "'" or "\\" not in text:
        return text[1:-1]
    return unquote_basic_string(text)
