"""Values of Hydra's overrides, as its grammar reads them."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from npuprof.scripts.steps import count_steps

#: The text that stands for Hydra's null in a preset.
NULL = "null"
_INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d*(?:_\d+)*)")
_FLOAT = re.compile(r"[+-]?(?=[.\d])(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d+)?")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_PLAIN = re.compile(r"(?:\$\{[^{}]*\}|[^\[\]{},:'\"()\\=\s])(?:\$\{[^{}]*\}|[^\[\]{},'\"()\\])*")
_KEY = re.compile(r"[^\[\]{},:'\"()\\]+")
_ESCAPED = re.compile(r"\\(['\"\\])")
_DEEPEST = 20


class _NoValueError(ValueError):
    """Raised for a text that is no plain value."""


def parse_hydra_value(text: str) -> Any:
    """Return the value of an override's text. Raises ValueError for a sweep or a function."""
    if not text:
        return ""
    value, end = _parse(text, _skip(text, 0), 0)
    if _skip(text, end) != len(text):
        raise _NoValueError
    return value


def _skip(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip(" \t"))


def _parse(text: str, at: int, depth: int) -> tuple[Any, int]:
    count_steps(1 + len(text) // 100)
    if depth > _DEEPEST:
        raise _NoValueError
    if text[at : at + 1] in ("[", "{"):
        return _parse_items(text, at, depth)
    if match := _QUOTED.match(text, at):
        inner = match[1] if match[1] is not None else match[2]
        return _ESCAPED.sub(r"\1", inner), match.end()
    if not (match := _PLAIN.match(text, at)):
        raise _NoValueError
    return _convert(match[0].rstrip(" \t")), match.end()


def _parse_items(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return the list or the table that begins at an offset, and its end."""
    closing = "]" if text[at] == "[" else "}"
    items: list[Any] = []
    table: dict[str, Any] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        if items or table:
            if text[at : at + 1] != ",":
                raise _NoValueError
            at = _skip(text, at + 1)
        key = None
        if closing == "}":
            match = _KEY.match(text, at)
            if not match or text[match.end() : match.end() + 1] != ":":
                raise _NoValueError
            key, at = match[0].strip(), _skip(text, match.end() + 1)
        value, at = _parse(text, at, depth + 1)
        at = _skip(text, at)
        if key is None:
            items.append(value)
        else:
            table[key] = value
    return (items if closing == "]" else table), at + 1


def _convert(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered == NULL:
        return NULL
    if _INTEGER.fullmatch(text) and len(text) < 19:
        return int(text)
    is_float = _FLOAT.fullmatch(text) and any(map(str.isdigit, text))
    return float(text) if is_float and isfinite(float(text)) else text
