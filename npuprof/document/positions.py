"""Where every key and list element of a valid TOML text stands."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from io import StringIO
from itertools import accumulate

from npuprof.model import Path, Record
from npuprof.system import lazy_pattern

_BLANK = lazy_pattern(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = lazy_pattern(r"[ \t]*")
_STRING = lazy_pattern(
    r'''"""(?:[^\\]|\\[\s\S])*?"{3,5}|\'\'\'[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''',
)
_KEY = lazy_pattern(r"""([A-Za-z0-9_-]+)|("(?:[^"\\\n]|\\.)*"|'[^'\n]*')""")
_SCALAR = lazy_pattern(r"[^,\]}#\r\n]+")
#: A statement as it mostly is, up to the next one: ``[table]``, or a bare key and on its line a value that is no table and no list.
_PLAIN = lazy_pattern(
    rf"""(?:\[([A-Za-z0-9_-]+)\]|([A-Za-z0-9_-]+)[ \t]*=[ \t]*("[^"\\\n]*"(?!")|'[^'\n]*'(?!')|[^\s\[{{"'][^#\r\n]*)){_BLANK.pattern}"""
)


class StatementSpan(Record):
    """Where a statement stands: its key's last segment (of a header: its brackets), its value, and where it ends."""

    path: Path
    header: bool
    key: int
    value: int
    end: int


class Positions:
    """Offsets of the keys and elements of one document, as lines and columns.

    The text must have been read by a TOML parser before: this scanner only finds its way in text that is
    known to be valid. (The parsers keep no columns, and none for what stands in inline tables.) Where only one path is ``sought``,
    nothing is read behind the statement that writes it, and nothing else can be asked for.
    """

    def __init__(self, text: str, sought: Path | None = None) -> None:
        self._text = text
        self._at: dict[Path, int] = {}
        self._spans: list[tuple[Path, bool, int, int, int]] = []
        self._starts = list(accumulate(map(len, StringIO(text, newline="\n")), initial=0))  # a line ends at "\n" and at nothing else
        self._scan_text(sought)

    def find_position(self, path: Path) -> tuple[int, int]:
        """Return line and column, from 1, of a path or of the nearest thing around it that is written."""
        while path and path not in self._at:
            path = path[:-1]
        offset = self._at.get(path, 0)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    @property
    def statements(self) -> list[StatementSpan]:
        """The statements, in the order of the text."""
        return [StatementSpan(*span) for span in self._spans]

    def __contains__(self, path: Path) -> bool:
        return path in self._at

    def _scan_text(self, sought: Path | None) -> None:
        text, header, tables = self._text, (), {}  # type: tuple[str, Path, dict[Path, int]]
        position = _find_match_end(_BLANK, text, 0)
        while position < len(text) and sought not in self._at:  # what stands twice, as a table that goes on, is found where it begins
            if plain := _PLAIN.match(text, position):
                header, position = self._note_plain_statement(plain, header), plain.end()
                continue
            if text[position] == "[":
                many, start = text.startswith("[[", position), position
                position, names = self._scan_key(position + 1 + many)
                header = ()
                for name, offset in zip(names[:-1], names.offsets, strict=False):
                    header = (*header, name)
                    self._at.setdefault(header, offset)  # a table that only its subtables' headers name
                    if header in tables:
                        header = (*header, tables[header])  # it goes on inside an array of tables: [[a]] [a.b]
                header = (*header, names[-1])
                if many:
                    self._at.setdefault(header, names.offset)
                    tables[header] = tables.get(header, -1) + 1
                    header = (*header, tables[header])
                self._at.setdefault(header, names.offset)
                position += 1 + many
                self._spans.append((header, True, start, start, position))
            else:
                self._spans.append(self._scan_pair(position, header))
                position = self._spans[-1][-1]
            position = _find_match_end(_BLANK, text, position)

    def _note_plain_statement(self, plain: re.Match[str], header: Path) -> Path:
        """Note the place of a statement; return the table that the next one stands in."""
        start, (table, name) = plain.start(), plain.group(1, 2)
        if table:
            self._at.setdefault((table,), start + 1)
            self._spans.append(((table,), True, start, start, plain.end(1) + 1))
            return (table,)
        self._at.setdefault((*header, name), start)
        self._spans.append(((*header, name), False, start, *plain.span(3)))
        return header

    def _scan_key(self, position: int) -> tuple[int, _KeySegments]:
        """Read a dotted key and the blanks behind it."""
        names: list[str] = []
        offsets: list[int] = []
        while True:
            position = _find_match_end(_SPACE, self._text, position)
            match = _KEY.match(self._text, position)
            assert match is not None, "the text has been parsed before"
            names.append(match[1] if match[1] is not None else _unquote_key_segment(match[2]))
            offsets.append(position)
            position = _find_match_end(_SPACE, self._text, match.end())
            if not self._text.startswith(".", position):
                return position, _KeySegments(names, offsets)
            position += 1

    def _scan_pair(self, position: int, base: Path) -> tuple[Path, bool, int, int, int]:
        """Read ``key = value`` below ``base`` and note its places; return its span."""
        position, names = self._scan_key(position)
        for name, offset in zip(names, names.offsets, strict=True):
            base = (*base, name)
            self._at.setdefault(base, offset)
        value = _find_match_end(_SPACE, self._text, position + 1)
        return base, False, names.offset, value, self._scan_value(value, base)

    def _scan_value(self, position: int, path: Path) -> int:
        """Read the value of ``path``, note the places of what is in it, and return where it ends."""
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
                position = _find_match_end(_BLANK, text, self._scan_pair(position, path)[-1])
                position = _find_match_end(_BLANK, text, position + (text[position] == ","))
            return position + 1
        match = (_STRING if text[position] in "\"'" else _SCALAR).match(text, position)
        assert match is not None, "the text has been parsed before"
        return match.end()


class _KeySegments(tuple[str, ...]):
    """The segments of a dotted key, with the offset of each."""

    offsets: list[int]

    def __new__(cls, names: list[str], offsets: list[int]) -> _KeySegments:
        self = super().__new__(cls, names)
        self.offsets = offsets
        return self

    @property
    def offset(self) -> int:
        return self.offsets[-1]


def _find_match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _unquote_key_segment(text: str) -> str:
    if text[0] == "'" or "\\" not in text:
        return text[1:-1]
    return str(tomllib.loads(f"k = {text}")["k"])
