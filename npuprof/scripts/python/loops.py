"""Loops over literal lists and tables, and the arguments of calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.python.scopes import Function, Scope, pair_targets

#: Loops with more iterations are not followed.
_MOST_ITERATIONS = 300
_TABLE_METHODS = ("items", "iteritems", "keys", "values")
#: The maximum nesting of unpacked tables.
_DEEPEST_TABLE = 4

#: An expression with its scope.
Scoped = tuple[ast.expr, Scope]


class KeywordArgument(Record):
    """A keyword argument of a call, or an entry of a table that ``keyword`` unpacks.

    ``name`` is empty if it is not literal; ``scope`` is that of the value.
    """

    name: str
    keyword: ast.keyword
    value: ast.expr
    scope: Scope


def unroll_loop(target: ast.expr, iterated: ast.expr, scope: Scope) -> list[dict[str, Scoped]]:
    """Return the loop variables of each iteration over a literal; empty for other loops."""
    nodes, home = _list_nodes(iterated, scope)
    if len(nodes) > _MOST_ITERATIONS:
        return []
    iterations = []
    for node in nodes:
        names = _bind_target(target, node, home)
        if names is None:
            return []
        iterations.append(names)
    return iterations


def _bind_target(target: ast.expr, node: ast.expr, scope: Scope) -> dict[str, Scoped] | None:
    """Return the loop variables of one iteration; None if a value is not in the source."""
    parts = list(pair_targets(target, node))
    names = {
        part.target.id: (part.value, scope)
        for part in parts
        if part.is_split and isinstance(part.target, ast.Name)
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
        has_starred = any(isinstance(item, ast.Starred) for item in node.elts)
        return ([] if has_starred else node.elts), scope
    pairs, scope = list_written_pairs(node, scope)
    if pairs is None:
        return [], scope
    if method.endswith("items"):
        return [
            ast.copy_location(ast.Tuple([key, value], ast.Load()), key) for key, value in pairs
        ], scope
    if method == "values":
        return [value for _, value in pairs], scope
    return [key for key, _ in pairs], scope


def follow_name(node: ast.expr, scope: Scope, may_change: bool = False) -> Scoped:
    """Return the single expression of a name, with its scope; the name itself if there is none.

    With ``may_change``, the value may be a table that another name shares.
    """
    found = scope.resolve(node)
    if found is None:
        return node, scope
    home, bindings = found
    if not bindings and isinstance(node, ast.Name) and node.id in home.bound:
        return home.bound[node.id]
    if may_change:
        bindings = [binding for binding in bindings if binding.kind != "change"]
    if len(bindings) == 1:
        binding = bindings[0]
        # a function may assign the name elsewhere
        if binding.kind == "assign" and binding.name not in home.list_rebound():
            return binding.node, home
    return node, scope


def list_written_pairs(
    node: ast.expr, scope: Scope, depth: int = 0
) -> tuple[list[tuple[ast.expr, ast.expr]] | None, Scope]:
    """Return keys and values of a table, as nodes, with their scope.

    None instead of a list if it is not literal.
    """
    node, scope = follow_name(node, scope)
    parts = list_table_parts(node)
    if parts is None or depth > _DEEPEST_TABLE:
        return None, scope
    pairs: dict[object, tuple[ast.expr, ast.expr]] = {}
    for key, value in parts:
        if key is None:
            unpacked, home = list_written_pairs(value, scope, depth + 1)
            # one scope is returned for all pairs, so they must not come from two
            if unpacked is None or (home.node is not scope.node and unpacked):
                return None, scope
        else:
            unpacked = [(key, value)]
        for pair in unpacked:  # the later of two equal keys wins
            name = pair[0].value if isinstance(pair[0], ast.Constant) else pair[0]
            pairs.pop(name, None)
            pairs[name] = pair
    return list(pairs.values()), scope


def list_table_parts(node: ast.expr) -> list[tuple[ast.expr | None, ast.expr]] | None:
    """Return keys and values of a table in text order; unpacked tables have None as key."""
    match node:
        case ast.Dict(names, values):
            return list(zip(names, values, strict=True))
        case ast.Call(ast.Name("dict"), [], keywords):
            return [
                (
                    ast.copy_location(ast.Constant(each.arg), each.value) if each.arg else None,
                    each.value,
                )
                for each in keywords
            ]
    return None


def collect_parameter_defaults(function: Function) -> dict[str, ast.expr]:
    """Return the defaults of parameters, by name."""
    parameters = function.args
    positional = [*parameters.posonlyargs, *parameters.args]
    optional = positional[len(positional) - len(parameters.defaults) :]
    defaults = {arg.arg: value for arg, value in zip(optional, parameters.defaults, strict=True)}
    for arg, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        if default is not None:
            defaults[arg.arg] = default
    return defaults


def bind_call_arguments(
    function: Function, inside: Scope, call: ast.Call, where: Scope
) -> dict[str, Scoped] | None:
    """Return the argument of each parameter in a call, with its scope.

    Without parameters that the function assigns again. None if unpacking hides one.
    """
    bound = pair_call_arguments(function, inside, call, where)
    if bound is None:
        return None
    return {
        name: value
        for name, value in bound.items()
        if inside.list_binding_kinds(name) == {"parameter"}
    }


def pair_call_arguments(
    function: Function, inside: Scope, call: ast.Call, where: Scope
) -> dict[str, Scoped] | None:
    """Return the argument of each parameter at the start of a call, None if unpacking hides one."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    # "self" is not among the arguments of a method call
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    named = {
        argument.name: (argument.value, argument.scope)
        for argument in iterate_keywords(call, where)
    }
    if "" in named or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    bound = {
        name: (value, inside.outer or inside)
        for name, value in collect_parameter_defaults(function).items()
    }
    bound |= {name: (value, where) for name, value in zip(names, call.args, strict=False)}
    return bound | named


def iterate_keywords(call: ast.Call, scope: Scope) -> Iterator[KeywordArgument]:
    """Yield the keyword arguments of a call, those of unpacked tables one by one."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield KeywordArgument(keyword.arg, keyword, keyword.value, scope)
            continue
        pairs, home = list_written_pairs(keyword.value, scope)
        if pairs is None:
            yield KeywordArgument("", keyword, keyword.value, scope)
            continue
        for key, value in pairs:
            name = str(key.value) if isinstance(key, ast.Constant) else ""
            yield KeywordArgument(name, keyword, value, home)
