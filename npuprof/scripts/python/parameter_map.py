"""``parameter_map[...]`` in all usual forms, and related statements."""

from __future__ import annotations

import ast
import re
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.scripts.python.expressions import format_expression, is_handed_on, name_callee
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

_COMMENTED = re.compile(r"(\s*)(#.*\bparameter_map\s*\[.*)")

#: Functions that only read a map argument.
_READERS = frozenset(("print", "len", "dict", "list", "sorted", "str", "repr", "info", "debug"))

#: Methods that assign a value to an entry.
_WRITING = frozenset(("CopyFrom", "MergeFrom", "ParseFromString", "__setattr__"))


class Rewrite(LocatedRecord):
    """A TensorFlow rewriter setting of a script, ``remapping`` or ``memory_optimization``, and its
    value.
    """

    name: str
    state: str


def _read_statement(visitor: Visitor, statement: ast.stmt, scope: Scope) -> None:
    if isinstance(statement, ast.AugAssign) and (entry := _find_map_entry(statement.target, scope)):
        _report_map_entry(visitor, statement, entry, None, "changes the value that is there", scope)
    for target in statement.targets if isinstance(statement, ast.Delete) else ():
        _report_change(visitor, target, target, TAKEN_BACK, scope)


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    if entry := _find_map_entry(target, scope):
        _report_map_entry(visitor, target, entry, value, "", scope)
    elif place := _find_place(target, scope):
        name, _ = visitor.evaluate_expression(place[0].slice, scope)
        # the name is common: other tables may have it too
        if (scope.name, place[1]) in visitor.current or (
            place[1] != BARE_MAP and isinstance(name, str) and catalog.find_option(name)
        ):
            _report_map_entry(visitor, target, (*place, None), value, "", scope)
    elif isinstance(target, (ast.Name, ast.Attribute)):
        _note_session_object(visitor, target, value, scope)


def _note_session_object(
    visitor: Visitor, target: ast.Name | ast.Attribute, value: ast.expr, scope: Scope
) -> None:
    """Record a new optimizer entry, its name, an alias of a part of a map, or a
    rewriter setting.
    """
    if is_optimizer_added(value):
        root = format_expression(target)
        site = visitor.new_site(
            scope, root, "session", target, not is_handed_on(root, visitor.module.script.text)
        )
        note_added_entry(visitor, value, target, scope, site, "")
        return
    match target:
        case ast.Attribute(attr="remapping" | "memory_optimization" as name):
            visitor.add_record(
                Rewrite(visitor.module.path, *visitor.place(target), name, format_expression(value))
            )
        case ast.Attribute(attr="name"):
            _note_name(visitor, target, value, scope)
        case _ if isinstance(value, ast.Subscript) and _follow(target, scope) is not value:
            _report_change(
                visitor,
                value,
                value,
                f"{format_expression(target)} is a second name of it, which is not followed",
                scope,
            )


def _note_name(visitor: Visitor, target: ast.Attribute, value: ast.expr, scope: Scope) -> None:
    """Record the name of an optimizer entry."""
    text, reason = visitor.evaluate_expression(value, scope)
    name = text.decode(errors="replace") if isinstance(text, bytes) else text
    known = not reason and isinstance(name, str)
    if is_optimizer_added(target.value):
        note_added_entry(visitor, target.value, target, scope, "", name if known else "")
    if not known:
        return
    root, where = scope.name_outside(format_expression(target.value))
    site = visitor.current.get((where.name, root), "")
    if site:
        visitor.sites[site] = visitor.sites[site]._replace(entry=name)
    if site or name == "NpuOptimizer":
        visitor.add_record(NamedEntry(visitor.module.path, *visitor.place(value), name, site))


Entry = tuple[ast.Subscript, str, "str | None"]


def _find_map_entry(node: ast.expr, scope: Scope) -> Entry | None:
    """Return subscript, object and field of a parameter map entry."""
    match node:
        case ast.Attribute(owner, field) if place := _find_place(_follow(owner, scope), scope):
            return *place, field
    return None


def _find_place(node: ast.expr, scope: Scope) -> tuple[ast.Subscript, str] | None:
    """Return a subscript of a parameter map, with the object of the map as text.

    None for other nodes.
    """
    if not isinstance(node, ast.Subscript):
        return None
    match _follow(node.value, scope):
        case ast.Attribute(owner, "parameter_map"):
            return node, format_expression(owner)
        case ast.Name("parameter_map"):
            return node, BARE_MAP
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
            if place := _find_place(entry, scope):
                field, why = visitor.evaluate_expression(name, scope)
                _report_map_entry(
                    visitor, call, (*place, str(field) if not why else None), value, why, scope
                )
        case ast.Call(ast.Attribute(table, "pop" | "get_or_create" as method), [key, *_]):
            why = TAKEN_BACK if method == "pop" else f"depends on {format_expression(call)}"
            _report_change(
                visitor,
                call,
                ast.copy_location(ast.Subscript(table, key, ast.Load()), call),
                why,
                scope,
            )
        case ast.Call(ast.Attribute(entry, method)) if method in _WRITING:
            _report_change(visitor, call, entry, f"depends on {format_expression(call)}", scope)
    for argument in call.args if name_callee(call) not in _READERS else ():
        if isinstance(argument, ast.Attribute) and argument.attr == BARE_MAP:
            site = visitor.resolve_site(scope, format_expression(argument.value), argument)
            why = (
                f"{format_expression(argument)} is passed to "
                "other code, whose changes to it are not traced"
            )
            visitor.add_setting(argument, "session", "", "", reason=why, scope=site)


def _report_change(
    visitor: Visitor, node: ast.expr, place: ast.expr, why: str, scope: Scope
) -> None:
    """Report that an entry is removed from a parameter map, or changed in a way that is
    not followed.
    """
    if found := _find_place(place, scope):
        _report_map_entry(visitor, node, (*found, ""), None, why, scope)


def _report_map_entry(
    visitor: Visitor, node: Located, entry: Entry, value: ast.expr | None, reason: str, scope: Scope
) -> None:
    place, root, field = entry
    scope_name = visitor.resolve_site(scope, root, node)
    name, why = visitor.evaluate_expression(place.slice, scope)
    if why or not isinstance(name, str):
        why = why or f"{format_expression(place.slice)} is no text"
        visitor.add_setting(
            node,
            "session",
            "",
            "",
            field=field,
            reason=f"the key is computed: {why}",
            scope=scope_name,
        )
        return
    reason = reason or ("depends on which entry is the last one" if "[-" in root else "")
    if reason or value is None or field is None:
        value_of = ScriptValue(
            None, reason or "assigned without a field: a protobuf map of messages raises ValueError"
        )
    else:
        value_of = visitor.read_value(value, scope, lambda got: convert_field_value(got, field))
    if value_of.kind == "str" and visitor.module.script.is_python2:
        value_of = value_of._replace(kind="bytes")
    visitor.add_setting(
        node, "session", format_key_segment(name), name, value_of, field=field, scope=scope_name
    )


def convert_field_value(value: Any, field: str | None) -> Converted:
    """Return a value as stored in a protobuf field, and the reason if it is rejected."""
    if isinstance(value, (bytes, bytearray)):
        try:
            value = bytes(value).decode()
        except UnicodeDecodeError:
            return None, "the bytes are not UTF-8 text"
    if value is None:
        return None, "None cannot be stored in a protobuf field"
    if field in ("b", "i") and isinstance(value, int):
        return (bool(value) if field == "b" else int(value)), ""
    if isinstance(value, (str, int, float)):
        return value, ""
    return None, f"a {type(value).__name__} cannot be stored in a protobuf field"


#: Words of lines with settings of this surface.
_WORDS = ("parameter_map", "custom_optimizers", "NpuOptimizer", "remapping", "memory_optimization")
#: Reads parameter maps.
SURFACE = Surface(_WORDS, _read_call, _read_assignment, _read_statement)


def find_commented_settings(module: Module) -> list[ScriptSetting]:
    """Return the parameter-map lines in separate comment lines."""
    lines = module.script.lines
    matches = [
        (at, match)
        for at, line in enumerate(lines, 1)
        if "parameter_map" in line and (match := _COMMENTED.fullmatch(line))
    ]
    texts = (
        [node for node in module.index.nodes if isinstance(node, (ast.Constant, ast.JoinedStr))]
        if matches
        else []
    )
    inside = {line for text in texts for line in list_lines(text)[1:]}
    own = ((line, match) for line, match in matches if line not in inside)
    return [setting for line, match in own for setting in _read_comment(module, line, match)]


def _read_comment(module: Module, line: int, match: re.Match[str]) -> list[ScriptSetting]:
    """Return the settings in a comment's text, parsed as a script."""
    script = Script(module.path, match[2].lstrip("# \t").strip().encode())
    if (
        script.tree is None
        or not script.tree.body
        or not isinstance(script.tree.body[0], ast.Assign)
    ):
        return []
    visitor = Visitor(Module(script, module.home), lambda _: (SURFACE,))
    visitor.visit_module()
    at = ScriptLocation(module.path, line, match.end(1) + 1)
    return [
        setting._replace(location=at, scope="", order=0, commented=True)
        for setting in visitor.found
        if setting.key
    ]
