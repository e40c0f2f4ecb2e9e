"""TensorFlow 2: ``npu.global_options().name = value``, through a second name too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import cast

from npuprof import catalog
from npuprof.catalog.surfaces import list_attribute_groups, read_attribute_value
from npuprof.scripts.reading.arguments import bind_call_arguments
from npuprof.scripts.reading.found import UNSET, Branch, Site
from npuprof.scripts.reading.run_config import convert_option_value
from npuprof.scripts.reading.scopes import Scope
from npuprof.scripts.reading.terms import name_callee
from npuprof.scripts.reading.walk import Walk

HOT = ("global_options",)
_IMPORTED = re.compile(r"\bglobal_options\s+as\s+([A-Za-z_]\w*)")
#: What stands between the targets of an assignment and its value, and a target at the end of what is before.
_GIVES = re.compile(r":=|(?<![=!<>:])=(?!=)")
_TARGET = re.compile(r"([A-Za-z_][\w.]*)[ \t]*(?::[^:]*)?$")
_MOST_NAMES = 50
_DEFINED = re.compile(r"\bdef ([A-Za-z_]\w*)\(([^()]*)\)")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_PARAMETER = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")

#: The options of the process, as one configuration.
OWNER = "<process>:global_options"
#: Functions that are given the options and set nothing in them; ``setattr`` is read.
_HARMLESS = ("setattr", "getattr", "hasattr", "isinstance", "print", "str", "repr", "type", "vars", "dir", "id")


def find_options_names(text: str) -> list[str]:
    """Return the names that stand for the options, a group of them, or their function."""
    if "global_options" not in text:
        return []
    found = dict.fromkeys(_IMPORTED.findall(text))
    waiting = ["global_options", *found]
    defined = {name: _PARAMETER.findall(parameters) for name, parameters in _DEFINED.findall(text)}
    while waiting and len(found) < _MOST_NAMES:
        word = waiting.pop()
        value = re.compile(rf"[ \t]*\(*(?:\w+\.)*{re.escape(word)}(?:\(\))?(?:\.\w+)*[ \t):]*(?:#.*)?$")
        for name in (*_find_given_names(text, word, value), *_find_parameter_names(text, word, defined)):
            if name not in found:
                found[name] = None
                waiting.append(name)
    return sorted(found)


def _find_given_names(text: str, word: str, value: re.Pattern[str]) -> Iterator[str]:
    """Yield what is given a value in the lines in which a word stands."""
    at = text.find(word)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        for statement in text[text.rfind("\n", 0, at) + 1 : end].split(";"):
            *targets, last = _GIVES.split(statement)
            if targets and any(map(value.match, last.split(","))):
                yield from (match[1] for target in ",".join(targets).split(",") if (match := _TARGET.search(target)))
        at = text.find(word, end)


def _find_parameter_names(text: str, word: str, defined: dict[str, list[str]]) -> Iterator[str]:
    """Yield the parameters of the functions of a text that are called in the lines in which a word stands."""
    at = text.find(word) if defined else -1
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        for function in dict.fromkeys(_CALLED.findall(text[text.rfind("\n", 0, at) + 1 : end])):
            yield from defined.pop(function, ())
        at = text.find(word, end)


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read one statement."""
    if not walk.mentions("global_options"):
        return
    if not walk.facts.get("options handed") and _are_options_handed_on(walk, statement, expressions, scope):
        walk.facts["options handed"] = True
        if site := walk.sites.get(OWNER):
            walk.sites[OWNER] = site._replace(closed=False)
    for node in (inner for expression in expressions if walk.is_hot(expression) for inner in ast.walk(expression)):
        if isinstance(node, ast.NamedExpr) and _resolve_option_path(walk, node.value, scope) is not None:
            walk.aliases[scope.name, f"options {node.target.id}"] = node.value
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
    while isinstance(node, (ast.Attribute, ast.NamedExpr)):
        if isinstance(node, ast.NamedExpr):
            node = node.value
            continue
        known = walk.find_alias(f"options {ast.unparse(node)}", scope)
        if known is not None:
            break
        parts.append(node.attr)
        node = node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        known = walk.find_alias(f"options {ast.unparse(node)}", scope)
        if len(parts) > 10:
            return None
        if known is None:
            before = _resolve_parameter(walk, node.id, scope) if isinstance(node, ast.Name) else None
            return None if before is None else ".".join(filter(None, [before, *reversed(parts)]))
        before = _resolve_option_path(walk, known, scope)
        return ".".join(filter(None, [before or "", *reversed(parts)]))
    if isinstance(node, ast.Call) and not node.args and not node.keywords and _is_options_function(node, scope):
        return ".".join(reversed(parts))
    return None


def _resolve_parameter(walk: Walk, name: str, scope: Scope) -> str | None:
    """Return the path below the options that a parameter is by every call of its function in this file, None for others."""
    if name in scope.bound:
        return _resolve_given(walk, *scope.bound[name])
    function, mark = scope.node, (scope.node, name)
    found = scope.resolve_name(name)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not found or found[0].node is not function:
        return None
    if {binding.kind for binding in found[1]} != {"parameter"}:
        return None
    known: dict[object, str | None] = walk.facts.setdefault("options given", {})
    if mark not in known:
        known[mark] = None  # what a function gives itself says nothing
        paths = set()
        for call, where in walk.find_calls(function.name):
            bound = bind_call_arguments(function, scope, call, where)
            given = bound.get(name) if bound else None
            paths.add(_resolve_given(walk, *given) if given else None)
        known[mark] = paths.pop() if len(paths) == 1 else None
    return known[mark]


def _resolve_given(walk: Walk, node: ast.expr, scope: Scope) -> str | None:
    """Return the path below the options that an argument is, whose name may be given further down; None for others."""
    path = _resolve_option_path(walk, node, scope)
    parts: list[str] = []
    while path is None and isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    found = scope.resolve_name(node.id) if path is None and isinstance(node, ast.Name) else None
    if not found or [binding.kind for binding in found[1]] != ["assign"]:
        return path
    before = _resolve_option_path(walk, cast("ast.expr", found[1][0].node), found[0])
    return None if before is None else ".".join(filter(None, [before, *reversed(parts)]))


def _is_options_function(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is one of ``global_options``, by that name, by the one it is imported as, or by a second name."""
    name = name_callee(call)
    if name == "global_options" or not isinstance(call.func, ast.Name) or not (found := scope.resolve_name(name)):
        return name == "global_options"
    return bool(found[1]) and all(_is_function_given(binding.node, name) for binding in found[1])


def _is_function_given(node: ast.AST, name: str) -> bool:
    """Return whether a binding gives a name to the function ``global_options``."""
    if isinstance(node, ast.ImportFrom):
        return any((one.name, one.asname) == ("global_options", name) for one in node.names)
    return getattr(node, "attr", None) == "global_options" or getattr(node, "id", None) == "global_options"
