"""Calls that make a configuration object of the adapter by another name: a partial call of its class, or a class made of it."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.classes import find_named_class
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee


def find_super_class(call: ast.Call, scope: Scope) -> str:
    """Return the class that ``super().__init__(...)`` makes an object of, in the method of a class made of it; else nothing."""
    function, around = call.func, scope.outer
    if not (isinstance(function, ast.Attribute) and function.attr == "__init__" and isinstance(function.value, ast.Call)):
        return ""
    if name_callee(function.value) != "super" or around is None or not isinstance(around.node, ast.ClassDef):
        return ""
    return find_named_class(around.node.bases[0], around.outer or around) if len(around.node.bases) == 1 else ""


def expand_partial(walk: Walk, statement: ast.stmt, call: ast.Call, scope: Scope) -> ast.Call | None:
    """Return a call as one of a class, with the arguments of the partial call that it completes; None where it completes none.

    A partial call by itself counts where no call that completes it is in sight.
    """
    if _is_partial(call, scope):
        return None if _is_completed(walk, statement, call) else _merge_calls(call, None)
    held = _find_held_partial(call.func, scope)
    return _merge_calls(held, call) if held is not None else None


def _is_partial(call: ast.Call, scope: Scope) -> bool:
    return name_callee(call) == "partial" and bool(call.args) and bool(find_named_class(call.args[0], scope))


def _find_held_partial(function: ast.expr, scope: Scope) -> ast.Call | None:
    """Return the partial call that a name stands for, where all that it is given means the same in a scope."""
    found = scope.resolve_name(function.id) if isinstance(function, ast.Name) else None
    if found is None or len(found[1]) != 1 or found[1][0].kind != "assign":
        return None
    node, where = found[1][0].node, found[0]
    if not isinstance(node, ast.Call) or not _is_partial(node, where):
        return None
    for name in (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)):
        there, here = where.resolve_name(name), scope.resolve_name(name)
        if (there and there[0].node) is not (here and here[0].node):
            return None
    return node


def _is_completed(walk: Walk, statement: ast.stmt, partial: ast.Call) -> bool:
    """Return whether a call in sight completes the partial one that a statement gives a name."""
    if not (isinstance(statement, ast.Assign) and statement.value is partial and isinstance(statement.targets[0], ast.Name)):
        return False
    calls = walk.find_calls(statement.targets[0].id)
    return any(_find_held_partial(call.func, scope) is partial for call, scope in calls)


def _merge_calls(partial: ast.Call, call: ast.Call | None) -> ast.Call:
    given = call.keywords if call is not None else []
    said = {keyword.arg for keyword in given if keyword.arg}
    kept = [keyword for keyword in partial.keywords if keyword.arg not in said]
    merged = ast.Call(partial.args[0], [*partial.args[1:], *(call.args if call is not None else ())], [*kept, *given])
    return ast.copy_location(merged, call or partial)
