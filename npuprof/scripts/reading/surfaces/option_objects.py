"""What stands for the options of TensorFlow 2 wherever it is written: ``npu.global_options()``, its groups, names and functions for them.

A name is looked up where it is bound, which may be another file of the tree, and has to be given one value only.
"""

from __future__ import annotations

import ast
from typing import cast

from npuprof.scripts.reading.values.scopes import Binding, Scope, iterate_statements
from npuprof.scripts.reading.values.terms import name_callee

#: A name is followed through so many others.
_DEEPEST = 8

#: What functions return, by their nodes, as far as it was asked for.
Returned = dict[ast.AST, "str | None"]


def resolve_option_object(node: ast.expr, scope: Scope, returned: Returned, depth: int = 0) -> str | None:
    """Return the dotted path below the options that an expression is, empty for the options themselves, None for others."""
    parts: list[str] = []
    before: str | None = None
    while isinstance(node, (ast.Attribute, ast.NamedExpr)):
        if isinstance(node, ast.NamedExpr):
            node = node.value
            continue
        found = scope.home.find_attribute(node, scope) if scope.home is not None else None
        if found is not None:
            before = _resolve_found(found, returned, depth)
            break
        parts.append(node.attr)
        node = node.value
    else:
        if isinstance(node, ast.Name):
            before = _resolve_found(scope.resolve_name(node.id), returned, depth)
        elif isinstance(node, ast.Call):
            before = _resolve_call(node, scope, returned, depth)
    return None if before is None or len(parts) > _DEEPEST else ".".join(filter(None, (before, *reversed(parts))))


def _resolve_found(found: tuple[Scope, list[Binding]] | None, returned: Returned, depth: int) -> str | None:
    """Return the path that a name is, by the one value it is given."""
    if found is None or depth > _DEEPEST or [binding.kind for binding in found[1]] != ["assign"]:
        return None
    return resolve_option_object(cast("ast.expr", found[1][0].node), found[0], returned, depth + 1)


def _resolve_call(call: ast.Call, scope: Scope, returned: Returned, depth: int) -> str | None:
    """Return the path that a call gives: of the function of the options itself, or of one that returns them."""
    if is_options_function(call, scope):
        return "" if not call.args and not call.keywords else None
    found = scope.resolve(call.func)
    if found is None or depth > _DEEPEST or len(found[1]) != 1 or not isinstance(found[1][0].node, ast.FunctionDef):
        return None
    function = found[1][0].node
    if function not in returned:
        returned[function] = None  # what a function returns of itself says nothing
        inside = Scope(function, found[0])
        given = [statement.value for statement in iterate_statements(function.body) if isinstance(statement, ast.Return)]
        paths = {resolve_option_object(value, inside, returned, depth + 1) if value is not None else None for value in given}
        returned[function] = paths.pop() if len(paths) == 1 else None
    return returned[function]


def is_options_function(call: ast.Call, scope: Scope) -> bool:
    """Return whether a call is one of ``global_options``, by that name, by the one it is imported as, or by a second name."""
    name = name_callee(call)
    if name == "global_options" or not isinstance(call.func, ast.Name) or not (found := scope.resolve_name(name)):
        return name == "global_options"
    return bool(found[1]) and all(_is_function_given(binding.node, name) for binding in found[1])


def _is_function_given(node: ast.AST, name: str) -> bool:
    """Return whether a binding gives a name to the function ``global_options``."""
    if isinstance(node, ast.ImportFrom):
        return any((one.name, one.asname) == ("global_options", name) for one in node.names)
    return getattr(node, "attr", None) == "global_options" or getattr(node, "id", None) == "global_options"
