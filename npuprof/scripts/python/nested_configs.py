"""Configuration objects passed to NPURunConfig: which, when, and which are unused."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.python.config_classes import list_object_arguments
from npuprof.scripts.python.expressions import format_expression, write_source
from npuprof.scripts.python.loops import iterate_keywords
from npuprof.scripts.python.returned_values import find_only_return
from npuprof.scripts.python.scopes import MOST_BINDINGS, Scope
from npuprof.scripts.python.visitor import CallLocation, NestedConfig, TakenConfig, Visitor
from npuprof.scripts.script_records import Branch, ScriptSetting, are_exclusive

#: The maximum number of objects followed into one NPURunConfig.
_MOST_TAKEN = 50


class GivenSession(Record):
    """The session config passed to an NPURunConfig, as an ``expression`` of a function.

    ``scope`` and ``line`` are those of the NPURunConfig, ``seen`` is the function's name.
    """

    scope: str
    line: int
    expression: str
    seen: str


class _Value(Record):
    """A possible value of an expression, with its scope; ``alone`` if it is the only one."""

    node: ast.expr
    scope: Scope
    alone: bool = True


def note_taken_configs(visitor: Visitor, call: ast.Call, owner: str, scope: Scope) -> None:
    """Record the calls whose objects an NPURunConfig takes, with their conditions.

    Names and tables are followed.
    """
    taken = visitor.taken
    limit = len(taken) + _MOST_TAKEN
    waiting = list(_iterate_arguments(call, _Value(call, scope)))
    seen = set()
    while waiting and len(taken) < limit:
        name, argument = waiting.pop(0)
        node, home = argument.node, argument.scope
        key = name, node, home.label
        if key in seen:
            continue  # a loop leads back to it
        seen.add(key)
        if name == "session_config":
            text, caller = home.name_outside(format_expression(node))
            visitor.add_record(GivenSession(owner, call.lineno, text, caller.name))
        if name not in list_object_arguments():
            continue
        values = list(_iterate_values(visitor, node, home))
        alone = argument.alone
        if isinstance(node, ast.Call) and not values:
            location = CallLocation(home.file, node.lineno, node.col_offset)
            takers = taken.setdefault(location, {})
            takers.setdefault((owner, home.label), TakenConfig(owner, home.label, alone))
            waiting += _iterate_arguments(node, argument)
        waiting += [(name, value._replace(alone=alone and value.alone)) for value in values]


def _iterate_values(visitor: Visitor, value: ast.expr, scope: Scope) -> Iterator[_Value]:
    """Yield the possible values of an expression that is not itself a constructor call."""
    match value:
        case ast.IfExp(_, first, second):
            yield _Value(first, scope, alone=False)
            yield _Value(second, scope, alone=False)
        case ast.Name(name):
            home, bindings = scope.resolve_name(name) or (scope, [])
            if not bindings and name in home.bound:
                yield _Value(*home.bound[name])
            elif len(bindings) <= MOST_BINDINGS:
                for binding in bindings:
                    if binding.kind == "assign":
                        yield _Value(binding.node, home, alone=len(bindings) == 1)
        case ast.Attribute():
            nodes = visitor.module.index.attributes.get(write_source(value), [])
            for node in nodes:
                yield _Value(node, scope, alone=len(nodes) == 1)
        case ast.Call(callee):
            function, home = scope.resolve_only(callee)
            if isinstance(function, ast.FunctionDef):
                returned = find_only_return(function)
                if returned is not None:
                    yield _Value(returned, Scope(function, home))


def _iterate_arguments(call: ast.Call, value: _Value) -> Iterator[tuple[str, _Value]]:
    """Yield the arguments of a call by name, including unpacked tables.

    ``value`` is the call as a value: its arguments are alone if it is.
    """
    for argument in iterate_keywords(call, value.scope):
        passed = value._replace(node=argument.value, scope=argument.scope)
        yield argument.name, passed


def link_nested_configs(visitor: Visitor) -> None:
    """Assign the settings of configuration objects to each NPURunConfig that takes them.

    Others are not effective.
    """
    linked = []
    for setting in visitor.settings:
        config = visitor.nested.get(setting.scope)
        if config is None:
            linked.append(setting)
            continue
        # where it is taken under conditions that can hold together
        takers = [
            taker
            for taker in visitor.taken.get(config.location, {}).values()
            if not are_exclusive(setting.branches, visitor.sites[taker.scope].branches)
        ]
        # in the same followed call, else anywhere
        takers = [taker for taker in takers if taker.label == config.label] or takers
        linked += [_link_setting(visitor, setting, config, taker) for taker in takers]
        if not takers:
            reason = f"the {config.class_name} is given to no NPURunConfig here"
            linked.append(setting._replace(unused=reason))
    visitor.settings = linked


def _link_setting(
    visitor: Visitor, setting: ScriptSetting, config: NestedConfig, taker: TakenConfig
) -> ScriptSetting:
    """Return a setting in the scope of an NPURunConfig.

    With a condition if other objects may be passed.
    """
    site = visitor.sites[taker.scope]
    branches = setting.branches
    line = config.location.line
    is_inside = bool(branches) and branches == site.branches[: len(branches)]
    if not taker.alone and not is_inside:
        tests = [text for _, _, text in branches]
        own_tests = set(tests) - {text for _, _, text in site.branches}
        test = f"the argument is the {config.class_name} of line {line}"
        # its own conditions decide it if the NPURunConfig comes later
        if (not own_tests or line > site.line) and test not in tests:
            branches = (*branches, Branch(-line, 0, test))
    return setting._replace(scope=taker.scope, branches=branches)
