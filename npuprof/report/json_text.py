"""Answers as JSON: indented, readable, and with nothing in them that a terminal would not show."""

from __future__ import annotations

from typing import Any

from npuprof.document.keys import is_no_number, is_visible


def format_json_answer(value: Any) -> str:
    """Return a JSON answer: indented, not escaped, ending in a newline."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False) + "\n"
    except ValueError:
        return format_json_answer(_replace_infinite_numbers(value))
    return _escape_json_text(text)


def _escape_json_text(text: str) -> str:
    """Return JSON in which what shows nothing is escaped, half a file name that is no text too: the values are the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(char if char == "\n" or is_visible(char) else "".join(_list_json_escapes(char)) for char in text)


def _list_json_escapes(char: str) -> list[str]:
    code = ord(char)
    units = [code] if code < 0x10000 else [0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF)]
    return [f"\\u{unit:04x}" for unit in units]


def _replace_infinite_numbers(value: Any) -> Any:
    """Return a value with the numbers that JSON has no form for as the text that TOML has for them."""
    if isinstance(value, dict):
        return {name: _replace_infinite_numbers(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_infinite_numbers(item) for item in value]
    return str(value) if is_no_number(value) else value
