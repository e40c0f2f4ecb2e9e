"""Environment variables that a Python script sets for itself."""

from __future__ import annotations

import ast
import re
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog.execution import is_known_variable, is_own_variable
from npuprof.document.keys import format_full_key
from npuprof.model import find_nearest_names
from npuprof.scripts.python.arguments import list_keywords
from npuprof.scripts.python.loops import list_written_pairs
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.terms import format_expression
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.records import OTHER

#: Families of names that belong to Ascend, known to the catalogue or not.
_ASCEND_NAMES = re.compile(r"^(?:ASCEND_|HCCL_|HCOMM_|ACLNN_|NPU_|GE_|TE_|CANN_|AOE_|SLOG_|RANK_)[A-Z0-9_]+$")
_CAPITALS = re.compile(rb"(?<![A-Z0-9_])[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")  # a flag may come right before: docker -eHCCL_ALGO=...
_FAMILIES = re.compile(rb"(?:ASCEND|HCCL|(?:PY)?(?:TORCH_)?NPU|NPUPROF|GE|SLOG)_")
_OURS = "NPUPROF_"
_DIGITS = re.compile(r"[0-9]")
#: Shorter names that are much alike may both be meant.
_SHORTEST_WITH_SLIP = 11


@cache
def list_ascend_names() -> tuple[str, ...]:
    """Return the variables that are known to be read by software for Ascend, those that the catalogue does not describe last."""
    return (*catalog.record_names("env"), *catalog.load_built_part("variables")[3])


@cache
def _list_encoded_names() -> frozenset[bytes]:
    return frozenset(name.encode() for name in list_ascend_names())


def mentions_variable(data: bytes) -> bool:
    """Return whether a text names one of our variables."""
    names = set(_CAPITALS.findall(data))
    return not names.isdisjoint(_list_encoded_names()) or any(map(_FAMILIES.match, names))


@cache
def is_ascend_variable(name: str) -> bool:
    """Return whether a variable belongs to Ascend, or would but for a slip in its name."""
    return name in list_ascend_names() or bool(_ASCEND_NAMES.match(name)) or has_slip(name)


@cache
def has_slip(name: str) -> bool:
    """Return whether one letter makes a name out of that of a long variable; not its end, nor a number."""
    if len(name) < _SHORTEST_WITH_SLIP or not name.isupper():
        return False
    # those of TF_ are much alike
    known = [known for known in list_ascend_names() if len(known) > _SHORTEST_WITH_SLIP and not known.startswith("TF_")]
    near = next(iter(find_nearest_names(name, known, 1)), name)
    if _DIGITS.findall(name) != _DIGITS.findall(near) or near.startswith(name) or (name.startswith(near) and name[-1] != near[-1]):
        return False
    return SequenceMatcher(None, name, near).ratio() >= 1 - 1 / len(name)


def find_variable_key(name: str) -> str | None:
    """Return the key of what a variable sets, empty for one that says which preset an export is of, None for what is not Ascend's.

    ``NPUPROF_<OPTION>`` is how an export carries a session option: it sets that option.
    """
    if (short := name.removeprefix(_OURS)) == name:
        return format_full_key("env", name) if is_ascend_variable(name) else None
    if short in catalog.OBEYED_VARIABLES:
        return None
    option = short.lower() if short.isupper() and catalog.find_option(short.lower()) else None
    return "" if short in catalog.SAID_VARIABLES else option


def explain_other_variable(name: str) -> str:
    """Return why a variable that is not Ascend's is in no preset."""
    if is_own_variable(name):
        return "not allowed in a preset"
    return "not read by software for Ascend" if is_known_variable(name) else "unknown to the catalogue"


def read_variable_text(key: str, text: str) -> tuple[Any, str]:
    """Return what the text of a variable sets, and a reason where it sets nothing that could be told."""
    option = catalog.find_option(key) if "." not in key else None
    field = option.field if option else None
    if field == "b":
        known = {"1": True, "true": True, "0": False, "false": False}.get(text.lower())
        return known, "" if known is not None else f"{text!r} is no switch: write 1 or 0"
    if field == "i":
        number = int(text) if re.fullmatch(r"[-+]?[0-9]{1,30}", text, re.ASCII) else None
        return number, "" if number is not None else f"{text!r} is no whole number"
    return text, ""


def is_of_ascend_family(name: str) -> bool:
    """Return whether the name of a variable by itself tells that it is Ascend's."""
    return bool(_ASCEND_NAMES.match(name)) and not name.startswith("RANK_")


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    if isinstance(target, ast.Subscript) and _is_environ(target.value):
        _report_variable(visitor, target, target.slice, value, scope)


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    function = call.func
    if not isinstance(function, ast.Attribute):
        return
    single = function.attr in ("setdefault", "__setitem__") and _is_environ(function.value)
    if (single or function.attr == "putenv") and len(call.args) == 2:
        _report_variable(visitor, call, call.args[0], call.args[1], scope)
    elif function.attr == "update" and _is_environ(function.value):
        for variable, _, value, where in list_keywords(call, scope):
            _report_variable(visitor, value, ast.Constant(variable), value, where)
        pairs, where = list_written_pairs(call.args[0], scope) if call.args else (None, scope)
        for name, value in pairs or ():
            _report_variable(visitor, name, name, value, where)


def _is_environ(node: ast.expr) -> bool:
    return format_expression(node) in ("os.environ", "environ")


def _report_variable(visitor: Visitor, node: ast.AST, name: ast.expr, value: ast.expr, scope: Scope) -> None:
    written, reason, _ = visitor.evaluate_expression(name, scope)
    key = find_variable_key(written) if not reason and isinstance(written, str) else None
    if key is None:
        visitor.skips |= not isinstance(name, ast.Constant)  # another call may name one of ours
        plain = written if isinstance(written, str) else ""
        full_key = plain and format_full_key("env", plain)
        why = explain_other_variable(plain) if plain else f"its name {reason or 'is no text'}"
        visitor.add_setting(node, OTHER, full_key, plain, reason=why, scope="<process>:os.environ")
        return

    def convert(got: Any) -> tuple[Any, str]:
        if not isinstance(got, str):
            return None, f"os.environ takes text, not {format_expression(value)}"
        return read_variable_text(key, got)

    visitor.add_setting(node, "env", key, written, visitor.read_value(value, scope, convert), scope="<process>:os.environ")


#: What reads the environment that a script gives itself.
SURFACE = Surface(("environ", "putenv"), _read_call, _read_assignment)
