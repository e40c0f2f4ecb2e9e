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

from npuprof.scripts.python.builtin_calls import find_folder, fold_known_call
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
from npuprof.scripts.steps import count_steps

#: Limits of one expression: nesting, operators in a chain, and folded parts.
_DEEPEST, _LONGEST_CHAIN, _MOST_STEPS = 60, 5_000, 20_000


def _divide(left: Any, right: Any) -> Any:
    """Return a quotient, or a path below another one."""
    is_path = isinstance(left, str) and isinstance(right, str)
    return posixpath.join(left, right) if is_path else left / right


_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
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
#: Names that scripts usually give to the parsed command line.
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

#: The kinds of bindings without a constant value, the decisive one first, as reasons name them.
_KIND_TITLES = {
    "loop": "the loop variable",
    "import": "the import",
    "change": "the changing variable",
    "other": "the variable",
}

#: Returns the constant value of a part of an expression, by default in the same scope.
Fold = Callable[..., Any]
_steps_left = [0]
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
    count_steps()
    if isinstance(node, ast.Constant):
        return reject_large_value(node.value)
    # parts share the steps: names that each occur twice in the next would double the work each time
    if not depth:
        _steps_left[0] = _MOST_STEPS
    _steps_left[0] -= 1
    if depth > _DEEPEST or _steps_left[0] < 0:
        raise Unknown("the expression is too deep to follow")
    folder = _FOLDERS.get(type(node))
    if folder is None:
        raise Unknown("depends on", node=node)

    def fold(inner: ast.expr, where: Scope = scope) -> Any:
        return fold_expression(inner, where, depth + 1)

    try:
        return reject_large_value(folder(node, scope, fold))
    # the depth of the callers counts too, so the limit above may not be reached
    except RecursionError:
        raise Unknown("the expression is too deep to follow") from None


def fold_or(otherwise: Any, node: ast.expr, scope: Scope) -> Any:
    """Return the constant value of an expression, or another value if it has none."""
    try:
        return fold_expression(node, scope)
    except Unknown:
        return otherwise


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
    _, is_relative = remove_script_folder(value)
    is_other_folder = posixpath.dirname(home.file) != posixpath.dirname(scope.file)
    if is_relative and home.home is not scope.home and is_other_folder:
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
    # True == 1, but the two are different settings
    if any(type(value) is not type(values[0]) or value != values[0] for value in values):
        raise Unknown(
            f"depends on the variable {name}, which is set "
            f"{len(bindings)} times to different values"
        )
    # the list may be changed by its other name
    if isinstance(values[0], (list, dict)) and home.list_bindings(f"={name}"):
        raise Unknown(f"depends on the variable {name}, which has a second name")
    return values[0]


def _fold_other_binding(name: str, home: Scope, fold: Fold) -> Any:
    """Return the default of a parameter, if defaults are requested.

    Raises Unknown for all other bindings.
    """
    kinds = home.list_binding_kinds(name)
    if "parameter" in kinds:
        if _defaults and isinstance(home.node, Function):
            default = collect_parameter_defaults(home.node).get(name)
            if default is not None:
                # Python evaluates defaults in the scope around the function
                return fold(default, home.outer or home)
        raise Unknown(f"depends on the parameter {name} of {home.name}()")
    title = next(title for kind, title in _KIND_TITLES.items() if kind in kinds)
    raise Unknown(f"depends on {title} {name}")


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
        home, bindings = scope.resolve(node) or (scope, [])
        if bindings:
            return _require_own_folder(_fold_bindings(home, bindings, fold), home, scope)
        if isinstance(node.value, ast.Name):
            class_value = _find_class_value(node.value, node.attr, scope)
            if class_value is not None:
                return fold(*class_value)
        if root.id == "self":
            raise Unknown(f"depends on the object ({text})", node.attr)
        if _is_command_line(root.id, scope):
            raise Unknown(f"{COMMAND_LINE} ({text})", node.attr)
    if node.attr == "parent" and isinstance(path := fold(node.value), str):
        return find_folder(path)
    raise Unknown(f"depends on {text}", node.attr)


def _find_class_value(
    node: ast.Name, attribute: str, scope: Scope
) -> tuple[ast.expr, Scope] | None:
    """Return the value of a class attribute that is assigned once, for a class of this module."""
    cls = find_class(node, scope)
    if cls is None:
        return None
    rebound = scope.list_rebound()
    for owner in (node.id, "cls"):
        if f"{owner}.{attribute}" in rebound or f"{owner}.*" in rebound:
            return None
    bindings = cls.list_bindings(attribute)
    return (bindings[0].node, cls) if len(bindings) == 1 and bindings[0].kind == "assign" else None


def _is_command_line(name: str, scope: Scope) -> bool:
    """Return whether a name denotes the parsed command line, by its words or its assignments."""
    if name in _RUN_NAMES or name.lower().endswith(("args", "flags", "params")):
        return True
    _, bindings = scope.resolve_name(name) or (scope, [])
    return any(
        "parse" in format_expression(binding.node)
        for binding in bindings
        if isinstance(binding.node, ast.Call)
    )


def _fold_binary(node: ast.BinOp, scope: Scope, fold: Fold) -> Any:
    chain = []  # operators and right operands, the last first
    left: ast.expr = node
    while isinstance(left, ast.BinOp):  # "a" + "b" + ... is nested to the left
        chain.append((type(left.op), left.right))
        left = left.left
        if len(chain) > _LONGEST_CHAIN:
            raise Unknown("the expression is too long to follow")
    value = fold(left)
    for op, right in reversed(chain):
        value = compute_value(node, _apply_operator, op, value, fold(right))
    return value


def _apply_operator(op: type, left: Any, right: Any) -> Any:
    if _has_large_result(op, left, right):
        raise Unknown("the value is too large")
    if op is ast.Mod and isinstance(left, (str, bytes)):
        reject_wide_format(left)
    return _ARITHMETIC[op](left, right)


def _has_large_result(op: type, left: Any, right: Any) -> bool:
    """Return whether computing an operation could take much time or memory."""
    if op is ast.Pow:
        return not isinstance(right, (int, float)) or abs(right) > 4096 or abs(left) > 2**64
    if op is ast.LShift:
        return bool(right > 4096)
    if op is ast.Mult:
        return _is_repeated_often(left, right) or _is_repeated_often(right, left)
    return False


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
    # the test does not matter if both values are equal
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
    entries: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:  # **value
            compute_value(node, entries.update, fold(value))
        else:
            compute_value(node, entries.__setitem__, fold(key), fold(value))
    return entries


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
    returned = find_returned_value(node, scope)
    if returned is not None:
        expression, home = returned
        return _require_own_folder(fold(expression, home), home, scope)
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
