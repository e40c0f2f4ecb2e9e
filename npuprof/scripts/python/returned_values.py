"""Constant return values of the script's functions."""

from __future__ import annotations

import ast
from functools import lru_cache

from npuprof.scripts.python.expressions import list_nodes
from npuprof.scripts.python.loops import Scoped, bind_call_arguments
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.steps import count_steps

_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)


def find_returned_value(call: ast.Call, scope: Scope) -> Scoped | None:
    """Return the expression that a call of a script's function always returns."""
    node, home = scope.resolve_only(call.func)
    # a decorator may return another value
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return None
    # another function of that name may be called
    if node.name in home.list_rebound():
        return None
    count_steps((node.end_lineno or node.lineno) - node.lineno)
    value = find_only_return(node)
    if value is None:
        return None
    inside = Scope(node, home)
    bound = bind_call_arguments(node, inside, call, scope)
    return (value, inside.with_bound(bound)) if bound is not None else None


@lru_cache(64)  # a function may be called often, and cached functions keep their trees
def find_only_return(function: ast.FunctionDef) -> ast.expr | None:
    """Return the only return expression of a function, at its end.

    None for generators and multiple returns.
    """
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    for node in list_nodes(function):
        if isinstance(node, _LEAVING) and node is not last:
            return None
    return last.value
