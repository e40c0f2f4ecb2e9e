"""Defaults of the command line flags that a file declares."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

from npuprof.scripts.python.constants import fold_expression
from npuprof.scripts.python.expressions import Unknown, get_last_name, name_callee
from npuprof.scripts.python.scopes import Scope


def collect_flag_defaults(
    tree: ast.Module, calls: list[ast.Call], attributes: list[ast.Attribute]
) -> dict[str, Any]:
    """Return the defaults of argparse and absl flags in a file, as the flags contain them, from its
    calls and attributes.
    """
    scope = Scope(tree)
    found: dict[str, list[Any]] = {}
    later: dict[str, Any] = {}
    for call in calls:
        name = name_callee(call)
        if name == "set_defaults":  # overrides add_argument, regardless of order
            later |= {
                keyword.arg: _fold_or_none(keyword.value, scope)
                for keyword in call.keywords
                if keyword.arg
            }
        elif name == "add_argument" or name.startswith("DEFINE_"):
            flag, default = (
                _parse_add_argument(call) if name == "add_argument" else _parse_definition(call)
            )
            value = _fold_or_none(default, scope) if flag and default is not None else None
            found.setdefault(flag, []).extend(
                [_convert_default(call, name, value)] if value is not None else []
            )
    stored = (node for node in attributes if isinstance(node.ctx, ast.Store))
    changed = {
        node.attr for node in stored if get_last_name(node.value) not in ("", "self")
    }  # after the command line was parsed
    certain = {
        flag: values[0] for flag, values in found.items() if len(set(map(repr, values))) == 1
    }
    return {flag: value for flag, value in {**certain, **later}.items() if flag not in changed}


def _convert_default(call: ast.Call, name: str, value: Any) -> Any:
    """Return a text default as the flag contains it: argparse and absl parse it like an
    argument.
    """
    wanted = (
        next((keyword.value for keyword in call.keywords if keyword.arg == "type"), None)
        if name == "add_argument"
        else None
    )
    kind = (
        wanted.id
        if isinstance(wanted, ast.Name)
        else {"DEFINE_integer": "int", "DEFINE_float": "float"}.get(name, "")
    )
    if kind not in ("int", "float"):
        return (
            value
            if wanted is None or kind in ("str", "bool") or not isinstance(value, str)
            else None
        )
    try:
        return (int if kind == "int" else float)(value) if isinstance(value, str) else value
    except ValueError:
        return None


def _parse_add_argument(call: ast.Call) -> tuple[str, ast.expr | None]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    words = [
        arg.value
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
    long = next((word for word in words if word.startswith("--")), words[0] if words else "")
    dest = named.get("dest")
    flag = str(dest.value) if isinstance(dest, ast.Constant) else long.lstrip("-").replace("-", "_")
    default = named.get("default")
    action = named.get("action")
    if (
        default is None
        and isinstance(action, ast.Constant)
        and action.value in ("store_true", "store_false")
    ):
        default = ast.Constant(action.value == "store_false")
    return flag, default


def _parse_definition(call: ast.Call) -> tuple[str, ast.expr | None]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    first = call.args[0] if call.args else named.get("name") or named.get("flag_name")
    flag = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    return flag, call.args[1] if len(call.args) > 1 else named.get("default") or named.get(
        "default_value"
    )


def _fold_or_none(node: ast.expr, scope: Scope) -> Any:
    with suppress(Unknown):
        return fold_expression(node, scope)
    return None
