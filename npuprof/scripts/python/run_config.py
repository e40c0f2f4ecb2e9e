"""``NPURunConfig(...)`` and the configuration objects it takes."""

from __future__ import annotations

import ast
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_full_key
from npuprof.model import Record
from npuprof.scripts.python.config_classes import CLASSES, find_named_class, find_super_class, list_class_arguments, list_object_arguments
from npuprof.scripts.python.constants import format_expression
from npuprof.scripts.python.loops import list_written_pairs
from npuprof.scripts.python.nested_configs import note_taken_configs
from npuprof.scripts.python.plain_values import make_plain
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.terms import name_callee
from npuprof.scripts.python.visitor import NestedConfig, Surface, Visitor
from npuprof.scripts.records import UNSET, Branch

HOT = tuple(CLASSES)


class GivenCall(Record):
    """A call that makes an object of one of the classes: how many arguments it is given by position, and which by name.

    ``open`` is a call whose arguments a star hides; none of it counts as given by position where one star stands there.
    """

    file: str
    line: int
    column: int
    name: str
    placed: int
    named: tuple[str, ...]
    open: bool


class GivenObject(Record):
    """What an argument is given that takes an object: the name of a class of ours, or something written out; empty for what is unknown.

    ``owner`` is the class that is given it.
    """

    file: str
    line: int
    column: int
    owner: str
    argument: str
    given: str


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope, branches: tuple[Branch, ...]) -> None:
    if not visitor.module.names_npu:
        return  # these are common names
    if cls := find_named_class(call.func, scope) or find_super_class(call, scope):
        _report_config_call(visitor, call, cls, scope, branches)
    elif cls := next((name for given in call.args if (name := find_named_class(given, scope))), ""):
        _report_handed_class(visitor, call, cls, scope, branches)


def _report_handed_class(visitor: Visitor, call: ast.Call, cls: str, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Report that other code makes objects of a class, such as ``functools.partial``; what it gives them is not seen."""
    if name_callee(call) not in ("isinstance", "issubclass", "super"):
        reason = f"{cls} is handed to {format_expression(call.func)}(), which is not followed"
        visitor.add_setting(
            call, "run_config", "", "", reason=reason, branches=branches, scope=f"{scope.name or '<module>'}:{cls}@{call.lineno}"
        )


def _report_config_call(visitor: Visitor, call: ast.Call, cls: str, scope: Scope, branches: tuple[Branch, ...]) -> None:
    owner = f"{scope.name or '<module>'}:{cls}@{call.lineno}:{call.col_offset}"
    if cls == "NPURunConfig":
        visitor.new_site(scope, f"NPURunConfig@{call.lineno}", "run_config", call, branches)
        owner = f"{scope.name or '<module>'}:NPURunConfig@{call.lineno}@{call.lineno}"
        note_taken_configs(visitor, call, owner, scope)
    else:
        visitor.nested[owner] = NestedConfig(owner, call.lineno, call.col_offset, cls, scope.file, scope.label)
    _note_call(visitor, call, cls)
    order = CLASSES[cls].positional
    for number, value in enumerate(call.args):
        if isinstance(value, ast.Starred) or number >= len(order):
            visitor.add_setting(value, "run_config", "", "", reason="given by position", branches=branches, scope=owner)
        else:
            _report_argument(visitor, value, cls, order[number], value, scope, branches, owner)
    for keyword in call.keywords:
        if keyword.arg is not None:
            _report_argument(visitor, keyword, cls, keyword.arg, keyword.value, scope, branches, owner)
        elif not _is_rendered_more(visitor, keyword.value, scope):
            _report_table(visitor, cls, keyword.value, scope, branches, owner)


def _report_table(visitor: Visitor, cls: str, table: ast.expr, scope: Scope, branches: tuple[Branch, ...], owner: str) -> None:
    """Report the arguments that two stars take from a table."""
    names, where = list_written_pairs(table, scope)
    if names is None:
        reason = f"depends on **{format_expression(table)}"
        visitor.add_setting(table, "run_config", "", "", reason=reason, branches=branches, scope=owner)
    for key, item in names or ():
        text, reason, _ = visitor.evaluate_expression(key, where)
        if not reason:
            place = item if where.node is scope.node else table  # one place, whoever gives what stands there
            _report_argument(visitor, place, cls, str(text), item, where, branches, owner)


def _is_rendered_more(visitor: Visitor, node: ast.expr, scope: Scope) -> bool:
    """Return whether a node is the ``**more`` of a function that npuprof rendered, which sets nothing by itself."""
    function = scope.node
    named = isinstance(node, ast.Name) and node.id == "more" and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    if not named or "npuprof" not in visitor.module.script.text or function.name in map(name_callee, visitor.module.index.calls):  # type: ignore[union-attr]
        return False
    kwarg = function.args.kwarg  # type: ignore[union-attr]
    return kwarg is not None and kwarg.arg == "more"


def _report_argument(
    visitor: Visitor, place: ast.AST, cls: str, name: str, value: ast.expr, scope: Scope, branches: tuple[Branch, ...], owner: str
) -> None:
    if name in list_object_arguments():
        taken = name in list_class_arguments(cls) or name in CLASSES[cls].formerly
        if not visitor.dead:
            given = _describe_given_object(visitor, value, scope)
            visitor.add_remark(GivenObject(visitor.module.path, *visitor.place(place), cls, name, given))
        if not taken or not isinstance(value, (ast.Constant, ast.Dict, ast.List)) or name == "session_config":
            return
        if isinstance(value, ast.Constant) and value.value is None:
            return
    prefix = CLASSES[cls].argument
    dotted = f"{prefix}.{name}" if prefix else name
    option = catalog.options_by_spelling("run_config").get(dotted)
    own = name in CLASSES[cls].formerly or (name in list_object_arguments() and not catalog.find_argument(name))
    key = option or (dotted if prefix or own else format_full_key("estimator", name))
    held = visitor.read_value(value, scope, lambda got: _read_argument_value(CLASSES[cls], name, option, got))
    visitor.add_setting(place, "run_config", key, name, held, branches=branches, scope=owner, made=cls)


def _note_call(visitor: Visitor, call: ast.Call, cls: str) -> None:
    """Take note of what a call is given, for who looks whether it fits the class."""
    if visitor.dead:
        return
    starred = any(isinstance(value, ast.Starred) for value in call.args)
    named = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
    is_open = starred or len(named) < len(call.keywords)
    visitor.add_remark(GivenCall(visitor.module.path, *visitor.place(call), cls, 0 if starred else len(call.args), named, is_open))


def _describe_given_object(visitor: Visitor, value: ast.expr, scope: Scope) -> str:
    """Return the class of an object, or the text of what is none; nothing where that is not certain."""
    if isinstance(value, ast.Name) and (bound := scope.resolve_name(value.id)):
        if len(bound[1]) != 1 or bound[1][0].kind != "assign" or bound[1][0].name in bound[0].rebound:
            return ""
        value, scope = bound[1][0].node, bound[0]  # type: ignore[assignment]
    if isinstance(value, ast.Call) and (made := find_named_class(value.func, scope)):
        return made
    got, reason, _ = visitor.evaluate_expression(value, scope)
    if not reason and isinstance(got, (str, bytes, bool, int, float)):
        return format_expression(value)
    return f"a {type(value).__name__.lower()}" if isinstance(value, (ast.Dict, ast.List, ast.Tuple, ast.Set)) else ""


def _read_argument_value(made: catalog.ConfigClass, name: str, option: str | None, value: Any) -> tuple[Any, str]:
    """Return what an argument holds in the end, where the class or RunConfig is not strict about numbers and texts."""
    if value is None:
        return None, UNSET
    if name in made.as_text and isinstance(value, int):
        return str(value), ""
    argument = catalog.find_argument(name) if option is None and not made.argument else None
    number = argument is not None and argument.kind == "int" and isinstance(value, (bool, float))
    if number and (isinstance(value, bool) or (value.is_integer() and not argument.whole)):  # type: ignore[union-attr]
        return int(value), ""
    return convert_option_value(option, value)


def convert_option_value(option: str | None, value: Any) -> tuple[Any, str]:
    """Return a Python value as the option stores it, and the reason where it cannot."""
    record = catalog.find_option(option) if option else None
    value, reason = make_plain(value)
    if reason or record is None:
        return value, reason
    if record.field == "i" and isinstance(value, bool):
        return int(value), ""
    if (record.field or record.kind) in ("b", "bool") and type(value) is int:
        return bool(value), ""
    return value, ""


#: What reads run configurations of the adapter, and their parts.
SURFACE = Surface(HOT, _read_call)
