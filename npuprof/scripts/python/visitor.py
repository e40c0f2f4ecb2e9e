"""Visits a script in execution order; surfaces read the statements they know.

A function is visited at each call, with its arguments, as if inlined; also functions of other files
of the tree. Uncalled functions are visited at the end.
"""

from __future__ import annotations

import ast
import posixpath
from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from npuprof.model import Record, is_utf8
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.calls import Entered, find_entered, get_first_parameter
from npuprof.scripts.python.constants import fold_expression, fold_with_defaults
from npuprof.scripts.python.expressions import (
    PLAIN,
    Unknown,
    format_expression,
    list_parts,
    name_callee,
)
from npuprof.scripts.python.loops import bind_call_arguments, unroll_loop
from npuprof.scripts.python.module import Module, NodeIndex
from npuprof.scripts.python.scopes import Function, Scope, pair_targets, statement_blocks
from npuprof.scripts.python.statements import (
    FUNCTIONS,
    Located,
    find_start,
    find_way_on,
    is_main_test,
    leaves_block,
    list_lines,
)
from npuprof.scripts.script_records import (
    HALF_CHARACTER,
    Branch,
    Branches,
    Converted,
    Followed,
    Position,
    ScriptLocation,
    ScriptSetting,
    ScriptValue,
    Site,
    remove_script_folder,
)
from npuprof.scripts.steps import SETTING_STEPS, count_steps

#: Returns the surfaces for a file.
ChooseSurfaces = Callable[[Module], tuple["Surface", ...]]
#: Returns another file of the tree, None if it cannot be parsed.
LoadModule = Callable[[str], Module | None]
ReadCall = Callable[["Visitor", ast.Call, Scope], None]
ReadAssignment = Callable[["Visitor", ast.expr, ast.expr, Scope], None]
ReadStatement = Callable[["Visitor", ast.stmt, Scope], None]
#: A test: its text, its expression, or those that an ``else`` negates. Few are formatted: most
#: branches have no settings.
Test = str | ast.expr | tuple[ast.expr, ...]


class Condition(NamedTuple):
    """A condition of a statement: number and arm, as in ``Branch``, and the test.

    A tuple, as there is one for each arm of each visited ``if``, and a ``Branch`` becomes one.
    """

    number: int
    arm: int
    test: Test


#: A part of an expression, and its conditions there.
_TestedNode = tuple[ast.AST, tuple[Test, ...]]
#: All conditions of a statement, outermost first.
Conditions = tuple[Condition, ...]

#: Limits: nesting of followed calls, followed calls with settings, and entered calls.
_DEEPEST, _MOST_FOLLOWED, _MOST_ENTERED = 6, 200, 5_000
#: The distance between the branch numbers of two calls into other files: more than lines of a file.
_CALL_DISTANCE = 10_000_000


class PendingFunction(Record):
    """A function that may have to be visited without a call.

    ``scope`` encloses it, ``conditions`` are those of its definition.
    """

    function: Function
    scope: Scope
    conditions: Conditions


class FunctionRuns(Record):
    """The name of a function's scope, and the settings of each of its calls."""

    scope_name: str
    runs: list[list[ScriptSetting]]


class CallLocation(Record):
    """The file, line, and column from 0 of a call; no file if imports are not followed."""

    file: str
    line: int
    offset: int


class NestedConfig(Record):
    """A configuration object that an NPURunConfig can take: its call, class and followed call."""

    location: CallLocation
    class_name: str
    label: str


class TakenConfig(Record):
    """An object taken by an NPURunConfig: the scope of its settings.

    ``alone`` if no other object may be passed there.
    """

    scope: str
    label: str
    alone: bool


class TableEntry(Record):
    """An entry of a table: key, value and their scope, conditions, and whether it never runs."""

    key: ast.expr
    value: ast.expr
    scope: Scope
    branches: Branches = ()
    dead: int = 0


class Surface(Record):
    """A reader of one API: texts of which a file must contain one, and callbacks.

    Each callback gets the visitor, the node and the scope; for an assignment, target and value
    instead of the node. Without ``names``, all statements are read, else those with a line of
    such a name.
    """

    markers: tuple[str, ...]
    read_call: ReadCall
    read_assignment: ReadAssignment | None = None
    read_statement: ReadStatement | None = None
    names: Sequence[str] = ()


class Visitor:
    """A visit of one script; the surfaces fill ``settings`` and ``sites``.

    Args:
        module: The script.
        choose_surfaces: Returns the surfaces for a file.
        load_module: Returns another file of the tree.
        list_supplied: Returns the functions and classes that a file and those it imports have of
            those that are followed.

    """

    def __init__(
        self,
        module: Module,
        choose_surfaces: ChooseSurfaces,
        load_module: LoadModule = lambda path: None,
        list_supplied: Callable[[str], frozenset[bytes]] = lambda path: frozenset(),
    ) -> None:
        self.main = self.module = module  #: the script, and the file being read
        self.settings: list[ScriptSetting] = []
        self.sites: dict[str, Site] = {}
        #: the conditions of each creation of a site
        self._creations: dict[str, list[Branches]] = {}
        #: the current site by the scope that binds a variable, and its name
        self.current: dict[tuple[str, str], str] = {}
        self.nested: dict[str, NestedConfig] = {}
        #: by call, then by scope and label
        self.taken: dict[CallLocation, dict[tuple[str, str], TakenConfig]] = {}
        #: by the scope that binds the name, and the name
        self.tables: dict[tuple[str, str], list[TableEntry]] = {}
        #: lists of arguments by the scope and the name of the variable, or of a function
        self.lists: dict[tuple[str, str], list[Any]] = {}
        self.launch: ast.Call | None = None  #: the last call that starts a known program
        #: the scopes of launches by the file and position of their arguments
        self.launches: dict[tuple[str, int, int], str] = {}
        self.functions: dict[Followed, None] = {}  #: functions of other files with settings
        #: line and name of the first call beyond the limits
        self.unfollowed: tuple[int, str] | tuple[()] = ()
        self.shares_options = False  #: whether other code has the options of TensorFlow 2 too
        self.skips = False  #: whether code was skipped that other calls run
        self.conditions: Conditions = ()  #: the conditions of the current statement
        self.dead = 0  #: how many of the enclosing blocks never run
        self.notes: dict[Record, None] = {}  #: other records, for the checks
        self._list_surfaces = cache(choose_surfaces)
        # for this script: imported files are cached, and its steps must not depend on that
        self._list_flags = cache(Module.list_flags)
        self._format_test = cache(_format_test)
        self._load_module = load_module
        self._list_ways = cache(self._find_ways)
        self._list_supplied = list_supplied
        self._stack: tuple[ast.AST, ...] = ()
        self._entered = self._follows = self._order = self._unrolled_loops = 0
        #: added to the lines of conditions, which differ for calls into other files only
        self._line_offset = 0
        # of this script only: whether a call sets something depends on its arguments
        self._without_settings: set[ast.stmt] = set()
        self._tried: set[ast.stmt] = set()  #: the first of statements that were skipped
        self._pending: list[PendingFunction] = []
        #: the settings of each call of a script's function
        self._runs: dict[ast.AST, FunctionRuns] = {}

    @property
    def branches(self) -> Branches:
        """The conditions of the current statement, with their tests as text."""
        return tuple(
            [Branch(number, arm, self._format_test(test)) for number, arm, test in self.conditions]
        )

    def visit_module(self) -> None:
        """Visit the script."""
        self._visit_frame(self.module.tree.body, self.module.scope, ())
        settings = list(self.settings)
        for called in self._runs.values():
            settings += _unite_calls(called)
        unique = {}
        for setting in reversed(settings):  # of equal settings, the first stays
            content = setting.key, repr(setting.value), setting.reason
            unique[_get_location_key(setting), content] = setting
        for name, creations in self._creations.items():
            self.sites[name] = self.sites[name]._replace(branches=unite_branches(creations))
        self.settings = sorted(unique.values(), key=attrgetter("position", "order"))

    # -- statements -------------------------------------------------------------------------------

    def _visit_frame(self, body: list[ast.stmt], scope: Scope, conditions: Conditions) -> None:
        """Visit a module or function, then its uncalled definitions."""
        outer, self._pending = self._pending, []
        self._visit_block(body, scope, conditions)
        # a constructor comes before methods that use the object
        self._pending.sort(key=lambda entry: entry.function.name != "__init__")
        for entry in _sort_by_calls(self._pending, self.module.index):
            function = entry.function
            # one that is passed on may run with other arguments than those of its calls
            if function in self._runs and function.name not in self.module.index.passed_on:
                continue
            outer_settings, self.settings = self.settings, []
            inside = Scope(function, entry.scope)
            called = self._runs.setdefault(function, FunctionRuns(inside.name, []))
            self._visit_frame(function.body, inside, entry.conditions)
            called.runs.append(self.settings)
            self.settings = outer_settings
        self._pending = outer

    def _visit_block(self, body: list[ast.stmt], scope: Scope, conditions: Conditions) -> None:
        """Visit the statements of a body.

        Code after an unconditional exit never runs, after a conditional one sometimes.
        """
        dead = self.dead
        _, lines = self._list_ways(self.module)
        for statement in body:
            if not lines.isdisjoint(list_lines(statement)):
                self._visit_statement(statement, scope, conditions)
            if leaves_block([statement]):
                self.dead += 1
            elif isinstance(statement, ast.If) and (test := find_way_on(statement)):
                conditions = self._add_condition(conditions, statement, -1, test)
        self.dead = dead

    def _add_condition(
        self, conditions: Conditions, statement: ast.stmt, arm: int, test: Test
    ) -> Conditions:
        """Return conditions with that of an arm of a statement."""
        return (*conditions, Condition(self._line_offset + statement.lineno, arm, test))

    def _visit_statement(self, statement: ast.stmt, scope: Scope, conditions: Conditions) -> None:
        count_steps()
        if not statement_blocks(statement):
            expressions = [part for part in list_parts(statement) if isinstance(part, ast.expr)]
            self._read(statement, expressions, scope, conditions)
        elif isinstance(statement, ast.If):
            self._visit_if(statement, scope, conditions)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            self._visit_loop(statement, scope, conditions)
        elif isinstance(statement, FUNCTIONS):
            self._pending.append(PendingFunction(statement, scope, conditions))
        elif isinstance(statement, ast.ClassDef):
            self._visit_block(statement.body, Scope(statement, scope), conditions)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            contexts = [item.context_expr for item in statement.items]
            self._read(statement, contexts, scope, conditions)
            self._visit_block(statement.body, scope, conditions)
        else:
            self._visit_compound(statement, scope, conditions)

    def _read(
        self,
        statement: ast.stmt,
        expressions: list[ast.expr],
        scope: Scope,
        conditions: Conditions,
    ) -> None:
        """Let the surfaces read one statement, and follow its calls, innermost first."""
        self.conditions = conditions
        surfaces = self._list_surfaces(self.module)
        for surface in surfaces:
            if surface.read_statement:
                surface.read_statement(self, statement, scope)
        _, lines = self._list_ways(self.module)
        for expression in expressions:
            if lines.isdisjoint(list_lines(expression)):
                continue
            for call, tests in list_calls(expression):
                around = conditions
                for test in tests:
                    around = self._add_condition(around, statement, 0, test)
                self.conditions = around  # following the call before changed them
                for surface in surfaces:
                    surface.read_call(self, call, scope)
                self._follow(call, statement, scope, around)
        self.conditions = conditions
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            for target, value in _iterate_assignments(statement):
                for surface in surfaces:
                    if surface.read_assignment:
                        surface.read_assignment(self, target, value, scope)

    def _visit_if(self, statement: ast.If, scope: Scope, conditions: Conditions) -> None:
        """Visit the arms of an ``if`` and its ``elif``s; arms that never run are not numbered."""
        arm = 0
        negated = []
        is_decided = False  # whether a test before is always true
        rest: list[ast.stmt] = [statement]
        while len(rest) == 1 and isinstance(link := rest[0], ast.If):
            self._read(link, [link.test], scope, conditions)
            # the script is read as the program that runs
            truth = True if is_main_test(link.test) else fold_test(link.test, scope)
            inside = conditions
            # a first test that is always true is no condition
            if truth is not True or arm:
                inside = self._add_condition(conditions, statement, arm, link.test)
            self._visit_arm(link.body, scope, inside, is_decided or truth is False)
            is_decided = is_decided or truth is True
            if truth is not False:
                arm += 1
                negated.append(link.test)
            rest = link.orelse
        if arm:
            conditions = self._add_condition(conditions, statement, -arm, tuple(negated))
        self._visit_arm(rest, scope, conditions, is_decided)

    def _visit_arm(
        self, body: list[ast.stmt], scope: Scope, conditions: Conditions, dead: bool
    ) -> None:
        may_run_elsewhere = scope.label or self._unrolled_loops  # in another call or iteration
        if body and dead and may_run_elsewhere:
            self.skips = self.skips or self._may_set(body, scope)
            return
        self.dead += dead
        self._visit_block(body, scope, conditions)
        self.dead -= dead

    def _may_set(self, body: list[ast.stmt], scope: Scope) -> bool:
        """Return whether skipped statements may set something: once, they are visited for that."""
        first = body[0]
        if first not in self._tried:
            self._tried.add(first)
            state = dict(vars(self))
            found = {
                name: type(each)() for name, each in state.items() if type(each) in (dict, list)
            }
            vars(self).update(found, skips=False)
            self._visit_frame(body, scope, ())
            runs = (run for called in self._runs.values() for run in called.runs)
            if not any((self.skips, self.settings, self.sites, *runs)):
                self._without_settings.add(first)
            vars(self).update(state)
        return first not in self._without_settings

    def _visit_loop(
        self, statement: ast.For | ast.AsyncFor, scope: Scope, conditions: Conditions
    ) -> None:
        self._read(statement, [statement.iter], scope, conditions)
        iterations = unroll_loop(statement.target, statement.iter, scope)
        self._unrolled_loops += bool(iterations)
        for variables in iterations or [{}]:
            self._visit_block(statement.body, scope.with_bound(variables), conditions)
        self._unrolled_loops -= bool(iterations)
        self._visit_block(statement.orelse, scope, conditions)

    def _visit_compound(self, statement: ast.stmt, scope: Scope, conditions: Conditions) -> None:
        for name in ("body", "orelse", "finalbody"):
            self._visit_block(getattr(statement, name, None) or [], scope, conditions)
        for arm, handler in enumerate(getattr(statement, "handlers", ()), 1):
            test = f"except {format_expression(handler.type)}" if handler.type else "except"
            inside = self._add_condition(conditions, statement, arm, test)
            self._visit_block(handler.body, scope, inside)
        if isinstance(statement, ast.Match):
            subject = format_expression(statement.subject)
            for arm, case in enumerate(statement.cases):
                test = f"{subject} is {format_expression(case.pattern)}"
                inside = self._add_condition(conditions, statement, arm, test)
                self._visit_block(case.body, scope, inside)

    # -- calls ------------------------------------------------------------------------------------

    def _follow(
        self, call: ast.Call, statement: ast.stmt, scope: Scope, conditions: Conditions
    ) -> None:
        """Visit the function entered by a call, if it can set something."""
        # names are compared before anything is resolved: most calls enter no function of the tree
        names, _ = self._list_ways(self.module)
        if name_callee(call) not in names:
            return
        entered = find_entered(call, statement, scope)
        if entered is None:
            return
        function, home = entered.function, entered.scope.home
        module: Module | None = self.module
        if home is not self.module.home:
            module = self._load_module(home.path) if self._list_supplied(home.path) else None
        if module is None or function in self._without_settings:
            return
        _, lines = self._list_ways(module)
        if lines.isdisjoint(list_lines(function)):
            return
        is_too_deep = function in self._stack or len(self._stack) >= _DEEPEST
        if is_too_deep or self._entered >= _MOST_ENTERED:
            self.skips = True
        elif self._follows >= _MOST_FOLLOWED:
            # the finding cites a line of the script
            if self.module is self.main:
                self.unfollowed = self.unfollowed or (call.lineno, name_callee(call))
            self.skips = True
        else:
            self._enter(call, entered, module, scope, conditions)

    def _find_ways(self, module: Module) -> tuple[Set[str], set[int]]:
        """Return what may set something in a file: the names of calls, and the lines."""
        supplied, surfaces = self._list_supplied(module.path), self._list_surfaces(module)
        if not supplied and not surfaces:  # its nodes need no index
            return frozenset(), set()
        names, count = module.list_callable(supplied), 0
        index, lines = module.index, set[int]()
        for surface in surfaces:
            lines.update(index.list_lines(surface.names))
            if not surface.names:
                lines.update(range(len(module.script.lines) + 1))
        while count < len(names):
            count = len(names)
            lines.update(index.list_lines(names))
            # those of other files are found by their text
            owners = index.definitions if module is self.main else ()
            found = (each.name for each in owners if not lines.isdisjoint(list_lines(each)))
            names = names.union(found)
        return names, lines

    def _enter(
        self,
        call: ast.Call,
        entered: Entered,
        module: Module,
        scope: Scope,
        conditions: Conditions,
    ) -> None:
        """Visit a function for one call."""
        function = entered.function
        inside = self._open_inside(call, entered, module, scope)
        site_count, position = len(self.sites), self.locate(call)
        self._entered += 1
        state = self.module, self._stack, self._line_offset, self.settings, self.skips
        self.module = module
        self._stack = (*self._stack, function)
        if module is not self.main:
            self._line_offset = self._entered * _CALL_DISTANCE
        self.settings, self.skips = [], False
        self._visit_frame(function.body, inside, conditions)
        settings, skips = self.settings, self.skips
        self.module, self._stack, self._line_offset, self.settings, self.skips = state
        self.skips |= skips
        self._follows += bool(settings)
        # skipped code may set something for another caller, so it is visited again
        if not settings and not skips and len(self.sites) == site_count:
            self._without_settings.add(function)
        if module is self.main:
            called = self._runs.setdefault(function, FunctionRuns(inside.name, []))
            called.runs.append(settings)
        else:
            self._add_followed(function, module, settings, site_count, position)

    def _open_inside(self, call: ast.Call, entered: Entered, module: Module, scope: Scope) -> Scope:
        """Return the scope of a function with the arguments of one call."""
        function, outer = entered.function, entered.scope
        if module is not self.main:
            label = f"{scope.name}@{call.lineno}.{call.col_offset}"
            top = module.scope.with_label(label, self.main.index.stored)
            outer = Scope(outer.node, top) if isinstance(outer.node, ast.ClassDef) else top
        inside = Scope(function, outer)
        arguments = bind_call_arguments(function, inside, entered.call, scope) or {}
        if entered.owner is not None and module is not self.main:
            arguments[get_first_parameter(function)] = entered.owner
        return inside.with_bound(arguments)

    def _add_followed(
        self,
        function: Function,
        module: Module,
        settings: list[ScriptSetting],
        site_count: int,
        position: Position,
    ) -> None:
        """Add the settings of another file's function, at the position of its call.

        ``site_count`` is the number of sites before the call.
        """
        line, column = position
        for name, site in list(islice(self.sites.items(), site_count, None)):
            self.sites[name] = site._replace(line=line, column=column)
        self.settings += [setting.with_location(call=position) for setting in settings]
        if settings:
            first, last = function.lineno, function.end_lineno or function.lineno
            self.functions.setdefault(Followed(module.path, first, last, function.name))

    # -- configuration objects --------------------------------------------------------------------

    def resolve_site(self, scope: Scope, root: str, node: Located) -> str:
        """Return the name of the session configuration that a variable denotes here."""
        root, scope = scope.name_outside(root)
        around: Scope | None = scope
        while around is not None:
            if (around.name, root) in self.current:
                return self.current[around.name, root]
            around = around.outer
        name = f"{scope.name or '<module>'}:{root}"
        self.current[scope.name, root] = name
        self.sites.setdefault(name, Site(name, "session", *self.locate(node), root))
        return name

    def new_site(
        self, scope: Scope, root: str, surface: str, node: Located, closed: bool = True
    ) -> str:
        """Start a configuration object; return its name."""
        line, column = self.locate(node)
        name = f"{scope.name or '<module>'}:{root}@{line}"
        self.current[scope.name, root] = name
        if scope.outer is not None and isinstance(scope.outer.node, ast.ClassDef):
            self.current[scope.outer.name, root] = name  # other methods have it too
        self.sites.setdefault(name, Site(name, surface, line, column, root, closed))
        self._creations.setdefault(name, []).append(self.branches)
        return name

    # -- reports of the surfaces ------------------------------------------------------------------

    def locate(self, node: Located) -> Position:
        """Return line and column of a node of the current file."""
        line, offset = find_start(node)
        return line, self.module.script.column(line, offset)

    def add_read(self, setting: ScriptSetting, more: Sequence[Branch] = ()) -> None:
        """Add a parsed setting, in execution order and under the current conditions and more."""
        count_steps(SETTING_STEPS)
        self._order += 1
        branches = tuple(dict.fromkeys((*self.branches, *more)))
        self.settings.append(
            setting._replace(
                branches=branches if setting.name else (),
                order=self._order,
                dead=self.dead > 0,
            )
        )

    def add_record(self, note: Record) -> None:
        """Add a record for the checks, once."""
        self.notes.setdefault(note)

    def add_setting(
        self,
        node: Located,
        surface: str,
        key: str,
        name: str,
        value: ScriptValue | None = None,
        reason: str = "",
        **more: Any,
    ) -> None:
        """Add a setting at the place of a node, with its value or the reason why it is unknown."""
        count_steps(SETTING_STEPS)
        self._order += 1
        value = value or ScriptValue(reason=reason)
        plain, relative = remove_script_folder(value.value)
        written, _ = remove_script_folder(value.written)
        value = value._replace(value=plain, relative=relative, written=written)
        if relative and posixpath.dirname(self.main.path) != posixpath.dirname(self.module.path):
            value = ScriptValue(reason="depends on the folder of the script", default=value.default)
        self.settings.append(
            ScriptSetting(
                ScriptLocation(self.module.path, *self.locate(node)),
                surface,
                key,
                name,
                value,
                branches=self.branches,
                dead=self.dead > 0,
                order=self._order,
                **more,
            )
        )

    def evaluate_expression(
        self, node: ast.expr, scope: Scope, fold: Callable[..., Any] = fold_expression
    ) -> Converted:
        """Return value and reason of an expression; the reason is empty if the value is known."""
        try:
            value = fold(node, scope)
        except Unknown as unknown:
            return None, unknown.reason
        if isinstance(value, str) and not is_utf8(value):
            return None, HALF_CHARACTER
        return value, ""

    def read_value(
        self,
        node: ast.expr,
        scope: Scope,
        convert: Callable[[Any], Converted] = lambda got: (got, ""),
    ) -> ScriptValue:
        """Return the value of an expression for a setting.

        ``convert`` returns the stored value, or the reason why there is none.
        """
        written, reason = self.evaluate_expression(node, scope)
        if not reason:
            value, reason = convert(written)
            kind = type(written).__name__
            return ScriptValue(None if reason else value, reason, kind, written)
        # the flag may be declared in the file of the function, or in the script
        find_default = ChainMap(self._list_flags(self.module), self._list_flags(self.main)).get
        fold = partial(fold_with_defaults, find_default=find_default)
        default, _ = self.evaluate_expression(node, scope, fold)
        if default is not None:
            default, _ = convert(default)
        return ScriptValue(None, reason, default=default)


def _format_test(test: Test) -> str:
    if isinstance(test, tuple):
        return " and ".join([f"not ({format_expression(each)})" for each in test])
    return test if isinstance(test, str) else format_expression(test)


def fold_test(test: ast.expr, scope: Scope) -> bool | None:
    """Return whether a condition is always true or always false, None if the run decides."""
    if isinstance(test, ast.BoolOp):
        deciding = isinstance(test.op, ast.Or)
        truths = [fold_test(part, scope) for part in test.values]
        # one such part decides, even if others are unknown
        if deciding in truths:
            return deciding
        return None if None in truths else not deciding
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = fold_test(test.operand, scope)
        return None if truth is None else not truth
    try:
        return bool(fold_expression(test, scope))
    except Unknown:
        return None


def list_calls(expression: ast.expr) -> list[tuple[ast.Call, tuple[Test, ...]]]:
    """Return the calls of an expression in execution order, with the conditions of each."""
    calls = []
    waiting: list[_TestedNode] = [(expression, ())]
    while waiting:
        node, tests = waiting.pop()
        if type(node) is ast.Call:
            calls.append((node, tests))
        if isinstance(node, (ast.IfExp, ast.BoolOp, ast.Lambda)):
            waiting += _list_tested_parts(node, tests)
        else:
            waiting += [(child, tests) for child in list_parts(node) if type(child) not in PLAIN]
    return calls[::-1]  # from the last call, and from the outside, to the first


def _list_tested_parts(
    node: ast.IfExp | ast.BoolOp | ast.Lambda, tests: tuple[Test, ...]
) -> list[_TestedNode]:
    """Return the conditional parts of an expression, each with its conditions."""
    if isinstance(node, ast.IfExp):
        test = node.test
        return [(test, tests), (node.body, (*tests, test)), (node.orelse, (*tests, (test,)))]
    if isinstance(node, ast.BoolOp):
        first, *others = node.values
        around = (*tests, first if isinstance(node.op, ast.And) else (first,))
        return [(first, tests), *((value, around) for value in others)]
    tests = (*tests, f"{format_expression(node)} is called")
    return [(child, tests) for child in list_parts(node)]


def _iterate_assignments(
    statement: ast.Assign | ast.AnnAssign,
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield targets and values of a statement.

    Tuples element by element if both sides show them.
    """
    if statement.value is None:
        return
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        for part in pair_targets(target, statement.value):
            yield part.target, part.value


def _sort_by_calls(pending: list[PendingFunction], index: NodeIndex) -> Iterator[PendingFunction]:
    """Yield functions, callers first: functions that they call then need no separate visit."""
    calls = [index.list_called(entry.function) for entry in pending]
    counts = Counter(name for names in calls for name in names)
    remaining = dict(enumerate(map(_get_called_name, pending)))
    while remaining:
        chosen = next(iter(remaining))  # if all are called, the first
        for position, name in remaining.items():
            count_steps()
            calls_itself = name in calls[position]
            if counts[name] - calls_itself == 0:
                chosen = position
                break
        counts.subtract(calls[chosen])
        del remaining[chosen]
        yield pending[chosen]


def _get_called_name(entry: PendingFunction) -> str:
    """Return the name that calls a function: for a constructor, that of its class."""
    cls = entry.scope.node
    if isinstance(cls, ast.ClassDef) and entry.function.name == "__init__":
        return cls.name
    return entry.function.name


# -- calls of one function ------------------------------------------------------------------------


_get_location_key = attrgetter("location", "surface", "scope", "name")
_get_target = attrgetter("scope", "name")


def _unite_calls(called: FunctionRuns) -> Iterator[ScriptSetting]:
    """Yield the settings of a function's calls, those of one location united."""
    by_location = defaultdict(list)
    live_targets = set[tuple[str, str]]()
    for run in called.runs:
        for location, settings in group_by(run, _get_location_key).items():
            by_location[location].append(settings)
        if len(called.runs) > 1:
            live_targets.update(_get_target(setting) for setting in run if not setting.dead)
    for versions in by_location.values():
        live = [settings for settings in versions if not all(setting.dead for setting in settings)]
        if live:
            yield from _unite_versions(called.scope_name, live)
        elif _get_target(versions[0][0]) not in live_targets:  # else set at another location
            yield from _unite_versions(called.scope_name, versions[:1])


def _unite_versions(
    scope_name: str, versions: list[list[ScriptSetting]]
) -> Iterator[ScriptSetting]:
    """Yield the settings at one location, given those of each call.

    Once if the calls agree, without a value if each call creates another object.
    """
    by_content = {
        repr([(setting.value, setting.reason) for setting in settings]): settings
        for settings in versions
    }
    distinct = list(by_content.values())
    first = versions[0]
    if len(distinct) > 1:
        if not first[0].scope.startswith(f"{scope_name}:"):
            for settings in versions:  # successive values in the same object
                yield from settings
            return
        first = [_explain(distinct[0][0], [settings[-1] for settings in distinct])]
    if len(versions) == 1:
        yield from first
        return
    branches = unite_branches([settings[0].branches for settings in versions])
    for setting in first:
        yield setting._replace(branches=branches)


def _explain(setting: ScriptSetting, several: list[ScriptSetting]) -> ScriptSetting:
    """Return a setting with different values in several calls, with a reason that lists them."""
    reason = next(
        (call_setting.reason for call_setting in several if call_setting.reason),
        "depends on the arguments of its function",
    )
    return setting.with_value(value=None, written=None, kind="", relative=False, reason=reason)


def unite_branches(several: list[Branches]) -> Branches:
    """Return the conditions common to several places.

    The outer conditions that differ become one, if each place has some.
    """
    length = _count_common_end(several)
    outer = [branches[: len(branches) - length] for branches in several]
    common = several[0][len(several[0]) - length :]
    if not all(outer):
        return common
    texts = list(dict.fromkeys(" and ".join(text for _, _, text in branches) for branches in outer))
    text = texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)
    number, arm, _ = outer[0][0]
    return (Branch(number, arm, text), *common)


def _count_common_end(several: list[Branches]) -> int:
    """Return the number of innermost conditions that all places share."""
    count = 0
    for same in zip(*(reversed(branches) for branches in several), strict=False):
        if len(set(same)) > 1:
            break
        count += 1
    return count
