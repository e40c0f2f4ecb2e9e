"""vLLM-Ascend settings in Python: ``LLM(..., additional_config={...})`` and other vLLM classes with that argument."""

from __future__ import annotations

import ast

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.scripts.python.loops import follow_name, list_table_parts
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor

_WORD = "additional_config"


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    for keyword in call.keywords:
        if keyword.arg == _WORD:
            _read_table(visitor, keyword.value, scope, (), f"vllm@{call.lineno}")


def _read_table(visitor: Visitor, node: ast.expr, scope: Scope, around: tuple[str, ...], owner: str) -> None:
    """Report the keys of a table by path; a table that is not literal is one setting without a value."""
    table, where = follow_name(node, scope)
    parts = list_table_parts(table)
    if parts is None:
        if not (isinstance(table, ast.Constant) and table.value is None):
            reason = visitor.evaluate_expression(node, scope)[1] or "is not a table"
            visitor.add_setting(node, "vllm", "", _WORD, reason=reason, scope=owner)
        return
    for key, value in parts:
        name, reason = visitor.evaluate_expression(key, where) if key is not None else (None, "takes in another table")
        names = (*around, str(name))
        is_group = catalog.find_setting("vllm_ascend", ".".join(names)) is None and list_table_parts(follow_name(value, where)[0])
        if reason or not isinstance(name, str):
            visitor.add_setting(key or value, "vllm", "", _WORD, reason=reason or "its name is not a string", scope=owner)
        elif is_group:
            _read_table(visitor, value, where, names, owner)
        else:
            full = ".".join(map(format_key_segment, ("vllm_ascend", *names)))
            given = visitor.read_value(value, where, lambda got: (got, "" if got is not None else "None says nothing"))
            visitor.add_setting(key or value, "vllm", full, ".".join(names), given, scope=owner)


#: Reads the keys of vLLM-Ascend.
SURFACE = Surface((_WORD,), _read_call)
