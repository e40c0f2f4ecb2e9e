"""TensorFlow 2: ``npu.global_options().name = value``, through a second name too."""

from __future__ import annotations

import ast

from npuprof import catalog
from npuprof.catalog.surfaces import list_attribute_groups, read_attribute_value
from npuprof.scripts.reading.found import UNSET, Branch, Site
from npuprof.scripts.reading.surfaces.option_objects import resolve_option_object
from npuprof.scripts.reading.surfaces.run_config import convert_option_value
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.arguments import bind_call_arguments
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee, write_source

HOT = ("global_options",)
_DEEPEST = 10
#: The options of the process, as one configuration.
OWNER = "<process>:global_options"
#: Functions that are given the options and set nothing in them; ``setattr`` is read.
_HARMLESS = ("setattr", "getattr", "hasattr", "isinstance", "print", "str", "repr", "type", "vars", "dir", "id")


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read one statement."""
    if not walk.facts.get("options handed") and _are_options_handed_on(walk, statement, expressions, scope):
        walk.facts["options handed"] = True
        if site := walk.sites.get(OWNER):
            walk.sites[OWNER] = site._replace(closed=False)
    for node in (inner for expression in expressions for inner in ast.walk(expression)):
        if isinstance(node, ast.NamedExpr) and (path := _resolve_option_path(walk, node.value, scope)) is not None:
            _list_second_names(walk)[scope.name, node.target.id] = path
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _handle_setattr(walk, statement.value, scope, branches)
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            _handle_assignment(walk, target, statement.value, scope, branches)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        _handle_assignment(walk, statement.target, statement.value, scope, branches)


def forget_nodes(walk: Walk) -> None:
    """Forget what was known of functions: a tree is kept no longer than anybody needs it."""
    for fact in ("options returned", "options given"):
        walk.facts.pop(fact, None)


def _handle_assignment(walk: Walk, target: ast.expr, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
        for inner, item in zip(target.elts, value.elts, strict=True):
            _handle_assignment(walk, inner, item, scope, branches)
        return
    path = _resolve_option_path(walk, value, scope)
    if path is not None and isinstance(target, (ast.Name, ast.Attribute)):
        _list_second_names(walk)[scope.name, write_source(target)] = path
        walk.facts.setdefault("options", True)
        return
    if isinstance(target, ast.Name):
        _list_second_names(walk).pop((scope.name, target.id), None)  # it stands for something else from here on
    elif path := _resolve_option_path(walk, target, scope):
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
        column = walk.script.column(target.lineno, target.col_offset)
        walk.add_fact("groups", (walk.script.path, target.lineno, column, path))
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


def _list_second_names(walk: Walk) -> dict[tuple[str, str], str]:
    """Return what names stand for so far, by their scope: paths below the options, which no later line changes."""
    known: dict[tuple[str, str], str] = walk.facts.setdefault("options names", {})
    return known


def _find_second_name(walk: Walk, node: ast.Name | ast.Attribute, scope: Scope) -> str | None:
    """Return the path below the options that a name stands for, as seen from a scope."""
    names, text = _list_second_names(walk), write_source(node)
    where: Scope | None = scope if names else None
    while where is not None:
        if (where.name, text) in names:
            return names[where.name, text]
        where = where.outer
    return None


def _resolve_option_path(walk: Walk, node: ast.expr, scope: Scope) -> str | None:
    """Return the dotted path below the options that a node is, empty for the options themselves, None for others."""
    whole, parts = node, list[str]()
    before: str | None = None
    while isinstance(node, (ast.Attribute, ast.NamedExpr)):
        if isinstance(node, ast.NamedExpr):
            node = node.value
            continue
        before = _find_second_name(walk, node, scope)
        if before is None and isinstance(node.value, ast.Name) and node.value.id == "self":
            before = _resolve_own_attribute(walk, node)
        if before is not None:
            break
        parts.append(node.attr)
        node = node.value
    if len(parts) > _DEEPEST:
        return None
    if before is None and isinstance(node, ast.Name):
        before = _find_second_name(walk, node, scope)
        before = _resolve_parameter(walk, node.id, scope) if before is None else before
    if before is None:
        return resolve_option_object(whole, scope, walk.facts.setdefault("options returned", {}))
    return ".".join(filter(None, [before, *reversed(parts)]))


def _resolve_own_attribute(walk: Walk, node: ast.Attribute) -> str | None:
    """Return the path that an attribute of ``self`` is by all that the file gives it, by calls only: those mean the same everywhere."""
    given = walk.find_attribute_values(write_source(node))
    returned = walk.facts.setdefault("options returned", {})
    paths = {resolve_option_object(value, walk.open_module(), returned) if _begins_with_call(value) else None for value in given}
    return paths.pop() if len(paths) == 1 else None


def _begins_with_call(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Call)


def _resolve_parameter(walk: Walk, name: str, scope: Scope) -> str | None:
    """Return the path below the options that a parameter is by every call of its function in this file, None for others."""
    if name in scope.bound:
        return _resolve_option_path(walk, *scope.bound[name])
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
            paths.add(_resolve_option_path(walk, *given) if given else None)
        known[mark] = paths.pop() if len(paths) == 1 else None
    return known[mark]
