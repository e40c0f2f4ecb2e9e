"""torch_npu: ``torch.npu.set_option({...})``, and the calls and attributes in the catalogue, under
any import name.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any, NamedTuple

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.scripts.python.builtin_calls import resolve_function_name
from npuprof.scripts.python.expressions import (
    find_root,
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
from npuprof.scripts.python.visitor import Surface, TableEntry, Visitor
from npuprof.scripts.script_records import ScriptValue

#: The settings of the process, as one configuration.
OWNER = "<process>:torch_npu"
_SECTION = "torch_npu"
_SET_OPTION = "torch.npu.set_option"
#: The form of a record's ``call``: a function with the argument, or an attribute with its
#: enumeration.
_CALL = re.compile(
    r"(?P<path>[\w.]+)(?:\((?P<before>[^{}]*?)(?:(?P<keyword>\w+)=)?\{\}\)| "
    r"= (?P<members>[\w.]+\.)?\{\})"
)
_SWITCHED = {"true": True, "1": True, "false": False, "0": False, "on": True, "off": False}


class Form(NamedTuple):
    """How a script sets a setting: its record, function or attribute path, preceding arguments,
    keyword, enumeration.
    """

    record: catalog.Setting
    path: str
    is_call: bool
    before: int
    keyword: str
    members: str


@cache
def list_forms() -> dict[str, list[Form]]:
    """Return the forms of settings other than ``set_option`` keys, by function and
    attribute path.
    """
    forms: dict[str, list[Form]] = {}
    for record in catalog.list_records(catalog.Setting, _SECTION):
        if match := _CALL.fullmatch(record.call):
            path, before = (
                match["path"].replace("torch_npu.npu.", "torch.npu."),
                (match["before"] or "").count(", "),
            )
            form = Form(
                record,
                path,
                "(" in record.call,
                before,
                match["keyword"] or "",
                match["members"] or "",
            )
            forms.setdefault(path, []).append(form)
    return forms


@cache
def _list_groups() -> dict[str, str]:
    """Return the objects with settings attributes, by path, with the prefix of their names in a
    preset.
    """
    attributes = [form for forms in list_forms().values() for form in forms if not form.is_call]
    return {
        form.path.rpartition(".")[0]: form.record.name.removesuffix(form.path.rpartition(".")[2])
        for form in attributes
    }


@cache
def list_words() -> tuple[str, ...]:
    """Return words of which a script must contain one to set something."""
    leaves = (form.path.rpartition(".")[2] for forms in list_forms().values() for form in forms)
    groups = (f"{path.removeprefix('torch.')}." for path in _list_groups())
    return tuple(dict.fromkeys(("set_option", *leaves, *groups)))


def _resolve_path(node: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the dotted path of an expression by imports and plain assignments.

    ``torch_npu.npu`` becomes ``torch.npu``.
    """
    root = find_root(node)
    value, home = follow_name(root, scope) if isinstance(root, ast.Name) else (root, scope)
    if value is not root and isinstance(value, (ast.Name, ast.Attribute)) and depth < 3:
        path = _resolve_path(value, home, depth + 1) + format_dotted_name(node).removeprefix(
            format_dotted_name(root)
        )
    else:
        path = resolve_function_name(node, scope)
    return (
        f"torch.npu{path.removeprefix('torch_npu.npu')}"
        if path.startswith("torch_npu.npu")
        else path
    )


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    name = name_callee(call)
    match call:
        case ast.Call(ast.Attribute(ast.Name() as table, "update")):
            _note_update(visitor, call, table, scope)
        case ast.Call(args=[owner, attribute, value]) if (
            name == "setattr" and (group := _resolve_path(owner, scope)) in _list_groups()
        ):
            text, reason = visitor.evaluate_expression(attribute, scope)
            _read_attribute(visitor, call, group, "" if reason else str(text), value, scope)
    path = (
        _resolve_path(call.func, scope)
        if isinstance(call.func, ast.Name) or name in list_words()
        else ""
    )
    if path == _SET_OPTION:
        _read_options(visitor, call, scope)
    forms = [form for form in list_forms().get(path, ()) if form.is_call]
    if forms:
        _read_function(visitor, call, forms, scope)


def _read_function(visitor: Visitor, call: ast.Call, forms: list[Form], scope: Scope) -> None:
    """Read a call of a setter function; with too many arguments, its effect is unknown."""
    named = {name: (value, where) for name, _, value, where in iterate_keywords(call, scope)}
    rest, is_single = list(call.args[forms[0].before :]), len(forms) == 1 and not forms[0].before
    given = []
    for form in forms:
        name = form.keyword or next(iter(named), "")
        if is_single and rest and not isinstance(rest[0], ast.Starred):
            given.append((form, (rest.pop(0), scope)))
        elif name in named:
            given.append((form, named.pop(name)))
    unknown = named if is_single and forms[0].keyword and "" not in named else {}
    for name, value in unknown.items():
        _report(
            visitor,
            call,
            _mark_unknown(name, forms[0].path),
            visitor.read_value(*value),
            scope,
            forms[0].path,
        )
    hidden = ScriptValue(reason=f"depends on all arguments of {format_expression(call)}")
    is_hidden = bool(rest or (named and not unknown))
    for form, value in given:
        _report(
            visitor,
            call,
            form.record.name,
            hidden if is_hidden else _read_value(visitor, *value, form),
            scope,
            form.path,
        )
    if not given and not unknown:
        _report(visitor, call, forms[0].record.name, hidden, scope, forms[0].path)


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    match target:
        case ast.Subscript(ast.Name() as table, key):
            _note_entries(visitor, table, [(key, value, scope)], scope)
        case ast.Name():
            _note_table(visitor, target, value, scope)
        case ast.Attribute(owner, attribute) if (
            group := _resolve_path(owner, scope)
        ) in _list_groups():
            _read_attribute(visitor, target, group, attribute, value, scope)


def _read_attribute(
    visitor: Visitor, node: ast.expr, group: str, attribute: str, value: ast.expr, scope: Scope
) -> None:
    form = next(
        (form for form in list_forms().get(f"{group}.{attribute}", ()) if not form.is_call), None
    )
    if not attribute:
        _report(
            visitor, node, "", ScriptValue(reason=f"depends on {format_expression(node)}"), scope
        )
    elif form is None:
        name = f"{_list_groups()[group]}{attribute}"
        _report(visitor, node, _mark_unknown(name, group), visitor.read_value(value, scope), scope)
    else:
        _report(visitor, node, form.record.name, _read_value(visitor, value, scope, form), scope)


def _mark_unknown(name: str, path: str) -> str:
    """Return the name of an unknown setting, distinct from a setting with another form."""
    return (
        name
        if catalog.find_setting(_SECTION, name) is None
        else f"{path.rpartition('.')[2]}.{name}"
    )


def _read_value(visitor: Visitor, node: ast.expr, scope: Scope, form: Form) -> ScriptValue:
    """Return the value of an expression; the member name for an enumeration setting."""
    owner, _, member = _resolve_path(node, scope).rpartition(".")
    if form.members and f"{owner}." == form.members.replace("torch_npu.npu.", "torch.npu."):
        return ScriptValue(member, kind=form.members, written=member)
    return visitor.read_value(node, scope, lambda got: (_convert_value(form, got), ""))


def _convert_value(form: Form, value: Any) -> Any:
    """Return a value in preset form: its truth value, or a word for a number, if torch_npu accepts
    those.
    """
    record = form.record
    if record.truthy and not isinstance(value, str):
        return bool(value)
    is_number = (
        form.is_call
        and record.kind == "str"
        and type(value) is int
        and value in range(len(record.choices))
    )
    return record.choices[value] if is_number else value


# -- set_option -----------------------------------------------------------------------------------


def _mark_table(node: ast.Name, scope: Scope) -> tuple[str, str]:
    """Return the identity of a table: the scope that binds its name, and that name, as the caller's
    expression.
    """
    name, home = scope.name_outside(node.id)
    return home.find_binding(name)[0].name, name


def _note_entries(
    visitor: Visitor, table: ast.Name, entries: list[tuple[ast.expr, ast.expr, Scope]], scope: Scope
) -> None:
    """Record entries added to a table under the current conditions: keys, values and scope."""
    noted = visitor.tables.setdefault(_mark_table(table, scope), [])
    noted += (
        TableEntry(key, value, where, visitor.branches, visitor.dead)
        for key, value, where in entries
    )


def _note_table(visitor: Visitor, target: ast.Name, value: ast.expr, scope: Scope) -> None:
    """Record a table assigned to a name; another value ends the table."""
    is_table = list_table_parts(value) is not None
    mark = _mark_table(target, scope)
    if not visitor.tests:
        visitor.tables.pop(mark, None)
    if is_table or mark in visitor.tables:
        _note_entries(visitor, target, _list_entries(value, scope), scope)


def _list_entries(table: ast.expr, scope: Scope) -> list[tuple[ast.expr, ast.expr, Scope]]:
    """Return keys and values of a table; if they are not literal, the table as its own key."""
    pairs, where = list_written_pairs(table, scope)
    return (
        [(key, value, where) for key, value in pairs]
        if pairs is not None
        else [(table, table, scope)]
    )


def _note_update(visitor: Visitor, call: ast.Call, table: ast.Name, scope: Scope) -> None:
    """Record ``table.update(...)``."""
    entries = [entry for argument in call.args for entry in _list_entries(argument, scope)]
    for name, keyword, value, where in iterate_keywords(call, scope):
        entries.append(
            (ast.copy_location(ast.Constant(name), value) if name else keyword.value, value, where)
        )
    _note_entries(visitor, table, entries, scope)


def _read_options(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    """Read a call of ``set_option``: the entries of the table so far, or a literal table."""
    table = next(iter((*call.args, *(keyword.value for keyword in call.keywords))), call)
    mark = _mark_table(table, scope) if isinstance(table, ast.Name) else ("", "")
    for key, value, where in _list_entries(table, scope) if mark not in visitor.tables else ():
        _read_option(visitor, key, value, where)
    branches, dead = visitor.branches, visitor.dead
    for entry in visitor.tables.get(mark, ()):
        visitor.tests = (
            *branches,
            *(branch for branch in entry.branches if branch not in branches),
        )
        visitor.dead = max(dead, entry.dead)
        _read_option(visitor, entry.key, entry.value, entry.scope)
    visitor.tests, visitor.dead = branches, dead


def _read_option(visitor: Visitor, key: ast.expr, value: ast.expr, scope: Scope) -> None:
    name, reason = visitor.evaluate_expression(key, scope)
    if reason or not isinstance(name, str):
        _report(
            visitor,
            key,
            "",
            ScriptValue(reason=reason or "its name is not a string"),
            scope,
            _SET_OPTION,
        )
        return
    record = catalog.find_setting(_SECTION, name)
    known = record is not None and not record.call
    given = visitor.read_value(
        value,
        scope,
        lambda got: (_read_text(record.kind, got) if known and record is not None else got, ""),
    )
    _report(
        visitor, key, name if known else _mark_unknown(name, _SET_OPTION), given, scope, _SET_OPTION
    )


def _read_text(kind: str, value: Any) -> Any:
    """Return the preset value for a key of ``set_option``, which converts every value to text."""
    text = str(value)
    if kind in ("int", "float"):
        return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else value
    return (
        _SWITCHED.get(text.lower(), value)
        if kind == "bool"
        else value
        if kind in ("json", "list")
        else text
    )


def _report(
    visitor: Visitor,
    node: ast.expr,
    name: str,
    given: ScriptValue,
    scope: Scope,
    function: str = "",
) -> None:
    """Report a setting at a node; ``function`` is its setter, unless it is an attribute."""
    is_path = all(part.isidentifier() and part.isascii() for part in name.split("."))
    key = f"{_SECTION}.{name if is_path else format_key_segment(name)}" if name else ""
    visitor.add_setting(
        node,
        _SECTION,
        key,
        name,
        given,
        scope=OWNER,
        function=scope.name,
        class_name=function.rpartition(".")[2],
    )


#: Reads the settings of torch_npu.
SURFACE = Surface(list_words(), _read_call, _read_assignment)
