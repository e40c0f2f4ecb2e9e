"""Statements of a script: their positions, and whether code after a block is reachable."""

from __future__ import annotations

import ast

from npuprof.scripts.python.expressions import format_dotted_name, format_expression

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
#: A node with a location in the text.
Located = ast.stmt | ast.expr | ast.keyword
#: Classes of nodes; a test with a tuple is faster than with a union.
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_ENDING = frozenset(("exit", "quit", "sys.exit", "os._exit", "os.abort"))


def is_main_test(test: ast.expr | None) -> bool:
    """Return whether a test is ``__name__ == "__main__"``."""
    match test:
        case ast.Compare(ast.Name("__name__")):
            return True
    return False


def leaves_block(body: list[ast.stmt]) -> bool:
    """Return whether the statements of a body never continue after it."""
    match body:
        case [*_, ast.If(_, inner, otherwise)]:
            return leaves_block(inner) and leaves_block(otherwise)
        case [*_, ast.Expr(ast.Call(function))]:
            return format_dotted_name(function) in _ENDING
        case [*_, ast.Return() | ast.Raise() | ast.Continue() | ast.Break()]:
            return True
    return False


def find_way_on(statement: ast.If) -> str:
    """Return the condition under which a loop iteration continues after an ``if``.

    Empty for always or never.
    """
    body_leaves = _ends_iteration(statement.body)
    if body_leaves is _ends_iteration(statement.orelse):
        return ""
    text = format_expression(statement.test)
    return f"not ({text})" if body_leaves else text


def _ends_iteration(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Continue, ast.Break))


def list_lines(node: Located) -> range:
    """Return the lines of a node."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def find_start(node: Located) -> tuple[int, int]:
    """Return line, and column from 0, of the start of a node."""
    return node.lineno, node.col_offset
