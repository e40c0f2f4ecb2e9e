"""Visits a script in execution order; surfaces read the statements they know.

A function is visited at each call, with its arguments, as if inlined; also functions of other files
of the tree. Uncalled functions are visited at the end.
"""

from __future__ import annotations

import ast
import posixpath
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from itertools import islice, takewhile
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
from npuprof.scripts.python.scopes import Function, Reached, Scope, pair_targets, statement_blocks
from npuprof.scripts.python.statements import (
    FUNCTIONS,
    Located,
    find_start,
    find_way_on,
    is_main_test,
    leaves_block,
)
from npuprof.scripts.script_records import (
    HALF_CHARACTER,
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

Choose = Callable[[Module], tuple["Surface", ...]]
Lead = Callable[[str], Module | None]
ReadCall = Callable[["Visitor", ast.Call, Scope], None]
ReadAssignment = Callable[["Visitor", ast.expr, ast.expr, Scope], None]
ReadStatement = Callable[["Visitor", ast.stmt, Scope], None]
#: A test: its text, its expression, or those that an ``else`` refuses. Few are formatted: most
#: branches have no settings.
Test = str | ast.expr | tuple[ast.expr, ...]
#: The conditions around a statement: number and arm, as in ``Branch``, and the test of each.
Tests = tuple[tuple[int, int, Test], ...]
#: A function that may have to be visited without a call: its enclosing scope, and the conditions
#: around it.
Waiting = tuple[Function, Scope, Tests]

#: Limits: nesting of followed calls, followed calls with settings, and entered calls.
_DEEPEST, _MOST_FOLLOWED, _MOST_ENTERED = 6, 200, 5_000
#: The distance between the branch numbers of two calls into other files.
_APART = 10_000_000


class NestedConfig(Record):
    """A configuration object passed to an NPURunConfig: the place of its call (column from 0), and
    its class.

    ``file`` and ``label`` are those of the enclosing file, if calls are followed into other files.
    """

    line: int
    offset: int
    made: str
    file: str
    label: str


class TakenConfig(Record):
    """An object taken by an NPURunConfig: the scope of its settings.

    ``alone`` if no other object may be passed there.
    """

    scope: str
    label: str
    alone: bool


class TableEntry(NamedTuple):
    """An entry of a named table: key, value, scope, conditions, and whether it never runs."""

    key: ast.expr
    value: ast.expr
    scope: Scope
    branches: Branches
    dead: int


class Surface(NamedTuple):
    """A reader of one API: the words that a file must contain, and callbacks for calls, assignments
    and other statements.

    Each callback gets the visitor, the node and the scope; for an assignment, target and value
    instead of the node.
    """

    words: tuple[str, ...]
    read_call: ReadCall
    read_assignment: ReadAssignment | None = None
    read_statement: ReadStatement | None = None


class Visitor:
    """A visit of one script; ``found`` and ``sites`` are filled by the surfaces.

    Args:
        module: The script.
        choose: Returns the surfaces for a file.
        lead: Returns another file of the tree.
        reached: Whether calls into a file are followed.

    """

    def __init__(
        self,
        module: Module,
        choose: Choose,
        lead: Lead = lambda path: None,
        reached: Reached = lambda path: False,
    ) -> None:
        self.main = self.module = module  #: the script, and the file being read
        self.found: list[ScriptSetting] = []
        self.sites: dict[str, Site] = {}
        self._made: dict[str, list[Branches]] = {}  #: the conditions around each creation of a site
        self.current: dict[tuple[str, str], str] = {}
        self.nested: dict[str, NestedConfig] = {}
        self.taken: dict[
            tuple[str, int, int], dict[tuple[str, str], TakenConfig]
        ] = {}  #: by place, then by scope and label
        self.tables: dict[
            tuple[str, str], list[TableEntry]
        ] = {}  #: by the scope that binds the name, and the name
        self.functions: dict[Followed, None] = {}  #: functions of other files with settings
        self.unfollowed: (
            tuple[int, str] | tuple[()]
        ) = ()  #: line and name of the first call beyond the limits
        self.shares_options = False  #: whether other code has the options of TensorFlow 2 too
        self.skips = False  #: whether code was skipped that other calls run
        self.tests: Tests = ()  #: the conditions around the current statement
        self.dead = 0
        self.notes: dict[Record, None] = {}  #: other records, for the checks
        self._list_surfaces, self._lead, self._reached = cache(choose), lead, reached
        self._stack: tuple[ast.AST, ...] = ()
        self._entered = self._follows = self._order = self._turns = 0
        self._apart = (
            0  #: added to the lines of conditions: they differ for calls into other files only
        )
        self._idle: set[Function] = set()  #: called functions without settings
        self._waiting: list[Waiting] = []
        self._runs: dict[
            ast.AST, tuple[str, list[list[ScriptSetting]]]
        ] = {}  #: the settings of each call of a script's function

    @property
    def branches(self) -> Branches:
        """The conditions around the current statement, with their tests as text."""
        return tuple([(number, arm, _format_test(test)) for number, arm, test in self.tests])

    def visit_module(self) -> None:
        """Visit the script."""
        self._visit_frame(self.module.tree.body, self.module.scope, ())
        every = [
            *self.found,
            *(
                setting
                for name, runs in self._runs.values()
                for setting in _unite_calls(name, runs)
            ),
        ]
        unique = {
            (*_mark_place(one), one.key, repr(one.value), one.reason): one
            for one in reversed(every)
        }  # of equal settings, the first
        for site, several in self._made.items():
            self.sites[site] = self.sites[site]._replace(branches=unite_tests(several))
        self.found = sorted(unique.values(), key=attrgetter("position", "order"))

    # -- statements -------------------------------------------------------------------------------

    def _visit_frame(self, body: list[ast.stmt], scope: Scope, tests: Tests) -> None:
        """Visit a module or function, then its uncalled definitions."""
        outer, self._waiting = self._waiting, []
        self._visit_block(body, scope, tests)
        self._waiting.sort(
            key=lambda entry: entry[0].name != "__init__"
        )  # a constructor comes before methods that use the object
        for function, where, tests in _sort_by_calls(self._waiting, self.module.index):
            if function not in self._runs or function.name in self.module.index.passed_on:
                outer_found, self.found = self.found, []
                inside = Scope(function, where)
                _, runs = self._runs.setdefault(function, (inside.name, []))
                self._visit_frame(function.body, inside, tests)
                runs.append(self.found)
                self.found = outer_found
        self._waiting = outer

    def _visit_block(self, body: list[ast.stmt], scope: Scope, tests: Tests) -> None:
        """Visit the statements of a body.

        Code after an unconditional exit never runs, after a conditional one sometimes.
        """
        dead = self.dead
        for statement in body:
            self._visit_statement(statement, scope, tests)
            if leaves_block([statement]):
                self.dead += 1
            elif isinstance(statement, ast.If) and (test := find_way_on(statement)):
                tests = (*tests, (self._apart + statement.lineno, -1, test))
        self.dead = dead

    def _visit_statement(self, statement: ast.stmt, scope: Scope, tests: Tests) -> None:
        if not statement_blocks(statement):
            self._read(
                statement,
                [part for part in list_parts(statement) if isinstance(part, ast.expr)],
                scope,
                tests,
            )
        elif isinstance(statement, ast.If):
            self._visit_if(statement, scope, tests)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            self._visit_loop(statement, scope, tests)
        elif isinstance(statement, FUNCTIONS):
            self._waiting.append((statement, scope, tests))
        elif isinstance(statement, ast.ClassDef):
            self._visit_block(statement.body, Scope(statement, scope), tests)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            self._read(statement, [item.context_expr for item in statement.items], scope, tests)
            self._visit_block(statement.body, scope, tests)
        else:
            self._visit_compound(statement, scope, tests)

    def _read(
        self, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, tests: Tests
    ) -> None:
        """Let the surfaces read one statement, and follow its calls, innermost first."""
        self.tests = tests
        surfaces = self._list_surfaces(self.module)
        for surface in surfaces:
            if surface.read_statement:
                surface.read_statement(self, statement, scope)
        for expression in expressions:
            if type(expression) in PLAIN:
                continue
            calls = self.module.index.list_calls(expression)
            for call, inner in (
                _iterate_calls(expression) if calls is None else [(call, ()) for call in calls]
            ):
                self.tests = around = (
                    *tests,
                    *((self._apart + statement.lineno, 0, test) for test in inner),
                )
                for surface in surfaces:
                    surface.read_call(self, call, scope)
                self._follow(call, statement, scope, around)
        self.tests = tests
        for target, value in (
            _iterate_assignments(statement)
            if isinstance(statement, (ast.Assign, ast.AnnAssign))
            else ()
        ):
            for surface in surfaces:
                if surface.read_assignment:
                    surface.read_assignment(self, target, value, scope)

    def _visit_if(self, statement: ast.If, scope: Scope, tests: Tests) -> None:
        arm, refused, done = 0, list[ast.expr](), False
        rest: list[ast.stmt] = [statement]
        while len(rest) == 1 and isinstance(link := rest[0], ast.If):
            self._read(link, [link.test], scope, tests)
            truth = True if is_main_test(link.test) else fold_test(link.test, scope)
            inside = (
                tests
                if truth is True and not arm
                else (*tests, (self._apart + statement.lineno, arm, link.test))
            )
            self._visit_arm(link.body, scope, inside, done or truth is False)
            done = done or truth is True
            if truth is not False:
                arm += 1
                refused.append(link.test)
            rest = link.orelse
        inside = (*tests, (self._apart + statement.lineno, -arm, tuple(refused))) if arm else tests
        self._visit_arm(rest, scope, inside, done)

    def _visit_arm(self, body: list[ast.stmt], scope: Scope, tests: Tests, dead: bool) -> None:
        if (
            body and dead and (scope.label or self._turns)
        ):  # code dead in this call or iteration may run in others
            self.skips = True
            return
        self.dead += dead
        self._visit_block(body, scope, tests)
        self.dead -= dead

    def _visit_loop(self, statement: ast.For | ast.AsyncFor, scope: Scope, tests: Tests) -> None:
        self._read(statement, [statement.iter], scope, tests)
        turns = unroll_loop(statement.target, statement.iter, scope)
        self._turns += bool(turns)
        for bound in turns or [{}]:
            self._visit_block(statement.body, scope.with_bound(bound), tests)
        self._turns -= bool(turns)
        self._visit_block(statement.orelse, scope, tests)

    def _visit_compound(self, statement: ast.stmt, scope: Scope, tests: Tests) -> None:
        for name in ("body", "orelse", "finalbody"):
            self._visit_block(getattr(statement, name, None) or [], scope, tests)
        for arm, handler in enumerate(getattr(statement, "handlers", ())):
            kind = f"except {format_expression(handler.type)}" if handler.type else "except"
            self._visit_block(
                handler.body, scope, (*tests, (self._apart + statement.lineno, arm + 1, kind))
            )
        if isinstance(statement, ast.Match):
            for arm, case in enumerate(statement.cases):
                text = (
                    f"{format_expression(statement.subject)} is {format_expression(case.pattern)}"
                )
                self._visit_block(
                    case.body, scope, (*tests, (self._apart + statement.lineno, arm, text))
                )

    # -- calls ------------------------------------------------------------------------------------

    def _follow(self, call: ast.Call, statement: ast.stmt, scope: Scope, tests: Tests) -> None:
        """Visit the function entered by a call, if it can set something."""
        reached = self._reached
        if name_callee(call) not in self.module.list_callable(reached):
            return
        entered = find_entered(call, statement, scope)
        if entered is None:
            return
        home = entered.scope.home
        module = (
            self.module
            if home is self.module.home
            else self._lead(home.path)
            if home and reached(home.path)
            else None
        )
        if module is None or entered.function in self._idle:
            return
        if (
            entered.function in self._stack
            or len(self._stack) >= _DEEPEST
            or self._entered >= _MOST_ENTERED
        ):
            self.skips = True
        elif self._follows >= _MOST_FOLLOWED:
            if self.module is self.main:
                self.unfollowed = self.unfollowed or (call.lineno, name_callee(call))
            self.skips = True
        else:
            self._enter(call, entered, module, scope, tests)

    def _enter(
        self, call: ast.Call, entered: Entered, module: Module, scope: Scope, tests: Tests
    ) -> None:
        """Visit a function for one call."""
        function = entered.function
        inside = self._open_inside(call, entered, module, scope)
        before, place = len(self.sites), self.place(call)
        self._entered += 1
        state = self.module, self._stack, self._apart, self.found, self.skips
        self.module = module
        self._stack, self._apart = (
            (*self._stack, function),
            self._apart if module is self.main else self._entered * _APART,
        )
        self.found, self.skips = [], False
        self._visit_frame(function.body, inside, tests)
        settings, skips = self.found, self.skips
        self.module, self._stack, self._apart, self.found, self.skips = state
        self.skips |= skips
        self._follows += bool(settings)
        if not settings and not skips and len(self.sites) == before:
            self._idle.add(function)
        if module is self.main:
            self._runs.setdefault(function, (inside.name, []))[1].append(settings)
        else:
            self._take_over(function, module, settings, before, place)

    def _open_inside(self, call: ast.Call, entered: Entered, module: Module, scope: Scope) -> Scope:
        """Return the scope of a function with the arguments of one call."""
        function, outer = entered.function, entered.scope
        if module is not self.main:
            top = module.scope.with_label(
                f"{scope.name}@{call.lineno}.{call.col_offset}", self.main.index.stored
            )
            outer = Scope(outer.node, top) if isinstance(outer.node, ast.ClassDef) else top
        inside = Scope(function, outer)
        bound = bind_call_arguments(function, inside, entered.call, scope) or {}
        if entered.owner is not None and module is not self.main:
            bound[get_first_parameter(function)] = entered.owner
        return inside.with_bound(bound)

    def _take_over(
        self,
        function: Function,
        module: Module,
        settings: list[ScriptSetting],
        before: int,
        place: Position,
    ) -> None:
        """Add the settings of another file's function, at the place of its call."""
        for name, site in list(islice(self.sites.items(), before, None)):
            self.sites[name] = site._replace(line=place[0], column=place[1])
        self.found += [setting.with_location(call=place) for setting in settings]
        if settings:
            self.functions.setdefault(
                Followed(
                    module.path,
                    function.lineno,
                    function.end_lineno or function.lineno,
                    function.name,
                )
            )

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
        self.sites.setdefault(name, Site(name, "session", *self.place(node), root))
        return name

    def new_site(
        self, scope: Scope, root: str, surface: str, node: Located, closed: bool = True
    ) -> str:
        """Start a configuration object; return its name."""
        line, column = self.place(node)
        name = f"{scope.name or '<module>'}:{root}@{line}"
        self.current[scope.name, root] = name
        if scope.outer is not None and isinstance(
            scope.outer.node, ast.ClassDef
        ):  # other methods have it too
            self.current[scope.outer.name, root] = name
        self.sites.setdefault(name, Site(name, surface, line, column, root, closed))
        self._made.setdefault(name, []).append(self.branches)
        return name

    # -- reports of the surfaces ------------------------------------------------------------------

    def place(self, node: Located) -> Position:
        """Return line and column of a node of the current file."""
        line, offset = find_start(node)
        return line, self.module.script.column(line, offset)

    def add_read(self, setting: ScriptSetting) -> None:
        """Add a setting that is already parsed, in execution order and under the
        conditions here.
        """
        self._order += 1
        self.found.append(
            setting._replace(
                branches=self.branches if setting.name else (),
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
        given: ScriptValue | None = None,
        reason: str = "",
        **more: Any,
    ) -> None:
        """Add a setting at the place of a node, with its value or the reason why it is unknown."""
        self._order += 1
        given = given or ScriptValue(reason=reason)
        value, relative = remove_script_folder(given.value)
        given = given._replace(
            value=value, relative=relative, written=remove_script_folder(given.written)[0]
        )
        if relative and posixpath.dirname(self.main.path) != posixpath.dirname(self.module.path):
            given = ScriptValue(reason="depends on the folder of the script", default=given.default)
        place, dead = ScriptLocation(self.module.path, *self.place(node)), self.dead > 0
        self.found.append(
            ScriptSetting(
                place,
                surface,
                key,
                name,
                given,
                branches=self.branches,
                dead=dead,
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
        return (
            (None, HALF_CHARACTER) if isinstance(value, str) and not is_utf8(value) else (value, "")
        )

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
        if reason:
            find_default = ChainMap(self.module.flags, self.main.flags).get
            default, _ = self.evaluate_expression(
                node, scope, partial(fold_with_defaults, find_default=find_default)
            )
            return ScriptValue(
                None, reason, default=convert(default)[0] if default is not None else None
            )
        value, reason = convert(written)
        return ScriptValue(None if reason else value, reason, type(written).__name__, written)


@lru_cache(64)  # asked for each setting of a branch
def _format_test(test: Test) -> str:
    if isinstance(test, tuple):
        return " and ".join([f"not ({format_expression(each)})" for each in test])
    return test if isinstance(test, str) else format_expression(test)


def fold_test(test: ast.expr, scope: Scope) -> bool | None:
    """Return whether a condition is always true or always false, None if the run decides."""
    if isinstance(test, ast.BoolOp):
        deciding = isinstance(test.op, ast.Or)
        truths = [fold_test(part, scope) for part in test.values]
        return deciding if deciding in truths else None if None in truths else not deciding
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = fold_test(test.operand, scope)
        return None if truth is None else not truth
    try:
        return bool(fold_expression(test, scope))
    except Unknown:
        return None


def _iterate_calls(expression: ast.expr) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    """Yield the calls of an expression in execution order, with the conditions around each."""
    waiting: list[tuple[ast.AST, tuple[str, ...], bool]] = [(expression, (), False)]
    while waiting:
        node, tests, is_done = waiting.pop()
        while type(node) is ast.Attribute:  # only what comes before its names can hold a call
            node = node.value
        if type(node) is ast.Call:
            if is_done:
                yield node, tests
                continue
            waiting.append((node, tests, True))
        elif isinstance(node, (ast.IfExp, ast.BoolOp, ast.Lambda)):
            waiting += [
                (child, around, False) for child, around in _list_tested_parts(node, tests)
            ][::-1]
            continue
        waiting += [
            (child, tests, False)
            for child in reversed(list_parts(node))
            if type(child) not in PLAIN
        ]


def _list_tested_parts(
    node: ast.IfExp | ast.BoolOp | ast.Lambda, tests: tuple[str, ...]
) -> list[tuple[ast.AST, tuple[str, ...]]]:
    """Return the conditional parts of an expression, each with its conditions."""
    if isinstance(node, ast.IfExp):
        test = format_expression(node.test)
        return [
            (node.test, tests),
            (node.body, (*tests, test)),
            (node.orelse, (*tests, f"not ({test})")),
        ]
    if isinstance(node, ast.BoolOp):
        test = format_expression(node.values[0])
        around = (*tests, test if isinstance(node.op, ast.And) else f"not ({test})")
        return [(node.values[0], tests), *((value, around) for value in node.values[1:])]
    tests = (*tests, f"{format_expression(node)} is called")
    return [(child, tests) for child in list_parts(node)]


def _iterate_assignments(
    statement: ast.Assign | ast.AnnAssign,
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield targets and values of a statement.

    Tuples element by element if both sides show them.
    """
    if (value := statement.value) is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (
            (part, given) for target in targets for part, given, _ in pair_targets(target, value)
        )


def _sort_by_calls(waiting: list[Waiting], index: NodeIndex) -> Iterator[Waiting]:
    """Yield functions, those first that no other one calls: functions they call then need no
    separate visit.
    """
    calls = [index.list_called(one[0]) for one in waiting]
    counts = Counter(name for names in calls for name in names)
    made = [
        where.node.name
        if isinstance(where.node, ast.ClassDef) and one.name == "__init__"
        else one.name
        for one, where, _ in waiting
    ]
    remaining = dict(enumerate(made))  # a class is called by its own name
    while remaining:
        at = next(
            (at for at, name in remaining.items() if counts[name] == (name in calls[at])),
            next(iter(remaining)),
        )
        counts.subtract(calls[at])
        del remaining[at]
        yield waiting[at]


# -- calls of one function ------------------------------------------------------------------------


def _mark_place(setting: ScriptSetting) -> tuple[Any, ...]:
    return setting.location, setting.surface, setting.scope, setting.name


def _unite_calls(name: str, runs: list[list[ScriptSetting]]) -> Iterator[ScriptSetting]:
    """Yield the settings of a function: once if several calls agree, without a value if each call
    creates another object.
    """
    by_place = group_by(
        (same for run in runs for same in group_by(run, _mark_place).values()),
        lambda same: _mark_place(same[0]),
    )
    running = {
        _mark_place(setting)[2:]
        for run in runs
        for setting in run
        if not setting.dead and len(runs) > 1
    }
    for mark, several in by_place.items():
        if mark[2:] in running and all(setting.dead for same in several for setting in same):
            continue  # set in another way
        live = [same for same in several if not all(setting.dead for setting in same)] or several[
            :1
        ]
        texts = {repr([(setting.value, setting.reason) for setting in same]): same for same in live}
        if len(texts) > 1 and not live[0][0].scope.startswith(f"{name}:"):
            yield from (
                setting for same in live for setting in same
            )  # successive values in the same object
            continue
        first = (
            live[0]
            if len(texts) == 1
            else [_explain(next(iter(texts.values()))[0], [same[-1] for same in texts.values()])]
        )
        around = unite_tests([same[0].branches for same in live])
        yield from (
            first if len(live) == 1 else (setting._replace(branches=around) for setting in first)
        )


def _explain(setting: ScriptSetting, several: list[ScriptSetting]) -> ScriptSetting:
    """Return a setting with different values in several calls, with a reason that lists them."""
    reason = next(
        (call_setting.reason for call_setting in several if call_setting.reason),
        "depends on the arguments of its function",
    )
    return setting.with_value(value=None, written=None, kind="", relative=False, reason=reason)


def unite_tests(several: list[Branches]) -> Branches:
    """Return the conditions common to several places."""
    length = len(
        list(
            takewhile(
                lambda same: len(set(same)) == 1,
                zip(*(tests[::-1] for tests in several), strict=False),
            )
        )
    )
    before = [tests[: len(tests) - length] for tests in several]
    inner = several[0][len(several[0]) - length :]
    if not all(before):
        return inner
    texts = list(dict.fromkeys(" and ".join(text for _, _, text in tests) for tests in before))
    return (
        (
            before[0][0][0],
            before[0][0][1],
            texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts),
        ),
        *inner,
    )
