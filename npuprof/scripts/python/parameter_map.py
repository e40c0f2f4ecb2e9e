"""``parameter_map[...]`` in all the shapes people write, and what stands around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.model import Record
from npuprof.scripts.python.constants import format_expression
from npuprof.scripts.python.optimizer_entries import NamedEntry, is_entry_handed_on, is_optimizer_added, note_added_entry
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.terms import list_parts, name_callee
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.records import TAKEN_BACK, Branch, ScriptValue

#: Words in whose lines something of this surface can stand.
HOT = ("parameter_map", "custom_optimizers", "NpuOptimizer", "remapping", "memory_optimization")

#: The name that is taken for a map wherever it is from; nothing is known of the entry that it belongs to.
BARE_MAP = "parameter_map"

#: Helpers that add the entry where it is missing, and switch remapping off.
HELPERS = ("npu_config_proto", "npu_run_config_init", "set_keras_session_npu_config", "init_resource", "npu_session_config_init")

#: What only reads what it is given.
_READERS = frozenset(
    {"print", "pprint", "len", "dict", "list", "set", "sorted", "str", "repr", "bool", "type", "isinstance", "format"}
    | {"debug", "info", "warning", "warn", "error", "log", "write"}
)
_READING = (ast.Subscript, ast.Attribute, ast.Compare, ast.FormattedValue, ast.Expr, ast.If, ast.While, ast.Assert, ast.For, ast.UnaryOp)

FIELDS = ("s", "b", "i", "f")
_MEMBERS = (*FIELDS, "type", "shape", "tensor", "func", "placeholder", "list")


class Rewrite(Record):
    """A rewrite of TensorFlow, ``remapping`` or ``memory_optimization``, that a script switches, and to what."""

    file: str
    line: int
    column: int
    name: str
    state: str


def _read_statement(visitor: Visitor, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    if isinstance(statement, ast.AugAssign) and (entry := _find_map_entry(visitor, statement.target, scope)):
        _report_map_entry(visitor, statement, entry, None, "changes the value that is there", scope, branches)
    for target in statement.targets if isinstance(statement, ast.Delete) else ():
        if isinstance(target, ast.Subscript):
            _report_taken_back(visitor, target, target, scope, branches)
    named = [one for one in expressions if visitor.module.script.names_near(one, "parameter_map")]
    for node in _iterate_maps_out_of_sight(statement, named):
        site = visitor.resolve_site(scope, format_expression(node.value), "session", node)
        why = f"{format_expression(node)} is given to other code, and what that sets is not followed"
        visitor.add_setting(node, "session", "", "", reason=why, branches=branches, scope=site)


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    if entry := _find_map_entry(visitor, target, scope):
        _report_map_entry(visitor, target, entry, value, "", scope, branches)
    elif isinstance(target, ast.Subscript) and (root := _find_map_owner(visitor, target.value, scope)):
        if not _is_other_table(visitor, target, root, scope):
            _report_map_entry(visitor, target, (target, root, None), value, "", scope, branches)
    elif isinstance(target, (ast.Name, ast.Attribute)):
        _note_session_object(visitor, target, value, scope, branches)


def _is_other_table(visitor: Visitor, target: ast.Subscript, root: str, scope: Scope) -> bool:
    """Return whether an item without a field belongs to a table of the script that is merely called parameter_map."""
    if (scope.name, root) in visitor.current:
        return False
    name, why, _ = visitor.evaluate_expression(target.slice, scope)
    if not why and (not isinstance(name, str) or catalog.find_option(name) is None):
        return True
    found = scope.resolve_name(root) if root == "parameter_map" else None
    made = [binding.node for binding in found[1]] if found else []
    return any(isinstance(node, ast.Dict) or (isinstance(node, ast.Call) and format_expression(node.func) == "dict") for node in made)


def _note_session_object(
    visitor: Visitor, target: ast.Name | ast.Attribute, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]
) -> None:
    """Take note of a new optimizer entry, its name, a second name for a map, or a rewrite that is switched."""
    if is_optimizer_added(value):
        root = format_expression(target)
        made = visitor.new_site(scope, root, "session", target, branches, not is_entry_handed_on(visitor, scope, root))
        note_added_entry(visitor, value, target, scope, branches, made, "")
        entries = format_expression(value.func.value)  # type: ignore[attr-defined]
        visitor.current.setdefault((scope.name, f"{entries}[0]"), made)
        visitor.current[scope.name, f"{entries}[-1]"] = made
    elif isinstance(target, ast.Attribute) and target.attr in ("remapping", "memory_optimization"):
        visitor.add_remark(Rewrite(visitor.module.path, *visitor.place(target), target.attr, format_expression(value)))
    elif isinstance(target, ast.Attribute) and target.attr == "name":
        _note_name(visitor, target, value, scope, branches)
    else:
        value = _step_by_call(value)
        whole = isinstance(value, ast.Attribute) and value.attr == "parameter_map"
        if whole or (isinstance(value, ast.Subscript) and _find_map_owner(visitor, value.value, scope)):
            visitor.aliases[scope.name, format_expression(target)] = value


def _note_name(visitor: Visitor, target: ast.Attribute, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Take note of the name that an optimizer entry gets."""
    text, reason, _ = visitor.evaluate_expression(value, scope)
    name = text.decode(errors="replace") if isinstance(text, bytes) else text
    known = not reason and isinstance(name, str)
    if is_optimizer_added(target.value):
        note_added_entry(visitor, target.value, target, scope, branches, "", name if known else "")
    if not known:
        return
    root, _, rest = format_expression(target.value).partition(".")
    where = scope
    while root in where.bound and not rest:
        given, where = where.bound[root]
        root, _, rest = format_expression(given).partition(".")
    site = visitor.current.get((where.name, f"{root}{'.' if rest else ''}{rest}"), "")
    if site:
        visitor.sites[site] = visitor.sites[site]._replace(entry=name)
    if site or name == "NpuOptimizer":
        visitor.add_remark(NamedEntry(visitor.module.path, *visitor.place(value), name, site))


Entry = tuple[ast.Subscript, str, "str | None"]


def _find_map_entry(visitor: Visitor, node: ast.expr, scope: Scope) -> Entry | None:
    """Return the subscript, the object and the field where a node is one field of a parameter map."""
    if not isinstance(node, ast.Attribute):
        return None
    inner = _step_by_call(node.value)
    if isinstance(inner, ast.Attribute) and inner.attr == "list":
        return None
    if isinstance(inner, ast.Subscript) and (root := _find_map_owner(visitor, inner.value, scope)):
        return inner, root, node.attr
    if isinstance(inner, ast.Name):
        known = visitor.find_alias(inner.id, scope)
        if isinstance(known, ast.Subscript) and (root := _find_map_owner(visitor, known.value, scope)):
            return known, root, node.attr
    return None


def _step_by_call(node: ast.expr) -> ast.expr:
    """Return ``map[key]`` for ``map.get_or_create(key)``."""
    if isinstance(node, ast.Call) and name_callee(node) == "get_or_create" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)
    return node


def _find_map_owner(visitor: Visitor, node: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the object whose parameter map a node is, as text; empty where it is none."""
    if isinstance(node, ast.Attribute) and node.attr == "parameter_map":
        return format_expression(node.value)
    if isinstance(node, ast.Name) and depth < 5:
        known = visitor.find_alias(node.id, scope)
        if known is not None:
            return _find_map_owner(visitor, known, scope, depth + 1)
        if node.id in scope.bound:
            return _find_map_owner(visitor, scope.bound[node.id][0], scope.bound[node.id][1], depth + 1)
        return node.id if node.id == BARE_MAP else ""
    return ""


def _list_set_attribute(call: ast.Call) -> list[ast.expr]:
    """Return the object, the attribute and the value of a ``setattr``, nothing for other calls."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "__setattr__":
        return [function.value, *call.args]
    return call.args if isinstance(function, ast.Name) and function.id == "setattr" else []


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """``setattr(map[key], field, value)``, ``map.pop(key)`` and ``map[key].CopyFrom(AttrValue(s=value))``."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "add":  # the last one is another one from here on
        visitor.current.pop((scope.name, f"{format_expression(function.value)}[-1]"), None)
    given = _list_set_attribute(call)
    if len(given) == 3:
        place, name, value = given
        if isinstance(place, ast.Subscript) and (root := _find_map_owner(visitor, place.value, scope)):
            field, why, _ = visitor.evaluate_expression(name, scope)
            _report_map_entry(visitor, call, (place, root, str(field) if not why else None), value, why, scope, branches)
    elif isinstance(function, ast.Attribute) and function.attr == "pop" and call.args:
        place = ast.copy_location(ast.Subscript(function.value, call.args[0], ast.Load()), call)
        _report_taken_back(visitor, call, place, scope, branches)
    elif isinstance(function, ast.Attribute) and function.attr in ("CopyFrom", "MergeFrom") and len(call.args) == 1:
        place = function.value
        if isinstance(place, ast.Subscript) and (root := _find_map_owner(visitor, place.value, scope)):
            copied = call.args[0]
            if isinstance(copied, ast.Call) and len(copied.keywords) == 1 and copied.keywords[0].arg in _MEMBERS:
                _report_map_entry(visitor, call, (place, root, copied.keywords[0].arg), copied.keywords[0].value, "", scope, branches)
            else:
                why = f"depends on {format_expression(copied)}"
                _report_map_entry(visitor, call, (place, root, None), None, why, scope, branches)


def _report_taken_back(visitor: Visitor, node: ast.AST, place: ast.Subscript, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Report that a key is taken out of a parameter map, where it has been set before."""
    name, unknown, _ = visitor.evaluate_expression(place.slice, scope)
    if not unknown and name in visitor.names and (root := _find_map_owner(visitor, place.value, scope)):
        _report_map_entry(visitor, node, (place, root, None), None, TAKEN_BACK, scope, branches)


def _report_map_entry(
    visitor: Visitor, node: ast.AST, entry: Entry, value: ast.expr | None, reason: str, scope: Scope, branches: tuple[Branch, ...]
) -> None:
    place, root, field = entry
    if "[-" in root and (scope.name, root) not in visitor.current:
        visitor.new_site(scope, root, "session", node, (), closed=False)
    scope_name = visitor.resolve_site(scope, root, "session", node)
    name, why, _ = visitor.evaluate_expression(place.slice, scope)
    if not why and isinstance(name, bytes):
        name = name.decode(errors="replace")
    if why or not isinstance(name, str):
        why = why or f"{format_expression(place.slice)} is no text"
        visitor.add_setting(node, "session", "", "", field=field, reason=f"the key is computed: {why}", branches=branches, scope=scope_name)
        return
    if value is None or field is None:
        given = ScriptValue(None, reason or "assigned without a field: a protobuf map of messages raises ValueError")
    else:
        given = ScriptValue(None, reason) if reason else visitor.read_value(value, scope, lambda got: convert_field_value(got, field))
    if given.kind == "str" and visitor.module.script.is_python2:
        given = given._replace(kind="bytes")
    visitor.add_setting(node, "session", format_key_segment(name), name, given, field=field, branches=branches, scope=scope_name)


def convert_field_value(value: Any, field: str | None) -> tuple[Any, str]:
    """Return what a protobuf field would hold, and the reason where it would refuse."""
    if isinstance(value, (bytes, bytearray)):
        try:
            value = bytes(value).decode()
        except UnicodeDecodeError:
            return None, "the bytes are not UTF-8 text"
    if value is None:
        return None, "None cannot be stored in a protobuf field"
    if isinstance(value, str):
        return value, ""
    if field == "b" and isinstance(value, (bool, int)):
        return bool(value), ""
    if field == "i" and isinstance(value, (bool, int)):
        return int(value), ""
    if isinstance(value, (bool, int, float)):
        return value, ""
    return None, f"a {type(value).__name__} cannot be stored in a protobuf field"


def _iterate_maps_out_of_sight(statement: ast.stmt, expressions: list[ast.expr]) -> Iterator[ast.Attribute]:
    """Yield each parameter map that a statement gives to what is not followed; a second name of it is."""
    waiting: list[tuple[ast.AST, ast.AST]] = [(statement, one) for one in expressions]
    while waiting:
        parent, node = waiting.pop()
        waiting += [(node, child) for child in list_parts(node)]
        if isinstance(node, ast.Attribute) and node.attr == "parameter_map" and not _is_followed(parent):
            yield node


def _is_followed(parent: ast.AST) -> bool:
    if isinstance(parent, ast.Assign):
        return all(isinstance(target, ast.Name) for target in parent.targets)
    if isinstance(parent, ast.AnnAssign):
        return isinstance(parent.target, ast.Name)
    if isinstance(parent, ast.Call):
        return name_callee(parent) in _READERS
    return isinstance(parent, _READING)


#: What reads parameter maps.
SURFACE = Surface(HOT, _read_call, _read_assignment, _read_statement)
