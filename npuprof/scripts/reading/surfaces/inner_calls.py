"""Calls inside expressions that set something: as a value, or where they may not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.scripts.reading.values.literals import format_expression

#: Expressions of which a part runs later, more than once, or not at all.
_MAYBE = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def iterate_inner_calls(statement: ast.stmt, expressions: list[ast.expr]) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls inside the expressions of a statement, each with a reason if it may not run; not one that is the statement."""
    whole = statement.value if isinstance(statement, ast.Expr) else None
    waiting: list[tuple[ast.AST, str]] = [
        (expression, "") for expression in reversed(expressions) if not isinstance(expression, (ast.Constant, ast.Name, ast.Attribute))
    ]
    while waiting:
        node, reason = waiting.pop()
        if isinstance(node, ast.Call) and node is not whole:
            yield node, reason
        if isinstance(node, _MAYBE) and not reason:
            reason = f"depends on {format_expression(node)}"
        waiting += [(child, reason) for child in ast.iter_child_nodes(node)][::-1]
