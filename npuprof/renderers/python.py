"""Python source as black would write it, for the few shapes that rendered code has. Parses as Python 3.7."""

from __future__ import annotations

from typing import Any

WIDTH = 88
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(value: Any) -> str:
    """Return a value as a Python literal; texts in double quotes unless single ones need fewer escapes."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(name)}: {literal(item)}" for name, item in value.items()) + "}"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)


def _text(text: str) -> str:
    quote = "'" if '"' in text and text.count('"') > text.count("'") else '"'
    shown = []
    for char in text:
        if char in _ESCAPES:
            shown.append(_ESCAPES[char])
        elif char == quote:
            shown.append(f"\\{char}")
        elif char.isprintable():
            shown.append(char)
        else:
            code = ord(char)
            shown.append(f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")
    return quote + "".join(shown) + quote


def statement(head: str, argument: str, tail: str, indent: str = "") -> list[str]:
    """Return ``head + argument + tail`` as one line, or broken after ``head`` where it is too long.

    ``head`` ends in an opening bracket, ``tail`` starts with the closing one.
    """
    line = f"{indent}{head}{argument}{tail}"
    if width(line) <= WIDTH:
        return [line]
    return [f"{indent}{head}", f"{indent}    {argument}", f"{indent}{tail}"]


def width(text: str) -> int:
    """Return the columns a text takes, wide characters counting two, as black counts."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
