"""Environment variables that a Python script sets for itself."""

from __future__ import annotations

import ast
import re
from functools import cache
from string import ascii_uppercase
from typing import Any

from npuprof import catalog
from npuprof.catalog.execution import (
    find_meant_variable,
    is_known_variable,
    is_own_variable,
    list_ascend_names,
    list_misspelt_names,
    list_option_calls,
)
from npuprof.document.keys import format_full_key
from npuprof.scripts.atc_flags import read_number
from npuprof.scripts.python.expressions import (
    format_dotted_name,
    format_expression,
    name_callee,
)
from npuprof.scripts.python.loops import (
    follow_name,
    iterate_keywords,
    list_table_parts,
    list_written_pairs,
)
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import OTHER, Converted, ScriptValue
from npuprof.scripts.shell_lexer import Word, parse_shell_commands
from npuprof.scripts.words import join_words

#: Name patterns of Ascend variables, known to the catalogue or not.
_ASCEND_NAMES = re.compile(
    r"^(?:ASCEND_|HCCL_|HCOMM_|ACLNN_|NPU_|GE_|TE_|CANN_|AOE_|SLOG_|RANK_|TORCH_NPU_"
    r"|PYTORCH_NPU_|TORCH_HCCL_|TASK_QUEUE_|VLLM_ASCEND_|LCCL_|ATB_|MINDIE_)[A-Z0-9_]+$"
)
#: Names of variables. A flag may precede: ``docker -eHCCL_ALGO=...``.
_CAPITALS = re.compile(rb"(?<![A-Z0-9_])[A-Z][A-Z0-9]*[_-][A-Z0-9_-]+\b")
_FAMILIES = re.compile(
    rb"(?:(?:VLLM_)?ASCEND|(?:TORCH_)?HCCL|(?:PY)?(?:TORCH_)?NPU|NPUPROF"
    rb"|GE|SLOG|TASK_QUEUE|LCCL|ATB|MINDIE)[_-]"
)
#: Blanks for all characters but capitals and underscores: splitting is much faster than a pattern.
_ONLY_CAPITALS = bytes(
    code if chr(code) in f"{ascii_uppercase}_" else ord(" ") for code in range(256)
)
#: Calls that run a program.
RUNNERS = frozenset(
    (
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "system",
        "popen",
        "getoutput",
        "getstatusoutput",
    )
)
_OURS = "NPUPROF_"
#: The variables of the process, as one configuration.
_OWNER = "<process>:os.environ"


#: What may set a variable: all but reads of the process environment, tables that a loop computes,
#: and words that start no program.
SETS = re.compile(
    rb"environ(?<! in os\.environ)(?<! in environ)\b(?!\.(?:get|pop|keys|items|values)\b"
    rb"|\.update\(\{\w+: [^{}'\",]* for "
    rb"|\[[^][]*\](?!\s*(?:=(?!=)|,\s*(?:os\.)?environ)))"
    rb"|putenv|env_vars|env=(?<!\wenv=)(?!None\b)|system(?<!\wsystem)\((?!\))|popen(?<!\wpopen)\("
    rb"|subprocess(?:\.(?:[a-z]|Popen)|\s+(?:as|import)\b)"
)


#: A variable whose name is in the text.
_NAMED = re.compile(rb"environ(?:\[|\.setdefault\()\s*['\"](\w+)['\"]")


def sets_own_variable(data: bytes) -> bool:
    """Return whether a text may set variables of Ascend."""
    found = (_NAMED.match(data, each.start()) for each in SETS.finditer(data))
    return any(not named or find_variable_key(named[1].decode()) is not None for named in found)


@cache
def _list_encoded_names() -> frozenset[bytes]:
    names = (*list_ascend_names(), *list_misspelt_names(), *list_option_calls())
    return frozenset(map(str.encode, names))


@cache
def _list_longest_parts() -> frozenset[bytes]:
    """Return the longest part of each known name, without digits, that a text may have."""
    return frozenset(
        max(name.translate(_ONLY_CAPITALS).split(), key=len)
        for name in _list_encoded_names()
        if _CAPITALS.fullmatch(name)
    )


def mentions_variable(data: bytes) -> bool:
    """Return whether a text names an Ascend variable."""
    known_names = _list_encoded_names()
    parts = set(join_words(data).translate(_ONLY_CAPITALS).split())
    # a dash or digit may have followed a part
    if parts.isdisjoint(_list_longest_parts()) and not any(
        _FAMILIES.match(part + b"_") for part in parts
    ):
        return False
    names = (match[0] for match in _CAPITALS.finditer(data))
    return any(name in known_names or _FAMILIES.match(name) for name in names)


@cache
def is_ascend_variable(name: str) -> bool:
    """Return whether a variable belongs to Ascend, or is a misspelt one, such as with hyphens."""
    name = name.replace("-", "_")
    return (
        name in list_ascend_names()
        or bool(_ASCEND_NAMES.match(name))
        or (name.isupper() and bool(find_meant_variable(name)))
    )


def find_variable_key(name: str) -> str | None:
    """Return the key that a variable sets, None for foreign variables.

    Empty for one that identifies an export's preset. ``NPUPROF_<OPTION>`` is the exported form of a
    session option: it sets that option.
    """
    if not name.startswith(_OURS):
        return format_full_key("env", name) if is_ascend_variable(name) else None
    short = name.removeprefix(_OURS)
    if short in catalog.CONTROL_VARIABLES:
        return None
    if short in catalog.PROVENANCE_VARIABLES:
        return ""
    option = short.lower()
    return option if short.isupper() and catalog.find_option(option) else None


def explain_other_variable(name: str) -> str:
    """Return why a foreign variable is in no preset."""
    if is_own_variable(name):
        return "not allowed in a preset"
    if is_known_variable(name):
        return "not read by software for Ascend"
    return "unknown to the catalogue"


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
    """Read ``os.environ |= {...}`` and ``os.environ[NAME] += TEXT``, which is unknown."""
    match statement:
        case ast.AugAssign(target, ast.BitOr(), value) if _is_environ(target, scope):
            report_table(visitor, value, scope)
        case ast.AugAssign(target):
            _read_assignment(visitor, target, target, scope)


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    starts_program = name_callee(call) in RUNNERS and visitor.launch is not call
    for keyword in call.keywords:
        if keyword.arg == "env" and starts_program:
            report_table(visitor, keyword.value, scope)
        elif keyword.arg == "runtime_env":  # of Ray
            for name, value in list_table_parts(keyword.value) or ():
                if isinstance(name, ast.Constant) and name.value == "env_vars":
                    report_table(visitor, value, scope)
    if starts_program and call.args:
        _read_command(visitor, call.args[0], scope)
    match call:
        case ast.Call(ast.Attribute(_, "putenv"), [name, value]):
            _report_variable(visitor, call, name, value, scope)
        case ast.Call(ast.Attribute(owner, "setdefault" | "__setitem__"), [name, value]):
            if _is_environ(owner, scope):
                _report_variable(visitor, call, name, value, scope)
        case ast.Call(ast.Attribute(owner, "update")) if _is_environ(owner, scope):
            for argument in iterate_keywords(call, scope):
                name, value = ast.Constant(argument.name), argument.value
                _report_variable(visitor, value, name, value, argument.scope)
            if call.args:
                report_table(visitor, call.args[0], scope)


def _read_command(visitor: Visitor, node: ast.expr, scope: Scope) -> None:
    """Report Ascend variables in the command line of a started program.

    It is a text or a list: ``["env", "RANK_ID=0", "a"]``.
    """
    items = [node]
    written, home = follow_name(node, scope)
    if isinstance(written, (ast.List, ast.Tuple)):
        items, scope = written.elts, home
    for item in items:
        text, _ = visitor.evaluate_expression(item, scope)
        if isinstance(text, str) and "=" in text:
            for command in parse_shell_commands(text):
                for word in command:
                    _read_assignment_word(visitor, item, word)


def _read_assignment_word(visitor: Visitor, node: ast.expr, word: Word) -> None:
    """Report a variable that one word of a command line sets, if it is Ascend's."""
    name, equals, text = word.text.partition("=")
    if not equals or word.open_part:
        return
    if key := find_variable_key(name):
        value, reason = read_variable_text(key, text)
        read = ScriptValue(value, reason, "str", value)
        unused = "applies only to the program that is started here"
        visitor.add_setting(node, "env", key, name, read, unused=unused)


def holds_variables(node: ast.expr, scope: Scope) -> bool:
    """Return whether a table mostly has variables of the catalogue, among them one of Ascend's."""
    parts = list_table_parts(follow_name(node, scope)[0]) or ()
    names = [str(key.value) for key, _ in parts if isinstance(key, ast.Constant)]
    known = sum(map(is_known_variable, names))
    return 2 * known > len(names) and any(map(is_ascend_variable, names))


def report_table(visitor: Visitor, node: ast.expr, scope: Scope) -> None:
    """Report the variables of a table, without those unpacked into it, such as ``**os.environ``."""
    pairs, where = list_written_pairs(node, scope)
    if pairs is None:
        node, where = follow_name(node, scope, may_change=True)
        pairs = [(name, value) for name, value in list_table_parts(node) or () if name is not None]
    for name, value in pairs:
        _report_variable(visitor, name, name, value, where)


def _is_environ(node: ast.expr, scope: Scope) -> bool:
    """Return whether an expression is the process environment, or a copy for another process."""
    if isinstance(node, ast.Name) and node.id != "environ":
        node = follow_name(node, scope, may_change=True)[0]
        match node:
            case ast.Call(ast.Name("dict"), [copied, *_]) | ast.Call(ast.Attribute(copied, "copy")):
                node = copied
    return format_dotted_name(node) in ("os.environ", "environ")


def _report_variable(
    visitor: Visitor, node: ast.expr, name: ast.expr, value: ast.expr, scope: Scope
) -> None:
    written, reason = visitor.evaluate_expression(name, scope)
    text = written if isinstance(written, str) else ""
    key = find_variable_key(text) if text else None
    if key is None:
        # another call may name an Ascend variable
        visitor.skips |= not isinstance(name, ast.Constant)
        full_key = text and format_full_key("env", text)
        why = explain_other_variable(text) if text else f"its name {reason or 'is no text'}"
        known, _ = visitor.evaluate_expression(value, scope)
        other = ScriptValue(reason=why, written=known)
        visitor.add_setting(node, OTHER, full_key, text, other, scope=_OWNER)
        return

    def convert(got: Any) -> Converted:
        if not isinstance(got, str):
            return None, f"os.environ takes text, not {format_expression(value)}"
        return read_variable_text(key, got)

    read = visitor.read_value(value, scope, convert)
    visitor.add_setting(node, "env", key, text, read, scope=_OWNER)


#: Reads environment variables set by the script.
SURFACE = Surface(
    ("environ", "putenv", "env_vars", "env=", "subprocess", "system(", "popen("),
    _read_call,
    _read_assignment,
    _read_statement,
    names=(*RUNNERS, "runtime_env", "putenv", "setdefault", "__setitem__", "update", "="),
)
