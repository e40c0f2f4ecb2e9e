"""Defaults of the command line flags that a file declares."""

from __future__ import annotations

import ast
from collections import defaultdict
from contextlib import suppress
from typing import Any

from npuprof.model import TomlTable
from npuprof.scripts.python.constants import fold_or
from npuprof.scripts.python.expressions import get_last_name, name_callee
from npuprof.scripts.python.scopes import Scope

#: The functions of absl that define numbers, with their types.
_NUMBERS = {"DEFINE_integer": "int", "DEFINE_float": "float"}

#: A flag that a call declares, its type, and its default.
_Declared = tuple[str, str, ast.expr]


def collect_flag_defaults(
    tree: ast.Module, calls: list[ast.Call], attributes: list[ast.Attribute]
) -> TomlTable:
    """Return the defaults of argparse and absl flags in a file, as the flags contain them.

    ``calls`` and ``attributes`` are those of the file. Flags with several defaults are left out.
    """
    scope = Scope(tree)
    declared = defaultdict(list)
    overridden: TomlTable = {}
    for call in calls:
        name = name_callee(call)
        named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        if name == "set_defaults":  # overrides add_argument, regardless of order
            overridden |= {flag: fold_or(None, default, scope) for flag, default in named.items()}
            continue
        if name == "add_argument":
            flag, kind, default = _parse_add_argument(call, named)
        elif name.startswith("DEFINE_"):
            flag, kind, default = _parse_definition(call, named)
        else:
            continue
        value = fold_or(None, default, scope)
        if flag and value is not None:
            declared[flag].append(_convert_text(kind, value))
    # by repr, since lists have no hash and True == 1
    certain = {
        flag: values[0] for flag, values in declared.items() if len(set(map(repr, values))) == 1
    }
    # the value that the script uses is not the default then
    assigned = {
        node.attr
        for node in attributes
        # self is an object of the script, not the parsed command line
        if isinstance(node.ctx, ast.Store) and get_last_name(node.value) not in ("", "self")
    }
    defaults = certain | overridden
    return {flag: value for flag, value in defaults.items() if flag not in assigned}


def _convert_text(kind: str, value: Any) -> Any:
    """Return a text default as it is parsed by a type; None if that is not known."""
    if not isinstance(value, str) or kind in ("str", "bool"):
        return value
    with suppress(ValueError):
        if kind in ("int", "float"):
            return int(value) if kind == "int" else float(value)
    return None  # a custom type may make anything of a text


def _parse_add_argument(call: ast.Call, named: dict[str, ast.expr]) -> _Declared:
    """Return what a call of ``add_argument`` declares."""
    spellings = [
        arg.value
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
    # the first long one, or else the first
    spelling = max(spellings, key=lambda text: text.startswith("--"), default="")
    flag = spelling.lstrip("-").replace("-", "_")
    match named.get("dest"):
        case ast.Constant(dest):
            flag = str(dest)
    default = named.get("default", ast.Constant(None))
    match named.get("action"):
        case ast.Constant("store_true" | "store_false" as action) if "default" not in named:
            default = ast.Constant(action == "store_false")
    kind = named.get("type", ast.Name("str"))
    return flag, kind.id if isinstance(kind, ast.Name) else "", default


def _parse_definition(call: ast.Call, named: dict[str, ast.expr]) -> _Declared:
    """Return what a call of ``DEFINE_...`` declares."""
    kind = _NUMBERS.get(name_callee(call), "str")
    match named | dict(zip(("name", "default"), call.args, strict=False)):
        case {"name": ast.Constant(str() as flag), "default": default}:
            return flag, kind, default
    return "", kind, ast.Constant(None)
