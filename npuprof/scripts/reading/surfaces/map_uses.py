"""Parameter maps that get out of sight: given to a function, kept in an object, handed back. What is set through them is not seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.scripts.reading.values.terms import name_callee

#: What only reads what it is given.
_READERS = frozenset(
    {"print", "pprint", "len", "dict", "list", "set", "sorted", "str", "repr", "bool", "type", "isinstance", "format"}
    | {"debug", "info", "warning", "warn", "error", "log", "write"}
)
_READING = (ast.Subscript, ast.Attribute, ast.Compare, ast.FormattedValue, ast.Expr, ast.If, ast.While, ast.Assert, ast.For, ast.UnaryOp)


def iterate_maps_out_of_sight(statement: ast.stmt, expressions: list[ast.expr]) -> Iterator[ast.Attribute]:
    """Yield each parameter map that a statement gives to what is not followed; a second name of it is."""
    waiting: list[tuple[ast.AST, ast.AST]] = [(statement, one) for one in expressions]
    while waiting:
        parent, node = waiting.pop()
        waiting += [(node, child) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Attribute) and node.attr == "parameter_map" and not _is_followed(parent):
            yield node


def _is_followed(parent: ast.AST) -> bool:
    if isinstance(parent, ast.Assign):
        return all(isinstance(target, ast.Name) for target in parent.targets)
    if isinstance(parent, ast.AnnAssign):
        return isinstance(parent.target, ast.Name)
    if isinstance(parent, ast.Call):
        return name_callee(parent) in _READERS
    return isinstance(parent, _READING)
