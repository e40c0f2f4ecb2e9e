"""Loops over literal lists and tables, and call arguments: by position, by name, unpacked or by
default.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.scripts.python.scopes import Function, Scope, pair_targets

#: Loops with more iterations are not followed.
_MOST_ITERATIONS = 300
_TABLE_METHODS = ("items", "iteritems", "keys", "values")
#: The maximum nesting of unpacked tables.
_DEEPEST_TABLE = 4

#: An expression with its scope.
Given = tuple[ast.expr, Scope]


def unroll_loop(target: ast.expr, iterated: ast.expr, scope: Scope) -> list[dict[str, Given]]:
    """Return the loop variables of each iteration over a literal; empty for other loops."""
    nodes, home = _list_nodes(iterated, scope)
    iterations = [_bind_target(target, node, home) for node in nodes]
    return (
        [names for names in iterations if names is not None]
        if None not in iterations and len(nodes) <= _MOST_ITERATIONS
        else []
    )


def _bind_target(target: ast.expr, node: ast.expr, scope: Scope) -> dict[str, Given] | None:
    """Return the loop variables of one iteration; None if a value is not in the source."""
    parts = list(pair_targets(target, node))
    names: dict[str, Given] = {
        part.id: (given, scope)
        for part, given, is_shown in parts
        if is_shown and isinstance(part, ast.Name)
    }
    return names if len(names) == len(parts) else None


def _list_nodes(node: ast.expr, scope: Scope) -> tuple[list[ast.expr], Scope]:
    """Return the elements that a loop iterates over, with their scope.

    Empty if they are not literal.
    """
    method = ""
    match node:
        case ast.Call(ast.Attribute(table, name), []):
            method = name
            node = table if method in _TABLE_METHODS else node
    node, scope = follow_name(node, scope)
    if isinstance(node, (ast.List, ast.Tuple)):
        return (
            node.elts if not any(isinstance(item, ast.Starred) for item in node.elts) else []
        ), scope
    pairs, scope = list_written_pairs(node, scope)
    if method.endswith("items"):
        return [
            ast.copy_location(ast.Tuple([name, value], ast.Load()), name)
            for name, value in pairs or ()
        ], scope
    return [value if method == "values" else name for name, value in pairs or ()], scope


def follow_name(node: ast.expr, scope: Scope, may_change: bool = False) -> Given:
    """Return the single expression of a name, with its scope; the name itself if there is none.

    With ``may_change``, the value may be a table that another name shares.
    """
    found = scope.resolve(node)
    if found and not found[1] and isinstance(node, ast.Name) and node.id in found[0].bound:
        return found[0].bound[node.id]
    bindings = [one for one in found[1] if one.kind != "change" or not may_change] if found else []
    if (
        found
        and len(bindings) == 1
        and bindings[0].kind == "assign"
        and bindings[0].name not in found[0].list_rebound()
    ):
        return bindings[0].node, found[0]
    return node, scope


def list_written_pairs(
    node: ast.expr, scope: Scope, depth: int = 0
) -> tuple[list[tuple[ast.expr, ast.expr]] | None, Scope]:
    """Return keys and values of a table, as nodes, with their scope.

    None for both if it is not literal.
    """
    node, scope = follow_name(node, scope)
    parts = list_table_parts(node)
    if parts is None or depth > _DEEPEST_TABLE:
        return None, scope
    pairs: dict[object, tuple[ast.expr, ast.expr]] = {}
    for name, value in parts:
        inner, where = (
            ([(name, value)], scope)
            if name is not None
            else list_written_pairs(value, scope, depth + 1)
        )
        if inner is None or (where.node is not scope.node and inner):
            return None, scope
        for pair in inner:  # the later of two equal keys wins
            mark = pair[0].value if isinstance(pair[0], ast.Constant) else pair[0]
            pairs.pop(mark, None)
            pairs[mark] = pair
    return list(pairs.values()), scope


def list_table_parts(node: ast.expr) -> list[tuple[ast.expr | None, ast.expr]] | None:
    """Return keys and values of a table in text order; unpacked tables have None as key."""
    match node:
        case ast.Dict(names, values):
            return list(zip(names, values, strict=True))
        case ast.Call(ast.Name("dict"), [], keywords):
            return [
                (
                    ast.copy_location(ast.Constant(one.arg), one.value) if one.arg else None,
                    one.value,
                )
                for one in keywords
            ]
    return None


def collect_parameter_defaults(function: Function) -> dict[str, ast.expr]:
    """Return the defaults of parameters, by name."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    found = {
        arg.arg: value
        for arg, value in zip(
            positional[len(positional) - len(given.defaults) :], given.defaults, strict=True
        )
    }
    return found | {
        arg.arg: value
        for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if value is not None
    }


def bind_call_arguments(
    function: Function, inside: Scope, call: ast.Call, where: Scope
) -> dict[str, Given] | None:
    """Return the argument of each parameter in a call, with its scope.

    None if unpacking hides it.
    """
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    named: dict[str, Given] = {
        name: (value, home) for name, _, value, home in iterate_keywords(call, where)
    }
    if "" in named or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    bound: dict[str, Given] = {
        name: (value, inside.outer or inside)
        for name, value in collect_parameter_defaults(function).items()
    }
    bound |= {name: (value, where) for name, value in zip(names, call.args, strict=False)}
    bound |= named
    return {
        name: given
        for name, given in bound.items()
        if inside.list_binding_kinds(name) == {"parameter"}
    }


def iterate_keywords(
    call: ast.Call, scope: Scope
) -> Iterator[tuple[str, ast.keyword, ast.expr, Scope]]:
    """Yield the keyword arguments of a call: name, keyword, value and scope.

    An unpacked table gives several; entries without a name are not literal.
    """
    for keyword in call.keywords:
        pairs, where = (
            list_written_pairs(keyword.value, scope) if keyword.arg is None else (None, scope)
        )
        if pairs is None:
            yield keyword.arg or "", keyword, keyword.value, scope
        for key, value in pairs or ():
            yield str(key.value) if isinstance(key, ast.Constant) else "", keyword, value, where
