"""Settings that were commented out but kept in the file."""

from __future__ import annotations

import ast
import re

from npuprof.document.keys import segment
from npuprof.scripts.reading.found import Found
from npuprof.scripts.reading.literals import Unknown, fold
from npuprof.scripts.reading.scopes import Scope
from npuprof.scripts.reading.source import Script, parse

_LINE = re.compile(r"^[ \t]*#[# \t]*(?=\S)(.*\bparameter_map\s*\[.*)$", re.MULTILINE)


def commented(script: Script) -> list[Found]:
    """Return the parameter-map lines that stand in comments."""
    text = script.text if "\r" not in script.text else "\n".join(script.lines)
    if "parameter_map" not in text or "#" not in text:
        return []
    found: list[Found] = []
    quoted: list[tuple[int, int]] | None = None
    for match in _LINE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        parsed = _read(match[1])
        if parsed is None:
            continue
        if quoted is None:
            quoted = _quoted(script)
        if any(first <= line <= last for first, last in quoted):
            continue
        column = match.start() - (text.rfind("\n", 0, match.start()) + 1) + len(match[0]) - len(match[0].lstrip()) + 1
        key, field, value, reason = parsed
        found.append(Found(script.path, line, column, "session", segment(key), key, field, value, reason, commented=True))
    return found


def _read(text: str) -> tuple[str, str, object, str] | None:
    try:
        body = parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or not isinstance(target := body[0].targets[0], ast.Attribute):
        return None
    place = target.value
    if not isinstance(place, ast.Subscript) or not isinstance(place.slice, ast.Constant) or not isinstance(place.slice.value, str):
        return None
    if not isinstance(place.value, ast.Attribute) or place.value.attr != "parameter_map":
        return None
    from npuprof.scripts.reading.session import stored

    try:
        value, reason = stored(fold(body[0].value, Scope(ast.Module([], []))), target.attr)
    except Unknown as unknown:
        value, reason = None, unknown.reason
    return place.slice.value, target.attr, value, reason


def _quoted(script: Script) -> list[tuple[int, int]]:
    """Return the first and last line of every text that runs over several lines."""
    assert script.tree is not None
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(script.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (node.end_lineno or 0) > node.lineno
    ]
