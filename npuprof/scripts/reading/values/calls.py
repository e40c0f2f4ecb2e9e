"""Calls and parameters inside one file: what the functions of a script are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from npuprof.scripts.reading.found import Branch, FoundSetting
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.values.arguments import collect_parameter_defaults
from npuprof.scripts.reading.values.literals import METHODS, Unknown, fold_expression
from npuprof.scripts.reading.values.loops import unroll_loop
from npuprof.scripts.reading.values.scopes import MOST_BINDINGS, Scope
from npuprof.scripts.reading.values.terms import TOO_MUCH


def reads_parameter(node: ast.AST, scope: Scope, depth: int = 0) -> bool:
    """Return whether an expression reads a parameter of the function it stands in."""
    if isinstance(node, ast.Name):
        found = scope.resolve_name(node.id)
        if found and not found[1] and found[0].label and depth < 20:  # given by the file whose call is being followed
            return reads_parameter(*found[0].bound[node.id], depth + 1)
        if not found or not 0 < len(found[1]) <= MOST_BINDINGS or found[0].node is not scope.node or depth > 20:
            return False
        kinds = {binding.kind for binding in found[1]}
        return kinds == {"parameter"} or (kinds == {"assign"} and any(reads_parameter(one.node, scope, depth + 10) for one in found[1]))
    if isinstance(node, ast.Attribute) and node.attr not in METHODS and node.attr != "get":
        return False  # an attribute of a parameter stays unknown whatever the call says
    return depth < 20 and any(reads_parameter(child, scope, depth + 1) for child in ast.iter_child_nodes(node))


def find_parameter_default(node: ast.expr, scope: Scope) -> Any:
    """Return the default of a parameter that an expression is, as the calls around it convert it, or None."""
    around: list[ast.Call] = []
    while isinstance(node, ast.Call) and len(node.args) == 1:
        around.append(node)
        node = node.args[0]
    if not isinstance(node, ast.Name) or not isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    if scope.label and node.id in scope.bound:
        value = find_parameter_default(*scope.bound[node.id])
    else:
        found = collect_parameter_defaults(scope.node).get(node.id)
        value = _fold_or_none(found, scope.outer or scope) if found is not None else None
    for call in reversed(around if value is not None else ()):
        given = ast.copy_location(ast.Constant(value), call)
        value = _fold_or_none(ast.copy_location(ast.Call(call.func, [given], call.keywords), call), scope)
    return value


def _fold_or_none(node: ast.expr, scope: Scope) -> Any:
    try:
        return fold_expression(node, scope)
    except Unknown:
        return None


class CallRun(NamedTuple):
    """What a function sets in one call of it, and the tests around that call."""

    call: ast.Call
    tests: tuple[Branch, ...]
    settings: list[FoundSetting]


def merge_call_runs(script: Script, plain: list[FoundSetting], runs: list[CallRun]) -> list[FoundSetting]:
    """Return the settings of a function whose calls were tried: one for a fixed key, one a call for a computed one."""
    result = [_merge_values(setting, runs) for setting in plain if setting.key or not setting.reason]
    fixed = {_mark_place(setting) for setting in result}
    computed: list[FoundSetting] = []
    for call, tests, settings in runs:
        column = script.column(call.lineno, call.col_offset)
        new = [setting for setting in settings if _mark_place(setting) not in fixed and (setting.name or setting.reason)]
        new = [setting._replace(branches=(*tests, *setting.branches)) for setting in new]
        computed += [one._replace(line=call.lineno, column=column) if one.file == script.path else one for one in new]
    if any(setting.name for setting in computed):
        return [*result, *computed]
    unfollowed = {(one.line, one.column): one for run in runs for one in run.settings if one.reason.endswith(TOO_MUCH)}
    return [*result, *(unfollowed.get((one.line, one.column), one) for one in plain if not one.key and one.reason)]


def make_different_objects(function: str, plain: list[FoundSetting], runs: list[CallRun]) -> bool:
    """Return whether calls of a function make objects that differ in settings whose keys the calls give: no preset has all of them."""
    fixed = {_mark_place(setting) for setting in plain if setting.key or not setting.reason}
    objects = [
        {
            (one.name, repr(one.value))
            for one in run.settings
            if one.scope.startswith(f"{function}:") and one.name and _mark_place(one) not in fixed
        }
        for run in runs
    ]
    return any(settings != objects[0] for settings in objects)


def _merge_values(setting: FoundSetting, runs: list[CallRun]) -> FoundSetting:
    """Return a setting with the value that all calls of its function give it, else with their values in its reason."""
    same = [one for run in runs for one in run.settings if _mark_place(one) == _mark_place(setting)]
    if len(same) == len(runs) and len({one.condition for one in same}) == 1:
        setting = setting._replace(branches=same[0].branches)
    if not setting.reason or not same or any(one.reason for one in same):
        return setting
    values = {repr(one.value): one for one in same}
    if len(values) == 1:
        return setting._replace(value=same[0].value, kind=same[0].kind, written=same[0].written, reason="")
    return setting._replace(reason=f"{setting.reason}; the calls here give {', '.join(values)}") if len(values) <= 4 else setting


def _mark_place(setting: FoundSetting) -> tuple[object, ...]:
    return setting.file, setting.call, setting.line, setting.column, setting.name


def find_all_calls(module: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield every call of a module with the scope it stands in, in the order of the text; those in a loop to be unrolled once a turn."""
    waiting: list[tuple[ast.AST, Scope]] = [(module.node, module)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.For) and (turns := unroll_loop(node.target, node.iter, scope)):
            waiting.append((ast.Module(node.orelse, []), scope))
            waiting += [(ast.Module(node.body, []), scope.with_bound(turn)) for turn in reversed(turns)]
            continue
        inner: list[tuple[ast.AST, Scope]] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield child, scope
            is_scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            inner.append((child, Scope(child, scope) if is_scope else scope))  # type: ignore[arg-type]
        waiting += inner[::-1]
