"""``parameter_map[...]`` in all the shapes people write, and what stands around it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.scripts.reading.found import TAKEN_BACK, Branch
from npuprof.scripts.reading.surfaces.entries import LaidOn, is_entry_handed_on, is_optimizer_added, note_added_entry
from npuprof.scripts.reading.surfaces.inner_calls import iterate_inner_calls
from npuprof.scripts.reading.surfaces.map_uses import iterate_maps_out_of_sight
from npuprof.scripts.reading.surfaces.view import MOST_CALLS, unite_runs
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.arguments import bind_call_arguments
from npuprof.scripts.reading.values.literals import format_expression
from npuprof.scripts.reading.values.order import runs_once
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee

#: Words in whose lines something of this surface can stand.
HOT = ("parameter_map", "custom_optimizers", "NpuOptimizer", "remapping", "memory_optimization")

#: The name that is taken for a map wherever it is from; nothing is known of the entry that it belongs to.
BARE_MAP = "parameter_map"

#: Helpers that add the entry where it is missing, and switch remapping off.
HELPERS = ("npu_config_proto", "npu_run_config_init", "set_keras_session_npu_config", "init_resource", "npu_session_config_init")

FIELDS = ("s", "b", "i", "f")
_MEMBERS = (*FIELDS, "type", "shape", "tensor", "func", "placeholder", "list")


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read one statement."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            _handle_assignment(walk, target, statement.value, scope, branches)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        _handle_assignment(walk, statement.target, statement.value, scope, branches)
    elif isinstance(statement, ast.AugAssign):
        entry = _find_map_entry(walk, statement.target, scope)
        if entry:
            _report_map_entry(walk, statement, entry, None, "changes the value that is there", scope, branches)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _handle_call(walk, statement.value, scope, branches)
    elif isinstance(statement, ast.Delete):
        for target in statement.targets:
            if isinstance(target, ast.Subscript):
                _report_taken_back(walk, target, target, scope, branches)
    for call, reason in iterate_inner_calls(statement, expressions):
        _handle_call(walk, call, scope, branches, reason)
    for node in iterate_maps_out_of_sight(statement, expressions):
        site = walk.resolve_site(scope, format_expression(node.value), "session", node)
        why = f"{format_expression(node)} is given to other code, and what that sets is not followed"
        walk.add_setting(node, "session", "", "", reason=why, branches=branches, scope=site)


def _handle_assignment(walk: Walk, target: ast.expr, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
        for inner, item in zip(target.elts, value.elts, strict=True):
            _handle_assignment(walk, inner, item, scope, branches)
        return
    entry = _find_map_entry(walk, target, scope)
    if entry:
        _report_map_entry(walk, target, entry, value, "", scope, branches)
        return
    if isinstance(target, ast.Subscript) and (root := _find_map_owner(walk, target.value, scope)):
        if not _is_other_table(walk, target, root, scope):
            _report_map_entry(walk, target, (target, root, None), value, "", scope, branches)
        return
    if isinstance(target, (ast.Name, ast.Attribute)):
        _note_session_object(walk, target, value, scope, branches)


def _is_other_table(walk: Walk, target: ast.Subscript, root: str, scope: Scope) -> bool:
    """Return whether an item without a field belongs to a table of the script that is merely called parameter_map."""
    if (scope.name, root) in walk.current:
        return False
    name, why, _ = walk.evaluate_expression(target.slice, scope)
    if not why and (not isinstance(name, str) or catalog.find_option(name) is None):
        return True
    found = scope.resolve_name(root) if root == "parameter_map" else None
    made = [binding.node for binding in found[1]] if found else []
    return any(isinstance(node, ast.Dict) or (isinstance(node, ast.Call) and format_expression(node.func) == "dict") for node in made)


def _note_session_object(walk: Walk, target: ast.Name | ast.Attribute, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Take note of a new optimizer entry, its name, a second name for a map, or a rewrite that is switched."""
    place = target.lineno, walk.script.column(target.lineno, target.col_offset)
    if is_optimizer_added(value):
        root = format_expression(target)
        made = walk.new_site(scope, root, "session", target, branches, not is_entry_handed_on(walk, scope, root))
        if not scope.label:
            _note_runs(walk, made, scope)
        walk.add_fact("added", place)
        note_added_entry(walk, value, place, scope, branches, made, "")
        return
    if isinstance(target, ast.Attribute) and target.attr in ("remapping", "memory_optimization"):
        state = format_expression(value)
        walk.add_fact(target.attr, (*place, state))
        return
    if isinstance(target, ast.Attribute) and target.attr == "name":
        owner = target.value
        if is_optimizer_added(owner):
            walk.add_fact("added", place)
        text, reason, _ = walk.evaluate_expression(value, scope)
        if reason or not isinstance(text, (str, bytes)):
            return
        name = text.decode(errors="replace") if isinstance(text, bytes) else text
        if is_optimizer_added(owner):
            note_added_entry(walk, owner, place, scope, branches, "", name)
        site = walk.current.get((scope.name, format_expression(owner)))
        if site is not None:
            column = walk.script.column(value.lineno, value.col_offset)
            walk.sites[site] = walk.sites[site]._replace(entry=name)
            walk.add_fact("entries", (value.lineno, column, name, site))
        elif name == "NpuOptimizer":
            walk.add_fact("entries", (value.lineno, 0, name, ""))
        return
    value = _step_by_call(value)
    whole = isinstance(value, ast.Attribute) and value.attr == "parameter_map"
    if whole or (isinstance(value, ast.Subscript) and _find_map_owner(walk, value.value, scope)):
        walk.aliases[scope.name, format_expression(target)] = value


Entry = tuple[ast.Subscript, str, "str | None"]


def _find_map_entry(walk: Walk, node: ast.expr, scope: Scope) -> Entry | None:
    """Return the subscript, the object and the field where a node is one field of a parameter map."""
    if not isinstance(node, ast.Attribute):
        return None
    inner = _step_by_call(node.value)
    if isinstance(inner, ast.Attribute) and inner.attr == "list":
        return None
    if isinstance(inner, ast.Subscript) and (root := _find_map_owner(walk, inner.value, scope)):
        return inner, root, node.attr
    if isinstance(inner, ast.Name):
        known = walk.find_alias(inner.id, scope)
        if isinstance(known, ast.Subscript) and (root := _find_map_owner(walk, known.value, scope)):
            return known, root, node.attr
    return None


def _step_by_call(node: ast.expr) -> ast.expr:
    """Return ``map[key]`` for ``map.get_or_create(key)``."""
    if isinstance(node, ast.Call) and name_callee(node) == "get_or_create" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)
    return node


def _find_map_owner(walk: Walk, node: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the object whose parameter map a node is, as text; empty where it is none."""
    if isinstance(node, ast.Attribute) and node.attr == "parameter_map":
        return format_expression(node.value)
    if isinstance(node, ast.Name) and depth < 5:
        known = walk.find_alias(node.id, scope)
        if known is not None:
            return _find_map_owner(walk, known, scope, depth + 1)
        if node.id in scope.bound:
            return _find_map_owner(walk, scope.bound[node.id][0], scope.bound[node.id][1], depth + 1)
        return node.id if node.id == BARE_MAP else ""
    return ""


def _handle_call(walk: Walk, call: ast.Call, scope: Scope, branches: tuple[Branch, ...], reason: str = "") -> None:
    """``setattr(map[key], field, value)`` and ``map[key].CopyFrom(AttrValue(s=value))``; for a ``reason`` it may set nothing."""
    function = call.func
    given: list[ast.expr] = []
    if isinstance(function, ast.Name) and function.id == "setattr":
        given = call.args
    elif isinstance(function, ast.Attribute) and function.attr == "__setattr__":
        given = [function.value, *call.args]
    if len(given) == 3:
        place, name, value = given
        if isinstance(place, ast.Subscript) and (root := _find_map_owner(walk, place.value, scope)):
            field, why, _ = walk.evaluate_expression(name, scope)
            _report_map_entry(walk, call, (place, root, str(field) if not why else None), value, reason or why, scope, branches)
    elif isinstance(function, ast.Attribute) and function.attr == "pop" and call.args:
        place = ast.copy_location(ast.Subscript(function.value, call.args[0], ast.Load()), call)
        _report_taken_back(walk, call, place, scope, branches)
    elif isinstance(function, ast.Attribute) and function.attr in ("CopyFrom", "MergeFrom") and len(call.args) == 1:
        place = function.value
        if isinstance(place, ast.Subscript) and (root := _find_map_owner(walk, place.value, scope)):
            copied = call.args[0]
            if isinstance(copied, ast.Call) and len(copied.keywords) == 1 and copied.keywords[0].arg in _MEMBERS:
                _report_map_entry(walk, call, (place, root, copied.keywords[0].arg), copied.keywords[0].value, reason, scope, branches)
            else:
                why = f"depends on {format_expression(copied)}"
                _report_map_entry(walk, call, (place, root, None), None, reason or why, scope, branches)


def _report_taken_back(walk: Walk, node: ast.AST, place: ast.Subscript, scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Report that a key is taken out of a parameter map, where it has been set before."""
    name, unknown, _ = walk.evaluate_expression(place.slice, scope)
    if not unknown and name in walk.names and (root := _find_map_owner(walk, place.value, scope)):
        _report_map_entry(walk, node, (place, root, None), None, TAKEN_BACK, scope, branches)


def _report_map_entry(
    walk: Walk, node: ast.AST, entry: Entry, value: ast.expr | None, reason: str, scope: Scope, branches: tuple[Branch, ...]
) -> None:
    place, root, field = entry
    scope_name = _resolve_counted_entry(walk, node, root, scope) or walk.resolve_site(scope, root, "session", node)
    _note_who_hands(walk, root, scope_name, scope)
    owner = scope_name.partition(":")[0]
    runs = None
    if owner != (scope.name or "<module>") and not scope.label and root not in scope.bound:  # an object of a function around this one
        runs = walk.list_runs(scope, "" if owner == "<module>" else owner)
        branches = (*unite_runs(runs), *branches) if runs else branches
    name, why, _ = walk.evaluate_expression(place.slice, scope)
    if not why and isinstance(name, bytes):
        name = name.decode(errors="replace")
    if why or not isinstance(name, str):
        why = why or f"{format_expression(place.slice)} is no text"
        walk.add_setting(node, "session", "", "", field=field, reason=f"the key is computed: {why}", branches=branches, scope=scope_name)
        return
    more: dict[str, Any] = {"field": field, "branches": branches, "scope": scope_name}
    if runs == ():
        more["dead"] = True
    if field is None and not reason:
        reason = "assigned without a field: a protobuf map of messages raises ValueError"
    elif not reason:
        assert value is not None
        got, reason, default = walk.evaluate_expression(value, scope)
        more["default"] = convert_field_value(default, field)[0] if default is not None else None
        if not reason:
            more["kind"] = type(got).__name__
            more["value"], reason = convert_field_value(got, field)
    walk.add_setting(node, "session", format_key_segment(name), name, reason=reason, **more)


def _note_who_hands(walk: Walk, root: str, site: str, scope: Scope) -> None:
    """Take note of the calls that hand a function of this file the object it sets something in."""
    function = scope.node
    if root in scope.bound or scope.label or site in walk.handed_sites or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    if scope.list_binding_kinds(root) != {"parameter"}:
        _note_runs(walk, site, scope)
        return
    walk.handed_sites.add(site)
    for call, where in walk.find_calls(function.name)[: MOST_CALLS + 1]:
        given = (bind_call_arguments(function, scope, call, where) or {}).get(root)
        expression = format_expression(given[0]) if given else ""
        tests, never = walk.list_tests(call, where)
        if not never:
            walk.add_fact("laid on", LaidOn(site, expression, where.name, call.lineno, bool(given) and runs_once(call, where), tests))
    if len(walk.find_calls(function.name)) > MOST_CALLS:
        walk.add_fact("laid on", LaidOn(site, "", "", function.lineno, False))


def _note_runs(walk: Walk, site: str, scope: Scope) -> None:
    """Take note of the tests under which a function runs that sets something in an object of its class, or of what is around it."""
    walk.handed_sites.add(site)
    runs = walk.list_runs(scope)
    if runs is not None and not (runs and all(not tests for tests in runs)):
        walk.add_fact("runs", (site, runs))


def _resolve_counted_entry(walk: Walk, node: ast.AST, root: str, scope: Scope) -> str:
    """Return the entry that is counted from the end (``entries[-1]``): another one after each that is added. Nothing for others."""
    if "[-" not in root or not isinstance(node, (ast.expr, ast.stmt)):
        return ""
    known: dict[tuple[str, str, int], str] = walk.counted_entries
    mark = scope.name, root, bisect_left(walk.adding_lines, node.lineno)
    if mark not in known:
        plain = walk.resolve_site(scope, root, "session", node)
        known[mark] = plain if plain not in known.values() else walk.new_site(scope, root, "session", node, (), closed=False)
    return known[mark]


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
