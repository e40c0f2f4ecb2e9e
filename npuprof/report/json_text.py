"""Answers as JSON: indented, readable, without invisible characters."""

from __future__ import annotations

from npuprof.document.keys import is_no_number, is_visible
from npuprof.model import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def format_json_answer(value: Any) -> str:
    """Return a JSON answer: indented, not escaped, ending in a newline."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False) + "\n"
    except ValueError:
        return format_json_answer(_replace_infinite_numbers(value))
    if text.isascii() and "\x7f" not in text:
        return text
    # Invisible characters and undecodable file name bytes are escaped; the values stay the same.
    hidden = {
        ord(char): json.dumps(char)[1:-1].replace("\x7f", "\\u007f")
        for char in {*text} - {"\n"}
        if not is_visible(char)
    }
    return text.translate(hidden)


def _replace_infinite_numbers(value: Any) -> Any:
    """Return a value with infinity and NaN as TOML's text for them, since JSON has none."""
    if isinstance(value, dict):
        return {name: _replace_infinite_numbers(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_infinite_numbers(item) for item in value]
    return str(value) if is_no_number(value) else value
