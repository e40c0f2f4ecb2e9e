"""Calls and parameters inside one file: what the functions of a script are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from npuprof.scripts.reading.found import FoundSetting
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


def merge_call_runs(script: Script, plain: list[FoundSetting], runs: list[tuple[ast.Call, list[FoundSetting]]]) -> list[FoundSetting]:
    """Return the settings of a function whose calls were tried: one for a fixed key, one a call for a computed one."""
    result: list[FoundSetting] = []
    for found in plain:
        if not found.key and found.reason:
            continue
        same = [one for _, run in runs for one in run if _mark_place(one) == _mark_place(found)]
        if found.reason and same and not any(one.reason for one in same):
            values = {repr(one.value): one for one in same}
            if len(values) == 1:
                found = found._replace(value=same[0].value, kind=same[0].kind, written=same[0].written, reason="")
            elif len(values) <= 4:
                found = found._replace(reason=f"{found.reason}; the calls here give {', '.join(values)}")
        result.append(found)
    fixed = {_mark_place(one) for one in result}
    computed = 0
    unknown: list[FoundSetting] = []
    for call, run in runs:
        for one in run:
            column = script.column(call.lineno, call.col_offset)
            at_call = one._replace(line=call.lineno, column=column) if one.file == script.path else one
            if one.name and _mark_place(one) not in fixed:
                computed += 1
                result.append(at_call)
            elif not one.name and one.reason:
                unknown.append(at_call)
    if computed:
        return [*result, *unknown]
    if all(found.key for found in plain):
        return result
    told = {(one.line, one.column): one for _, run in runs for one in run if one.reason.endswith(TOO_MUCH)}
    return [*result, *(told.get((found.line, found.column), found) for found in plain if not found.key)]


def tell_calls_apart(script: Script, merged: list[FoundSetting], runs: list[tuple[ast.Call, list[FoundSetting]]]) -> list[FoundSetting]:
    """Return the settings of a function, those on which its calls decide once for each call, with what it decides.

    Whether each call makes an object of its own is for others to say, who take them together again where it is not so.
    """
    spots = [(call.lineno, script.column(call.lineno, call.col_offset)) for call, _ in runs]
    if len(set(spots)) < max(len(spots), 2):
        return merged
    by_place: list[dict[tuple[object, ...], list[FoundSetting]]] = []
    for _, run in runs:
        by_place.append({})
        for one in run:
            if not one.dead:
                by_place[-1].setdefault(_mark_place(one), []).append(one)
    result: list[FoundSetting] = []
    for found in merged:
        mark = _mark_place(found)
        same = [places.get(mark, []) for places in by_place]
        told = [ones[0] for ones in same if ones]
        open_ = (found.reason or found.branches) and found.key and not found.dead and found.surface == "session"
        whole = len(told) == len(runs) and not found.reason and all(one.branches == found.branches for one in told)
        if not open_ or whole or not told or any(one.reason for one in told) or any(len(ones) > 1 for ones in same):
            result.append(found)
        else:
            pairs = zip(spots, same, strict=True)
            result += [ones[0]._replace(within=spot, otherwise=found) for spot, ones in pairs if ones]
    return result


def find_several_makings(inside: Scope, plain: list[FoundSetting], runs: list[tuple[ast.Call, list[FoundSetting]]]) -> list[int]:
    """Return the lines of two calls of a function that make objects which differ in settings whose keys the calls say; none else.

    They would be told as one. An object that the function is given may well get one setting after the other.
    """
    fixed = {_mark_place(one) for one in plain if one.key or not one.reason}
    first: tuple[int, dict[tuple[str, str], str]] | None = None
    for call, run in runs:
        told = {
            (one.scope, one.name): repr(one.value)
            for one in run
            if one.name and _mark_place(one) not in fixed and one.scope.startswith(f"{inside.name}:")
        }
        if first is not None and told != first[1]:
            return [first[0], call.lineno]
        first = first or (call.lineno, told)
    return []


def _mark_place(one: FoundSetting) -> tuple[object, ...]:
    return one.file, one.call, one.line, one.column, one.name


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
