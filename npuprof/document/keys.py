"""Keys as users write them: ``precision_mode``, ``modify_mixlist.black-list.to-add``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from npuprof.model import FRAMEWORK_SECTIONS, SECTIONS, Any, Path

#: The maximum number of segments of a key on the command line.
DEEPEST_KEY = 32
_BARE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_SEGMENT = (
    r"""\s*(?:(?P<bare>[A-Za-z0-9_-]+)|'(?P<literal>[^'\n]*)'"""
    r"""|"(?P<basic>(?:[^"\\\n]|\\.)*)")\s*"""
)
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\b": "\\b",
    "\f": "\\f",
}


#: Characters that are invisible although Unicode classifies them as letters or marks: fillers,
#: joiners, selectors.
_SHOW_NOTHING = frozenset(
    map(
        chr,
        (
            0x34F,
            0x115F,
            0x1160,
            0x17B4,
            0x17B5,
            0x3164,
            0xFFA0,
            0x2800,
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
        ),
    )
)


def is_visible(text: str) -> bool:
    """Return whether every character of a text is visible: no controls, directions, fillers."""
    return text.isprintable() and (
        text.isascii() or (_SHOW_NOTHING.isdisjoint(text) and max(text) < "\U000e0000")
    )


def quote_basic_string(text: str) -> str:
    """Return ``text`` as a TOML basic string, double quotes included."""
    # nearly all texts: no character needs a look of its own
    if '"' not in text and "\\" not in text and is_visible(text):
        return f'"{text}"'
    escaped = (
        _ESCAPES.get(char) or (char if is_visible(char) else _escape_code_point(ord(char)))
        for char in text
    )
    return f'"{"".join(escaped)}"'


def unquote_basic_string(text: str) -> str:
    """Return the content of a one-line TOML basic string.

    Raises ValueError for an invalid escape.
    """
    import tomli  # rare: few keys have escapes

    return str(tomli.loads(f"v = {text}\n")["v"])


def _escape_code_point(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_key_segment(name: str) -> str:
    """Return a key segment as TOML writes it: bare if possible, else quoted."""
    return name if name and _BARE.issuperset(name) else quote_basic_string(name)


def split_dotted_key(text: str) -> tuple[str, ...] | None:
    """Return the segments of a dotted TOML key, or None if ``text`` is not one."""
    if all(name and _BARE.issuperset(name) for name in text.split(".")):
        return tuple(text.split("."))
    segments = []
    position = 0
    # compiled on first use: quoted keys are rare and compiling is slow
    pattern = re.compile(_SEGMENT)
    while match := pattern.match(text, position):
        segment = str(match[match.lastgroup or 0])
        if match.lastgroup == "basic" and "\\" in segment:
            try:
                segment = unquote_basic_string(f'"{segment}"')
            except ValueError:
                return None
        segments.append(segment)
        position = match.end()
        if position == len(text):
            return tuple(segments)
        if text[position] != ".":
            return None
        position += 1
    return None


def is_too_deep(text: str) -> bool:
    """Return whether a dotted key has more segments than any value has levels."""
    return text.count(".") >= DEEPEST_KEY and len(split_dotted_key(text) or ()) > DEEPEST_KEY


@cache
def format_full_key(section: str, name: str) -> str:
    """Return the full key of a setting: the name of an option, ``SECTION.NAME`` of all others."""
    segment = format_key_segment(name)
    return segment if section == "options" else f"{section}.{segment}"


def parse_key(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the full key and the tail below it of a key as typed, None if it is not a key.

    ``precision_mode`` and ``options.precision_mode`` are the same setting.
    """
    segments = split_dotted_key(text)
    if not segments:
        return None
    first, *rest = segments
    if first not in SECTIONS:
        return format_full_key("options", first), tuple(rest)
    if not rest:
        return None
    name, *tail = rest
    return format_full_key(first, name), tuple(tail)


def split_key(text: str) -> tuple[str, tuple[str, ...]]:
    """Return what ``parse_key`` does, or the text as a full key where it is not a key."""
    return parse_key(text) or (text, ())


def parse_key_path(text: str) -> tuple[str, tuple[str | int, ...]] | None:
    """Parse the output of ``format_key_path``: a full key with the path below it.

    List elements are written ``[2]``.
    """
    elements = re.search(r"(?<!\])(?:\[\d{1,18}\])++$", text, re.ASCII) if "]" in text else None
    parsed = parse_key(text[: elements.start()] if elements else text)
    if parsed is None or elements is None:
        return parsed
    return parsed[0], (*parsed[1], *map(int, re.findall(r"\d+", elements[0])))


@cache
def split_section_and_name(key: str) -> tuple[str, str]:
    """Return the section and the plain name of a full key."""
    first, *rest = split_dotted_key(key) or (key,)
    if not rest:
        return "options", first
    # the name of a framework setting is its whole path
    return first, ".".join(rest) if first in FRAMEWORK_SECTIONS else rest[0]


def find_key_path(key: str) -> tuple[str, ...]:
    """Return the path of a full key in a block: its section, and the names below it."""
    section, name = split_section_and_name(key)
    return section, *(name.split(".") if section in FRAMEWORK_SECTIONS else [name])


@lru_cache(1024)
def format_key_path(key: str, tail: tuple[str | int, ...]) -> str:
    """Return a key with the path below it, as users read it: ``black-list.to-add[0]``."""
    return key + "".join(
        f"[{part}]" if isinstance(part, int) else f".{format_key_segment(part)}" for part in tail
    )


def format_path(path: tuple[str | int, ...]) -> str:
    """Return a path in a document as users read it: ``profile.extends[0]``."""
    return format_key_path("", path).lstrip(".")


def is_no_number(value: object) -> bool:
    """Return whether a value is a float that TOML has and JSON lacks: infinity or NaN."""
    return isinstance(value, float) and (value != value or abs(value) == float("inf"))


def format_toml_value(value: object) -> str:
    """Return a value as TOML on one line, tables inline."""
    # before other numbers: a bool is an int, which str would write as True
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote_basic_string(value)
    if isinstance(value, float):
        return str(value) if is_no_number(value) else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(format_toml_value, value)) + "]"
    if isinstance(value, dict):
        if not value:
            return "{}"
        items = (
            f"{format_key_segment(name)} = {format_toml_value(item)}"
            for name, item in value.items()
        )
        return f"{{ {', '.join(items)} }}"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def format_plain_value(value: object) -> str:
    """Return a value as command lines write it: text without quotes, booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_range(low: float | None, high: float | None, unit: str = "") -> str:
    """Return bounds as text; at least one must be set."""
    if high is None:
        span = f"at least {low}"
    elif low is None:
        span = f"at most {high}"
    else:
        span = f"{low} to {high}"
    return f"{span} {unit}".rstrip()


def format_short_value(value: object) -> str:
    """Return a value as TOML for a message; long values are cut."""
    text = format_toml_value(value)
    if len(text) <= 72:
        return text
    closing = text[-1] if text[-1] in '"]}' else ""
    return f"{text[:68]}...{closing}"


def list_table_leaves(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the path and the value of each leaf of a table; a list or an empty table is one."""
    if not isinstance(value, dict) or not value:
        yield (), value
        return
    for name, item in value.items():
        yield from (((str(name), *path), leaf) for path, leaf in list_table_leaves(item))
