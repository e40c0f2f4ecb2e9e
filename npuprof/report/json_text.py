"""Answers as JSON: indented, readable, without invisible characters."""

from __future__ import annotations

from npuprof.document.keys import is_no_number, is_visible
from npuprof.model import Any
from npuprof.system import map_leaves


def format_json_answer(value: Any) -> str:
    """Return a JSON answer: indented, not escaped, ending in a newline."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False) + "\n"
    except ValueError:
        # TOML's text for infinity and NaN, since JSON has none
        return format_json_answer(
            map_leaves(lambda leaf: str(leaf) if is_no_number(leaf) else leaf, value)
        )
    if text.isascii() and "\x7f" not in text:
        return text
    # Invisible characters and undecodable file name bytes are escaped; the values stay the same.
    hidden = {
        ord(char): json.dumps(char)[1:-1].replace("\x7f", "\\u007f")
        for char in {*text} - {"\n"}
        if not is_visible(char)
    }
    return text.translate(hidden)
