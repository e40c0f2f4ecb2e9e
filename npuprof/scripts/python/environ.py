"""Environment variables that a Python script sets for itself."""

from __future__ import annotations

import ast
import re
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog.execution import (
    find_rewritten_name,
    is_known_variable,
    is_own_variable,
    list_ascend_names,
    list_option_calls,
)
from npuprof.document.keys import format_full_key
from npuprof.model import find_nearest_names
from npuprof.scripts.atc_flags import read_number
from npuprof.scripts.python.atc_calls import RUNNERS
from npuprof.scripts.python.expressions import format_expression, name_callee
from npuprof.scripts.python.loops import (
    follow_name,
    iterate_keywords,
    list_table_parts,
    list_written_pairs,
)
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import OTHER, Converted, ScriptValue
from npuprof.scripts.shell_lexer import parse_shell_commands

#: Name patterns of Ascend variables, known to the catalogue or not.
_ASCEND_NAMES = re.compile(
    r"^(?:ASCEND_|HCCL_|HCOMM_|ACLNN_|NPU_|GE_|TE_|CANN_|AOE_|SLOG_|RANK_|TORCH_NPU_|PYTORCH_NPU_|TORCH_HCCL_|TASK_QUEUE_|VLLM_ASCEND_|LCCL_|ATB_"
    r"|MINDIE_)[A-Z0-9_]+$"
)
_CAPITALS = re.compile(
    rb"(?<![A-Z0-9_])[A-Z][A-Z0-9]*[_-][A-Z0-9_-]+\b"
)  # a flag may precede: docker -eHCCL_ALGO=...
_FAMILIES = re.compile(
    rb"(?:(?:VLLM_)?ASCEND|(?:TORCH_)?HCCL|(?:PY)?(?:TORCH_)?NPU|NPUPROF|GE|SLOG|TASK_QUEUE|LCCL|ATB|MINDIE)[_-]"
)
#: Blanks for all characters but capitals, digits and underscores: splitting is much faster than the
#: pattern, which few texts need then.
_ONLY_CAPITALS = (
    bytes(
        code if chr(code).isdigit() or chr(code).isupper() or code == ord("_") else ord(" ")
        for code in range(128)
    )
    + b" " * 128
)
_OURS = "NPUPROF_"
_DIGITS = re.compile(r"[0-9]")
#: Shorter similar names may both be intended.
_SHORTEST_WITH_SLIP = 11


@cache
def _list_encoded_names() -> frozenset[bytes]:
    return frozenset(name.encode() for name in (*list_ascend_names(), *list_option_calls()))


def mentions_variable(data: bytes) -> bool:
    """Return whether a text names an Ascend variable."""
    words = set(data.translate(_ONLY_CAPITALS).split())
    if words.isdisjoint(_list_encoded_names()) and not any(
        _FAMILIES.match(word + b"_") for word in words
    ):  # a dash may have followed
        return False
    names = (match[0] for match in _CAPITALS.finditer(data))
    return any(name in _list_encoded_names() or _FAMILIES.match(name) for name in names)


@cache
def is_ascend_variable(name: str) -> bool:
    """Return whether a variable belongs to Ascend, or is a misspelt one."""
    return (
        name in list_ascend_names()
        or bool(_ASCEND_NAMES.match(name))
        or bool(find_rewritten_name(name))
        or has_slip(name)
    )


@cache
def has_slip(name: str) -> bool:
    """Return whether a name differs by one letter from a long variable, except at its end or in a
    number.
    """
    if len(name) < _SHORTEST_WITH_SLIP or not name.isupper() or "NCCL" in name:  # another library
        return False
    # (TF_ names resemble each other)
    known = [
        known
        for known in list_ascend_names()
        if len(known) > _SHORTEST_WITH_SLIP and not known.startswith("TF_")
    ]
    near = next(iter(find_nearest_names(name, known, 1)), name)
    if (
        _DIGITS.findall(name) != _DIGITS.findall(near)
        or near.startswith(name)
        or (name.startswith(near) and name[-1] != near[-1])
    ):
        return False
    return SequenceMatcher(None, name, near).ratio() >= 1 - 1 / len(name)


def find_variable_key(name: str) -> str | None:
    """Return the key that a variable sets, empty for one that identifies an export's preset, None
    for foreign variables.

    ``NPUPROF_<OPTION>`` is the exported form of a session option: it sets that option.
    """
    if (short := name.removeprefix(_OURS)) == name:
        return format_full_key("env", name) if is_ascend_variable(name) else None
    if short in catalog.OBEYED_VARIABLES:
        return None
    option = short.lower() if short.isupper() and catalog.find_option(short.lower()) else None
    return "" if short in catalog.SAID_VARIABLES else option


def explain_other_variable(name: str) -> str:
    """Return why a foreign variable is in no preset."""
    if is_own_variable(name):
        return "not allowed in a preset"
    return (
        "not read by software for Ascend" if is_known_variable(name) else "unknown to the catalogue"
    )


def read_variable_text(key: str, text: str) -> Converted:
    """Return the value of a variable's text, and a reason if it is unknown."""
    option = catalog.find_option(key) if "." not in key else None
    field = option.field if option else None
    if field == "b":
        known = {"1": True, "true": True, "0": False, "false": False}.get(text.lower())
        return known, "" if known is not None else f"{text!r} is not a switch: write 1 or 0"
    if field == "i":
        number = read_number(text, None)
        return number, "" if number is not None else f"{text!r} is not an integer"
    return text, ""


def is_of_ascend_family(name: str) -> bool:
    """Return whether the name alone shows that a variable is Ascend's."""
    return bool(_ASCEND_NAMES.match(name)) and not name.startswith("RANK_")


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    if isinstance(target, ast.Subscript) and _is_environ(target.value, scope):
        _report_variable(visitor, target, target.slice, value, scope)


def _read_statement(visitor: Visitor, statement: ast.stmt, scope: Scope) -> None:
    """Read ``os.environ |= {...}``."""
    if (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.op, ast.BitOr)
        and _is_environ(statement.target, scope)
    ):
        _report_table(visitor, statement.value, scope)


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    function = call.func
    for keyword in call.keywords:
        if keyword.arg == "env" and name_callee(call) in RUNNERS:
            _report_table(visitor, keyword.value, scope)
        elif keyword.arg == "runtime_env":
            for name, value in list_table_parts(keyword.value) or ():
                if isinstance(name, ast.Constant) and name.value == "env_vars":
                    _report_table(visitor, value, scope)
    if name_callee(call) in RUNNERS and call.args:
        _read_command(visitor, call.args[0], scope)
    if not isinstance(function, ast.Attribute):
        return
    single = function.attr in ("setdefault", "__setitem__") and _is_environ(function.value, scope)
    if (single or function.attr == "putenv") and len(call.args) == 2:
        _report_variable(visitor, call, call.args[0], call.args[1], scope)
    elif function.attr == "update" and _is_environ(function.value, scope):
        for variable, _, value, where in iterate_keywords(call, scope):
            _report_variable(visitor, value, ast.Constant(variable), value, where)
        if call.args:
            _report_table(visitor, call.args[0], scope)


def _read_command(visitor: Visitor, node: ast.expr, scope: Scope) -> None:
    """Report Ascend variables in a started program's command line, a text or a list:
    ``["env", "RANK_ID=0", "a"]``.
    """
    written, where = follow_name(node, scope)
    items, where = (
        (written.elts, where) if isinstance(written, (ast.List, ast.Tuple)) else ([node], scope)
    )
    for item in items:
        text = visitor.evaluate_expression(item, where)[0]
        for command in parse_shell_commands(text) if isinstance(text, str) and "=" in text else ():
            for word in command:
                name, equals, value = word.text.partition("=")
                key = find_variable_key(name) if equals and not word.open_part else None
                if key:
                    value, reason = read_variable_text(key, value)
                    given = ScriptValue(value, reason, "str", value)
                    visitor.add_setting(
                        item,
                        "env",
                        key,
                        name,
                        given,
                        unused="applies only to the program that is started here",
                    )


def _report_table(visitor: Visitor, node: ast.expr, scope: Scope) -> None:
    """Report the variables of a table, without those unpacked into it, such as ``**os.environ``."""
    pairs, where = list_written_pairs(node, scope)
    if pairs is None:
        node, where = follow_name(node, scope, may_change=True)
        pairs = [(name, value) for name, value in list_table_parts(node) or () if name is not None]
    for name, value in pairs:
        _report_variable(visitor, name, name, value, where)


def _is_environ(node: ast.expr, scope: Scope) -> bool:
    """Return whether an expression is the process environment, or a copy of it passed to another
    process.
    """
    if isinstance(node, ast.Name) and node.id != "environ":
        node = follow_name(node, scope, may_change=True)[0]
        match node:
            case ast.Call(ast.Name("dict"), [copied, *_]) | ast.Call(ast.Attribute(copied, "copy")):
                node = copied
    return format_expression(node) in ("os.environ", "environ")


def _report_variable(
    visitor: Visitor, node: ast.expr, name: ast.expr, value: ast.expr, scope: Scope
) -> None:
    written, reason = visitor.evaluate_expression(name, scope)
    key = find_variable_key(written) if not reason and isinstance(written, str) else None
    if key is None:
        visitor.skips |= not isinstance(
            name, ast.Constant
        )  # another call may name an Ascend variable
        plain = written if isinstance(written, str) else ""
        full_key = plain and format_full_key("env", plain)
        why = explain_other_variable(plain) if plain else f"its name {reason or 'is no text'}"
        visitor.add_setting(node, OTHER, full_key, plain, reason=why, scope="<process>:os.environ")
        return

    def convert(got: Any) -> Converted:
        if not isinstance(got, str):
            return None, f"os.environ takes text, not {format_expression(value)}"
        return read_variable_text(key, got)

    visitor.add_setting(
        node,
        "env",
        key,
        written,
        visitor.read_value(value, scope, convert),
        scope="<process>:os.environ",
    )


#: Reads environment variables set by the script.
SURFACE = Surface(
    ("environ", "putenv", "env_vars", "env=", "subprocess", "system(", "popen("),
    _read_call,
    _read_assignment,
    _read_statement,
)
