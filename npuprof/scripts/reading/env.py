"""Environment variables that a Python script sets for itself."""

from __future__ import annotations

import ast
import re
from functools import cache

from npuprof import catalog
from npuprof.document.keys import format_full_key
from npuprof.scripts.reading.found import Branch
from npuprof.scripts.reading.literals import format_expression
from npuprof.scripts.reading.loops import list_table_nodes
from npuprof.scripts.reading.scopes import Scope
from npuprof.scripts.reading.walk import Walk

HOT = ("environ", "putenv")

#: Families of names that belong to Ascend, known to the catalogue or not.
_ASCEND_NAMES = re.compile(r"^(?:ASCEND_|HCCL_|HCOMM_|ACLNN_|NPU_|GE_|TE_|CANN_|AOE_|SLOG_|RANK_)[A-Z0-9_]+$")


@cache
def _variable_pattern() -> re.Pattern[bytes]:
    return re.compile(rb"\b(?:" + "|".join(map(re.escape, catalog_variables())).encode() + rb"|(?:ASCEND|HCCL|NPU|GE|SLOG)_[A-Z0-9_]+)\b")


@cache
def catalog_variables() -> tuple[str, ...]:
    """Return the variables the catalogue knows."""
    return catalog.record_names("env")


def mentions_variable(data: bytes) -> bool:
    """Return whether a text names one of our variables."""
    return _variable_pattern().search(data) is not None


def is_ascend_variable(name: str) -> bool:
    """Return whether a variable belongs to Ascend."""
    return catalog.find_variable(name) is not None or bool(_ASCEND_NAMES.match(name))


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read one statement."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and _is_environ(target.value):
                _report_variable(walk, target, target.slice, statement.value, scope, branches)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        function = call.func
        if not isinstance(function, ast.Attribute):
            return
        default = function.attr == "setdefault" and _is_environ(function.value)
        if (default or function.attr == "putenv") and len(call.args) == 2:
            _report_variable(walk, call, call.args[0], call.args[1], scope, branches)
        elif function.attr == "update" and _is_environ(function.value):
            for keyword in call.keywords:
                if keyword.arg:
                    _report_variable(walk, keyword.value, ast.Constant(keyword.arg), keyword.value, scope, branches)
            pairs, where = list_table_nodes(call.args[0], "items", scope) if call.args else ([], scope)
            for pair in pairs:
                if isinstance(pair, ast.Tuple):
                    _report_variable(walk, pair, pair.elts[0], pair.elts[1], where, branches)


def _is_environ(node: ast.expr) -> bool:
    return format_expression(node) in ("os.environ", "environ")


def _report_variable(walk: Walk, node: ast.AST, name: ast.expr, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    key, reason, _ = walk.evaluate_expression(name, scope)
    if reason or not isinstance(key, str) or not is_ascend_variable(key):
        return
    got, reason, default = walk.evaluate_expression(value, scope)
    kind = "" if reason else type(got).__name__
    if not reason and not isinstance(got, str):
        got, reason = None, f"os.environ takes text, not {format_expression(value)}"
    walk.add_setting(
        node, "env", format_full_key("env", key), key, value=got if not reason else None, reason=reason, kind=kind,
        branches=branches, scope="<process>:os.environ", default=default,
    )  # fmt: skip
