"""Settings that were commented out but kept in the file."""

from __future__ import annotations

import ast
import re

from npuprof.document.keys import format_key_segment
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.source import Script, parse_python
from npuprof.scripts.reading.values.literals import Unknown, fold_expression
from npuprof.scripts.reading.values.scopes import Scope

_LINE = re.compile(r"^[ \t]*#[# \t]*(?=\S)(.*\bparameter_map\s*\[.*)$", re.MULTILINE)


def find_commented_settings(script: Script) -> list[FoundSetting]:
    """Return the parameter-map lines that stand in comments."""
    text = script.text if "\r" not in script.text else "\n".join(script.lines)
    if "parameter_map" not in text or "#" not in text:
        return []
    found: list[FoundSetting] = []
    quoted: set[int] | None = None
    line, at = 1, 0
    for match in _LINE.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        parsed = _parse_commented_line(match[1])
        if parsed is None:
            continue
        if quoted is None:
            quoted = _find_quoted_lines(script)
        if line in quoted:
            continue
        column = match.start() - (text.rfind("\n", 0, match.start()) + 1) + len(match[0]) - len(match[0].lstrip()) + 1
        key, field, value, reason = parsed
        found.append(FoundSetting(script.path, line, column, "session", format_key_segment(key), key, field, value, reason, commented=True))
    return found


def _parse_commented_line(text: str) -> tuple[str, str, object, str] | None:
    try:
        body = parse_python(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or not isinstance(target := body[0].targets[0], ast.Attribute):
        return None
    place = target.value
    if not isinstance(place, ast.Subscript) or not isinstance(place.slice, ast.Constant) or not isinstance(place.slice.value, str):
        return None
    if not isinstance(place.value, ast.Attribute) or place.value.attr != "parameter_map":
        return None
    from npuprof.scripts.reading.surfaces.session import convert_field_value

    try:
        value, reason = convert_field_value(fold_expression(body[0].value, Scope(ast.Module([], []))), target.attr)
    except Unknown as unknown:
        value, reason = None, unknown.reason
    return place.slice.value, target.attr, value, reason


def _find_quoted_lines(script: Script) -> set[int]:
    """Return the numbers of the lines that texts over several lines stand in."""
    assert script.tree is not None
    return {
        line
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (node.end_lineno or 0) > node.lineno
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
