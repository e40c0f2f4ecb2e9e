"""Calls and parameters inside one file: what the functions of a script are given, and the flags it declares."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.literals import METHODS, Unknown, fold_expression
from npuprof.scripts.reading.loops import unroll_loop
from npuprof.scripts.reading.scopes import MOST_BINDINGS, Function, Scope
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.terms import TOO_MUCH, name_callee


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
    if isinstance(node, ast.Attribute) and node.attr not in METHODS:
        return False  # an attribute of a parameter stays unknown whatever the call says
    return depth < 20 and any(reads_parameter(child, scope, depth + 1) for child in ast.iter_child_nodes(node))


def find_parameter_default(node: ast.expr, scope: Scope) -> Any:
    """Return the default of a parameter that an expression is, or None."""
    while isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    if not isinstance(node, ast.Name) or not isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    if scope.label and node.id in scope.bound:
        return find_parameter_default(*scope.bound[node.id])
    found = _collect_parameter_defaults(scope.node).get(node.id)
    if found is None:
        return None
    try:
        return fold_expression(found, scope.outer or scope)
    except Unknown:
        return None


def _collect_parameter_defaults(function: Function) -> dict[str, ast.expr]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    found = {arg.arg: value for arg, value in zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)}
    return found | {arg.arg: value for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is not None}


def bind_call_arguments(function: Function, inside: Scope, call: ast.Call, where: Scope) -> dict[str, tuple[ast.expr, Scope]] | None:
    """Return what each parameter of a function is given by a call, with the scope to read it in; None where stars hide it."""
    names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return None
    outer = inside.outer or inside
    bound: dict[str, tuple[ast.expr, Scope]] = {name: (value, outer) for name, value in _collect_parameter_defaults(function).items()}
    bound |= {name: (value, where) for name, value in zip(names, call.args, strict=False)}
    bound |= {keyword.arg: (keyword.value, where) for keyword in call.keywords if keyword.arg}
    return {name: given for name, given in bound.items() if inside.list_binding_kinds(name) == {"parameter"}}


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
    for call, run in runs:
        for one in run:
            if one.name and _mark_place(one) not in fixed:
                computed += 1
                column = script.column(call.lineno, call.col_offset)
                result.append(one._replace(line=call.lineno, column=column) if one.file == script.path else one)
    if computed or all(found.key for found in plain):
        return result
    told = {(one.line, one.column): one for _, run in runs for one in run if one.reason.endswith(TOO_MUCH)}
    return [*result, *(told.get((found.line, found.column), found) for found in plain if not found.key)]


def _mark_place(one: FoundSetting) -> tuple[object, ...]:
    return one.file, one.call, one.line, one.column, one.name


def find_all_calls(module: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield every call of a module with the scope it stands in; those in a loop that can be unrolled once a turn."""
    waiting: list[tuple[ast.AST, Scope]] = [(module.node, module)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, ast.For) and (turns := unroll_loop(node.target, node.iter, scope)):
            for turn in turns:
                inside = scope.with_bound(turn)
                waiting += [(ast.Module(node.body, []), inside)]
            waiting.append((ast.Module(node.orelse, []), scope))
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield child, scope
            inner = Scope(child, scope) if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else scope
            waiting.append((child, inner))


def collect_flag_defaults(tree: ast.Module) -> dict[str, Any]:
    """Return the defaults of the command-line flags that argparse and absl calls of this file declare."""
    found: dict[str, Any] = {}
    twice: set[str] = set()
    for call, scope in find_all_calls(Scope(tree)):
        name = name_callee(call)
        if name == "add_argument":
            flag, default = _parse_add_argument(call)
        elif name.startswith("DEFINE_"):
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            first = call.args[0] if call.args else named.get("name") or named.get("flag_name")
            flag = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
            default = call.args[1] if len(call.args) > 1 else named.get("default") or named.get("default_value")
        else:
            continue
        if not flag or default is None:
            continue
        try:
            value = fold_expression(default, scope)
        except Unknown:
            continue
        if flag in found and found[flag] != value:
            twice.add(flag)
        found[flag] = value
    return {flag: value for flag, value in found.items() if flag not in twice}


def _parse_add_argument(call: ast.Call) -> tuple[str, ast.expr | None]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    words = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    long = next((word for word in words if word.startswith("--")), words[0] if words else "")
    dest = named.get("dest")
    flag = str(dest.value) if isinstance(dest, ast.Constant) else long.lstrip("-").replace("-", "_")
    default = named.get("default")
    action = named.get("action")
    if default is None and isinstance(action, ast.Constant) and action.value in ("store_true", "store_false"):
        default = ast.Constant(action.value == "store_false")
    return flag, default
