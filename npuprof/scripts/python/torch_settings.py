"""torch_npu: ``torch.npu.set_option({...})``, and the calls and attributes in the catalogue.

They are read under any import name.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from itertools import starmap
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_key_segment
from npuprof.model import Record
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
from npuprof.scripts.python.visitor import Condition, Surface, TableEntry, Visitor
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


class Form(Record):
    """How a script sets a setting.

    ``path`` is that of a function or attribute, ``before`` the number of arguments before the
    value, ``members`` the enumeration of its values.
    """

    record: catalog.Setting
    path: str
    is_call: bool
    before: int
    keyword: str
    members: str

    @property
    def name(self) -> str:
        """The last name of its path."""
        return self.path.rpartition(".")[2]


@cache
def list_forms() -> dict[str, list[Form]]:
    """Return the forms of settings other than ``set_option`` keys, by their path."""
    forms = defaultdict(list)
    for record in catalog.list_records(catalog.Setting, _SECTION):
        match = _CALL.fullmatch(record.call)
        if match is None:
            continue
        path = match["path"].replace("torch_npu.npu.", "torch.npu.")
        form = Form(
            record,
            path,
            is_call="(" in record.call,
            before=(match["before"] or "").count(", "),
            keyword=match["keyword"] or "",
            members=match["members"] or "",
        )
        forms[path].append(form)
    return forms


@cache
def _list_groups() -> dict[str, str]:
    """Return the objects with settings attributes, by path.

    Each has the prefix of its attributes' names in a preset.
    """
    return {
        form.path.rpartition(".")[0]: form.record.name.removesuffix(form.name)
        for forms in list_forms().values()
        for form in forms
        if not form.is_call
    }


@cache
def list_markers() -> tuple[str, ...]:
    """Return texts of which a script must contain one to set something."""
    names = [form.name for forms in list_forms().values() for form in forms]
    groups = [f"{path.removeprefix('torch.')}." for path in _list_groups()]
    return tuple(dict.fromkeys(("set_option", *names, *groups)))


def _resolve_path(node: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the dotted path of an expression by imports and plain assignments.

    ``torch_npu.npu`` becomes ``torch.npu``.
    """
    root = find_root(node)
    value, home = follow_name(root, scope) if isinstance(root, ast.Name) else (root, scope)
    # the limit also ends names that stand for each other
    if value is not root and isinstance(value, (ast.Name, ast.Attribute)) and depth < 3:
        attributes = format_dotted_name(node).removeprefix(format_dotted_name(root))
        path = _resolve_path(value, home, depth + 1) + attributes
    else:
        path = resolve_function_name(node, scope)
    if path.startswith("torch_npu.npu"):
        return f"torch.npu{path.removeprefix('torch_npu.npu')}"
    return path


def _read_call(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    name = name_callee(call)
    match call:
        case ast.Call(ast.Attribute(ast.Name() as table, "update")):
            _note_update(visitor, call, table, scope)
    # an import may rename a function, but no attribute of a module
    if not isinstance(call.func, ast.Name) and name not in list_markers():
        return
    path = _resolve_path(call.func, scope)
    if path == _SET_OPTION:
        _read_options(visitor, call, scope)
    forms = [form for form in list_forms().get(path, ()) if form.is_call]
    if forms:
        _read_function(visitor, call, forms, scope)


def _read_function(visitor: Visitor, call: ast.Call, forms: list[Form], scope: Scope) -> None:
    """Read a call of a setter function; with too many arguments, its effect is unknown."""
    path, before = forms[0].path, forms[0].before
    rest = list(call.args[before:])
    named = {
        argument.name: (argument.value, argument.scope)
        for argument in iterate_keywords(call, scope)
    }
    is_single = len(forms) == 1 and not before
    values = []
    for form in forms:
        name = form.keyword or next(iter(named), "")
        if is_single and rest and not isinstance(rest[0], ast.Starred):
            values.append((form, (rest.pop(0), scope)))
        elif name in named:
            values.append((form, named.pop(name)))
    unknown = {}
    if is_single and forms[0].keyword and "" not in named:
        unknown, named = named, {}
    for name, value in unknown.items():
        setting = _mark_unknown(name, path)
        _report(visitor, call, setting, visitor.read_value(*value), scope, path)
    hidden = ScriptValue(reason=f"depends on all arguments of {format_expression(call)}")
    is_hidden = bool(rest or named)
    for form, value in values:
        read = hidden if is_hidden else _read_value(visitor, *value, form)
        _report(visitor, call, form.record.name, read, scope, form.path)
    if not values and not unknown:
        _report(visitor, call, forms[0].record.name, hidden, scope, path)


def _read_assignment(visitor: Visitor, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    match target:
        case ast.Subscript(ast.Name() as table, key):
            _note_entries(visitor, table, [TableEntry(key, value, scope)], scope)
        case ast.Name():
            _note_table(visitor, target, value, scope)
        case ast.Attribute(owner, attribute):
            group = _resolve_path(owner, scope)
            if group in _list_groups():
                _read_attribute(visitor, target, group, attribute, value, scope)


def _read_attribute(
    visitor: Visitor, node: ast.expr, group: str, attribute: str, value: ast.expr, scope: Scope
) -> None:
    for form in list_forms().get(f"{group}.{attribute}", ()):
        if not form.is_call:
            read = _read_value(visitor, value, scope, form)
            _report(visitor, node, form.record.name, read, scope)
            return
    name = _mark_unknown(f"{_list_groups()[group]}{attribute}", group)
    _report(visitor, node, name, visitor.read_value(value, scope), scope)


def _mark_unknown(name: str, path: str) -> str:
    """Return the name of an unknown setting, distinct from a setting with another form."""
    if catalog.find_setting(_SECTION, name) is None:
        return name
    _, _, setter = path.rpartition(".")
    return f"{setter}.{name}"


def _read_value(visitor: Visitor, node: ast.expr, scope: Scope, form: Form) -> ScriptValue:
    """Return the value of an expression; the member name for an enumeration setting."""
    owner, _, member = _resolve_path(node, scope).rpartition(".")
    if form.members and f"{owner}." == form.members.replace("torch_npu.npu.", "torch.npu."):
        return ScriptValue(member, kind=form.members, written=member)
    return visitor.read_value(node, scope, lambda got: (_convert_value(form, got), ""))


def _convert_value(form: Form, value: Any) -> Any:
    """Return a value in preset form: its truth value, or the choice with a number.

    Only for settings that accept those.
    """
    record = form.record
    if record.truthy and not isinstance(value, str):
        return bool(value)
    has_numbers = form.is_call and record.kind == "str"
    # bool is a subclass of int, and is not a number of a choice
    if has_numbers and type(value) is int and 0 <= value < len(record.choices):
        return record.choices[value]
    return value


# -- set_option -----------------------------------------------------------------------------------


def _find_table_key(node: ast.Name, scope: Scope) -> tuple[str, str]:
    """Return the scope that binds a table's name, and that name, as the caller's expression."""
    name, home = scope.name_outside(node.id)
    binding_scope, _ = home.find_binding(name)
    return binding_scope.name, name


def _note_entries(
    visitor: Visitor, table: ast.Name, entries: list[TableEntry], scope: Scope
) -> None:
    """Record entries added to a table under the current conditions."""
    noted = visitor.tables.setdefault(_find_table_key(table, scope), [])
    branches, dead = visitor.branches, visitor.dead
    noted += [entry._replace(branches=branches, dead=dead) for entry in entries]


def _note_table(visitor: Visitor, target: ast.Name, value: ast.expr, scope: Scope) -> None:
    """Record a table assigned to a name; another value ends the table."""
    is_table = list_table_parts(value) is not None
    table_key = _find_table_key(target, scope)
    # under a condition, the table before may be the one that is used
    if not visitor.conditions:
        visitor.tables.pop(table_key, None)
    if is_table or table_key in visitor.tables:
        _note_entries(visitor, target, _list_entries(value, scope), scope)


def _list_entries(table: ast.expr, scope: Scope) -> list[TableEntry]:
    """Return the entries of a table; if they are not literal, the table as its own key."""
    pairs, home = list_written_pairs(table, scope)
    if pairs is None:
        return [TableEntry(table, table, scope)]
    return [TableEntry(key, value, home) for key, value in pairs]


def _note_update(visitor: Visitor, call: ast.Call, table: ast.Name, scope: Scope) -> None:
    """Record ``table.update(...)``."""
    entries = []
    for table_argument in call.args:
        entries += _list_entries(table_argument, scope)
    for argument in iterate_keywords(call, scope):
        key = argument.keyword.value
        if argument.name:
            key = ast.copy_location(ast.Constant(argument.name), argument.value)
        entries.append(TableEntry(key, argument.value, argument.scope))
    _note_entries(visitor, table, entries, scope)


def _read_options(visitor: Visitor, call: ast.Call, scope: Scope) -> None:
    """Read a call of ``set_option``: the entries of the table so far, or a literal table."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    table = arguments[0] if arguments else call
    entries = None
    if isinstance(table, ast.Name):
        entries = visitor.tables.get(_find_table_key(table, scope))
    if entries is None:
        entries = _list_entries(table, scope)
    conditions, dead, branches = visitor.conditions, visitor.dead, visitor.branches
    for entry in entries:
        own = [branch for branch in entry.branches if branch not in branches]
        visitor.conditions = (*conditions, *starmap(Condition, own))
        visitor.dead = max(dead, entry.dead)
        _read_option(visitor, entry)
    visitor.conditions, visitor.dead = conditions, dead


def _read_option(visitor: Visitor, entry: TableEntry) -> None:
    key, value, scope = entry.key, entry.value, entry.scope
    name, reason = visitor.evaluate_expression(key, scope)
    if reason or not isinstance(name, str):
        unknown = ScriptValue(reason=reason or "its name is not a string")
        _report(visitor, key, "", unknown, scope, _SET_OPTION)
        return
    record = catalog.find_setting(_SECTION, name)
    if record is None or record.call:  # a record with ``call`` is set by that
        read = visitor.read_value(value, scope)
        name = _mark_unknown(name, _SET_OPTION)
    else:
        kind = record.kind
        read = visitor.read_value(value, scope, lambda got: (_read_text(kind, got), ""))
    _report(visitor, key, name, read, scope, _SET_OPTION)


def _read_text(kind: str, value: Any) -> Any:
    """Return the preset value for a key of ``set_option``, which converts every value to text."""
    text = str(value)
    if kind in ("int", "float"):
        return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else value
    if kind == "bool":
        return _SWITCHED.get(text.lower(), value)
    return value if kind in ("json", "list") else text


def _report(
    visitor: Visitor,
    node: ast.expr,
    name: str,
    value: ScriptValue,
    scope: Scope,
    function: str = "",
) -> None:
    """Report a setting at a node; ``function`` is its setter, unless it is an attribute."""
    is_path = all(part.isidentifier() and part.isascii() for part in name.split("."))
    key = f"{_SECTION}.{name if is_path else format_key_segment(name)}" if name else ""
    _, _, setter = function.rpartition(".")
    visitor.add_setting(
        node, _SECTION, key, name, value, scope=OWNER, function=scope.name, class_name=setter
    )


#: Reads the settings of torch_npu.
SURFACE = Surface(list_markers(), _read_call, _read_assignment)
