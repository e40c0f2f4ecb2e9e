"""Constant folding of calls: conversions, builtins, string methods, and some library functions."""

from __future__ import annotations

import ast
import json
import posixpath
from collections.abc import Callable
from typing import Any

from npuprof.scripts.python.expressions import (
    Unknown,
    compute_value,
    format_dotted_name,
    format_expression,
    name_callee,
    reject_wide_format,
)
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.script_records import HERE

Fold = Callable[[ast.expr], Any]

_METHODS = {
    "strip",
    "lstrip",
    "rstrip",
    "lower",
    "upper",
    "title",
    "replace",
    "join",
    "split",
    "format",
    "encode",
    "decode",
}
_CONVERSIONS = {"as_bytes", "to_bytes"}


def fold_known_call(node: ast.Call, scope: Scope, fold: Fold) -> Any:
    """Return the constant result of a call; ``fold`` folds an expression of the same scope.

    Raises Unknown.
    """
    function = node.func
    name = name_callee(node)
    if any(isinstance(arg, ast.Starred) for arg in node.args):
        raise Unknown("depends on", node=node)
    if name == "getenv" or (
        name == "get"
        and isinstance(function, ast.Attribute)
        and format_expression(function.value).endswith("environ")
    ):
        raise Unknown(f"depends on the environment ({format_expression(node)})")
    # a name that the script binds is not the builtin
    if isinstance(function, ast.Name) and scope.resolve_name(name) is None:
        return _fold_builtin_call(name, node, fold)
    if len(node.args) == 1 and not node.keywords and _is_text_conversion(function, name, scope):
        return _convert_text(node, fold(node.args[0]))
    library_function = _LIBRARY.get(resolve_function_name(function, scope))
    if library_function is not None and not node.keywords:
        return compute_value(node, library_function, *map(fold, node.args))
    if isinstance(function, ast.Attribute):
        return _fold_method_call(function, node, fold)
    raise Unknown("depends on the result of", node=node)


def _convert_text(node: ast.Call, value: Any) -> Any:
    """Return the bytes of a text. Raises Unknown."""
    if not isinstance(value, (str, bytes)):
        raise Unknown(f"{format_expression(node)} raises TypeError")
    return compute_value(node, value.encode) if isinstance(value, str) else value


def _is_text_conversion(function: ast.expr, name: str, scope: Scope) -> bool:
    """Return whether a call is a known text conversion rather than a function of the script."""
    if isinstance(function, ast.Attribute):
        return name in _CONVERSIONS or format_expression(function) == "six.b"
    resolved = scope.resolve_name(name) if name in _CONVERSIONS else None
    return resolved is not None and all(binding.kind == "import" for binding in resolved[1])


def resolve_function_name(function: ast.expr, scope: Scope) -> str:
    """Return the dotted name of a module's function, independent of its import name.

    Empty for others.
    """
    dotted = format_dotted_name(function)
    root, dot, rest = dotted.partition(".")
    resolved = scope.resolve_name(root) if root else None
    if resolved is None:
        return dotted
    first = ""
    _, bindings = resolved
    for binding in bindings:
        node = binding.node
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            return ""
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            top_name, _, _ = alias.name.partition(".")
            if root == (alias.asname or top_name):
                # a plain ``import a.b`` binds ``a``
                first = f"{module}{alias.name}" if alias.asname or module else root
    return f"{first}{dot}{rest}".replace("posixpath.", "os.path.")


def _fold_builtin_call(name: str, node: ast.Call, fold: Fold) -> Any:
    """Return the constant result of a builtin function. Raises Unknown."""
    match name, node.args:
        case "isinstance", [value, kind]:
            kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
            types = tuple(
                _TYPES[kind.id]
                for kind in kinds
                if isinstance(kind, ast.Name) and kind.id in _TYPES
            )
            if len(types) == len(kinds):
                return isinstance(fold(value), types)
        case "getattr", [value, ast.Constant(str(attribute))] if attribute.isidentifier():
            return fold(ast.copy_location(ast.Attribute(value, attribute, ast.Load()), node))
    if name not in _BUILTINS or any(keyword.arg is None for keyword in node.keywords):
        raise Unknown("depends on the result of", node=node)
    named = {str(keyword.arg): fold(keyword.value) for keyword in node.keywords}
    return compute_value(node, _BUILTINS[name], *map(fold, node.args), **named)


_TYPES = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "bytes": bytes,
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    **_TYPES,
    "unicode": str,
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
    "sum": sum,
    "repr": repr,
    "sorted": sorted,
}


def _fold_method_call(function: ast.Attribute, node: ast.Call, fold: Fold) -> Any:
    if function.attr == "get" and node.args and not node.keywords:
        value = fold(function.value)
        if isinstance(value, dict):
            return compute_value(node, value.get, *map(fold, node.args))
    if function.attr in ("resolve", "absolute") and isinstance(fold(function.value), str):
        return fold(function.value)  # a path
    if function.attr in _METHODS:
        value = fold(function.value)
        if isinstance(value, (str, bytes)) and hasattr(value, function.attr):
            arguments = list(map(fold, node.args))
            named = {keyword.arg: fold(keyword.value) for keyword in node.keywords if keyword.arg}
            if function.attr == "format":
                # a width in the format is the size of its result
                reject_wide_format(value)
            return compute_value(node, getattr(value, function.attr), *arguments, **named)
    raise Unknown("depends on the result of", node=node)


def _normalise_path(path: str) -> str:
    # normpath would take the mark for a folder, which ".." removes
    if path.startswith(HERE):
        return HERE + posixpath.normpath(path.removeprefix(HERE))
    return posixpath.normpath(path)


def find_folder(path: str) -> str:
    """Return the folder of a path; the parent of a script's folder is not empty."""
    if not path.startswith(HERE):
        return posixpath.dirname(path)
    plain = posixpath.normpath(path.removeprefix(HERE))
    if posixpath.basename(plain) in (".", ".."):
        return HERE + posixpath.normpath(posixpath.join(plain, ".."))
    return HERE + (posixpath.dirname(plain) or ".")


_LIBRARY: dict[str, Callable[..., Any]] = {
    "json.dumps": json.dumps,
    "os.path.join": posixpath.join,
    "pathlib.Path": posixpath.join,
    "os.path.normpath": _normalise_path,
    "os.path.dirname": find_folder,
    "os.path.basename": posixpath.basename,
    **dict.fromkeys(
        ("os.path.abspath", "os.path.realpath", "os.fspath", "copy.copy", "copy.deepcopy"),
        lambda value: value,
    ),
}
