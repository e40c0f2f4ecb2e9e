"""What functions of the script always return, and what a name stands for between two lines that give it a value."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from npuprof.scripts.reading.values.arguments import bind_call_arguments
from npuprof.scripts.reading.values.order import find_surroundings
from npuprof.scripts.reading.values.scopes import MOST_BINDINGS, Binding, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: An expression, and the scope to read it in.
    Given = tuple[ast.expr, Scope]


def find_returned_value(call: ast.Call, scope: Scope) -> Given | None:
    """Return what a call of a function of the script gives, where that is the same expression in every case."""
    found = scope.resolve(call.func)
    node = found[1][0].node if found and len(found[1]) == 1 else None
    if found is None or not isinstance(node, ast.FunctionDef) or node.decorator_list or node.name in found[0].rebound:
        return None
    value = find_only_return(node)
    inside = Scope(node, found[0])
    bound = bind_call_arguments(node, inside, call, scope) if value is not None else None
    return (value, inside.with_bound(bound)) if value is not None and bound is not None else None


def find_only_return(function: ast.FunctionDef) -> ast.expr | None:
    """Return what a function returns at its end, where it does so in one place and is no generator."""
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    leaving = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
    others = any(isinstance(one, leaving) and one is not last for one in ast.walk(function))
    return None if others else last.value


def select_last_given(node: ast.expr, scope: Scope, home: Scope, bindings: list[Binding]) -> list[Binding]:
    """Return of all that gives a name its value what did so last where it is read, if nothing can have come between; else all of it.

    That is certain of statements of one body that stand in no loop and under no test, also for functions that are defined after them,
    and for files that import the name.
    """
    if not 1 < len(bindings) <= MOST_BINDINGS or not hasattr(node, "lineno") or not _are_plain(bindings, home):
        return bindings
    if scope.node is not home.node:
        inner: Scope | None = scope
        while inner is not None and inner.outer is not None and inner.outer.node is not home.node:
            inner = inner.outer
        if inner is None or inner.outer is None:  # of another file, which has run to its end by then
            return bindings[-1:] if isinstance(home.node, ast.Module) and scope.home is not home.home else bindings
        return bindings[-1:] if all(_get_line(one) < inner.node.lineno for one in bindings) else bindings  # type: ignore[union-attr]
    around, statement = find_surroundings(node, scope)
    outermost = around[0] if around else statement
    if outermost is None or any(outermost.lineno <= _get_line(one) <= (outermost.end_lineno or 0) for one in bindings if around):
        return bindings
    before = [one for one in bindings if _get_line(one) < outermost.lineno]
    return before[-1:] or bindings


def _are_plain(bindings: Iterable[Binding], home: Scope) -> bool:
    for one in bindings:
        if one.kind != "assign" or not isinstance(one.node, ast.expr) or not hasattr(one.node, "lineno"):
            return False
        if find_surroundings(one.node, home)[0]:
            return False
    return True


def _get_line(binding: Binding) -> int:
    line: int = binding.node.lineno  # type: ignore[attr-defined]
    return line
