"""Conditions between options, such as ``enable_dump == true and dump_path is unset``.

Option names denote their values, ``env.X`` an environment variable, ``product`` and ``scenario``
the job. A condition is parsed into nested tuples when the catalogue is built; evaluation walks the
tuples and never runs code. Unknown operands (no product was selected, a file is given only by its
path) make a condition neither true nor false, so results have three values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache

from npuprof.catalog.records import OPERATORS
from npuprof.document import keys
from npuprof.model import SECTIONS, Any

#: Whether an operand is set, None if that is unknown, and its value.
Operand = tuple[bool | None, "Any"]
Lookup = Callable[[tuple[str, ...]], Operand]

_CONSTANTS = {"true": True, "false": False}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    **OPERATORS,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}


#: Comparison operators by ``ast`` class.
_COMPARISONS = {
    "Eq": "==",
    "NotEq": "!=",
    "Lt": "<",
    "LtE": "<=",
    "Gt": ">",
    "GtE": ">=",
    "In": "in",
    "NotIn": "not in",
}

#: Arithmetic operators by ``ast`` class, and what they do.
_SIGNS = {"Add": "+", "Mult": "*", "Mod": "%"}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "*": operator.mul,
    "%": operator.mod,
}


def parse_condition(text: str) -> Any:
    """Return ``text`` as nested tuples.

    Raises ValueError for syntax outside the condition language.
    """
    import ast  # needed only when the catalogue is built

    return _parse_expression(ast.parse(text, mode="eval").body, text)


def _parse_expression(node: Any, text: str) -> Any:
    match type(node).__name__:
        case "BoolOp":
            operator = "and" if type(node.op).__name__ == "And" else "or"
            return (operator, *(_parse_expression(value, text) for value in node.values))
        case "UnaryOp" if type(node.op).__name__ == "Not":
            return ("not", _parse_expression(node.operand, text))
        case "UnaryOp" if (
            type(node.op).__name__ == "USub" and type(node.operand).__name__ == "Constant"
        ):
            return ("const", -node.operand.value)
        case "Compare" if len(node.ops) == 1:
            return _parse_comparison(node, text)
        case "BinOp" if type(node.op).__name__ in _SIGNS:
            left = _parse_expression(node.left, text)
            return (_SIGNS[type(node.op).__name__], left, _parse_expression(node.right, text))
        case "Constant":
            return ("const", node.value)
        case "Tuple":
            return ("const", tuple(_parse_expression(item, text)[1] for item in node.elts))
        case "Name" if node.id in _CONSTANTS:
            return ("const", _CONSTANTS[node.id])
        case "Name" | "Attribute":
            return ("value", _parse_dotted_name(node, text))
    raise ValueError(f"not a condition: {text}")


def _parse_comparison(node: Any, text: str) -> Any:
    operator = type(node.ops[0]).__name__
    right = node.comparators[0]
    if operator == "Is" and getattr(right, "id", "") in ("set", "unset"):
        return (right.id, _parse_dotted_name(node.left, text))
    if operator not in _COMPARISONS:
        raise ValueError(f"not a condition: {text}")
    left = _parse_expression(node.left, text)
    return (_COMPARISONS[operator], left, _parse_expression(right, text))


def _parse_dotted_name(node: Any, text: str) -> tuple[str, ...]:
    if type(node).__name__ == "Attribute":
        return (*_parse_dotted_name(node.value, text), node.attr)
    if type(node).__name__ == "Name":
        return (node.id,)
    raise ValueError(f"not a name: {text}")


def find_misplaced_operand(tree: Any) -> Any:
    """Return an operand of the wrong kind, or None.

    That is a value in place of a condition, or a condition in place of a value.
    """
    operator, *parts = tree
    if operator in ("and", "or", "not"):
        operands = map(find_misplaced_operand, parts)
        return next((operand for operand in operands if operand is not None), None)
    if operator in ("set", "unset"):
        return None
    if operator not in _COMPARE:
        return tree
    kinds = ("const", "value", *_ARITHMETIC)
    return next((side for side in parts if side[0] not in kinds), None)


def list_comparisons(tree: Any) -> list[tuple[str, Any, Any]]:
    """Return each comparison of a condition: its operator and both sides."""
    operator, *parts = tree
    if operator in _COMPARE:
        return [tree]
    if operator not in ("and", "or", "not"):
        return []
    return [comparison for part in parts for comparison in list_comparisons(part)]


@cache
def find_key(path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the setting for a dotted name in a condition, and the path below it."""
    if path[0] in SECTIONS and len(path) > 1:
        return keys.format_full_key(path[0], path[1]), path[2:]
    return path[0], path[1:]


def collect_condition_paths(tree: Any) -> list[tuple[str, ...]]:
    """Return every dotted name in a condition, in order, without duplicates."""
    if tree[0] in ("value", "set", "unset"):
        return [tree[1]]
    paths = []
    if tree[0] != "const":
        for child in tree[1:]:
            paths += [path for path in collect_condition_paths(child) if path not in paths]
    return paths


def collect_compared_paths(tree: Any) -> set[tuple[str, ...]]:
    """Return the dotted names whose values a condition compares.

    All others are only tested for being set.
    """
    if tree[0] == "value":
        return {tree[1]}
    if tree[0] in ("set", "unset", "const"):
        return set()
    return {path for child in tree[1:] for path in collect_compared_paths(child)}


def evaluate_condition(tree: Any, lookup: Lookup) -> bool | None:
    """Return whether a condition is true, false, or unknown (None)."""
    operator = tree[0]
    if operator in ("set", "unset"):
        is_set = lookup(tree[1])[0]
        return is_set if is_set is None or operator == "set" else not is_set
    if operator == "not":
        inner = evaluate_condition(tree[1], lookup)
        return None if inner is None else not inner
    if operator in ("and", "or"):
        # one true operand decides `or`, one false operand `and`, even if others are unknown
        decisive = operator == "or"
        answer: bool | None = not decisive
        for child in tree[1:]:
            truth = evaluate_condition(child, lookup)
            if truth is decisive:
                return decisive
            if truth is None:
                answer = None
        return answer
    left = _evaluate_operand(tree[1], lookup)
    right = _evaluate_operand(tree[2], lookup)
    if left is None or right is None:
        return None
    try:
        return _COMPARE[operator](left, right)
    except TypeError:  # values of the wrong type have their own finding
        return None


def _evaluate_operand(tree: Any, lookup: Lookup) -> Any:
    if tree[0] == "const":
        return tree[1]
    if tree[0] == "value":
        return lookup(tree[1])[1]
    left = _evaluate_operand(tree[1], lookup)
    right = _evaluate_operand(tree[2], lookup)
    if not isinstance(left, int) or not isinstance(right, int) or (tree[0] == "%" and not right):
        return None
    return _ARITHMETIC[tree[0]](left, right)
