"""Loops over what is written out: the nodes that their variables stand for in each turn."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.scopes import Scope

#: Loops of more turns are not followed.
MOST_TURNS = 300


def unroll_loop(target: ast.expr, iterated: ast.expr, scope: Scope) -> list[dict[str, tuple[ast.expr, Scope]]]:
    """Return, for each turn of a loop over something written out, what its variables stand for."""
    elements, home = _find_loop_elements(iterated, scope)
    if not elements or len(elements) > MOST_TURNS:
        return []
    turns: list[dict[str, tuple[ast.expr, Scope]]] = []
    for element in elements:
        if isinstance(target, ast.Name):
            turns.append({target.id: (element, home)})
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(element, (ast.Tuple, ast.List)):
            if len(target.elts) != len(element.elts):
                return []
            pairs = zip(target.elts, element.elts, strict=True)
            turns.append({name.id: (item, home) for name, item in pairs if isinstance(name, ast.Name)})
        else:
            return []
    return turns


def count_turns(loop: ast.AST, scope: Scope) -> int:
    """Return how many turns a loop over something written out has, 0 where it goes over something else."""
    return len(_find_loop_elements(loop.iter, scope)[0]) if isinstance(loop, (ast.For, ast.AsyncFor)) else 0


def _find_loop_elements(node: ast.expr, scope: Scope, depth: int = 0) -> tuple[list[ast.expr], Scope]:
    """Return the elements that a loop goes over, as nodes, and the scope they stand in; none where they are not written out."""
    if isinstance(node, (ast.Name, ast.Attribute)) and depth < 8:
        followed = _follow_name(node, scope)
        return _find_loop_elements(*followed, depth + 1) if followed else ([], scope)
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(node.elts), scope
    if isinstance(node, ast.Dict) and None not in node.keys:
        return [name for name in node.keys if name is not None], scope
    if isinstance(node, ast.Call):
        return _find_call_elements(node, scope, depth)
    return [], scope


def _find_call_elements(node: ast.Call, scope: Scope, depth: int) -> tuple[list[ast.expr], Scope]:
    """Return the elements of a call that lists a table or a sequence: ``d.items()``, ``six.iteritems(d)``, ``sorted(s)``, ``dict(...)``."""
    function = node.func
    if isinstance(function, ast.Attribute):
        if function.attr in ("items", "iteritems", "keys", "values") and not node.args:
            return list_table_nodes(function.value, function.attr, scope)
        if function.attr == "iteritems" and len(node.args) == 1:
            return list_table_nodes(node.args[0], "items", scope)
    elif isinstance(function, ast.Name):
        if function.id in ("sorted", "list", "tuple") and len(node.args) == 1:
            return _find_loop_elements(node.args[0], scope, depth + 1)
        if function.id == "dict" and not node.args and all(keyword.arg for keyword in node.keywords):
            return list_table_nodes(node, "keys", scope)
    return [], scope


def _follow_name(node: ast.Name | ast.Attribute, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return the one expression that a name always stands for, and the scope it stands in; None where there is none."""
    if isinstance(node, ast.Attribute):
        found = scope.home.find_attribute(node, scope) if scope.home is not None else None
    else:
        found = scope.resolve_name(node.id)
        if found and not found[1] and node.id in found[0].bound:
            return found[0].bound[node.id]
    if found and len(found[1]) == 1 and found[1][0].kind == "assign" and found[1][0].name not in found[0].rebound:
        expression = found[1][0].node
        assert isinstance(expression, ast.expr)
        return expression, found[0]
    return None


def list_written_pairs(node: ast.expr, scope: Scope) -> tuple[list[tuple[ast.expr, ast.expr]] | None, Scope]:
    """Return the keys and values of a table, as nodes, and the scope they stand in; None for them where it is not written out."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        node, scope = _follow_name(node, scope) or (node, scope)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return [(name, value) for name, value in zip(node.keys, node.values, strict=True) if name is not None], scope
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        return [(ast.copy_location(ast.Constant(k.arg), k.value), k.value) for k in node.keywords if k.arg], scope
    return None, scope


def list_table_nodes(node: ast.expr, what: str, scope: Scope) -> tuple[list[ast.expr], Scope]:
    """Return the keys, values or items of a table that is written out, as nodes, and the scope they stand in."""
    pairs, scope = list_written_pairs(node, scope)
    if what == "keys":
        return [name for name, _ in pairs or ()], scope
    if what == "values":
        return [value for _, value in pairs or ()], scope
    return [ast.copy_location(ast.Tuple([name, value], ast.Load()), name) for name, value in pairs or ()], scope
