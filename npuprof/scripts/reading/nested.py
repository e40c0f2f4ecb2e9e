"""Configuration objects on their way into an NPURunConfig: which it is given, when, and which are given to none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.reading.classes import list_object_arguments
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.literals import format_expression
from npuprof.scripts.reading.loops import list_table_nodes
from npuprof.scripts.reading.scopes import MOST_BINDINGS, Scope, iterate_statements
from npuprof.scripts.reading.terms import write_source
from npuprof.scripts.reading.walk import Walk

#: So many objects are followed into one NPURunConfig.
_MOST_TAKEN = 50


class NestedConfig(Record):
    """A configuration object on its way into an NPURunConfig: the scope its settings have got, where its call stands (0 from the left).

    ``file`` and ``label`` are those of the file around it, where calls are followed into other files.
    """

    scope: str
    line: int
    offset: int
    made: str
    file: str = ""
    label: str = ""

    @property
    def place(self) -> tuple[str, int, int]:
        """Where it is made."""
        return self.file, self.line, self.offset


class GivenSession(Record):
    """A session config that an NPURunConfig is given: the expression, the function it stands in, and line and function of the call."""

    expression: str
    seen: str
    line: int
    function: str


class TakenConfig(Record):
    """What an NPURunConfig takes: the scope of its settings, and the condition under which the object is given to it, if any."""

    scope: str
    condition: str = ""
    label: str = ""


def note_taken_configs(walk: Walk, call: ast.Call, owner: str, scope: Scope) -> None:
    """Take note of the calls whose objects one NPURunConfig is given, through names and tables too, and on what that depends."""
    taken: dict[tuple[str, int, int], list[TakenConfig]] = walk.facts.setdefault("taken", {})
    count = len(taken) + _MOST_TAKEN
    waiting = [(name, value, where, "") for name, value, where in _iterate_arguments(call, scope)]
    while waiting and len(taken) < count:
        name, value, where, condition = waiting.pop()
        if name == "session_config":
            walk.add_fact("estimator", GivenSession(*_find_given(value, where), call.lineno, scope.name))
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
            waiting += [(name, node, where, condition) for node in walk.find_attribute_values(write_source(value))]
        elif isinstance(value, ast.Call) and (returned := _find_returned_value(value, where)):
            waiting.append((name, *returned, condition))
        elif isinstance(value, ast.Call):
            same = taken.setdefault((where.file, value.lineno, value.col_offset), [])
            if all(one.label != where.label for one in same):
                same.append(TakenConfig(owner, condition, where.label))
            waiting += [(inner, one, home, condition) for inner, one, home in _iterate_arguments(value, where)]


def _find_given(value: ast.expr, scope: Scope) -> tuple[str, str]:
    """Return an argument as text, in the words of the script that hands it to a function of another file, and the function there."""
    while scope.label and isinstance(value, ast.Name) and value.id in scope.bound:
        value, scope = scope.bound[value.id]
    return format_expression(value), scope.name


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
    taken: dict[tuple[str, int, int], list[TakenConfig]] = walk.facts.pop("taken", {})
    nested: dict[str, NestedConfig] = {one.scope: one for one in walk.facts.pop("nested", ())}
    last: dict[tuple[str, str], str] = {}
    for found in walk.found:
        if (one := nested.get(found.scope)) and (home := _find_taker(taken, one)) and not found.branches and not home.condition:
            last[home.scope, one.made] = max(
                last.get((home.scope, one.made), ""), found.scope, key=lambda scope: _find_scope_line(nested, scope)
            )
    linked: list[FoundSetting] = []
    for found in walk.found:
        one = nested.get(found.scope)
        home = _find_taker(taken, one) if one else None
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


def _find_taker(taken: dict[tuple[str, int, int], list[TakenConfig]], one: NestedConfig) -> TakenConfig | None:
    """Return what takes an object, that of the same call of its function before others."""
    same = taken.get(one.place, [])
    return next((home for home in same if home.label == one.label), same[0] if same else None)


def _find_scope_line(nested: dict[str, NestedConfig], scope: str) -> tuple[int, int]:
    one = nested.get(scope)
    return (one.line, one.offset) if one else (0, 0)
