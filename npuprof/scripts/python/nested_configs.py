"""Configuration objects passed to NPURunConfig: which, when, and which are unused."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from npuprof.model import Record
from npuprof.scripts.python.config_classes import list_object_arguments
from npuprof.scripts.python.expressions import format_expression, write_source
from npuprof.scripts.python.loops import iterate_keywords
from npuprof.scripts.python.returned_values import find_only_return
from npuprof.scripts.python.scopes import MOST_BINDINGS, Scope
from npuprof.scripts.python.visitor import NestedConfig, TakenConfig, Visitor
from npuprof.scripts.script_records import ScriptSetting, are_exclusive

#: The maximum number of objects followed into one NPURunConfig.
_MOST_TAKEN = 50


class GivenSession(Record):
    """The session config passed to an NPURunConfig: that object's scope and line, the expression,
    and the function.
    """

    scope: str
    line: int
    expression: str
    seen: str


class _Value(NamedTuple):
    """A possible value of an expression, with its scope; ``alone`` if it is the only one."""

    node: ast.expr
    scope: Scope
    alone: bool = True


def note_taken_configs(visitor: Visitor, call: ast.Call, owner: str, scope: Scope) -> None:
    """Record the calls whose objects an NPURunConfig takes, also through names and tables, with
    their conditions.
    """
    taken = visitor.taken
    count = len(taken) + _MOST_TAKEN
    waiting = list(_iterate_arguments(call, _Value(call, scope)))
    seen: set[tuple[str, ast.expr, str]] = set()
    while waiting and len(taken) < count:
        name, argument = waiting.pop(0)
        value, where = argument.node, argument.scope
        if (name, value, where.label) in seen:
            continue  # a loop leads back to it
        seen.add((name, value, where.label))
        if name == "session_config":
            text, giver = where.name_outside(format_expression(value))
            visitor.add_record(GivenSession(owner, call.lineno, text, giver.name))
        if name not in list_object_arguments():
            continue
        values = list(_iterate_values(visitor, value, where))
        if isinstance(value, ast.Call) and not values:
            homes = taken.setdefault((where.file, value.lineno, value.col_offset), {})
            homes.setdefault((owner, where.label), TakenConfig(owner, where.label, argument.alone))
            waiting += _iterate_arguments(value, argument)
        waiting += [
            (name, inner._replace(alone=argument.alone and inner.alone)) for inner in values
        ]


def _iterate_values(visitor: Visitor, value: ast.expr, scope: Scope) -> Iterator[_Value]:
    """Yield the possible values of an expression that is not itself a constructor call."""
    match value:
        case ast.IfExp(_, first, second):
            yield from (_Value(node, scope, alone=False) for node in (first, second))
        case ast.Name(name):
            home, bindings = scope.resolve_name(name) or (scope, [])
            if not bindings and name in home.bound:
                yield _Value(*home.bound[name])
            elif len(bindings) <= MOST_BINDINGS:
                yield from (
                    _Value(binding.node, home, alone=len(bindings) == 1)
                    for binding in bindings
                    if binding.kind == "assign"
                )
        case ast.Attribute():
            nodes = visitor.module.index.attributes.get(write_source(value), [])
            yield from (_Value(node, scope, alone=len(nodes) == 1) for node in nodes)
        case ast.Call(callee):
            function, home = scope.resolve_only(callee)
            if (
                isinstance(function, ast.FunctionDef)
                and (returned := find_only_return(function)) is not None
            ):
                yield _Value(returned, Scope(function, home))


def _iterate_arguments(call: ast.Call, given: _Value) -> Iterator[tuple[str, _Value]]:
    """Yield the arguments of a call by name, including unpacked tables."""
    yield from (
        (name, given._replace(node=value, scope=where))
        for name, _, value, where in iterate_keywords(call, given.scope)
    )


def link_nested_configs(visitor: Visitor) -> None:
    """Assign the settings of configuration objects to each NPURunConfig that takes them.

    Others are not effective.
    """
    linked = []
    for setting in visitor.found:
        config = visitor.nested.get(setting.scope)
        if config is None:
            linked.append(setting)
            continue
        takers = visitor.taken.get((config.file, config.line, config.offset), {}).values()
        same = [
            home
            for home in takers
            if not are_exclusive(setting.branches, visitor.sites[home.scope].branches)
        ]
        homes = [
            home for home in same if home.label == config.label
        ] or same  # those of the same call come first
        if not homes:
            linked.append(
                setting._replace(unused=f"the {config.made} is given to no NPURunConfig here")
            )
        linked += [_link_setting(visitor, setting, config, home) for home in homes]
    visitor.found = linked


def _link_setting(
    visitor: Visitor, setting: ScriptSetting, config: NestedConfig, home: TakenConfig
) -> ScriptSetting:
    test = ""
    site = visitor.sites[home.scope]
    is_inside = (
        bool(setting.branches) and setting.branches == site.branches[: len(setting.branches)]
    )
    if not home.alone and not is_inside:
        own = {text for _, _, text in setting.branches} - {text for _, _, text in site.branches}
        if not own or config.line > site.line:  # its own conditions do not decide it
            test = f"the argument is the {config.made} of line {config.line}"
    more = (
        ((-config.line, 0, test),)
        if test and all(test != text for _, _, text in setting.branches)
        else ()
    )
    return setting._replace(scope=home.scope, branches=(*setting.branches, *more))
