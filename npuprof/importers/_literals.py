"""Expressions to the values they always have; what depends on the run comes back with the reason.

Nothing is executed: constants, arithmetic on them, a few conversions and text functions are folded, names are
followed where only one value is ever given to them.
"""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from typing import Any

from npuprof.importers._scopes import Binding, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 1_000_000
_DEEPEST = 60
_CHAIN = 5_000
_STEPS = 20_000
_WIDTH = re.compile(r"[0-9]{5}|%[^a-zA-Z%]*\*|\{[^}]*\{")
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.inv,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "bytes": bytes, "list": list, "dict": dict, "tuple": tuple}
METHODS = {"strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "join", "split", "format", "encode", "decode", "zfill"}
_CONVERSIONS = {"as_bytes", "to_bytes", "as_str_any", "as_text", "as_str", "ensure_binary", "ensure_str"}
_RUN_NAMES = {"FLAGS", "args", "arg", "opt", "opts", "flags", "params", "hparams", "cfg", "config", "conf", "options", "parsed", "self"}


class Unknown(Exception):  # noqa: N818
    """The value depends on the run; the text says on what. ``flag`` is the name of a command-line flag."""

    def __init__(self, reason: str, flag: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.flag = flag


_budget = [0]


def fold(node: ast.expr, scope: Scope, depth: int = 0) -> Any:
    """Return the value an expression always has. Raises Unknown."""
    if isinstance(node, ast.Constant):
        return node.value
    if not depth:
        _budget[0] = _STEPS
    _budget[0] -= 1
    if depth > _DEEPEST or _budget[0] < 0:
        raise Unknown("the expression is too deep to follow")
    folder = _FOLDERS.get(type(node))
    if folder is None:
        raise Unknown(f"depends on {short(node)}")
    try:
        return _bounded(folder(node, scope, depth + 1))
    except Unknown:
        raise
    except RecursionError:
        raise Unknown("the expression is too deep to follow") from None
    except Exception as error:
        raise Unknown(f"{short(node)} raises {type(error).__name__}") from None


def short(node: ast.AST) -> str:
    """Return an expression as text, cut where it is long."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "a long expression"
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _bounded(value: Any) -> Any:
    if (isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > _LONGEST) or (
        isinstance(value, int) and value.bit_length() > 4096
    ):
        raise Unknown("the value is too large")
    return value


def _name(node: ast.Name, scope: Scope, depth: int) -> Any:
    if node.id in ("True", "False", "None"):  # Python 2 trees
        return {"True": True, "False": False, "None": None}[node.id]
    found = scope.find(node.id)
    if found is None:
        raise Unknown(f"depends on the name {node.id}")
    home, bindings = found
    if not bindings:
        expression, where = home.bound[node.id]
        return fold(expression, where, depth)
    return _of(node.id, home, bindings, depth)


def _of(name: str, home: Scope, bindings: list[Binding], depth: int) -> Any:
    if name in home.rebound and not isinstance(home.node, ast.ClassDef):
        raise Unknown(f"depends on the variable {name}, which other functions change")
    kinds = {binding.kind for binding in bindings}
    if kinds != {"assign"}:
        if "parameter" in kinds:
            raise Unknown(f"depends on the parameter {name} of {home.name}()", flag="")
        words = {"loop": "the loop variable", "import": "the import", "change": "the changing variable", "other": "the variable"}
        word = next(words[kind] for kind in ("loop", "import", "change", "other") if kind in kinds)
        raise Unknown(f"depends on {word} {name}")
    if len(bindings) > 12:
        raise Unknown(f"depends on the variable {name}, which is set {len(bindings)} times")
    values = []
    for binding in bindings:
        assert isinstance(binding.node, ast.expr)
        values.append(fold(binding.node, home, depth))
    if any(type(value) is not type(values[0]) or value != values[0] for value in values):
        raise Unknown(f"depends on the variable {name}, which is set {len(bindings)} times to different values")
    return values[0]


def _attribute(node: ast.Attribute, scope: Scope, depth: int) -> Any:
    text = short(node)
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if text.startswith(("os.environ", "environ.")):
        raise Unknown(f"depends on the environment ({text})")
    if isinstance(root, ast.Name):
        if isinstance(node.value, ast.Name) and (inner := _of_class(node.value.id, node.attr, scope)) is not None:
            return fold(inner[0], inner[1], depth)
        if root.id == "self":
            raise Unknown(f"depends on the object ({text})", node.attr)
        if root.id in _RUN_NAMES or root.id.lower().endswith(("args", "flags", "params")) or _parsed(root.id, scope):
            raise Unknown(f"depends on the command line or its parameters ({text})", node.attr)
    raise Unknown(f"depends on {text}", node.attr)


def _of_class(name: str, attribute: str, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return what a class of this module says of one of its names, where it says it once."""
    found = scope.find(name)
    if not found or len(found[1]) != 1 or not isinstance(found[1][0].node, ast.ClassDef):
        return None
    if not scope.rebound.isdisjoint((f"{name}.{attribute}", f"cls.{attribute}", f"{name}.*", "cls.*")):
        return None
    inside = Scope(found[1][0].node, found[0])
    bindings = inside.bindings(attribute)
    if len(bindings) == 1 and bindings[0].kind == "assign" and isinstance(bindings[0].node, ast.expr):
        return bindings[0].node, inside
    return None


def _parsed(name: str, scope: Scope) -> bool:
    found = scope.find(name)
    return bool(found) and any("parse" in short(binding.node) for binding in found[1] if isinstance(binding.node, ast.Call))  # type: ignore[index]


def _binary(node: ast.BinOp, scope: Scope, depth: int) -> Any:
    chain: list[tuple[type, ast.expr]] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):  # "a" + "b" + ... is a long arm on the left
        chain.append((type(left.op), left.right))
        left = left.left
        if len(chain) > _CHAIN:
            raise Unknown("the expression is too long to follow")
    value = fold(left, scope, depth)
    for op, right in reversed(chain):
        value = _bounded(_apply(op, value, fold(right, scope, depth)))
    return value


def _apply(op: type, left: Any, right: Any) -> Any:
    if op is ast.Pow and (not isinstance(right, (int, float)) or abs(right) > 4096 or abs(left) > 2**64):
        raise Unknown("the value is too large")
    if op is ast.LShift and right > 4096:
        raise Unknown("the value is too large")
    if op is ast.Mult:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, (str, bytes, list, tuple)) and isinstance(other, int) and len(one) * other > _LONGEST:
                raise Unknown("the value is too large")
    if op is ast.Mod and isinstance(left, (str, bytes)):
        _narrow(left)
    return _ARITHMETIC[op](left, right)


def _choice(node: ast.IfExp, scope: Scope, depth: int) -> Any:
    try:
        return fold(node.body if fold(node.test, scope, depth) else node.orelse, scope, depth)
    except Unknown:
        pass
    first, second = fold(node.body, scope, depth), fold(node.orelse, scope, depth)
    if type(first) is type(second) and first == second:
        return first
    raise Unknown(f"depends on {short(node.test)}")


def _boolean(node: ast.BoolOp, scope: Scope, depth: int) -> Any:
    value = None
    for part in node.values:
        value = fold(part, scope, depth)
        if bool(value) is isinstance(node.op, ast.Or):
            break
    return value


def _comparison(node: ast.Compare, scope: Scope, depth: int) -> Any:
    left = fold(node.left, scope, depth)
    for op, node_right in zip(node.ops, node.comparators, strict=True):
        right = fold(node_right, scope, depth)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _sequence(node: ast.List | ast.Tuple | ast.Set, scope: Scope, depth: int) -> Any:
    if any(isinstance(item, ast.Starred) for item in node.elts):
        raise Unknown(f"depends on {short(node)}")
    items = [fold(item, scope, depth) for item in node.elts]
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _table(node: ast.Dict, scope: Scope, depth: int) -> Any:
    found: dict[Any, Any] = {}
    for name, value in zip(node.keys, node.values, strict=True):
        if name is None:
            found.update(fold(value, scope, depth))
        else:
            found[fold(name, scope, depth)] = fold(value, scope, depth)
    return found


def _subscript(node: ast.Subscript, scope: Scope, depth: int) -> Any:
    if short(node.value).endswith("environ"):
        raise Unknown(f"depends on the environment ({short(node)})")
    value = fold(node.value, scope, depth)
    if isinstance(node.slice, ast.Slice):
        parts = [None if part is None else fold(part, scope, depth) for part in (node.slice.lower, node.slice.upper, node.slice.step)]
        return value[slice(*parts)]
    return value[fold(node.slice, scope, depth)]


def _text(node: ast.JoinedStr, scope: Scope, depth: int) -> Any:
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = fold(part.value, scope, depth)
            kinds: dict[int, Callable[[Any], str]] = {115: str, 114: repr, 97: ascii}
            value = kinds[part.conversion](value) if part.conversion in kinds else value
            form = fold(part.format_spec, scope, depth) if part.format_spec else ""
            parts.append(_formatted(value, form))
        else:
            parts.append(str(fold(part, scope, depth)))
    return "".join(parts)


def _formatted(value: Any, form: str) -> str:
    _narrow(form)
    return format(value, form)


def _narrow(form: str | bytes) -> None:
    """Refuse a format that could fill the memory."""
    text = form if isinstance(form, str) else form.decode("latin-1")
    if _WIDTH.search(text):
        raise Unknown("the value is too large")


def _call(node: ast.Call, scope: Scope, depth: int) -> Any:
    function = node.func
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        raise Unknown(f"depends on {short(node)}")
    if name in ("getenv",) or (name == "get" and isinstance(function, ast.Attribute) and short(function.value).endswith("environ")):
        raise Unknown(f"depends on the environment ({short(node)})")
    if isinstance(function, ast.Name) and scope.find(name) is None:
        return _builtin(name, node, scope, depth)
    if len(node.args) == 1 and not node.keywords and _converts(function, name, scope):
        value = fold(node.args[0], scope, depth)
        if not isinstance(value, (str, bytes)):
            raise Unknown(f"{short(node)} raises TypeError")
        if "byte" in name or name in ("b", "ensure_binary"):
            return value.encode() if isinstance(value, str) else value
        return value.decode() if isinstance(value, bytes) else value
    if isinstance(function, ast.Attribute):
        return _method(function, node, scope, depth)
    raise Unknown(f"depends on the result of {short(node)}")


def _converts(function: ast.expr, name: str, scope: Scope) -> bool:
    """Return whether a call is one of the known conversions between texts and bytes, and not a function of the script."""
    if isinstance(function, ast.Attribute):
        return name in _CONVERSIONS or short(function) == "six.b"
    found = scope.find(name)
    return name in _CONVERSIONS and bool(found) and all(binding.kind == "import" for binding in found[1])  # type: ignore[index]


def _builtin(name: str, node: ast.Call, scope: Scope, depth: int) -> Any:
    given = node.args
    if name == "dict" and not given:
        return {keyword.arg: fold(keyword.value, scope, depth) for keyword in node.keywords if keyword.arg}
    if name == "isinstance" and len(given) == 2:
        kinds = given[1].elts if isinstance(given[1], ast.Tuple) else [given[1]]
        types = tuple(_TYPES[kind.id] for kind in kinds if isinstance(kind, ast.Name) and kind.id in _TYPES)
        if len(types) == len(kinds):
            return isinstance(fold(given[0], scope, depth), types)
    if name == "type" and len(given) == 1:
        return type(fold(given[0], scope, depth))
    if name in ("len", "min", "max", "abs", "round", "sum", "repr", "sorted", "range") and given and not node.keywords:
        values = [fold(arg, scope, depth) for arg in given]
        if name == "range" and any(abs(value) > 1000 for value in values):
            raise Unknown("the value is too large")
        found: dict[str, Callable[..., Any]] = {
            "len": len,
            "min": min,
            "max": max,
            "abs": abs,
            "round": round,
            "sum": sum,
            "repr": repr,
            "sorted": sorted,
            "range": range,
        }
        result = found[name](*values)
        return list(result) if name == "range" else result
    if name in ("bytes", "bytearray"):
        values = [fold(arg, scope, depth) for arg in given] + [fold(k.value, scope, depth) for k in node.keywords]
        if values and isinstance(values[0], str):
            return values[0].encode(values[1] if len(values) > 1 else "utf-8")  # Python 2 needs no encoding
        if values and isinstance(values[0], bytes):
            return values[0]
    if name in ("str", "unicode", "int", "float", "bool", "list", "tuple") and len(given) <= 1 and not node.keywords:
        if not given:
            return _TYPES[name]()
        value = fold(given[0], scope, depth)
        if isinstance(value, float) and name == "int" and value != value:
            raise Unknown(f"{short(node)} raises ValueError")
        return str(value) if name == "unicode" else _TYPES[name](value)
    raise Unknown(f"depends on the result of {short(node)}")


def _method(function: ast.Attribute, node: ast.Call, scope: Scope, depth: int) -> Any:
    whole = short(function)
    if whole in _LIBRARY:
        return _library(whole, node, scope, depth)
    if function.attr in METHODS:
        value = fold(function.value, scope, depth)
        if isinstance(value, (str, bytes)) and hasattr(value, function.attr):
            given = [fold(arg, scope, depth) for arg in node.args]
            named = {keyword.arg: fold(keyword.value, scope, depth) for keyword in node.keywords if keyword.arg}
            if function.attr == "format":
                _narrow(value)
            if function.attr == "zfill" and given[0] > 1000:
                raise Unknown("the value is too large")
            return getattr(value, function.attr)(*given, **named)
    raise Unknown(f"depends on the result of {short(node)}")


def _library(name: str, node: ast.Call, scope: Scope, depth: int) -> Any:
    given = [fold(arg, scope, depth) for arg in node.args]
    if name == "json.dumps":
        import json

        named = {keyword.arg: fold(keyword.value, scope, depth) for keyword in node.keywords if keyword.arg}
        if isinstance(named.get("indent"), int) and named["indent"] > 16:
            raise Unknown("the value is too large")
        return json.dumps(*given, **named)
    return _LIBRARY[name](*given)


_LIBRARY: dict[str, Callable[..., Any]] = {
    "json.dumps": str, "os.path.join": posixpath.join, "os.path.normpath": posixpath.normpath,
    "os.path.dirname": posixpath.dirname, "os.path.basename": posixpath.basename,
    "os.path.abspath": lambda path: path, "os.path.realpath": lambda path: path, "os.fspath": lambda path: path,
    "copy.copy": lambda value: value, "copy.deepcopy": lambda value: value,
}  # fmt: skip
_FOLDERS: dict[type, Callable[..., Any]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.BinOp: _binary, ast.IfExp: _choice, ast.BoolOp: _boolean,
    ast.Compare: _comparison, ast.List: _sequence, ast.Tuple: _sequence, ast.Set: _sequence, ast.Dict: _table,
    ast.Subscript: _subscript, ast.JoinedStr: _text, ast.Call: _call,
    ast.UnaryOp: lambda node, scope, depth: _UNARY[type(node.op)](fold(node.operand, scope, depth)),
}  # fmt: skip
