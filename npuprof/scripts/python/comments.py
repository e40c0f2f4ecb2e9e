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
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.parameter_map import convert_field_value
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.syntax import parse_python
from npuprof.scripts.records import ScriptPlace, ScriptSetting, ScriptValue

_COMMENTED = re.compile(r"(\s*)(#.*\bparameter_map\s*\[.*)")


def find_commented_settings(module: Module) -> list[ScriptSetting]:
    """Return the parameter-map lines that stand in comments of their own."""
    lines = module.script.lines
    matches = [(at, match) for at, line in enumerate(lines, 1) if "parameter_map" in line and (match := _COMMENTED.fullmatch(line))]
    texts = [node for node in module.index.nodes if isinstance(node, (ast.Constant, ast.JoinedStr))] if matches else []
    inside = {line for text in texts for line in range(text.lineno + 1, (text.end_lineno or 0) + 1)}
    own = ((line, match) for line, match in matches if line not in inside)
    return [setting for line, match in own for setting in _read_comment(module.path, line, match)]


def iterate_comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a Python text, up to where that is none: Python 2, or tabs beside blanks."""
    with suppress(tokenize.TokenError, SyntaxError):
        yield from (token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT)


def _read_comment(path: str, line: int, match: re.Match[str]) -> list[ScriptSetting]:
    try:
        body = parse_python(match[2].lstrip("# \t").strip()).body
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
    at = ScriptPlace(path, line, match.end(1) + 1)
    return [ScriptSetting(at, "session", format_key_segment(key), key, ScriptValue(value, reason), field, commented=True)]
