"""What functions of the script always return, and what a name stands for between two lines that give it a value."""

from __future__ import annotations

import ast
from operator import attrgetter
from weakref import WeakKeyDictionary

from npuprof.scripts.python.loops import Given, bind_call_arguments
from npuprof.scripts.python.scopes import MOST_BINDINGS, Binding, Scope, statement_blocks
from npuprof.scripts.python.statements import find_surroundings
from npuprof.scripts.python.terms import list_nodes

_get_line = attrgetter("node.lineno")
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


def select_last_given(node: ast.expr, scope: Scope, home: Scope, bindings: list[Binding]) -> list[Binding]:
    """Return of all that gives a name its value what did so last where it is read, if nothing can have come between; else all of it.

    In one scope that is the last line above it, of the same block or one around it, if no loop leads back to another. A function and a
    file that imports the name see the last of plain statements that come before the function.
    """
    if not 1 < len(bindings) <= MOST_BINDINGS or not hasattr(node, "lineno"):
        return bindings
    if any(binding.kind != "assign" or not hasattr(binding.node, "lineno") for binding in bindings):
        return bindings
    if scope.node is home.node:
        return _select_dominating(node, scope, bindings) or bindings
    inner: Scope | None = scope
    while inner is not None and inner.outer is not None and inner.outer.node is not home.node:
        inner = inner.outer
    if any(find_surroundings(binding.node, home)[0] for binding in bindings):
        return bindings
    if inner is None or inner.outer is None:  # of another file, which has run to its end by then
        return bindings[-1:] if isinstance(home.node, ast.Module) and scope.home is not home.home else bindings
    return bindings[-1:] if all(_get_line(binding) < inner.node.lineno for binding in bindings) else bindings  # type: ignore[union-attr]


def _select_dominating(node: ast.expr, scope: Scope, bindings: list[Binding]) -> list[Binding]:
    """Return the binding that is always the last one before a place of its scope; nothing where there is none."""
    before = [binding for binding in bindings if _get_line(binding) < node.lineno]
    if not before:
        return []
    around, statement = find_surroundings(node, scope)
    given, its_statement = find_surroundings(before[-1].node, scope)
    inner = [*around[len(given) :], statement]
    if around[: len(given)] != given or (given and _find_block(given[-1], inner[0]) is not _find_block(given[-1], its_statement)):
        return []
    loops = [loop for loop in inner if isinstance(loop, (ast.For, ast.AsyncFor, ast.While))]
    return [] if any(loop.lineno <= _get_line(binding) <= (loop.end_lineno or 0) for loop in loops for binding in bindings) else before[-1:]


def _find_block(around: ast.stmt, inner: ast.stmt | None) -> list[ast.stmt] | None:
    return next((block for block in statement_blocks(around) if inner in block), None)
