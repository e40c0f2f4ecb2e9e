"""Environment variables that a Python script sets for itself."""

from __future__ import annotations

import ast
import re
from functools import cache

from npuprof import catalog
from npuprof.document.keys import full
from npuprof.scripts.reading.found import Branch
from npuprof.scripts.reading.literals import short
from npuprof.scripts.reading.loops import view
from npuprof.scripts.reading.scopes import Scope
from npuprof.scripts.reading.walk import Walk

HOT = ("environ", "putenv")

#: Families of names that belong to Ascend, known to the catalogue or not.
_OURS = re.compile(r"^(?:ASCEND_|HCCL_|HCOMM_|ACLNN_|NPU_|GE_|TE_|CANN_|AOE_|SLOG_|RANK_)[A-Z0-9_]+$")


@cache
def _pattern() -> re.Pattern[bytes]:
    return re.compile(rb"\b(?:" + "|".join(map(re.escape, names())).encode() + rb"|(?:ASCEND|HCCL|NPU|GE|SLOG)_[A-Z0-9_]+)\b")


@cache
def names() -> tuple[str, ...]:
    """Return the variables the catalogue knows."""
    return catalog.names("env")


def mentions(data: bytes) -> bool:
    """Return whether a text names one of our variables."""
    return _pattern().search(data) is not None


def ours(name: str) -> bool:
    """Return whether a variable belongs to Ascend."""
    return catalog.variable(name) is not None or bool(_OURS.match(name))


def handle(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read one statement."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and _environ(target.value):
                _set(walk, target, target.slice, statement.value, scope, branches)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        function = call.func
        if not isinstance(function, ast.Attribute):
            return
        default = function.attr == "setdefault" and _environ(function.value)
        if (default or function.attr == "putenv") and len(call.args) == 2:
            _set(walk, call, call.args[0], call.args[1], scope, branches)
        elif function.attr == "update" and _environ(function.value):
            for keyword in call.keywords:
                if keyword.arg:
                    _set(walk, keyword.value, ast.Constant(keyword.arg), keyword.value, scope, branches)
            pairs, where = view(call.args[0], "items", scope) if call.args else ([], scope)
            for pair in pairs:
                if isinstance(pair, ast.Tuple):
                    _set(walk, pair, pair.elts[0], pair.elts[1], where, branches)


def _environ(node: ast.expr) -> bool:
    return short(node) in ("os.environ", "environ")


def _set(walk: Walk, node: ast.AST, name: ast.expr, value: ast.expr, scope: Scope, branches: tuple[Branch, ...]) -> None:
    key, reason, _ = walk.evaluate(name, scope)
    if reason or not isinstance(key, str) or not ours(key):
        return
    got, reason, default = walk.evaluate(value, scope)
    kind = "" if reason else type(got).__name__
    if not reason and not isinstance(got, str):
        got, reason = None, f"os.environ takes text, not {short(value)}"
    walk.report(
        node, "env", full("env", key), key, value=got if not reason else None, reason=reason, kind=kind,
        branches=branches, scope="<process>:os.environ", default=default,
    )  # fmt: skip
