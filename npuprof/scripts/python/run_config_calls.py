"""``NPURunConfig(...)`` and its configuration objects."""

from __future__ import annotations

import ast
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_full_key
from npuprof.scripts.python.config_classes import (
    CLASSES,
    find_named_class,
    list_class_arguments,
    list_object_arguments,
)
from npuprof.scripts.python.expressions import format_expression, name_callee
from npuprof.scripts.python.loops import iterate_keywords
from npuprof.scripts.python.nested_configs import note_taken_configs
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.statements import Located
from npuprof.scripts.python.visitor import NestedConfig, Surface, Visitor
from npuprof.scripts.script_records import UNSET, Converted, LocatedRecord


class GivenCall(LocatedRecord):
    """A constructor call of a configuration class with its arguments.

    ``open`` if unpacking hides some.
    """

    name: str
    arguments: tuple[str, ...]
    open: bool


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    if not visitor.module.names_npu:
        return  # common names
    if cls := find_named_class(call.func, scope):
        _report_config_call(visitor, call, cls, scope)
        return
    cls = next((name for argument in call.args if (name := find_named_class(argument, scope))), "")
    if cls and name_callee(call) not in (
        "isinstance",
        "issubclass",
        "super",
    ):  # such as functools.partial
        site, reason = (
            f"{scope.name or '<module>'}:{cls}@{call.lineno}",
            f"{cls} is handed to {format_expression(call.func)}()",
        )
        visitor.add_setting(
            call, "run_config", "", "", reason=f"{reason}, which is not followed", scope=site
        )


def _report_config_call(visitor: Visitor, call: ast.Call, cls: str, scope: Scope) -> None:
    if cls == "NPURunConfig":
        owner = visitor.new_site(scope, f"NPURunConfig@{call.lineno}", "run_config", call)
        note_taken_configs(visitor, call, owner, scope)
    else:
        owner = f"{scope.name or '<module>'}:{cls}@{call.lineno}:{call.col_offset}"
        visitor.nested[owner] = NestedConfig(
            call.lineno, call.col_offset, cls, scope.file, scope.label
        )
    _note_call(visitor, call, cls)
    order = CLASSES[cls].positional
    for number, value in enumerate(call.args):
        if isinstance(value, ast.Starred) or number >= len(order):
            visitor.add_setting(
                value, "run_config", "", "", reason="given by position", scope=owner
            )
        else:
            _report_argument(visitor, value, cls, order[number], value, scope, owner)
    for name, keyword, value, where in iterate_keywords(call, scope):
        if name:
            place = (
                keyword if keyword.arg else value if where.node is scope.node else keyword.value
            )  # one place for all callers
            _report_argument(visitor, place, cls, name, value, where, owner)
        elif not _is_rendered_more(visitor, keyword.value, scope):
            visitor.add_setting(
                keyword.value,
                "run_config",
                "",
                "",
                reason=f"depends on **{format_expression(keyword.value)}",
                scope=owner,
            )


def _is_rendered_more(visitor: Visitor, node: ast.expr, scope: Scope) -> bool:
    """Return whether a node is the ``**more`` of a function rendered by npuprof, which
    sets nothing.
    """
    match node, scope.node:
        case ast.Name("more"), ast.FunctionDef(name, ast.arguments(kwarg=ast.arg("more"))):
            return "npuprof" in visitor.module.script.text and name not in map(
                name_callee, visitor.module.index.calls
            )
    return False


def _report_argument(
    visitor: Visitor, place: Located, cls: str, name: str, value: ast.expr, scope: Scope, owner: str
) -> None:
    if name in list_object_arguments() and (
        name in list_class_arguments(cls) or name in CLASSES[cls].formerly
    ):
        is_none = isinstance(value, ast.Constant) and value.value is None
        if is_none or not isinstance(
            value, (ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.UnaryOp)
        ):
            return
    prefix = CLASSES[cls].argument
    dotted = f"{prefix}.{name}" if prefix else name
    option = catalog.options_by_spelling("run_config").get(dotted)
    own = name in CLASSES[cls].formerly or (
        name in list_object_arguments() and not catalog.find_argument(name)
    )
    key = option or (dotted if prefix or own else format_full_key("estimator", name))
    script_value = visitor.read_value(
        value, scope, lambda got: _read_argument_value(CLASSES[cls], name, option, got)
    )
    visitor.add_setting(place, "run_config", key, name, script_value, scope=owner, class_name=cls)


def _note_call(visitor: Visitor, call: ast.Call, cls: str) -> None:
    """Record the arguments of a call, to compare them with the class later."""
    if visitor.dead:
        return
    is_open = any(isinstance(value, ast.Starred) for value in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )
    arguments = (
        *CLASSES[cls].positional[: len(call.args)],
        *(keyword.arg for keyword in call.keywords if keyword.arg),
    )
    visitor.add_record(
        GivenCall(visitor.module.path, *visitor.place(call), cls, arguments, is_open)
    )


def _read_argument_value(
    config_class: catalog.ConfigClass, name: str, option: str | None, value: Any
) -> Converted:
    """Return the final value of an argument, as the class or RunConfig converts numbers
    and texts.
    """
    if value is None:
        return None, UNSET
    if name in config_class.as_text and isinstance(value, int):
        return str(value), ""
    argument = catalog.find_argument(name) if option is None and not config_class.argument else None
    is_whole = isinstance(value, float) and value.is_integer()
    if (
        argument is not None
        and argument.kind == "int"
        and (isinstance(value, bool) or (is_whole and not argument.whole))
    ):
        return int(value), ""
    return convert_option_value(option, value)


def convert_option_value(option: str | None, value: Any) -> Converted:
    """Return a Python value as the option stores it, and the reason if it cannot."""
    record = catalog.find_option(option) if option else None
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    if not isinstance(value, (str, int, float)):
        return None, f"a {type(value).__name__} is not a value of an option"
    field = (record.field or record.kind) if record is not None else ""
    if field == "i" and isinstance(value, bool):
        value = int(value)
    elif field in ("b", "bool") and type(value) is int:
        value = bool(value)
    return value, ""


#: Reads the adapter's run configurations and their parts.
SURFACE = Surface(tuple(CLASSES), _read_call)
