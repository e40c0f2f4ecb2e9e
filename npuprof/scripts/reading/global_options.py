"""TensorFlow 2: ``npu.global_options().name = value``, through a second name too."""

from __future__ import annotations

import ast
import re

from npuprof import catalog
from npuprof.catalog.surfaces import list_attribute_groups, read_attribute_value
from npuprof.scripts.reading.found import UNSET, Branch, Site
from npuprof.scripts.reading.run_config import convert_option_value
from npuprof.scripts.reading.scopes import Scope
from npuprof.scripts.reading.terms import name_callee
from npuprof.scripts.reading.walk import Walk

HOT = ("global_options",)
_ALIAS = re.compile(r"^[ \t]*([A-Za-z_][\w.]*)\s*=\s*(?:[\w.]+\.)?global_options\(\)", re.MULTILINE)

_SECOND_NAME = re.compile(r"^[ \t]*([A-Za-z_][\w.]*)\s*=\s*([A-Za-z_]\w*(?:\.\w+)*)[ \t]*$", re.MULTILINE)
_IMPORTED = re.compile(r"\bglobal_options\s+as\s+([A-Za-z_]\w*)")

#: The options of the process, as one configuration.
OWNER = "<process>:global_options"
#: Functions that are given the options and set nothing in them; ``setattr`` is read.
_HARMLESS = ("setattr", "getattr", "hasattr", "isinstance", "print", "str", "repr", "type", "vars", "dir", "id")


def find_options_names(text: str) -> list[str]:
    """Return the names that stand for the options, or a group of them."""
    if "global_options" not in text:
        return []
    found = {*_ALIAS.findall(text), *_IMPORTED.findall(text)}
    again = set()
    for name, source in _SECOND_NAME.findall(text):
        parts = source.split(".")
        if any(".".join(parts[:end]) in found for end in range(1, len(parts) + 1)):
            again.add(name)
    return sorted(found | again)


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read one statement."""
    if not walk.mentions("global_options"):
        return
    if not walk.facts.get("options handed") and _are_options_handed_on(walk, statement, expressions, scope):
        walk.facts["options handed"] = True
        if site := walk.sites.get(OWNER):
            walk.sites[OWNER] = site._replace(closed=False)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _handle_setattr(walk, statement.value, scope, branches)
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            _handle_assignment(walk, target, statement.value, scope, branches)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        _handle_assignment(walk, statement.target, statement.value, scope, branches)


def _handle_assignment(walk: Walk, target: ast.expr, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
        for inner, item in zip(target.elts, value.elts, strict=True):
            _handle_assignment(walk, inner, item, scope, branches)
        return
    if _resolve_option_path(walk, value, scope) is not None and isinstance(target, (ast.Name, ast.Attribute)):
        walk.aliases[scope.name, f"options {ast.unparse(target)}"] = value
        walk.facts.setdefault("options", True)
        return
    path = _resolve_option_path(walk, target, scope)
    if path:
        _report_option_assignment(walk, target, path, value, scope, branches)


def _handle_setattr(walk: Walk, call: ast.Call, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """``setattr(npu.global_options(), name, value)``."""
    if not isinstance(call.func, ast.Name) or call.func.id != "setattr" or len(call.args) != 3 or call.keywords:
        return
    group = _resolve_option_path(walk, call.args[0], scope)
    if group is None:
        return
    name, reason, _ = walk.evaluate_expression(call.args[1], scope)
    if reason:
        _note_options(walk, call)
        walk.add_setting(
            call, "global_options", "", "", reason=f"the name is computed: {reason}", branches=branches, scope=OWNER, function=scope.name
        )
    elif isinstance(name, str):
        _report_option_assignment(walk, call, ".".join(filter(None, (group, name))), call.args[2], scope, branches)


def _report_option_assignment(walk: Walk, target: ast.expr, path: str, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    if path in list_attribute_groups():
        walk.add_fact("groups", (target.lineno, walk.script.column(target.lineno, target.col_offset), path))
        return
    _note_options(walk, target)
    option = catalog.options_by_spelling("global_options").get(path)
    got, reason, default = walk.evaluate_expression(value, scope)
    kind, written = ("", None) if reason else (type(got).__name__, got)
    if not reason and got is None:
        reason = UNSET
    if not reason:
        got, reason = convert_option_value(None, read_attribute_value(path, got))
    walk.add_setting(
        target, "global_options", option or path, path, value=got if not reason else None, reason=reason, kind=kind, written=written,
        branches=branches, scope=OWNER, default=convert_option_value(option, default)[0] if default is not None else None,
        function=scope.name,
    )  # fmt: skip


def _note_options(walk: Walk, node: ast.expr) -> None:
    """Take note of the options of the process: all of them are in sight, unless the file hands them to other code."""
    column = walk.script.column(node.lineno, node.col_offset)
    closed = not walk.facts.get("options handed")
    walk.sites.setdefault(OWNER, Site(OWNER, "global_options", node.lineno, column, "global_options()", closed))


def _are_options_handed_on(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope) -> bool:
    """Return whether a statement gives the options, or a group of them, to code that may set more in them."""
    given: list[ast.expr] = []
    if isinstance(statement, ast.Return) and statement.value is not None:
        given.append(statement.value)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if not all(isinstance(target, ast.Name) for target in targets):  # another function may find them where they are kept
            given.append(statement.value)
    for node in (inner for expression in expressions for inner in ast.walk(expression)):
        if isinstance(node, ast.Call) and name_callee(node) not in _HARMLESS:
            given += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)):
            given += [item for item in (node.values if isinstance(node, ast.Dict) else node.elts) if item is not None]
    groups = ("", *list_attribute_groups())
    return any(_resolve_option_path(walk, node, scope) in groups for node in given)


def _resolve_option_path(walk: Walk, node: ast.expr, scope: Scope) -> str | None:
    """Return the dotted path below the options that a node is, empty for the options themselves, None for others."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        known = walk.find_alias(f"options {ast.unparse(node)}", scope)
        if known is not None:
            break
        parts.append(node.attr)
        node = node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        known = walk.find_alias(f"options {ast.unparse(node)}", scope)
        if known is None or len(parts) > 10:
            return None
        before = _resolve_option_path(walk, known, scope)
        return ".".join(filter(None, [before or "", *reversed(parts)]))
    if isinstance(node, ast.Call) and not node.args and not node.keywords and _is_options_function(node, scope):
        return ".".join(reversed(parts))
    return None


def _is_options_function(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is one of ``global_options``, by that name or by the one it is imported as."""
    name = name_callee(call)
    if name == "global_options" or not isinstance(call.func, ast.Name) or not (found := scope.resolve_name(name)):
        return name == "global_options"
    nodes = [binding.node for binding in found[1]]
    return bool(nodes) and all(
        isinstance(node, ast.ImportFrom) and any((one.name, one.asname) == ("global_options", name) for one in node.names) for node in nodes
    )
