"""Arguments of programs as keywords in Python: ``LLM(..., additional_config={...})``.

Such a table has the keys of another section.
"""

from __future__ import annotations

import ast
from typing import Any

from npuprof import catalog
from npuprof.catalog.programs import load_programs
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.model import Record
from npuprof.scripts.python.expressions import name_callee
from npuprof.scripts.python.loops import follow_name, list_table_parts
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import Converted


class _Table(Record):
    """A keyword whose value is a table with the keys of a ``section``.

    ``surface`` is the section of the program, ``owner`` the scope of the settings of one call.
    """

    surface: str
    section: str
    keyword: str
    owner: str = ""


def _list_tables() -> dict[str, _Table]:
    """Return the keywords of all programs whose values are tables."""
    tables = {}
    for program in load_programs():
        for name, section in program.tables.items():
            keyword = name.replace("-", "_")
            tables[keyword] = _Table(program.section, section, keyword)
    return tables


_TABLES = _list_tables()
_CALLS = {call: program for program in load_programs() for call in program.calls}


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    program = _CALLS.get(name_callee(call))
    # other programs have callables of these names too
    if program is not None and program.section not in visitor.module.script.text:
        program = None
    owner = f"{program.section}@{call.lineno}" if program else ""
    if program and call.args:
        key = format_full_key(program.section, program.positional)
        value = visitor.read_value(call.args[0], scope, _convert)
        visitor.add_setting(
            call.args[0], program.section, key, program.positional, value, scope=owner
        )
    for keyword in call.keywords:
        name = keyword.arg or ""
        if table := _TABLES.get(name):
            table_owner = f"{table.surface}@{call.lineno}"
            _read_table(visitor, table._replace(owner=table_owner), keyword.value, scope, ())
        elif program is not None:
            key = format_full_key(program.section, program.spell_argument(name)) if name else ""
            value = visitor.read_value(keyword.value, scope, _convert)
            visitor.add_setting(keyword, program.section, key, name, value, scope=owner)


def _convert(value: Any) -> Converted:
    return value, "" if value is not None else "None says nothing"


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
SURFACE = Surface((*_TABLES, *(f"{call}(" for call in _CALLS)), _read_call)
