"""What functions of the script always return."""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from npuprof.scripts.python.loops import Given, bind_call_arguments
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.terms import list_nodes

#: What functions return, as long as somebody has their trees.
_RETURNS: WeakKeyDictionary[ast.FunctionDef, ast.expr | None] = WeakKeyDictionary()


def find_returned_value(call: ast.Call, scope: Scope) -> Given | None:
    """Return what a call of a function of the script gives, where that is the same expression in every case."""
    node, home = scope.resolve_only(call.func)
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or node.name in home.list_rebound():
        return None
    value = find_only_return(node)
    inside = Scope(node, home)
    bound = bind_call_arguments(node, inside, call, scope) if value is not None else None
    return (value, inside.with_bound(bound)) if value is not None and bound is not None else None


def find_only_return(function: ast.FunctionDef) -> ast.expr | None:
    """Return what a function returns at its end, where it does so in one place and is no generator."""
    if function not in _RETURNS:
        _RETURNS[function] = _look_for_return(function)
    return _RETURNS[function]


def _look_for_return(function: ast.FunctionDef) -> ast.expr | None:
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    leaving = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
    return None if any(isinstance(node, leaving) and node is not last for node in list_nodes(function)) else last.value
