"""Whether a loop of a script has turns: certainly, certainly not, or as the run decides."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.values.literals import Unknown, fold_expression
from npuprof.scripts.reading.values.loops import unroll_loop
from npuprof.scripts.reading.values.order import DEFINITIONS
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee

Loop = ast.For | ast.AsyncFor | ast.While
_LISTING = frozenset(("items", "iteritems", "keys", "values", "sorted", "list", "tuple", "reversed", "set", "iter", "enumerate"))


def has_turns(loop: Loop, scope: Scope) -> bool | None:
    """Return whether the body of a loop runs, None where the run decides.

    A name that stands for something empty decides nothing: what it stands for may have grown out of sight.
    """
    if isinstance(loop, ast.While):
        truth = _fold_truth(loop.test, scope)
        return truth if truth is not False or not _names_something(loop.test) else None
    if unroll_loop(loop.target, loop.iter, scope):
        return True
    truth = _fold_truth(loop.iter, scope)
    return truth if truth is not False or not _names_something(loop.iter) else None


def _fold_truth(node: ast.expr, scope: Scope) -> bool | None:
    """Return whether something holds, or holds anything; None where the run decides."""
    if isinstance(node, ast.Call):
        name = name_callee(node)
        if name in ("range", "xrange") and not node.keywords:
            return _fold_range(node, scope)
        inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
        return _fold_truth(inner, scope) if name in _LISTING and inner is not None else None
    try:
        return bool(fold_expression(node, scope))
    except Unknown:
        return None


def _fold_range(call: ast.Call, scope: Scope) -> bool | None:
    try:
        return bool(range(*(fold_expression(one, scope) for one in call.args)))
    except (Unknown, TypeError, ValueError):
        return None


def _names_something(node: ast.expr) -> bool:
    called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    return any(isinstance(one, (ast.Name, ast.Attribute)) and id(one) not in called for one in ast.walk(node))


class Turns:
    """The loops of a module; ``known`` are those that are known to have turns with what their functions are given."""

    def __init__(self, module: Scope, known: set[ast.AST]) -> None:
        self._module = module
        self._known = known
        self._scopes: dict[ast.AST, Scope] = {}

    def count(self, loop: Loop) -> bool | None:
        """Return whether a loop has turns, None where the run decides."""
        if loop in self._known:
            return True
        if not self._scopes:
            self._place(self._module)
        return has_turns(loop, self._scopes.get(loop, self._module))

    def _place(self, module: Scope) -> None:
        waiting: list[tuple[ast.AST, Scope]] = [(module.node, module)]
        while waiting:
            node, scope = waiting.pop()
            for child in ast.iter_child_nodes(node):
                if isinstance(child, (ast.For, ast.AsyncFor, ast.While)):
                    self._scopes[child] = scope
                if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                    waiting.append((child, Scope(child, scope) if isinstance(child, DEFINITIONS) else scope))
