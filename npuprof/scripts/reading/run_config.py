"""``NPURunConfig(...)`` and the configuration objects it takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.document.keys import format_full_key
from npuprof.model import Record
from npuprof.scripts.reading.found import UNSET, Branch, FoundSetting
from npuprof.scripts.reading.literals import format_expression
from npuprof.scripts.reading.loops import list_table_nodes
from npuprof.scripts.reading.scopes import MOST_BINDINGS, Scope, iterate_statements
from npuprof.scripts.reading.walk import Walk

CLASSES = catalog.load_config_classes()
HOT = tuple(CLASSES)
#: So many objects are followed into one NPURunConfig.
_MOST_TAKEN = 50
_SECOND_NAME = re.compile(
    rf"\b(?:{'|'.join(HOT)})\s+as\s+([A-Za-z_]\w*)|^[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*(?:\w+\.)*(?:{'|'.join(HOT)})[ \t]*(?:#.*)?$",
    re.MULTILINE,
)


class GivenCall(Record):
    """A call that makes an object of one of the classes: what it is given by name or position.

    ``excess`` counts what has no place, ``twice`` names what is given both ways; ``open`` is a call whose arguments a star hides.
    """

    line: int
    column: int
    name: str
    given: tuple[str, ...]
    excess: int
    twice: tuple[str, ...]
    open: bool


class NestedConfig(Record):
    """A configuration object on its way into an NPURunConfig: the scope its settings have got, where its call stands (0 from the left)."""

    scope: str
    line: int
    offset: int
    made: str


class TakenConfig(Record):
    """What an NPURunConfig takes: the scope of its settings, and the condition under which the object is given to it, if any."""

    scope: str
    condition: str = ""


class GivenObject(Record):
    """What an argument is given that takes an object: one of a class of ours (``made``), or something written out (``text``).

    ``names`` are the keys of a table, ``owner`` is the class that is given it. Of what cannot be known only the place is kept.
    """

    line: int
    column: int
    argument: str
    made: str
    text: str
    names: tuple[str, ...] = ()
    owner: str = ""


@cache
def list_object_arguments() -> frozenset[str]:
    """Return the arguments that a preset cannot hold: they take an object that the script makes."""
    made = {one.taken_as for one in CLASSES.values() if one.argument}
    plain = {name for name in catalog.record_names("estimator") if (record := catalog.find_argument(name)) and record.kind == "object"}
    return frozenset({*made, *plain, "train_distribute", "eval_distribute"})


@cache
def list_class_arguments(cls: str) -> tuple[str, ...]:
    """Return the names of the arguments a class takes, in the order of its signature."""
    made = CLASSES[cls]
    spelled = catalog.options_by_spelling("run_config")
    if not made.argument:
        inner = [*(name for name in spelled if "." not in name), *catalog.record_names("estimator")]
    elif made.until:
        inner = []
    else:
        inner = [name.removeprefix(f"{made.argument}.") for name in spelled if name.startswith(f"{made.argument}.")]
    return tuple(dict.fromkeys((*made.positional, *(name for name in inner if "." not in name))))


def find_class_names(text: str) -> list[str]:
    """Return the second names that a text gives to the classes."""
    if "npu" not in text or not any(word in text for word in HOT):
        return []
    return sorted({name for pair in _SECOND_NAME.findall(text) for name in pair if name})


def handle_statement(walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
    """Read the calls of one statement."""
    if not walk.mentions("npu"):
        return  # these are common names
    for expression in expressions:
        if not isinstance(expression, (ast.Constant, ast.Name)) and walk.is_hot(expression):
            for node in ast.walk(expression):
                if isinstance(node, ast.Call) and (cls := _find_config_class(node, scope)):
                    _report_config_call(walk, statement, node, cls, scope, branches)


def _find_config_class(call: ast.Call, scope: Scope) -> str:
    """Return the name of the class a call makes an object of, where it is the adapter's own."""
    return _find_named_class(call.func, scope)


def _find_named_class(function: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the class that an expression names, by its own name or another that it is given in the script."""
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    if name not in CLASSES:
        found = scope.resolve_name(name) if isinstance(function, ast.Name) and depth < 3 else None
        node = found[1][0].node if found and len(found[1]) == 1 else None
        if isinstance(node, ast.ImportFrom):
            known = [one.name for one in node.names if one.asname == name and one.name in CLASSES]
            return known[0] if known and "npu" in ast.unparse(node).lower() else ""
        return _find_named_class(node, found[0], depth + 1) if found and isinstance(node, (ast.Name, ast.Attribute)) else ""
    owner: ast.expr = function
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if isinstance(owner, ast.Name) and (found := scope.resolve_name(owner.id)):
        for binding in found[1][:MOST_BINDINGS]:
            node = binding.node
            if not isinstance(node, (ast.Import, ast.ImportFrom)) or "npu" not in ast.unparse(node).lower():
                return ""
    return name


def _report_config_call(walk: Walk, statement: ast.stmt, call: ast.Call, cls: str, scope: Scope, branches: tuple[Branch, ...]) -> None:
    owner = f"{scope.name or '<module>'}:{cls}@{call.lineno}:{call.col_offset}"
    if cls == "NPURunConfig":
        walk.new_site(scope, f"NPURunConfig@{call.lineno}", "run_config", call, branches)
        owner = f"{scope.name or '<module>'}:NPURunConfig@{call.lineno}@{call.lineno}"
        _note_taken_configs(walk, call, owner, scope)
    else:
        walk.add_fact("nested", NestedConfig(owner, call.lineno, call.col_offset, cls))
    order = CLASSES[cls].positional
    _note_call(walk, call, cls)
    given: list[tuple[str, ast.expr, ast.AST]] = []
    for number, value in enumerate(call.args):
        if isinstance(value, ast.Starred) or number >= len(order):
            walk.add_setting(value, "run_config", "", "", reason="given by position", branches=branches, scope=owner)
        else:
            given.append((order[number], value, value))
    for keyword in call.keywords:
        if keyword.arg is not None:
            given.append((keyword.arg, keyword.value, keyword))
            continue
        if _is_rendered_more(walk, keyword.value, scope):
            continue
        pairs, where = list_table_nodes(keyword.value, "items", scope)
        names = [pair.elts for pair in pairs if isinstance(pair, ast.Tuple)]
        if not names:
            walk.add_setting(
                keyword.value,
                "run_config",
                "",
                "",
                reason=f"depends on **{format_expression(keyword.value)}",
                branches=branches,
                scope=owner,
            )
        for key, item in names:
            text, reason, _ = walk.evaluate_expression(key, where)
            if not reason:
                _report_argument(walk, item, cls, str(text), item, where, branches, owner)
    for name, value, place in given:
        _report_argument(walk, place, cls, name, value, scope, branches, owner)


def _is_rendered_more(walk: Walk, node: ast.expr, scope: Scope) -> bool:
    """Return whether a node is the ``**more`` of a function that npuprof rendered, which sets nothing by itself."""
    function = scope.node
    named = isinstance(node, ast.Name) and node.id == "more" and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    if not named or not walk.mentions("npuprof") or walk.find_calls(function.name):  # type: ignore[union-attr]
        return False
    kwarg = function.args.kwarg  # type: ignore[union-attr]
    return kwarg is not None and kwarg.arg == "more"


def _note_taken_configs(walk: Walk, call: ast.Call, owner: str, scope: Scope) -> None:
    """Take note of the calls whose objects one NPURunConfig is given, through names and tables too, and on what that depends."""
    taken: dict[tuple[int, int], TakenConfig] = walk.facts.setdefault("taken", {})
    waiting = [(name, value, where, "") for name, value, where in _iterate_arguments(call, scope)]
    while waiting and len(taken) < _MOST_TAKEN:
        name, value, where, condition = waiting.pop()
        if name == "session_config":
            walk.add_fact("estimator", (format_expression(value), call.lineno, scope.name))
        if name not in list_object_arguments():
            continue
        if isinstance(value, ast.IfExp):
            test = format_expression(value.test)
            waiting += [(name, value.body, where, _join_conditions(condition, test))]
            waiting += [(name, value.orelse, where, _join_conditions(condition, f"not ({test})"))]
        elif isinstance(value, ast.Name) and (bound := where.resolve_name(value.id)) and len(bound[1]) <= MOST_BINDINGS:
            given = [(binding.node, binding.kind) for binding in bound[1]]
            if not given and value.id in bound[0].bound:
                waiting.append((name, *bound[0].bound[value.id], condition))
            waiting += [(name, node, bound[0], condition) for node, kind in given if kind == "assign" and isinstance(node, ast.expr)]
        elif isinstance(value, ast.Attribute):
            waiting += [(name, node, where, condition) for node in walk.find_attribute_values(ast.unparse(value))]
        elif isinstance(value, ast.Call) and (returned := _find_returned_value(value, where)):
            waiting.append((name, *returned, condition))
        elif isinstance(value, ast.Call):
            taken.setdefault((value.lineno, value.col_offset), TakenConfig(owner, condition))
            waiting += [(inner, one, home, condition) for inner, one, home in _iterate_arguments(value, where)]


def _iterate_arguments(call: ast.Call, scope: Scope) -> Iterator[tuple[str, ast.expr, Scope]]:
    """Yield the arguments of a call by name, those of tables behind two stars too, with the scope each is to be read in."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value, scope
            continue
        pairs, where = list_table_nodes(keyword.value, "items", scope)
        for pair in pairs:
            if isinstance(pair, ast.Tuple) and isinstance(pair.elts[0], ast.Constant):
                yield str(pair.elts[0].value), pair.elts[1], where


def _find_returned_value(call: ast.Call, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return what a function of this file returns, where it does so in one place; None for other calls."""
    found = scope.resolve_name(call.func.id) if isinstance(call.func, ast.Name) else None
    function = found[1][0].node if found and len(found[1]) == 1 else None
    if found is None or not isinstance(function, ast.FunctionDef):
        return None
    returned = [one.value for one in iterate_statements(function.body) if isinstance(one, ast.Return) and one.value is not None]
    return (returned[0], Scope(function, found[0])) if len(returned) == 1 else None


def _join_conditions(before: str, condition: str) -> str:
    return f"({before}) and ({condition})" if before else condition


def link_nested_configs(walk: Walk) -> None:
    """Let the settings of configuration objects belong to the NPURunConfig that takes them; what none takes is not in force.

    Of two objects that one name stands for, one after the other, the NPURunConfig is given the last.
    """
    taken: dict[tuple[int, int], TakenConfig] = walk.facts.pop("taken", {})
    nested: dict[str, NestedConfig] = {one.scope: one for one in walk.facts.pop("nested", ())}
    last: dict[tuple[str, str], str] = {}
    for found in walk.found:
        if (one := nested.get(found.scope)) and (home := taken.get((one.line, one.offset))) and not found.branches and not home.condition:
            last[home.scope, one.made] = max(
                last.get((home.scope, one.made), ""), found.scope, key=lambda scope: _find_scope_line(nested, scope)
            )
    linked: list[FoundSetting] = []
    for found in walk.found:
        one = nested.get(found.scope)
        home = taken.get((one.line, one.offset)) if one else None
        if one is None:
            linked.append(found)
        elif home is None:
            why = f"the {one.made} is given to no NPURunConfig here"
            linked.append(found._replace(unused=why))
        elif home.condition:
            more = (*found.branches, (-one.line, 0, home.condition))
            linked.append(found._replace(scope=home.scope, branches=more))
        elif not found.branches and last[home.scope, one.made] != found.scope:
            why = f"another {one.made} takes its place before it is given to NPURunConfig"
            linked.append(found._replace(scope=home.scope, unused=why))
        else:
            linked.append(found._replace(scope=home.scope))
    walk.found = linked


def _find_scope_line(nested: dict[str, NestedConfig], scope: str) -> tuple[int, int]:
    one = nested.get(scope)
    return (one.line, one.offset) if one else (0, 0)


def _report_argument(
    walk: Walk, place: ast.AST, cls: str, name: str, value: ast.expr, scope: Scope, branches: tuple[Branch, ...], owner: str
) -> None:
    if name in list_object_arguments():
        taken = name in list_class_arguments(cls) or name in CLASSES[cls].formerly
        _note_given_object(walk, place, cls, name, value, scope)
        if not taken or not isinstance(value, (ast.Constant, ast.Dict, ast.List)) or name == "session_config":
            return
        if isinstance(value, ast.Constant) and value.value is None:
            return
    prefix = CLASSES[cls].argument
    dotted = f"{prefix}.{name}" if prefix else name
    option = catalog.options_by_spelling("run_config").get(dotted)
    own = name in CLASSES[cls].formerly or (name in list_object_arguments() and not catalog.find_argument(name))
    key = option or (dotted if prefix or own else format_full_key("estimator", name))
    got, reason, default = walk.evaluate_expression(value, scope)
    kind, written = ("", None) if reason else (type(got).__name__, got)
    if not reason and got is None:
        reason = UNSET
    if not reason:
        got, reason = _read_argument_value(CLASSES[cls], name, option, got)
    if default is not None and option:
        default = convert_option_value(option, default)[0]
    walk.add_setting(
        place, "run_config", key, name, value=got if not reason else None, reason=reason, kind=kind, written=written,
        branches=branches, scope=owner, default=default, field=None, made=cls,
    )  # fmt: skip


def _note_call(walk: Walk, call: ast.Call, cls: str) -> None:
    """Take note of what a call is given, for who looks whether it fits the class."""
    if walk.dead:
        return
    order = CLASSES[cls].positional
    placed = [arg for arg in call.args if not isinstance(arg, ast.Starred)]
    stars = len(placed) < len(call.args) or any(keyword.arg is None for keyword in call.keywords)
    by_name = [keyword.arg for keyword in call.keywords if keyword.arg]
    by_place = order[: len(placed)] if len(placed) == len(call.args) else ()
    column = walk.script.column(call.lineno, call.col_offset)
    twice = tuple(name for name in by_name if name in by_place)
    walk.add_fact(
        "calls", GivenCall(call.lineno, column, cls, (*by_place, *by_name), max(0, len(placed) - len(order)), twice, stars)
    )  # fmt: skip


def _note_given_object(walk: Walk, place: ast.AST, cls: str, name: str, value: ast.expr, scope: Scope) -> None:
    """Take note of what an argument is given that takes an object."""
    made, text, names = _describe_given_object(walk, value, scope)
    if not walk.dead:
        line = place.lineno  # type: ignore[attr-defined]
        column = walk.script.column(line, place.col_offset)  # type: ignore[attr-defined]
        walk.add_fact("objects", GivenObject(line, column, name, made, text, names, cls))


def _describe_given_object(walk: Walk, value: ast.expr, scope: Scope) -> tuple[str, str, tuple[str, ...]]:
    """Return the class of an object, or the text of what is none, and the keys of a table; nothing where that is not certain."""
    if isinstance(value, ast.Name) and (bound := scope.resolve_name(value.id)):
        if len(bound[1]) != 1 or bound[1][0].kind != "assign" or value.id in bound[0].rebound:
            return "", "", ()
        value, scope = bound[1][0].node, bound[0]  # type: ignore[assignment]
    made = _find_config_class(value, scope) if isinstance(value, ast.Call) else ""
    text = ""
    names: tuple[str, ...] = ()
    got, reason, _ = walk.evaluate_expression(value, scope)
    if not reason and isinstance(got, (str, bytes, bool, int, float)):
        text = format_expression(value)
    elif isinstance(value, (ast.Dict, ast.List, ast.Tuple, ast.Set)):
        text = f"a {type(value).__name__.lower()}"
        keys = value.keys if isinstance(value, ast.Dict) else ()
        names = tuple(key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    return made, text, names


def _read_argument_value(made: catalog.ConfigClass, name: str, option: str | None, value: Any) -> tuple[Any, str]:
    """Return what an argument holds in the end, where the class or RunConfig is not strict about numbers and texts."""
    if name in made.as_text and isinstance(value, int):
        return str(value), ""
    argument = catalog.find_argument(name) if option is None and not made.argument else None
    number = argument is not None and argument.kind == "int" and isinstance(value, (bool, float))
    if number and (isinstance(value, bool) or (value.is_integer() and not argument.whole)):  # type: ignore[union-attr]
        return int(value), ""
    return convert_option_value(option, value)


def convert_option_value(option: str | None, value: Any) -> tuple[Any, str]:
    """Return a Python value as the option stores it, and the reason where it cannot."""
    record = catalog.find_option(option) if option else None
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if record is not None and record.field == "i" and isinstance(value, bool):
        return int(value), ""
    if record is not None and (record.field or record.kind) in ("b", "bool") and type(value) is int:
        return bool(value), ""
    if isinstance(value, (str, bool, int, float, list, dict)):
        return value, ""
    return (list(value), "") if isinstance(value, tuple) else (None, f"a {type(value).__name__} is no value of an option")
