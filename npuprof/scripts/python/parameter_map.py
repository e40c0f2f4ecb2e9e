"""``parameter_map[...]`` in all usual forms, and related statements."""

from __future__ import annotations

import ast
import re
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.model import Record
from npuprof.scripts.python.expressions import format_expression, is_passed_on, name_callee
from npuprof.scripts.python.loops import follow_name
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.optimizer_entries import (
    NamedEntry,
    is_optimizer_added,
    note_added_entry,
)
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.statements import Located, list_lines
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import (
    TAKEN_BACK,
    Converted,
    LocatedRecord,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
)
from npuprof.system import decode_safely

#: A name that always denotes a parameter map; its entry is unknown.
BARE_MAP = "parameter_map"

#: Helpers that add the entry if it is missing, and disable remapping.
HELPERS = (
    "npu_config_proto",
    "npu_run_config_init",
    "set_keras_session_npu_config",
    "init_resource",
    "npu_session_config_init",
)

_COMMENTED = re.compile(r"\s*(?P<comment>#.*\bparameter_map\s*\[.*)")

#: Functions that only read a map argument.
_READERS = frozenset(("print", "len", "dict", "list", "sorted", "str", "repr", "info", "debug"))

#: Methods that assign a value to an entry.
_WRITING = frozenset(("CopyFrom", "MergeFrom", "ParseFromString", "__setattr__"))


class Rewrite(LocatedRecord):
    """A TensorFlow rewriter setting of a script and its value.

    ``name`` is ``remapping`` or ``memory_optimization``.
    """

    name: str
    state: str


class _MapEntry(Record):
    """An entry of a parameter map: ``subscript`` of the map of the object ``root``, a text.

    ``field`` is the protobuf field that a script uses, None without one.
    """

    subscript: ast.Subscript
    root: str
    field: str | None = None


def _read_statement(visitor: Visitor, statement: ast.stmt, scope: Scope) -> None:
    match statement:
        case ast.AugAssign(target):
            if entry := _find_field(target, scope):
                reason = "changes the value that is there"
                _report_entry(visitor, statement, entry, None, reason, scope)
        case ast.Delete(targets):
            for deleted in targets:
                _report_change(visitor, deleted, deleted, TAKEN_BACK, scope)


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    if entry := _find_field(target, scope):
        _report_entry(visitor, target, entry, value, "", scope)
    elif entry := _find_entry(target, scope):
        if _is_optimizer_entry(visitor, entry, scope):
            _report_entry(visitor, target, entry, value, "", scope)
    elif isinstance(target, (ast.Name, ast.Attribute)):
        _note_session_object(visitor, target, value, scope)


def _is_optimizer_entry(visitor: Visitor, entry: _MapEntry, scope: Scope) -> bool:
    """Return whether an entry is one of the adapter's: other tables may have the name too."""
    if (scope.name, entry.root) in visitor.current:
        return True
    if entry.root == BARE_MAP:
        return False
    name, _ = visitor.evaluate_expression(entry.subscript.slice, scope)
    return isinstance(name, str) and catalog.find_option(name) is not None


def _note_session_object(
    visitor: Visitor, target: ast.Name | ast.Attribute, value: ast.expr, scope: Scope
) -> None:
    """Record a new optimizer entry, its name, an alias of an entry, or a rewriter setting."""
    if is_optimizer_added(value):
        root = format_expression(target)
        # a function that is given the entry may add settings to it
        closed = not is_passed_on(root, visitor.module.script.text)
        site = visitor.new_site(scope, root, "session", target, closed)
        note_added_entry(visitor, value, target, scope, site, "")
        return
    match target:
        case ast.Attribute(attr="remapping" | "memory_optimization" as name):
            state = format_expression(value)
            visitor.add_record(Rewrite(visitor.module.path, *visitor.locate(target), name, state))
        case ast.Attribute(attr="name"):
            _note_name(visitor, target, value, scope)
        case _ if isinstance(value, ast.Subscript) and _follow(target, scope) is not value:
            reason = f"{format_expression(target)} is a second name of it, which is not followed"
            _report_change(visitor, value, value, reason, scope)


def _note_name(visitor: Visitor, target: ast.Attribute, value: ast.expr, scope: Scope) -> None:
    """Record the name of an optimizer entry."""
    text, reason = visitor.evaluate_expression(value, scope)
    name = decode_safely(text) if isinstance(text, bytes) else text
    known = not reason and isinstance(name, str)
    if is_optimizer_added(target.value):
        note_added_entry(visitor, target.value, target, scope, "", name if known else "")
    if not known:
        return
    root, where = scope.name_outside(format_expression(target.value))
    site = visitor.current.get((where.name, root), "")
    if site:
        visitor.sites[site] = visitor.sites[site]._replace(entry=name)
    # an entry that is created elsewhere is still the adapter's
    if site or name == "NpuOptimizer":
        visitor.add_record(NamedEntry(visitor.module.path, *visitor.locate(value), name, site))


def _find_field(node: ast.expr, scope: Scope) -> _MapEntry | None:
    """Return the parameter map entry whose protobuf field a node denotes, None for other nodes."""
    match node:
        case ast.Attribute(owner, field):
            entry = _find_entry(_follow(owner, scope), scope)
            return entry._replace(field=field) if entry else None
    return None


def _find_entry(node: ast.expr, scope: Scope) -> _MapEntry | None:
    """Return the parameter map entry that a subscript denotes, None for other nodes."""
    if not isinstance(node, ast.Subscript):
        return None
    match _follow(node.value, scope):
        case ast.Attribute(owner, "parameter_map"):
            return _MapEntry(node, format_expression(owner))
        case ast.Name("parameter_map"):
            return _MapEntry(node, BARE_MAP)
    return None


def _follow(node: ast.expr, scope: Scope) -> ast.expr:
    """Return the single expression of a name, the node itself if there is none."""
    return follow_name(node, scope, may_change=True)[0] if isinstance(node, ast.Name) else node


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    """Read ``setattr(map[key], field, value)``.

    Methods such as ``map[key].CopyFrom(value)`` are not followed.
    """
    match call:
        case ast.Call(ast.Name("setattr"), [entry, name, value]):
            if map_entry := _find_entry(entry, scope):
                field, reason = visitor.evaluate_expression(name, scope)
                map_entry = map_entry._replace(field=None if reason else str(field))
                _report_entry(visitor, call, map_entry, value, reason, scope)
        case ast.Call(ast.Attribute(table, "pop" | "get_or_create" as method), [key, *_]):
            reason = TAKEN_BACK if method == "pop" else f"depends on {format_expression(call)}"
            subscript = ast.copy_location(ast.Subscript(table, key, ast.Load()), call)
            _report_change(visitor, call, subscript, reason, scope)
        case ast.Call(ast.Attribute(entry, method)) if method in _WRITING:
            _report_change(visitor, call, entry, f"depends on {format_expression(call)}", scope)
    if name_callee(call) in _READERS:
        return
    for argument in call.args:
        if isinstance(argument, ast.Attribute) and argument.attr == BARE_MAP:
            site = visitor.resolve_site(scope, format_expression(argument.value), argument)
            reason = (
                f"{format_expression(argument)} is passed to "
                "other code, whose changes to it are not traced"
            )
            visitor.add_setting(argument, "session", "", "", reason=reason, scope=site)


def _report_change(
    visitor: Visitor, node: ast.expr, subscript: ast.expr, reason: str, scope: Scope
) -> None:
    """Report that a map entry is removed, or changed in a way that is not followed."""
    if entry := _find_entry(subscript, scope):
        _report_entry(visitor, node, entry._replace(field=""), None, reason, scope)


def _report_entry(
    visitor: Visitor,
    node: Located,
    entry: _MapEntry,
    value: ast.expr | None,
    reason: str,
    scope: Scope,
) -> None:
    """Report a map entry with the value that is assigned, or the reason why it is unknown."""
    field = entry.field
    site = visitor.resolve_site(scope, entry.root, node)
    name, why = visitor.evaluate_expression(entry.subscript.slice, scope)
    if why or not isinstance(name, str):
        why = why or f"{format_expression(entry.subscript.slice)} is no text"
        reason = f"the key is computed: {why}"
        visitor.add_setting(node, "session", "", "", reason=reason, field=field, scope=site)
        return
    # an entry counted from the end is another one after each add()
    if not reason and "[-" in entry.root:
        reason = "depends on which entry is the last one"
    if reason or value is None or field is None:
        without_field = "assigned without a field: a protobuf map of messages raises ValueError"
        read = ScriptValue(None, reason or without_field)
    else:
        read = visitor.read_value(value, scope, lambda got: convert_field_value(got, field))
    # in Python 2, a text is what Python 3 calls bytes
    if read.kind == "str" and visitor.module.script.is_python2:
        read = read._replace(kind="bytes")
    key = format_key_segment(name)
    visitor.add_setting(node, "session", key, name, read, field=field, scope=site)


def convert_field_value(value: Any, field: str | None) -> Converted:
    """Return a value as stored in a protobuf field, and the reason if it is rejected."""
    if isinstance(value, (bytes, bytearray)):
        try:
            value = bytes(value).decode()
        except UnicodeDecodeError:
            return None, "the bytes are not UTF-8 text"
    if value is None:
        return None, "None cannot be stored in a protobuf field"
    # protobuf stores a bool in an integer field as a number, and the other way round
    if field in ("b", "i") and isinstance(value, int):
        return (bool(value) if field == "b" else int(value)), ""
    if isinstance(value, (str, int, float)):
        return value, ""
    return None, f"a {type(value).__name__} cannot be stored in a protobuf field"


#: Texts in lines with settings of this surface.
_MARKERS = (
    "parameter_map",
    "custom_optimizers",
    "NpuOptimizer",
    "remapping",
    "memory_optimization",
)
#: Reads parameter maps.
SURFACE = Surface(_MARKERS, _read_call, _read_assignment, _read_statement)


def find_commented_settings(module: Module) -> list[ScriptSetting]:
    """Return the parameter-map lines in separate comment lines."""
    matches = {
        number: match
        for number, line in enumerate(module.script.lines, 1)
        if "parameter_map" in line and (match := _COMMENTED.fullmatch(line))
    }
    if not matches:
        return []
    # a line within a string is not a comment
    inside_texts = {
        line
        for node in module.index.nodes
        if isinstance(node, (ast.Constant, ast.JoinedStr))
        for line in list_lines(node)[1:]
    }
    return [
        setting
        for number, match in matches.items()
        if number not in inside_texts
        for setting in _read_comment(module, number, match)
    ]


def _read_comment(module: Module, line: int, match: re.Match[str]) -> list[ScriptSetting]:
    """Return the settings in a comment's text, parsed as a script."""
    script = Script(module.path, match["comment"].lstrip("# \t").strip().encode())
    match script.tree:
        case ast.Module([ast.Assign(), *_]):
            visitor = Visitor(Module(script, module.home), lambda _: (SURFACE,))
        case _:
            return []
    visitor.visit_module()
    column = match.start("comment") + 1
    return [
        setting._replace(
            location=ScriptLocation(module.path, line, column), scope="", order=0, commented=True
        )
        for setting in visitor.settings
        if setting.key
    ]
