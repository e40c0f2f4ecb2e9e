"""Arguments of programs as keywords in Python: ``LLM(..., additional_config={...})``, where a table
has the keys of another section.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from npuprof import catalog
from npuprof.catalog.programs import load_programs
from npuprof.document.keys import format_full_key, format_key_segment
from npuprof.scripts.python.expressions import name_callee
from npuprof.scripts.python.loops import follow_name, list_table_parts
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Surface, Visitor
from npuprof.scripts.script_records import Converted


class _Table(NamedTuple):
    """A keyword whose value is a table with the keys of a ``section``.

    ``surface`` is the section of the program.
    """

    surface: str
    section: str
    keyword: str


_TABLES = {
    keyword: _Table(program.section, section, keyword)
    for program in load_programs()
    for name, section in program.tables.items()
    for keyword in [name.replace("-", "_")]
}
_CALLS = {call: program for program in load_programs() for call in program.calls}


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    program = _CALLS.get(name_callee(call))
    for keyword in call.keywords:
        name = keyword.arg or ""
        if table := _TABLES.get(name):
            _read_table(visitor, table, keyword.value, scope, (), f"{table.surface}@{call.lineno}")
        elif program is not None and name:
            key = format_full_key(program.section, program.spell_argument(name))
            given = visitor.read_value(keyword.value, scope, _convert)
            visitor.add_setting(
                keyword, program.section, key, name, given, scope=f"{program.section}@{call.lineno}"
            )


def _convert(value: Any) -> Converted:
    return value, "" if value is not None else "None says nothing"


def _read_table(
    visitor: Visitor,
    table: _Table,
    node: ast.expr,
    scope: Scope,
    around: tuple[str, ...],
    owner: str,
) -> None:
    """Report the keys of a table by path.

    A table that is not literal is one setting without a value.
    """
    written, where = follow_name(node, scope)
    parts = list_table_parts(written)
    if parts is None:
        if not (isinstance(written, ast.Constant) and written.value is None):
            reason = visitor.evaluate_expression(node, scope)[1] or "is not a table"
            visitor.add_setting(node, table.surface, "", table.keyword, reason=reason, scope=owner)
        return
    for key, value in parts:
        name, reason = (
            visitor.evaluate_expression(key, where)
            if key is not None
            else (None, "takes in another table")
        )
        names = (*around, str(name))
        is_group = catalog.find_setting(
            table.section, ".".join(names)
        ) is None and list_table_parts(follow_name(value, where)[0])
        if reason or not isinstance(name, str):
            reason = reason or "its name is not a string"
            visitor.add_setting(
                key or value, table.surface, "", table.keyword, reason=reason, scope=owner
            )
        elif is_group:
            _read_table(visitor, table, value, where, names, owner)
        else:
            full = ".".join(map(format_key_segment, (table.section, *names)))
            visitor.add_setting(
                key or value,
                table.surface,
                full,
                ".".join(names),
                visitor.read_value(value, where, _convert),
                scope=owner,
            )


#: Reads the arguments of programs.
SURFACE = Surface((*_TABLES, *_CALLS), _read_call)
