"""What a script that gives no setting says of Ascend all the same, in ways that no importer follows: named, so that nobody misses it."""

from __future__ import annotations

import ast
import re

from npuprof.scripts.python.constants import format_expression
from npuprof.scripts.python.optimizer_entries import NamedEntry
from npuprof.scripts.python.syntax import parse_python
from npuprof.scripts.records import ImportedFile

_CLASS = "NPURunConfig"
#: A conversion with flags, behind quotes or in an expansion, where no comment stands before it.
_ATC = re.compile(r"^(?![ \t]*#).*?(?<![\w./-])(?:[\w./-]*/)?atc(?![\w./-])[^#\n]*?--\w+[^\n]*", re.MULTILINE)
_LONGEST = 80


def find_passed_over(imported: ImportedFile) -> str:
    """Return what is passed over in a file without settings, with its line; empty where nothing of Ascend is set there."""
    names: dict[str, dict[str, int]] = {}
    for entry in imported.list_own_remarks(NamedEntry):
        names.setdefault(entry.site, {}).setdefault(entry.name, entry.line)
    for site, given in names.items():
        if site and len(given) > 1 and "NpuOptimizer" in given:
            which = " or ".join(f"{name} (line {line})" for name, line in given.items())
            return f"the optimizer entry is named {which}, as the run decides"
    text = imported.text
    if _CLASS in text or "parameter_map" in text:
        try:
            return _look_through(parse_python(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ""
    if "atc" in text and not any(site.surface == "atc" for site in imported.sites) and (match := _ATC.search(text)):
        line = text.count("\n", 0, match.start()) + 1
        return f"atc is run in line {line} in a way that is not followed: {_shorten(match[0])}"
    return ""


def _look_through(tree: ast.Module) -> str:
    """Return the first statement that hands settings to Ascend by ways that are not followed."""
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.ClassDef) and any(_is_named(base, _CLASS) for base in statement.bases):
            return f"{statement.name} is a class made of {_CLASS} (line {statement.lineno}), and what its objects set is not followed"
        if not isinstance(statement, ast.stmt) or isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        for node in _walk_header(statement):
            if isinstance(node, ast.Subscript) and _is_named(node.value, "parameter_map") and node not in called:
                shown = _shorten(format_expression(node))
                return f"{shown} in line {node.lineno} belongs to an entry that is not followed"
    return ""


def _walk_header(statement: ast.stmt) -> list[ast.AST]:
    """Return the nodes of a statement without those of the statements in it."""
    found: list[ast.AST] = [statement]
    for node in found:
        found += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    return found


def _is_named(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
