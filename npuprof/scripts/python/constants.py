"""Constant folding: expressions to their values; values that depend on the run give a reason.

Nothing is executed: constants, arithmetic, a few conversions and string functions are folded, and
names with a single value are followed.
"""

from __future__ import annotations

import ast
import operator
import posixpath
from collections.abc import Callable
from typing import Any

from npuprof.scripts.python.builtin_calls import fold_known_call
from npuprof.scripts.python.calls import find_class
from npuprof.scripts.python.expressions import (
    LONGEST_VALUE,
    Unknown,
    compute_value,
    find_root,
    format_expression,
    reject_large_value,
    reject_wide_format,
)
from npuprof.scripts.python.loops import collect_parameter_defaults
from npuprof.scripts.python.returned_values import find_returned_value
from npuprof.scripts.python.scopes import MOST_BINDINGS, Binding, Function, Scope
from npuprof.scripts.script_records import COMMAND_LINE, remove_script_folder

_DEEPEST, _CHAIN, _STEPS = 60, 5_000, 20_000
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_UNARY: dict[type, Callable[..., Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.inv,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_RUN_NAMES = {
    "FLAGS",
    "args",
    "arg",
    "opt",
    "opts",
    "flags",
    "params",
    "hparams",
    "cfg",
    "config",
    "conf",
    "options",
    "parsed",
    "self",
}

#: Returns the constant value of a part of an expression, by default in the same scope.
Fold = Callable[..., Any]
_budget = [0]
#: A stack with the function that returns flag defaults, while an expression is evaluated with
#: defaults.
_defaults: list[Callable[[str], Any]] = []


def fold_with_defaults(node: ast.expr, scope: Scope, find_default: Callable[[str], Any]) -> Any:
    """Return the value of an expression with the defaults of all flags and parameters.

    Raises Unknown.
    """
    _defaults.append(find_default)
    try:
        return fold_expression(node, scope)
    finally:
        _defaults.pop()


def fold_expression(node: ast.expr, scope: Scope, depth: int = 0) -> Any:
    """Return the constant value of an expression. Raises Unknown."""
    if isinstance(node, ast.Constant):
        return reject_large_value(node.value)
    if not depth:
        _budget[0] = _STEPS
    _budget[0] -= 1
    if depth > _DEEPEST or _budget[0] < 0:
        raise Unknown("the expression is too deep to follow")
    folder = _FOLDERS.get(type(node))
    if folder is None:
        raise Unknown("depends on", node=node)

    def fold(inner: ast.expr, where: Scope = scope) -> Any:
        return fold_expression(inner, where, depth + 1)

    try:
        return reject_large_value(folder(node, scope, fold))
    except RecursionError:
        raise Unknown("the expression is too deep to follow") from None


def _fold_name(node: ast.Name, scope: Scope, fold: Fold) -> Any:
    resolved = scope.resolve_name(node.id)
    if resolved is None:
        raise Unknown(f"depends on the name {node.id}")
    home, bindings = resolved
    if not bindings:
        return fold(*home.bound[node.id])
    return _require_own_folder(_fold_bindings(home, bindings, fold), home, scope)


def _require_own_folder(value: Any, home: Scope, scope: Scope) -> Any:
    """Return the value of a name of ``home`` for a script.

    Raises Unknown for a path relative to another file's folder.
    """
    is_elsewhere = home.home is not scope.home and posixpath.dirname(
        home.file
    ) != posixpath.dirname(scope.file)
    if is_elsewhere and remove_script_folder(value)[1]:
        raise Unknown(f"depends on the folder of {posixpath.basename(home.file)}")
    return value


def _fold_bindings(home: Scope, bindings: list[Binding], fold: Fold) -> Any:
    name = bindings[0].name
    if name in home.list_rebound() and not isinstance(home.node, ast.ClassDef):
        raise Unknown(f"depends on the variable {name}, which other functions change")
    if home.list_binding_kinds(name) != {"assign"}:
        return _fold_other_binding(name, home, fold)
    if len(bindings) > MOST_BINDINGS:
        raise Unknown(
            f"depends on the variable {name}, which is set "
            f"{len(bindings)} times, more than are followed"
        )
    values = [fold(binding.node, home) for binding in bindings]
    if any(type(value) is not type(values[0]) or value != values[0] for value in values):
        raise Unknown(
            f"depends on the variable {name}, which is set "
            f"{len(bindings)} times to different values"
        )
    if isinstance(values[0], (list, dict)) and home.list_bindings(f"={name}"):
        raise Unknown(f"depends on the variable {name}, which has a second name")
    return values[0]


def _fold_other_binding(name: str, home: Scope, fold: Fold) -> Any:
    """Return the default of a parameter, if defaults are requested.

    Raises Unknown for all other bindings.
    """
    kinds = home.list_binding_kinds(name)
    if "parameter" in kinds:
        default = (
            collect_parameter_defaults(home.node).get(name)
            if _defaults and isinstance(home.node, Function)
            else None
        )
        if default is not None:
            return fold(default, home.outer or home)
        raise Unknown(f"depends on the parameter {name} of {home.name}()", flag="")
    words = {
        "loop": "the loop variable",
        "import": "the import",
        "change": "the changing variable",
        "other": "the variable",
    }
    raise Unknown(
        f"depends on {next(word for kind, word in words.items() if kind in kinds)} {name}"
    )


def _fold_attribute(node: ast.Attribute, scope: Scope, fold: Fold) -> Any:
    try:
        return _follow_attribute(node, scope, fold)
    except Unknown as unknown:
        default = _defaults[-1](unknown.flag) if _defaults and unknown.flag == node.attr else None
        if default is None:
            raise
        return default


def _follow_attribute(node: ast.Attribute, scope: Scope, fold: Fold) -> Any:
    text = format_expression(node)
    root = find_root(node)
    if text.startswith(("os.environ", "environ.")):
        raise Unknown(f"depends on the environment ({text})")
    if isinstance(root, ast.Name):
        if (given := scope.resolve(node)) and given[1]:
            return _require_own_folder(_fold_bindings(*given, fold), given[0], scope)
        if (
            isinstance(node.value, ast.Name)
            and (inner := _find_class_value(node.value, node.attr, scope)) is not None
        ):
            return fold(*inner)
        if root.id == "self":
            raise Unknown(f"depends on the object ({text})", node.attr)
        if (
            root.id in _RUN_NAMES
            or root.id.lower().endswith(("args", "flags", "params"))
            or _is_parsed_name(root.id, scope)
        ):
            raise Unknown(f"{COMMAND_LINE} ({text})", node.attr)
    raise Unknown(f"depends on {text}", node.attr)


def _find_class_value(
    node: ast.Name, attribute: str, scope: Scope
) -> tuple[ast.expr, Scope] | None:
    """Return the value of a class attribute that is assigned once, for a class of this module."""
    name, cls = node.id, find_class(node, scope)
    if cls is None or not scope.list_rebound().isdisjoint(
        (f"{name}.{attribute}", f"cls.{attribute}", f"{name}.*", "cls.*")
    ):
        return None
    bindings = cls.list_bindings(attribute)
    return (bindings[0].node, cls) if len(bindings) == 1 and bindings[0].kind == "assign" else None


def _is_parsed_name(name: str, scope: Scope) -> bool:
    bindings = (scope.resolve_name(name) or (scope, []))[1]
    return any(
        "parse" in format_expression(binding.node)
        for binding in bindings
        if isinstance(binding.node, ast.Call)
    )


def _fold_binary(node: ast.BinOp, scope: Scope, fold: Fold) -> Any:
    chain = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):  # "a" + "b" + ... is nested to the left
        chain.append((type(left.op), left.right))
        left = left.left
        if len(chain) > _CHAIN:
            raise Unknown("the expression is too long to follow")
    value = fold(left)
    for op, right in reversed(chain):
        value = compute_value(node, _apply_operator, op, value, fold(right))
    return value


def _apply_operator(op: type, left: Any, right: Any) -> Any:
    is_large = (
        (
            op is ast.Pow
            and (not isinstance(right, (int, float)) or abs(right) > 4096 or abs(left) > 2**64)
        )
        or (op is ast.LShift and right > 4096)
        or (op is ast.Mult and (_is_repeated_often(left, right) or _is_repeated_often(right, left)))
    )
    if is_large:
        raise Unknown("the value is too large")
    if op is ast.Mod and isinstance(left, (str, bytes)):
        reject_wide_format(left)
    return _ARITHMETIC[op](left, right)


def _is_repeated_often(sequence: Any, count: Any) -> bool:
    return (
        isinstance(sequence, (str, bytes, list, tuple))
        and isinstance(count, int)
        and len(sequence) * count > LONGEST_VALUE
    )


def _fold_conditional(node: ast.IfExp, scope: Scope, fold: Fold) -> Any:
    try:
        return fold(node.body if fold(node.test) else node.orelse)
    except Unknown as unknown:
        flag = unknown.flag
    first, second = fold(node.body), fold(node.orelse)
    if type(first) is type(second) and first == second:
        return first
    raise Unknown("depends on", flag, node=node.test)


def _fold_boolean(node: ast.BoolOp, scope: Scope, fold: Fold) -> Any:
    value = None
    for part in node.values:
        value = fold(part)
        if bool(value) is isinstance(node.op, ast.Or):
            break
    return value


def _fold_comparison(node: ast.Compare, scope: Scope, fold: Fold) -> Any:
    left = fold(node.left)
    for op, node_right in zip(node.ops, node.comparators, strict=True):
        right = fold(node_right)
        if not compute_value(node, _COMPARE[type(op)], left, right):
            return False
        left = right
    return True


def _fold_sequence(node: ast.List | ast.Tuple | ast.Set, scope: Scope, fold: Fold) -> Any:
    if any(isinstance(item, ast.Starred) for item in node.elts):
        raise Unknown("depends on", node=node)
    items = [fold(item) for item in node.elts]
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _fold_dict(node: ast.Dict, scope: Scope, fold: Fold) -> Any:
    found: dict[Any, Any] = {}
    for name, value in zip(node.keys, node.values, strict=True):
        parts = [fold(part) for part in (name, value) if part is not None]
        compute_value(node, found.update if name is None else found.__setitem__, *parts)
    return found


def _fold_subscript(node: ast.Subscript, scope: Scope, fold: Fold) -> Any:
    if format_expression(node.value).endswith("environ"):
        raise Unknown(f"depends on the environment ({format_expression(node)})")
    return compute_value(node, operator.getitem, fold(node.value), fold(node.slice))


def _fold_fstring(node: ast.JoinedStr, scope: Scope, fold: Fold) -> Any:
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue) and (part.conversion >= 0 or part.format_spec):
            raise Unknown("depends on", node=node)
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        parts.append(compute_value(node, str, fold(inner)))
    return "".join(parts)


def _fold_call(node: ast.Call, scope: Scope, fold: Fold) -> Any:
    if (returned := find_returned_value(node, scope)) is not None:
        return _require_own_folder(fold(*returned), returned[1], scope)
    return fold_known_call(node, scope, fold)


_FOLDERS: dict[type, Callable[..., Any]] = {
    ast.Name: _fold_name,
    ast.Attribute: _fold_attribute,
    ast.BinOp: _fold_binary,
    ast.IfExp: _fold_conditional,
    ast.BoolOp: _fold_boolean,
    ast.Compare: _fold_comparison,
    ast.List: _fold_sequence,
    ast.Tuple: _fold_sequence,
    ast.Set: _fold_sequence,
    ast.Dict: _fold_dict,
    ast.Subscript: _fold_subscript,
    ast.JoinedStr: _fold_fstring,
    ast.Call: _fold_call,
    ast.UnaryOp: lambda node, scope, fold: compute_value(
        node, _UNARY[type(node.op)], fold(node.operand)
    ),
}
