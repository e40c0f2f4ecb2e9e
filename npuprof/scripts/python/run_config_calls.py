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
from npuprof.scripts.python.visitor import CallLocation, NestedConfig, Surface, Visitor
from npuprof.scripts.script_records import UNSET, Converted, LocatedRecord
from npuprof.system import decode_safely


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
    passed = filter(None, (find_named_class(argument, scope) for argument in call.args))
    cls = next(passed, "")
    # these only name the class
    if cls and name_callee(call) not in ("isinstance", "issubclass", "super"):
        # such as functools.partial
        owner = f"{scope.name or '<module>'}:{cls}@{call.lineno}"
        callee = format_expression(call.func)
        reason = f"{cls} is handed to {callee}(), which is not followed"
        visitor.add_setting(call, "run_config", "", "", reason=reason, scope=owner)


def _report_config_call(visitor: Visitor, call: ast.Call, cls: str, scope: Scope) -> None:
    if cls == "NPURunConfig":
        owner = visitor.new_site(scope, f"NPURunConfig@{call.lineno}", "run_config", call)
        note_taken_configs(visitor, call, owner, scope)
    else:
        owner = f"{scope.name or '<module>'}:{cls}@{call.lineno}:{call.col_offset}"
        location = CallLocation(scope.file, call.lineno, call.col_offset)
        visitor.nested[owner] = NestedConfig(location, cls, scope.label)
    _note_call(visitor, call, cls)
    names = CLASSES[cls].positional
    for position, value in enumerate(call.args):
        if isinstance(value, ast.Starred) or position >= len(names):
            reason = "given by position"
            visitor.add_setting(value, "run_config", "", "", reason=reason, scope=owner)
        else:
            _report_argument(visitor, value, cls, names[position], value, scope, owner)
    for argument in iterate_keywords(call, scope):
        keyword, value, home = argument.keyword, argument.value, argument.scope
        if argument.name:
            node: Located = keyword
            if not keyword.arg:  # one place for all callers
                node = value if home.node is scope.node else keyword.value
            _report_argument(visitor, node, cls, argument.name, value, home, owner)
        elif not _is_rendered_more(visitor, keyword.value, scope):
            reason = f"depends on **{format_expression(keyword.value)}"
            visitor.add_setting(keyword.value, "run_config", "", "", reason=reason, scope=owner)


def _is_rendered_more(visitor: Visitor, node: ast.expr, scope: Scope) -> bool:
    """Return whether a node is the ``**more`` of a function rendered by npuprof.

    It sets nothing, unless the script calls the function.
    """
    match node, scope.node:
        case ast.Name("more"), ast.FunctionDef(name, ast.arguments(kwarg=ast.arg("more"))):
            is_called = any(name_callee(call) == name for call in visitor.module.index.calls)
            return "npuprof" in visitor.module.script.text and not is_called
    return False


def _report_argument(
    visitor: Visitor, node: Located, cls: str, name: str, value: ast.expr, scope: Scope, owner: str
) -> None:
    """Report one argument at a node, unless it is an object that a preset cannot express."""
    config_class = CLASSES[cls]
    is_former = name in config_class.formerly
    takes_object = name in list_object_arguments()
    is_known = is_former or name in list_class_arguments(cls)
    if takes_object and is_known and not _is_other_literal(value):
        return
    option = catalog.options_by_spelling("run_config").get(name)
    key = format_full_key("estimator", name)
    if config_class.argument:
        key = f"{config_class.argument}.{name}"
        option = catalog.options_by_spelling("run_config").get(key)
    elif is_former or (takes_object and not catalog.find_argument(name)):
        key = name
    read = visitor.read_value(
        value, scope, lambda got: _read_argument_value(config_class, name, option, got)
    )
    visitor.add_setting(node, "run_config", option or key, name, read, scope=owner, class_name=cls)


def _is_other_literal(node: ast.expr) -> bool:
    """Return whether a node is a literal other than None, which is no configuration object."""
    if isinstance(node, ast.Constant):
        return node.value is not None
    return isinstance(node, (ast.Dict, ast.List, ast.Tuple, ast.UnaryOp))


def _note_call(visitor: Visitor, call: ast.Call, cls: str) -> None:
    """Record the arguments of a call, to compare them with the class later."""
    if visitor.dead:
        return
    is_open = any(isinstance(value, ast.Starred) for value in call.args)
    names = list(CLASSES[cls].positional[: len(call.args)])
    for keyword in call.keywords:
        if keyword.arg:
            names.append(keyword.arg)
        else:
            is_open = True
    visitor.add_record(
        GivenCall(visitor.module.path, *visitor.locate(call), cls, tuple(names), open=is_open)
    )


def _read_argument_value(
    config_class: catalog.ConfigClass, name: str, option: str | None, value: Any
) -> Converted:
    """Return the final value of an argument, as the class or RunConfig converts it."""
    if value is None:
        return None, UNSET
    if name in config_class.as_text and isinstance(value, int):
        return str(value), ""
    if option is None and not config_class.argument:
        argument = catalog.find_argument(name)
        if argument is not None and argument.kind == "int":
            is_whole = isinstance(value, float) and value.is_integer()
            if isinstance(value, bool) or (is_whole and not argument.whole):
                return int(value), ""
    return convert_option_value(option, value)


def convert_option_value(option: str | None, value: Any) -> Converted:
    """Return a Python value as the option stores it, and the reason if it cannot."""
    record = catalog.find_option(option) if option else None
    value = decode_safely(value) if isinstance(value, bytes) else value
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
