"""Configuration objects on their way into an NPURunConfig: which it is given, when, and which are given to none."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import NamedTuple

from npuprof.model import Record
from npuprof.scripts.reading.found import FoundSetting
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.classes import list_object_arguments
from npuprof.scripts.reading.values.literals import format_expression
from npuprof.scripts.reading.values.loops import list_table_nodes
from npuprof.scripts.reading.values.order import DEFINITIONS, is_given_before_run
from npuprof.scripts.reading.values.reaching import is_ever_read, list_reaching_values
from npuprof.scripts.reading.values.scopes import MOST_BINDINGS, Scope, iterate_statements
from npuprof.scripts.reading.values.terms import write_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: A file, a line and a column (0 from the left).
    Spot = tuple[str, int, int]

#: What reads names that nobody sees it read.
_NAMING = ("locals", "globals", "vars", "eval", "exec")
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
    def place(self) -> Spot:
        """Where it is made."""
        return self.file, self.line, self.offset


class GivenSession(Record):
    """A session config that an NPURunConfig is given: the expression, the function it stands in, and line and function of the call."""

    expression: str
    seen: str
    line: int
    function: str


class TakenConfig(Record):
    """What an NPURunConfig takes: the scope of its settings, and the condition under which the object is given to it, if any.

    ``alone`` says that where that holds it is given no other.
    """

    scope: str
    condition: str = ""
    label: str = ""
    alone: bool = True


class _Value(NamedTuple):
    """What an expression may stand for, the scope it is to be read in, and the tests under which it does.

    ``alone`` says that where these hold it stands for nothing else.
    """

    node: ast.expr
    scope: Scope
    tests: tuple[str, ...] = ()
    alone: bool = True


def note_taken_configs(walk: Walk, call: ast.Call, owner: str, scope: Scope) -> None:
    """Take note of the calls whose objects one NPURunConfig is given, through names and tables too, and on what that depends."""
    taken: dict[Spot, list[TakenConfig]] = walk.facts.setdefault("taken", {})
    count = len(taken) + _MOST_TAKEN
    waiting = list(_iterate_arguments(call, _Value(call, scope)))
    seen: set[tuple[str, ast.expr, str]] = set()
    while waiting and len(taken) < count:
        nearest = min(range(len(waiting)), key=lambda number: len(waiting[number][1].tests))
        name, given = waiting.pop(nearest)
        value, where = given.node, given.scope
        if (name, value, where.label) in seen:
            continue  # a loop leads back to it
        seen.add((name, value, where.label))
        if name == "session_config":
            walk.add_fact("estimator", GivenSession(*_find_given(value, where), call.lineno, scope.name))
        if name not in list_object_arguments():
            continue
        found = list(_iterate_values(walk, value, where))
        if isinstance(value, ast.Call) and not found:
            home = TakenConfig(owner, " and ".join(given.tests), where.label, given.alone)
            same = taken.setdefault((where.file, value.lineno, value.col_offset), [])
            if all((one.scope, one.label) != (home.scope, home.label) for one in same):
                same.append(home)
            waiting += _iterate_arguments(value, given)
        waiting += [(name, one._replace(tests=(*given.tests, *one.tests), alone=given.alone and one.alone)) for one in found]


def _iterate_values(walk: Walk, value: ast.expr, scope: Scope) -> Iterator[_Value]:
    """Yield what an expression may stand for that does not make an object itself."""
    if isinstance(value, ast.IfExp):
        test, truth = format_expression(value.test), walk.fold_test(value.test, scope)
        if truth is not False:
            yield _Value(value.body, scope, () if truth else (test,))
        if not truth:
            yield _Value(value.orelse, scope, (f"not ({test})",) if truth is None else ())
    elif isinstance(value, ast.BoolOp):
        yield from _iterate_operands(walk, value, scope)
    elif isinstance(value, ast.NamedExpr):
        yield _Value(value.value, scope)
    elif isinstance(value, ast.Name):
        yield from _iterate_named(walk, value, scope)
    elif isinstance(value, ast.Attribute):
        yield from _iterate_attribute(walk, value, scope)
    elif isinstance(value, ast.Call):
        yield from _iterate_returned(value, scope)


def _iterate_operands(walk: Walk, value: ast.BoolOp, scope: Scope) -> Iterator[_Value]:
    """Yield what a chain of ``and`` or ``or`` may come to: objects are true, so only the last of the one, but each of the other."""
    tests: tuple[str, ...] = ()
    wanted = isinstance(value.op, ast.And)
    for node in value.values:
        if node is value.values[-1] or not wanted:
            yield _Value(node, scope, tests)
        truth = walk.fold_test(node, scope)
        if truth is not None and truth is not wanted:
            return
        if truth is None:
            tests = (*tests, format_expression(node) if wanted else f"not ({format_expression(node)})")


def _iterate_named(walk: Walk, name: ast.Name, scope: Scope) -> Iterator[_Value]:
    """Yield what a name may stand for where it is read; what was replaced by then is taken note of."""
    found = scope.resolve_name(name.id)
    if found is None or len(found[1]) > MOST_BINDINGS:
        return
    home, bindings = found
    if not bindings and name.id in home.bound:
        yield _Value(*home.bound[name.id])
        return
    given = [one.node for one in bindings if one.kind == "assign" and isinstance(one.node, ast.expr)]
    fold = functools.partial(walk.fold_test, scope=home)
    called = bindings[0].name if bindings else name.id
    reaching = list_reaching_values(home, called, name, fold) if home.node is scope.node else None
    if reaching is not None:
        kept = [one.value for one in reaching]
        replaced: set[Spot] = walk.facts.setdefault("replaced", set())
        replaced |= {(home.file, one.lineno, one.col_offset) for one in given if one not in kept}
    elif is_given_before_run(scope, home, given):
        reaching = list_reaching_values(home, called, None, fold) or []
    if reaching is not None:
        yield from (_Value(one.value, home, one.tests, one.alone) for one in reaching if one.value in given)
    else:  # it is read by a function that runs nobody can tell when
        yield from (_Value(node, home, alone=len(bindings) == 1) for node in given)


def _iterate_attribute(walk: Walk, value: ast.Attribute, scope: Scope) -> Iterator[_Value]:
    """Yield what an attribute may hold: what the function around gives it, or else what functions of its class do, or any."""
    text = write_source(value)
    nodes = walk.find_attribute_values(text)
    fold = functools.partial(walk.fold_test, scope=scope)
    reaching = list_reaching_values(scope, text, value, fold) if len(nodes) > 1 else None
    around = scope.outer.node.body if scope.outer is not None else []
    giving = [one for one in around if isinstance(one, ast.FunctionDef) and any(map(functools.partial(_holds, one), nodes))]
    if not reaching and len(nodes) > 1 and len(giving) == 1:  # the others are of other classes
        reaching = list_reaching_values(Scope(giving[0], scope.outer), text, None, fold)
    if reaching:
        yield from (_Value(one.value, scope, one.tests, one.alone) for one in reaching if one.value in nodes)
    else:
        yield from (_Value(node, scope, alone=len(nodes) == 1) for node in nodes)


def _holds(function: ast.FunctionDef, node: ast.expr) -> bool:
    return function.lineno <= node.lineno <= (function.end_lineno or 0)


def _find_given(value: ast.expr, scope: Scope) -> tuple[str, str]:
    """Return an argument as text, in the words of the script that hands it to a function of another file, and the function there."""
    while scope.label and isinstance(value, ast.Name) and value.id in scope.bound:
        value, scope = scope.bound[value.id]
    return format_expression(value), scope.name


def _iterate_arguments(call: ast.Call, given: _Value) -> Iterator[tuple[str, _Value]]:
    """Yield the arguments of a call by name, those of tables behind two stars too."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, given._replace(node=keyword.value)
            continue
        pairs, where = list_table_nodes(keyword.value, "items", given.scope)
        for pair in pairs:
            if isinstance(pair, ast.Tuple) and isinstance(pair.elts[0], ast.Constant):
                yield str(pair.elts[0].value), given._replace(node=pair.elts[1], scope=where)


def _iterate_returned(call: ast.Call, scope: Scope) -> Iterator[_Value]:
    """Yield what a function in sight returns."""
    found = scope.resolve_name(call.func.id) if isinstance(call.func, ast.Name) else None
    function = found[1][0].node if found and len(found[1]) == 1 else None
    if found is not None and isinstance(function, ast.FunctionDef):
        returned = [one.value for one in iterate_statements(function.body) if isinstance(one, ast.Return) and one.value is not None]
        yield from (_Value(value, Scope(function, found[0]), alone=len(returned) == 1) for value in returned)


def note_named_config(walk: Walk, statement: ast.stmt, call: ast.Call, owner: str, scope: Scope) -> None:
    """Take note of an NPURunConfig that gets a name, and of nothing that reads it, another value having taken its place by then."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Name) or getattr(statement, "value", None) is not call or target.id in scope.rebound:
        return
    if not 2 <= len(scope.list_bindings(target.id)) <= MOST_BINDINGS or any(f"{word}(" in walk.script.text for word in _NAMING):
        return
    fold = functools.partial(walk.fold_test, scope=scope)
    if target.id not in _list_inner_names(scope) and not is_ever_read(scope, target.id, call, fold):
        walk.facts.setdefault("replaced configs", set()).add(owner)


def _list_inner_names(scope: Scope) -> set[str]:
    """Return the names in what of a scope runs at other times: the functions and classes in it."""
    known: set[str] | None = scope.memo.get("inner names")
    if known is None:
        inner = [one for one in iterate_statements(scope.node.body) if isinstance(one, DEFINITIONS)]
        known = scope.memo["inner names"] = {node.id for one in inner for node in ast.walk(one) if isinstance(node, ast.Name)}
    return known


def link_nested_configs(walk: Walk) -> None:
    """Let the settings of configuration objects belong to each NPURunConfig that takes them; what none takes is not in force."""
    taken: dict[Spot, list[TakenConfig]] = walk.facts.pop("taken", {})
    replaced: set[Spot] = walk.facts.pop("replaced", set())
    nested: dict[str, NestedConfig] = {one.scope: one for one in walk.facts.pop("nested", ())}
    linked: list[FoundSetting] = []
    for found in walk.found:
        one = nested.get(found.scope)
        if one is None:
            linked.append(found)
            continue
        homes = _list_takers(taken, one)
        if not homes:
            gone = "another value takes its place before it is given to NPURunConfig"
            linked.append(found._replace(unused=gone if one.place in replaced else f"the {one.made} is given to no NPURunConfig here"))
        for home in homes:
            test = home.condition
            site = walk.sites[home.scope]
            told = {text for _, _, text in found.branches} - {text for _, _, text in site.branches}
            if not test and not home.alone and (not told or one.line > site.line):  # its own tests say nothing of it
                test = f"what is given is the {one.made} of line {one.line}"
            more = ((-one.line, 0, test),) if test else ()
            linked.append(found._replace(scope=home.scope, branches=(*found.branches, *more)))
    gone_configs: set[str] = walk.facts.pop("replaced configs", set())
    why = "another value takes the place of the NPURunConfig before anything is given it"
    walk.found = [one._replace(unused=one.unused or why) if one.scope in gone_configs else one for one in linked]


def _list_takers(taken: dict[Spot, list[TakenConfig]], one: NestedConfig) -> list[TakenConfig]:
    """Return what takes an object, those of the same call of its function before others."""
    same = taken.get(one.place, [])
    return [home for home in same if home.label == one.label] or same
