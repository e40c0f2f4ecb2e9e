"""``NPURunConfig(...)`` and the configuration objects it takes."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_full_key
from npuprof.scripts.reading.found import UNSET, Branch
from npuprof.scripts.reading.literals import format_expression
from npuprof.scripts.reading.loops import list_table_nodes
from npuprof.scripts.reading.scopes import Scope
from npuprof.scripts.reading.terms import name_callee
from npuprof.scripts.reading.walk import Walk

CLASSES = catalog.load_config_classes()
HOT = tuple(CLASSES)

#: Arguments that take an object of the script beside those of the catalogue, or that RunConfig has and NPURunConfig refuses to use.
_MORE_OBJECTS = ("graph_parallel_config", "train_distribute", "eval_distribute", "recompute")


@cache
def object_arguments() -> frozenset[str]:
    """Return the arguments that a preset cannot hold: they take an object that the script makes."""
    made = {prefix.rpartition(".")[2] for prefix, _ in CLASSES.values() if prefix}
    plain = {name for name in catalog.record_names("estimator") if (record := catalog.find_argument(name)) and record.kind == "object"}
    return frozenset({*made, *plain, *_MORE_OBJECTS})


@cache
def class_arguments(cls: str) -> tuple[str, ...]:
    """Return the names of the arguments a class takes."""
    prefix = CLASSES[cls][0]
    if not prefix:
        plain = [name for name in catalog.options_by_spelling("run_config") if "." not in name]
        return (*plain, *catalog.record_names("estimator"), *sorted(object_arguments()))
    inner = [name.removeprefix(f"{prefix}.") for name in catalog.options_by_spelling("run_config") if name.startswith(f"{prefix}.")]
    return tuple(
        dict.fromkeys(
            (*CLASSES[cls][1], *(name for name in inner if "." not in name), *(sorted(object_arguments()) if "." not in prefix else ()))
        )
    )


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read the calls of one statement."""
    if "npu" not in walk.script.text:
        return  # these are common names
    for expression in expressions:
        if not isinstance(expression, (ast.Constant, ast.Name)) and walk.is_hot(expression):
            for node in ast.walk(expression):
                if isinstance(node, ast.Call) and (cls := _find_config_class(node, scope)):
                    _report_config_call(walk, statement, node, cls, scope, branches)


def _find_config_class(call: ast.Call, scope: Scope) -> str:
    """Return the name of the class a call makes an object of, where it is the adapter's own."""
    function = call.func
    name = name_callee(call)
    if name not in CLASSES:
        return ""
    if isinstance(function, ast.Name) and (found := scope.resolve_name(name)):
        for binding in found[1]:
            node = binding.node
            if not isinstance(node, (ast.Import, ast.ImportFrom)) or "npu" not in ast.unparse(node).lower():
                return ""
    return name


def _report_config_call(walk: Walk, statement: ast.stmt, call: ast.Call, cls: str, scope: Scope, branches: tuple[Branch, ...]) -> None:
    owner = f"{scope.name or '<module>'}:{cls}@{call.lineno}"
    if cls == "NPURunConfig":
        walk.new_site(scope, f"NPURunConfig@{call.lineno}", "run_config", call, branches)
        owner = f"{scope.name or '<module>'}:NPURunConfig@{call.lineno}@{call.lineno}"
        for at, part in _find_config_parts(walk, call, scope):
            walk.facts.setdefault("parts", {})[at] = (part, owner)
    else:
        owner = walk.facts.get("parts", {}).get((call.lineno, call.col_offset), ("", owner))[1]
    order = CLASSES[cls][1]
    given: list[tuple[str, ast.expr, ast.AST]] = []
    for number, value in enumerate(call.args):
        if isinstance(value, ast.Starred) or number >= len(order):
            walk.add_setting(value, "run_config", "", "", reason="given by position", branches=branches, scope=owner)
        else:
            given.append((order[number], value, value))
    for keyword in call.keywords:
        if keyword.arg is not None:
            given.append((keyword.arg, keyword.value, keyword))
            continue
        if _is_rendered_more(walk, keyword.value, scope):
            continue
        pairs, where = list_table_nodes(keyword.value, "items", scope)
        names = [pair.elts for pair in pairs if isinstance(pair, ast.Tuple)]
        if not names:
            walk.add_setting(
                keyword.value,
                "run_config",
                "",
                "",
                reason=f"depends on **{format_expression(keyword.value)}",
                branches=branches,
                scope=owner,
            )
        for key, item in names:
            text, reason, _ = walk.evaluate_expression(key, where)
            if not reason:
                _report_argument(walk, item, cls, str(text), item, where, branches, owner)
    for name, value, place in given:
        _report_argument(walk, place, cls, name, value, scope, branches, owner)


def _is_rendered_more(walk: Walk, node: ast.expr, scope: Scope) -> bool:
    """Return whether a node is the ``**more`` of a function that npuprof rendered, which sets nothing by itself."""
    function = scope.node
    named = isinstance(node, ast.Name) and node.id == "more" and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    if not named or "npuprof" not in walk.script.text or walk.find_calls(function.name):  # type: ignore[union-attr]
        return False
    kwarg = function.args.kwarg  # type: ignore[union-attr]
    return kwarg is not None and kwarg.arg == "more"


def _find_config_parts(walk: Walk, call: ast.Call, scope: Scope) -> list[tuple[tuple[int, int], str]]:
    """Return the places of the calls whose objects one NPURunConfig is given, through names too."""
    found: list[tuple[tuple[int, int], str]] = []
    waiting = [(keyword.arg or "", keyword.value) for keyword in call.keywords]
    while waiting and len(found) < 50:
        name, value = waiting.pop()
        if name == "session_config":
            walk.add_fact("estimator", (format_expression(value), call.lineno, scope.name))
        if name not in object_arguments():
            continue
        if isinstance(value, ast.Name) and (bound := scope.resolve_name(value.id)) and len(bound[1]) == 1 and bound[1][0].kind == "assign":
            value = bound[1][0].node  # type: ignore[assignment]
        if isinstance(value, ast.Call):
            found.append(((value.lineno, value.col_offset), name))
            waiting += [(keyword.arg or "", keyword.value) for keyword in value.keywords]
    return found


def _report_argument(
    walk: Walk, place: ast.AST, cls: str, name: str, value: ast.expr, scope: Scope, branches: tuple[Branch, ...], owner: str
) -> None:
    if name in object_arguments():
        if not isinstance(value, (ast.Constant, ast.Dict, ast.List)) or name == "session_config":
            return
        if isinstance(value, ast.Constant) and value.value is None:
            return
    prefix = CLASSES[cls][0]
    dotted = f"{prefix}.{name}" if prefix else name
    option = catalog.options_by_spelling("run_config").get(dotted)
    key = option or (format_full_key("estimator", name) if not prefix and catalog.find_argument(name) else dotted)
    got, reason, default = walk.evaluate_expression(value, scope)
    kind = "" if reason else type(got).__name__
    if not reason and got is None:
        reason = UNSET
    if not reason:
        got, reason = convert_option_value(option, got)
    if default is not None and option:
        default = convert_option_value(option, default)[0]
    walk.add_setting(
        place, "run_config", key, name, value=got if not reason else None, reason=reason, kind=kind,
        branches=branches, scope=owner, default=default, field=None,
    )  # fmt: skip


def convert_option_value(option: str | None, value: Any) -> tuple[Any, str]:
    """Return a Python value as the option stores it, and the reason where it cannot."""
    record = catalog.find_option(option) if option else None
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if record is not None and record.field == "i" and isinstance(value, bool):
        return int(value), ""
    if record is not None and record.field == "b" and type(value) is int and value in (0, 1):
        return bool(value), ""
    if isinstance(value, (str, bool, int, float, list, dict)):
        return value, ""
    return (list(value), "") if isinstance(value, tuple) else (None, f"a {type(value).__name__} is no value of an option")
