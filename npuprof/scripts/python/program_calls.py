"""Arguments of programs as keywords in Python: ``LLM(..., additional_config={...})``.

Such a table has the keys of another section.
"""

from __future__ import annotations

import ast
from typing import Any

from npuprof import catalog
from npuprof.catalog.programs import Program, load_programs
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.model import Record
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.expressions import name_callee
from npuprof.scripts.python.loops import (
    Scoped,
    follow_name,
    iterate_keywords,
    list_table_parts,
)
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.statements import Located
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import Converted, ScriptValue, drop_null


class _Table(Record):
    """A keyword whose value is a table with the keys of a ``section``.

    ``surface`` is the section of the program, ``owner`` the scope of the settings of one call.
    """

    surface: str
    section: str
    keyword: str
    owner: str = ""


_TABLES = {
    keyword: _Table(program.section, section, keyword)
    for program in load_programs()
    for name, section in program.tables.items()
    for keyword in [name.replace("-", "_")]
}
_CALLS = {call: program for program in load_programs() for call in program.calls}
_NAMES = {call.rpartition(".")[2] for call in _CALLS}


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    is_named = name_callee(call) in _NAMES
    program = _CALLS.get(resolve_function_name(call.func, scope)) if is_named else None
    if program is not None and program.positional:
        for value in call.args[:1]:
            _read_argument(visitor, call, program, value, program.positional, (value, scope))
    for argument in iterate_keywords(call, scope):
        if table := _TABLES.get(argument.name):
            owner = f"{table.surface}@{call.lineno}"
            owned = table._replace(owner=owner)
            _read_table(visitor, owned, argument.value, argument.scope, ())
        elif program is not None:
            given = argument.value, argument.scope
            _read_argument(visitor, call, program, argument.keyword, argument.name, given)


def _read_argument(
    visitor: Visitor, call: ast.Call, program: Program, node: Located, name: str, value: Scoped
) -> None:
    """Report an argument; one without a name makes all that are missing unknown."""
    key = format_full_key(program.section, program.spell_argument(name)) if name else ""
    is_secret = program.spell_argument(name) in program.secret
    read = ScriptValue(reason="is a secret") if is_secret else None
    read = read or visitor.read_value(*value, _convert)
    if name == "compilation_config" and isinstance(read.value, int):
        read = ScriptValue(reason="is its mode")
    owner = f"{program.section}@{call.lineno}"
    visitor.add_setting(node, program.section, key, name, read, scope=owner)


def _convert(value: Any) -> Converted:
    return drop_null(value), "" if value is not None else "None says nothing"


def _read_table(
    visitor: Visitor, table: _Table, node: ast.expr, scope: Scope, outer_names: tuple[str, ...]
) -> None:
    """Report the keys of a table by path, below ``outer_names``.

    A table that is not literal is one setting without a value.
    """
    written, home = follow_name(node, scope)
    entries = list_table_parts(written)
    if entries is not None:
        for key, value in entries:
            _read_entry(visitor, table, key, value, home, outer_names)
    elif not (isinstance(written, ast.Constant) and written.value is None):
        _, reason = visitor.evaluate_expression(node, scope)
        _report_unknown(visitor, table, node, reason or "is not a table")


def _read_entry(
    visitor: Visitor,
    table: _Table,
    key: ast.expr | None,
    value: ast.expr,
    scope: Scope,
    outer_names: tuple[str, ...],
) -> None:
    """Report an entry of a table, or the entries of a table inside it."""
    if key is None:
        _report_unknown(visitor, table, value, "takes in another table")
        return
    name, reason = visitor.evaluate_expression(key, scope)
    if reason or not isinstance(name, str):
        _report_unknown(visitor, table, key, reason or "its name is not a string")
        return
    names = (*outer_names, name)
    path = ".".join(names)
    is_setting = catalog.find_setting(table.section, path) is not None
    # a setting may be a table itself; others are settings inside
    if not is_setting and list_table_parts(follow_name(value, scope)[0]):
        _read_table(visitor, table, value, scope, names)
        return
    full_key = ".".join(map(format_key_segment, (table.section, *names)))
    read = visitor.read_value(value, scope, _convert)
    visitor.add_setting(key, table.surface, full_key, path, read, scope=table.owner)


def _report_unknown(visitor: Visitor, table: _Table, node: ast.expr, reason: str) -> None:
    visitor.add_setting(node, table.surface, "", table.keyword, reason=reason, scope=table.owner)


#: Reads the arguments of programs.
SURFACE = Surface(
    (*_TABLES, *(f"{name}(" for name in _NAMES)), _read_call, names=(*_TABLES, *_NAMES, "")
)
