"""Defaults of the command line flags that a file declares."""

from __future__ import annotations

import ast
from collections import defaultdict
from contextlib import suppress
from typing import Any

from npuprof.model import TomlTable
from npuprof.scripts.python.constants import fold_expression
from npuprof.scripts.python.expressions import Unknown, get_last_name, name_callee
from npuprof.scripts.python.scopes import Scope

#: The functions of absl that define numbers, with their types.
_NUMBERS = {"DEFINE_integer": "int", "DEFINE_float": "float"}


def collect_flag_defaults(
    tree: ast.Module, calls: list[ast.Call], attributes: list[ast.Attribute]
) -> TomlTable:
    """Return the defaults of argparse and absl flags in a file, as the flags contain them.

    ``calls`` and ``attributes`` are those of the file. Flags with several defaults are left out.
    """
    scope = Scope(tree)
    declared = defaultdict(list)
    overridden = {}
    for call in calls:
        name = name_callee(call)
        if name == "set_defaults":  # overrides add_argument, regardless of order
            for keyword in call.keywords:
                if keyword.arg:
                    overridden[keyword.arg] = _fold_or_none(keyword.value, scope)
            continue
        if name == "add_argument":
            flag, default = _parse_add_argument(call)
        elif name.startswith("DEFINE_"):
            flag, default = _parse_definition(call)
        else:
            continue
        value = _fold_or_none(default, scope) if flag and default is not None else None
        if value is not None:
            if name == "add_argument":
                value = _convert_argument(call, value)
            elif name in _NUMBERS:
                value = _convert_number(_NUMBERS[name], value)
            declared[flag].append(value)
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


def _convert_argument(call: ast.Call, value: Any) -> Any:
    """Return a text default as argparse parses it, by ``type``; None if that is not known."""
    for keyword in call.keywords:
        if keyword.arg == "type":
            kind = keyword.value.id if isinstance(keyword.value, ast.Name) else ""
            if kind in ("int", "float"):
                return _convert_number(kind, value)
            # a custom type may make anything of a text
            return value if kind in ("str", "bool") or not isinstance(value, str) else None
    return value


def _convert_number(kind: str, value: Any) -> Any:
    """Return the number of a text, None for other texts, and any other value itself."""
    if not isinstance(value, str):
        return value
    try:
        return int(value) if kind == "int" else float(value)
    except ValueError:
        return None


def _parse_add_argument(call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the flag that a call of ``add_argument`` declares, and its default."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    spellings = [
        arg.value
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
    long_spellings = [text for text in spellings if text.startswith("--")]
    spelling, *_ = [*long_spellings, *spellings, ""]
    dest = named.get("dest")
    if isinstance(dest, ast.Constant):
        flag = str(dest.value)
    else:
        flag = spelling.lstrip("-").replace("-", "_")
    default = named.get("default")
    match named.get("action"):
        case ast.Constant("store_true" | "store_false" as action) if default is None:
            default = ast.Constant(action == "store_false")
    return flag, default


def _parse_definition(call: ast.Call) -> tuple[str, ast.expr | None]:
    """Return the flag that a call of ``DEFINE_...`` declares, and its default."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    name = named.get("name")
    default = named.get("default")
    match call.args:
        case [name, default, *_]:
            pass
        case [name]:
            pass
    flag = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
    return flag, default


def _fold_or_none(node: ast.expr, scope: Scope) -> Any:
    with suppress(Unknown):
        return fold_expression(node, scope)
    return None
