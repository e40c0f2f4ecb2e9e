"""Loops over what is written out: the nodes that their variables stand for in each turn."""

from __future__ import annotations

import ast
import itertools

from npuprof.scripts.reading.values.scopes import Scope

#: Loops of more turns are not followed.
MOST_TURNS = 300
#: So deep are tables taken into others, and so many into one.
_DEEPEST_TABLE = 4
_MOST_TABLES = 8
#: A name is followed through so many others, a call through so many around it.
_DEEPEST = 8

#: What something stands for: an expression, and the scope to read it in.
Node = tuple[ast.expr, Scope]
#: What one turn of a loop is given: one of them, or a row of several.
Item = Node | list["Item"]


def unroll_loop(target: ast.expr, iterated: ast.expr, scope: Scope) -> list[dict[str, Node]]:
    """Return, for each turn of a loop over something written out, what its variables stand for."""
    items = _list_items(iterated, scope)
    if len(items) > MOST_TURNS:
        return []
    turns: list[dict[str, Node]] = []
    for item in items:
        turn: dict[str, Node] = {}
        if not _bind_target(target, item, turn):
            return []
        turns.append(turn)
    return turns


def _bind_target(target: ast.expr, item: Item, turn: dict[str, Node]) -> bool:
    """Let the variables of a loop stand for what one turn gives them; return whether that is in sight."""
    if isinstance(target, ast.Name):
        node = _join_row(item)
        if node is not None:
            turn[target.id] = node
        return node is not None
    if not isinstance(target, (ast.Tuple, ast.List)):
        return isinstance(target, (ast.Attribute, ast.Subscript))
    parts = item if isinstance(item, list) else _split_node(item)
    if parts is None or len(parts) != len(target.elts):
        return False
    return all(_bind_target(inner, part, turn) for inner, part in zip(target.elts, parts, strict=True))


def _split_node(item: Node) -> list[Item] | None:
    node, scope = item
    return [(part, scope) for part in node.elts] if isinstance(node, (ast.Tuple, ast.List)) else None


def _join_row(item: Item) -> Node | None:
    """Return what a turn gives as one node, None where its parts stand in several scopes."""
    if not isinstance(item, list):
        return item
    parts = [_join_row(part) for part in item]
    known = [part for part in parts if part is not None]
    scopes = {id(scope) for node, scope in known if not isinstance(node, ast.Constant)}
    if not known or len(known) < len(parts) or len(scopes) > 1:
        return None
    node, scope = next((part for part in known if not isinstance(part[0], ast.Constant)), known[0])
    return ast.copy_location(ast.Tuple([part for part, _ in known], ast.Load()), node), scope


def count_turns(loop: ast.AST, scope: Scope) -> int:
    """Return how many turns a loop over something written out has, 0 where it goes over something else."""
    return len(_list_items(loop.iter, scope)) if isinstance(loop, (ast.For, ast.AsyncFor)) else 0


def _list_items(node: ast.expr, scope: Scope, depth: int = 0) -> list[Item]:
    """Return what a loop goes over, each with the scope it stands in; nothing where that is not written out."""
    if depth >= _DEEPEST:
        return []
    if isinstance(node, (ast.Name, ast.Attribute)):
        followed = _follow_name(node, scope)
        return _list_items(*followed, depth + 1) if followed else []
    if isinstance(node, (ast.List, ast.Tuple)):
        return [(one, scope) for one in node.elts] if not any(isinstance(one, ast.Starred) for one in node.elts) else []
    if isinstance(node, ast.Dict) and None not in node.keys:
        return [(name, scope) for name in node.keys if name is not None]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = _list_items(node.left, scope, depth + 1), _list_items(node.right, scope, depth + 1)
        return [*parts[0], *parts[1]] if all(parts) else []
    return _list_call_items(node, scope, depth) if isinstance(node, ast.Call) else []


def _list_call_items(node: ast.Call, scope: Scope, depth: int) -> list[Item]:
    """Return the items of a call that lists tables or sequences: ``d.items()``, ``six.iteritems(d)``, ``zip(a, b)``, ``dict(...)``."""
    function = node.func
    if isinstance(function, ast.Attribute):
        if function.attr in ("items", "iteritems", "keys", "values") and not node.args:
            return _list_table_items(function.value, function.attr, scope, depth)
        if function.attr == "iteritems" and len(node.args) == 1:
            return _list_table_items(node.args[0], "items", scope, depth)
    if not isinstance(function, ast.Name) or any(isinstance(one, ast.Starred) for one in node.args):
        return []
    if function.id in ("sorted", "list", "tuple", "reversed", "iter") and len(node.args) == 1:
        found = _list_items(node.args[0], scope, depth + 1)
        return found[::-1] if function.id == "reversed" else found
    if function.id == "zip" and all(keyword.arg == "strict" for keyword in node.keywords):
        columns = [_list_items(one, scope, depth + 1) for one in node.args]
        return [list(row) for row in zip(*columns, strict=False)]
    if function.id == "enumerate" and len(node.args) + len(node.keywords) in (1, 2) and node.args:
        first = next(iter((*node.args[1:], *(keyword.value for keyword in node.keywords))), ast.Constant(0))
        if isinstance(first, ast.Constant) and isinstance(first.value, int):
            count = (ast.copy_location(ast.Constant(number), node) for number in itertools.count(first.value))
            return [[(number, scope), item] for number, item in zip(count, _list_items(node.args[0], scope, depth + 1), strict=False)]
    if function.id == "dict" and len(node.args) < 2 and all(keyword.arg for keyword in node.keywords):
        return _list_table_items(node, "keys", scope, depth)
    return []


def _list_table_items(node: ast.expr, what: str, scope: Scope, depth: int) -> list[Item]:
    """Return the keys, values or items of a table that is written out, also as the pairs that ``dict(...)`` is made of."""
    if isinstance(node, (ast.Name, ast.Attribute)) and (followed := _follow_name(node, scope)):
        node, scope = followed
    made_of = node.args if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" else []
    if not made_of or node.keywords:  # type: ignore[attr-defined]
        nodes, home = list_table_nodes(node, what, scope)
        return [(one, home) for one in nodes]
    if len(made_of) != 1:
        return []
    rows = [item if isinstance(item, list) else _split_node(item) for item in _list_items(made_of[0], scope, depth + 1)]
    pairs = [row for row in rows if row is not None and len(row) == 2]
    if len(pairs) < len(rows):
        return []
    return [row if what in ("items", "iteritems") else row[what == "values"] for row in pairs]


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


def list_written_pairs(node: ast.expr, scope: Scope, depth: int = 0) -> tuple[list[tuple[ast.expr, ast.expr]] | None, Scope]:
    """Return the keys and values of a table, as nodes, and the scope they stand in; None for them where it is not written out."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        node, scope = _follow_name(node, scope) or (node, scope)
    parts = _list_table_parts(node)
    if parts is None or depth > _DEEPEST_TABLE or sum(name is None for name, _ in parts) > _MOST_TABLES:
        return None, scope
    found: dict[object, tuple[ast.expr, ast.expr]] = {}
    for name, value in parts:
        inner, where = ([(name, value)], scope) if name is not None else list_written_pairs(value, scope, depth + 1)
        if inner is None or (where.node is not scope.node and inner):
            return None, scope
        for pair in inner:  # of two with one name the later one counts
            mark = pair[0].value if isinstance(pair[0], ast.Constant) else pair[0]
            found.pop(mark, None)
            found[mark] = pair
    return list(found.values()), scope


def _list_table_parts(node: ast.expr) -> list[tuple[ast.expr | None, ast.expr]] | None:
    """Return the keys and values of a table in the order of the text, and with None in place of a key the tables that it takes in."""
    if isinstance(node, ast.Dict):
        return list(zip(node.keys, node.values, strict=True))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [(None, node.left), (None, node.right)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and len(node.args) < 2:
        given = [(ast.copy_location(ast.Constant(one.arg), one.value) if one.arg else None, one.value) for one in node.keywords]
        return [*((None, one) for one in node.args), *given]
    return None


def list_table_nodes(node: ast.expr, what: str, scope: Scope) -> tuple[list[ast.expr], Scope]:
    """Return the keys, values or items of a table that is written out, as nodes, and the scope they stand in."""
    pairs, scope = list_written_pairs(node, scope)
    if what == "keys":
        return [name for name, _ in pairs or ()], scope
    if what == "values":
        return [value for _, value in pairs or ()], scope
    return [ast.copy_location(ast.Tuple([name, value], ast.Load()), name) for name, value in pairs or ()], scope
