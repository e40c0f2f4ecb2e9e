"""A parsed TOML text with its name and path.

Every value read from it has an origin: a path into the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from npuprof.model import SECTIONS, TYPE_CHECKING, NpuprofError, Path, Place, TomlTable, build_error
from npuprof.system import decode_safely, list_items

if TYPE_CHECKING:
    from typing import Any

    from npuprof.document.positions import Positions

_MAX_DEPTH = 100
#: The longest text, in characters, in which a single position is searched for without a scan.
_SHORT = 5000
#: Regular expressions for the tokens of a TOML text: one segment of a key, multi-line strings,
#: dotted keys with all their segments, comments. They never backtrack.
_SEGMENT = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_TOKENS = (
    r'''"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:"{3,5})?|'''
    r"""'''(?:[^']|'(?!''))*+(?:'{3,5})?|"""
    rf"""(?P<key>{_SEGMENT}(?:[ \t]*+\.[ \t]*+{_SEGMENT})*+)"""
    r"""|#[^\n]*+|"(?:[^"\\\n]|\\.)*+|'[^'\n]*+"""
)
_MAX_INTEGER_BITS = 14_000  # bits: Python cannot print integers with more than 4300 digits


class Document:
    """A parsed TOML text.

    ``source`` is the path shown to users, ``revision`` the commit it was read at.
    """

    __slots__ = ("_data", "_first", "_positions", "name", "revision", "source", "text")

    def __init__(
        self, name: str, source: str, text: str, data: TomlTable, revision: str | None = None
    ) -> None:
        self.name = name
        self.source = source
        self.text = text
        self._data: TomlTable | None = data
        self.revision = revision
        self._positions: Positions | None = None
        #: The last requested path, with its position.
        self._first: tuple[Path, tuple[int, int]] | None = None

    @property
    def data(self) -> TomlTable:
        """The parsed text."""
        if self._data is None:
            self._data = parse_toml_text(self.text)
        return self._data

    def forget_data(self) -> None:
        """Parse the text again when it is asked for: the data of many files take much memory."""
        self._data = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.source, self.text, self.data, self.revision)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Document):
            return False
        # the texts last: they are the longest
        is_same_file = self.source == other.source and self.revision == other.revision
        if not is_same_file or self.text != other.text or self.name != other.name:
            return False
        # the command line has no text: its data are compared
        return bool(self.text) or self.data == other.data

    def __hash__(self) -> int:
        return hash((self.name, self.source, self.revision, self.text))

    def locate_path(self, path: Path) -> tuple[int, int]:
        """Return line and column of a key or list element, from 1; (0, 0) if there is no text."""
        if not self.text:
            return 0, 0
        if self._first is None or self._first[0] != path:
            self._first = path, self._find_position(path)
        return self._first[1]

    def locate_line(self, path: Path) -> int:
        """Return the line of a key or list element, from 1; 0 if there is no text."""
        is_inside = len(path) > 2 and len(self.text) < _SHORT
        line = is_inside and _find_whole_line(self.text, *path[:2])
        return line or self.locate_path(path)[0]

    def _find_position(self, path: Path) -> tuple[int, int]:
        if self._positions is None and len(path) == 2 and len(self.text) < _SHORT:
            line = _find_plain_line(self.text, *path)
            if line:
                return line, 1
        return self.find_positions().find_position(path)

    def find_positions(self) -> Positions:
        """Return the positions of all keys and elements."""
        if self._positions is None:
            from npuprof.document.positions import Positions

            self._positions = Positions(self.text)
        return self._positions

    def __repr__(self) -> str:
        return f"Document({self.source!r})"


def _find_plain_line(text: str, table: str, name: Any) -> int:
    """Return the line of ``name = ...`` in ``[table]`` if both have the usual form, else 0.

    Without multi-line strings, a line that begins with ``name =`` is always a statement; the table
    ends at the next header.
    """
    is_usual = table in SECTIONS and str(name).isidentifier()
    if not is_usual or '"""' in text or "'''" in text:
        return 0
    header = text.find(f"\n[{table}]\n")
    statement = text.find(f"\n{name} = ", header) if header >= 0 else -1
    if statement < 0 or text.find("\n[", header + 1, statement) >= 0:
        return 0
    return text.count("\n", 0, statement) + 2


@lru_cache(4)  # called for each part of the value
def _find_whole_line(text: str, table: str, name: Any) -> int:
    """Return the line of a setting as ``_find_plain_line`` does, 0 if it continues below."""
    line = _find_plain_line(text, table, name)
    rest = re.sub(r""""(?:[^"\\]|\\.)*+"|'[^']*+'""", "", text.split("\n", line)[line - 1])
    counts = [*map(rest.partition("#")[0].count, "[{]}")]
    return line if counts[:2] == counts[2:] else 0


def parse_document(
    name: str, source: str, raw: bytes | str, revision: str | None = None
) -> Document:
    """Return the document parsed from ``raw``.

    Raises NpuprofError, with the place of the fault, if the bytes are not UTF-8 or the text is not
    TOML.
    """
    # not needed by commands that read no TOML, such as help, option and most completions
    import tomli

    text = decode_utf8(source, raw) if isinstance(raw, bytes) else raw
    if (long := _find_long_key(text)) >= 0:
        raise _build_nesting_error(source, *_locate_offset(text, long), "a key has too many parts")
    try:
        data = parse_toml_text(text)
    except tomli.TOMLDecodeError as error:
        from npuprof.document.syntax_errors import build_syntax_finding

        raise NpuprofError(build_syntax_finding(source, text, str(error))) from None
    except ValueError:
        raise _build_huge_number_error(source, text) from None
    except RecursionError:
        line, column = _locate_offset(text, _find_deep_bracket(text))
        raise _build_nesting_error(source, line, column) from None
    # nearly all texts have too few brackets and dots for deep values
    if text.count("[") + text.count("{") + text.count(".") > _MAX_DEPTH:
        deep = _find_too_deep_path(data)
        if deep:
            from npuprof.document.positions import Positions

            raise _build_nesting_error(source, *Positions(text).find_position(deep[:2]))
    return Document(name, source, text, data, revision)


def parse_toml_text(text: str) -> TomlTable:
    """Return the data of a TOML text.

    Raises tomli.TOMLDecodeError; ValueError for an integer with thousands of digits, which Python
    cannot print; and RecursionError for data that is nested too deeply.
    """
    if _find_long_key(text) >= 0:
        raise RecursionError("a key of too many segments")
    data = _load_text_once(text)
    if len(text) > 3000:  # a number with so many bits is longer
        longest = max(_iterate_integer_bits(data), default=0)
        if longest > _MAX_INTEGER_BITS:
            raise ValueError(f"{longest} bits")
    return data


def parse_toml_value(text: str) -> Any:
    """Return one TOML value, which no caller changes.

    Raises what ``parse_toml_text`` raises, and ValueError if the text contains more than the value.
    """
    data = parse_toml_text(f"v = {text}\n")
    if len(data) > 1:
        raise ValueError("more than one value")
    return data["v"]


@lru_cache(64)  # a store and its history share many texts
def _load_text_once(text: str) -> TomlTable:
    """Return the parsed text, which no caller changes."""
    import tomli

    return tomli.loads(text)


def _find_long_key(text: str) -> int:
    """Return the offset of a dotted key with too many segments, or -1.

    Parsing such a key takes quadratic time.
    """
    if text.count(".") <= _MAX_DEPTH:
        return -1
    if not any(line.count(".") > _MAX_DEPTH for line in text.split("\n")):
        return -1
    for match in re.finditer(_TOKENS, text):
        key = match["key"] or ""
        # a segment and its dot have at least two characters
        if len(key) > 2 * _MAX_DEPTH and len(re.findall(_SEGMENT, key)) > _MAX_DEPTH:
            return match.start()
    return -1


def _find_deep_bracket(text: str) -> int:
    """Return the offset of the outermost bracket that is nested too deeply, or 0."""
    depth = start = 0
    for match in re.finditer(rf"{_TOKENS}|[\[\]{{}}]", text):
        if match[0] in ("[", "{"):
            if depth == 0:
                start = match.start()
            depth += 1
            if depth > _MAX_DEPTH:
                return start
        elif match[0] in ("]", "}"):
            depth = max(depth - 1, 0)
    return 0


def _locate_offset(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def is_nested_too_deeply(data: TomlTable) -> bool:
    """Return whether a table is nested too deeply."""
    return bool(_find_too_deep_path(data))


def _find_too_deep_path(data: TomlTable) -> Path:
    """Return the path of the first value that is nested too deeply, or an empty path."""
    level: list[tuple[Path, Any]] = [((), data)]
    for _ in range(_MAX_DEPTH):
        level = [
            ((*path, name), item)
            for path, value in level
            for name, item in list_items(value)
            if isinstance(item, (dict, list))
        ]
    return level[0][0] if level else ()


def _iterate_integer_bits(value: Any) -> Iterator[int]:
    """Yield the bit length of every integer in a value."""
    if isinstance(value, int):
        yield value.bit_length()
    for _, item in list_items(value):
        yield from _iterate_integer_bits(item)


def build_command_line_document(name: str, data: TomlTable) -> Document:
    """Return the arguments of the command line as a document without text."""
    return Document(name, name, "", data)


def decode_utf8(source: str, raw: bytes) -> str:
    """Return the text of a file, without a byte order mark. Raises NpuprofError."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _build_encoding_error(source, 1, 1, "it looks like UTF-16")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        # the column counts characters, and not bytes
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = len(decode_safely(before.rpartition(b"\n")[2])) + 1
        raise _build_encoding_error(
            source, line, column, f"byte 0x{raw[error.start]:02x} is not UTF-8"
        ) from None


def _build_encoding_error(source: str, line: int, column: int, what: str) -> NpuprofError:
    return build_error(
        "NP002",
        f"the file is not UTF-8 text: {what}",
        "TOML is always UTF-8.",
        "save the file as UTF-8",
        where=Place(source, line, column),
    )


def _build_huge_number_error(source: str, text: str) -> NpuprofError:
    match = re.search(r"(?<![\w\"'])[+-]?(?:0[xob])?[0-9a-fA-F_]{2500,}", text)
    what = "not readable: a number with thousands of digits"
    why = "Options have at most 64 bits."
    where = Place(source, *_locate_offset(text, match.start() if match else 0))
    return build_error("NP001", what, why, "write a smaller number, or text in quotes", where=where)


def _build_nesting_error(
    source: str, line: int, column: int, what: str = "the brackets are nested too deeply"
) -> NpuprofError:
    why = "No option needs more than a few levels."
    return build_error(
        "NP001",
        f"not readable: {what}",
        why,
        "flatten the value",
        where=Place(source, line, column),
    )
