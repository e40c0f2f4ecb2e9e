"""Settings that were commented out but kept in the file."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress

from npuprof.document.keys import format_key_segment
from npuprof.scripts.python.constants import Unknown, fold_expression
from npuprof.scripts.python.parameter_map import convert_field_value
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.syntax import Script, parse_python
from npuprof.scripts.records import ScriptPlace, ScriptSetting, ScriptValue

_COMMENTED = re.compile(r"#[^\n]*\bparameter_map\s*\[")


def find_commented_settings(script: Script) -> list[ScriptSetting]:
    """Return the parameter-map lines that stand in comments of their own."""
    if not _COMMENTED.search(script.text):
        return []
    own = (token for token in iterate_comments(script.text) if not token.line[: token.start[1]].strip())
    return [setting for token in own for setting in _read_comment(script.path, token)]


def iterate_comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a Python text, up to where that is none: Python 2, or tabs beside blanks."""
    with suppress(tokenize.TokenError, SyntaxError):
        yield from (token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT)


def _read_comment(path: str, token: tokenize.TokenInfo) -> list[ScriptSetting]:
    try:
        body = parse_python(token.string.lstrip("# \t").strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    target = body[0].targets[0] if len(body) == 1 and isinstance(body[0], ast.Assign) else None
    place = target.value if isinstance(target, ast.Attribute) else None
    if not isinstance(place, ast.Subscript) or not isinstance(place.value, ast.Attribute) or place.value.attr != "parameter_map":
        return []
    key, field = getattr(place.slice, "value", None), target.attr  # type: ignore[union-attr]
    if not isinstance(key, str):
        return []
    try:
        value, reason = convert_field_value(fold_expression(body[0].value, Scope(ast.Module([], []))), field)  # type: ignore[attr-defined]
    except Unknown as unknown:
        value, reason = None, unknown.reason
    line, column = token.start
    return [
        ScriptSetting(
            ScriptPlace(path, line, column + 1), "session", format_key_segment(key), key, ScriptValue(value, reason), field, commented=True
        )
    ]
