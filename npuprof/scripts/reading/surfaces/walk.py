"""One walk over the statements of a script that can matter; the surfaces read what they know on the way.

Only statements with a tell-tale word in their lines are looked into, which keeps the walk far cheaper than the
parsing before it.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable
from typing import Any

from npuprof.scripts.reading.found import HALF_CHARACTER, OF_HELPERS, Branch, Followed, FoundSetting, Site, take_here_out
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.surfaces.view import MOST_CALLS, ScriptView
from npuprof.scripts.reading.values.arguments import bind_call_arguments
from npuprof.scripts.reading.values.calls import (
    CallRun,
    find_parameter_default,
    make_different_objects,
    merge_call_runs,
    reads_parameter,
)
from npuprof.scripts.reading.values.literals import Unknown, fold_expression, fold_with_defaults, format_expression
from npuprof.scripts.reading.values.loops import unroll_loop
from npuprof.scripts.reading.values.order import find_way_on, is_main_test, leaves_block
from npuprof.scripts.reading.values.scopes import Function, ModuleHome, Scope, statement_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    Handler = Callable[["Walk", ast.stmt, list[ast.expr], Scope, tuple[Branch, ...]], None]


class Walk(ScriptView):
    """The state of one walk; ``found`` and ``sites`` grow as the surfaces report."""

    def __init__(self, script: Script, handlers: tuple[Handler, ...], home: ModuleHome | None = None) -> None:
        super().__init__(script, home)
        self.caller: Walk | None = None  #: the walk of the script that calls what this one reads
        self.functions: dict[tuple[str, int], Followed] = {}  #: what calls have been followed into
        self.follows = 0  #: how many calls have been followed that set something
        self.entered = 0  #: how many calls have been followed at all
        self.skips = False  #: whether something was left out that other calls run
        self.mentions_setting: Callable[[bytes], bool] = lambda data: True  #: whether a text can set anything
        self.stack: tuple[tuple[str, int], ...] = ()  #: the functions of other files around
        self.handlers = handlers
        self.found: list[FoundSetting] = []
        self.sites: dict[str, Site] = {}
        self.current: dict[tuple[str, str], str] = {}
        self.aliases: dict[tuple[str, str], ast.expr] = {}
        self.facts: dict[str, Any] = {}
        self.place: ast.AST | None = None
        self.handed: dict[tuple[ast.AST, str], bool] = {}  #: whether an entry is handed to other code, by its scope and name
        self.counted_entries: dict[tuple[str, str, int], str] = {}  #: those that are named by how many there are, see ``session``
        self.handed_sites: set[str] = set()  #: those whose callers have been looked for, see ``session``
        self.names: set[str] = set()  #: what has been set so far, by what scripts write
        self._told: dict[str, set[Any]] = {}
        self.dead = 0
        self.loops: list[tuple[ast.For | ast.AsyncFor, int]] = []  #: the loops around, with the number of branches around each
        self._ifs = 0
        self._depth = 0
        self._order = 0
        self._depends = False
        self._waiting: list[tuple[Function, Scope, tuple[Branch, ...], list[FoundSetting]]] = []

    def walk_module(self) -> None:
        """Walk the module."""
        module = self.open_module()
        self.walk_block(self.tree.body, module, ())
        self.walk_waiting()
        module.bound.clear()  # the only circle among these objects: without it a tree goes as soon as nobody needs it
        unique: dict[tuple[Any, ...], FoundSetting] = {}
        for found in self.found:
            place = found.file, found.call, found.line, found.column
            mark = (*place, found.surface, found.key, found.name, repr(found.value), found.reason, found.scope)
            unique.setdefault(mark, found)
        self.found = sorted(unique.values(), key=lambda found: (found.call or (found.line, found.column), found.order))

    def walk_waiting(self) -> None:
        """Read what functions set whose calls had to be found first."""
        for waiting in self._waiting:
            self.found += self._walk_with_calls(*waiting)
        self._waiting.clear()

    def walk_called(self, function: Function, scope: Scope, branches: tuple[Branch, ...], caller: Walk) -> None:
        """Walk a function that a call from another walk leads to, as a part of that one: what stands for objects there is known here."""
        self.caller = self.asked_by = caller
        self.current, self.aliases, self.sites = caller.current, caller.aliases, caller.sites
        self.facts, self._told, self.functions = caller.facts, caller._told, caller.functions
        self.mentions_setting = caller.mentions_setting
        self.dead, self._ifs, self._order = caller.dead, caller._ifs, caller._order
        self.follows, self.entered = caller.follows, caller.entered
        self.walk_block(function.body, scope, branches)
        self.walk_waiting()
        caller._ifs, caller._order = self._ifs, self._order
        caller.follows, caller.entered = self.follows, self.entered
        caller._depends, caller.skips = caller._depends or self._depends, caller.skips or self.skips

    def walk_block(self, body: list[ast.stmt], scope: Scope, branches: tuple[Branch, ...]) -> None:
        """Walk the statements of one body; behind what leaves it nothing runs, behind what leaves it under a test not always."""
        dead = self.dead
        for statement in body:
            self._walk_statement(statement, scope, branches)
            if leaves_block([statement]) or (isinstance(statement, ast.If) and self._always_leaves(statement, scope)):
                if scope.is_one_of_several and not leaves_block([statement]):
                    self.skips = True
                    break  # other calls come by
                self.dead += 1
            elif isinstance(statement, ast.If) and (test := find_way_on(statement)):
                self._ifs += 1
                branches = (*branches, (self._ifs, -1, test))
        self.dead = dead

    def _always_leaves(self, statement: ast.If, scope: Scope) -> bool:
        """Return whether the arm of a test that always runs leaves the block."""
        ways = leaves_block(statement.body), leaves_block(statement.orelse)
        if True not in ways or is_main_test(statement.test):
            return False
        truth = self.fold_test(statement.test, scope)
        return truth is not None and ways[0 if truth else 1]

    def _walk_statement(self, statement: ast.stmt, scope: Scope, branches: tuple[Branch, ...]) -> None:
        if isinstance(statement, ast.If):
            self._walk_if(statement, scope, branches)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            self._walk_loop(statement, scope, branches)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._walk_function(statement, scope, branches)
        elif isinstance(statement, ast.ClassDef):
            self.walk_block(statement.body, Scope(statement, scope), branches)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            self._call_handlers(statement, [item.context_expr for item in statement.items], scope, branches)
            self.walk_block(statement.body, scope, branches)
        elif isinstance(statement, (ast.While, ast.Try)) or statement_blocks(statement):
            self._walk_compound(statement, scope, branches)
        else:
            expressions = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
            self._call_handlers(statement, expressions, scope, branches)

    def _call_handlers(self, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]) -> None:
        for handler in self.handlers:
            handler(self, statement, expressions, scope, branches)

    def _walk_if(self, statement: ast.If, scope: Scope, branches: tuple[Branch, ...]) -> None:
        self._ifs += 1
        number, arm = self._ifs, 0
        rest: list[ast.stmt] = [statement]
        refused: list[str] = []
        done = False
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            link = rest[0]
            self._call_handlers(link, [link.test], scope, branches)
            truth = True if is_main_test(link.test) else self.fold_test(link.test, scope)
            dead = done or truth is False
            self.dead += dead
            inside = branches if truth is True and not arm else (*branches, (number, arm, format_expression(link.test)))
            if dead and scope.is_one_of_several:
                self.skips = True
            else:
                self.walk_block(link.body, scope, inside)
            self.dead -= dead
            done = done or truth is True
            if truth is not False:
                arm += 1
                refused.append(f"not ({format_expression(link.test)})")
            rest = link.orelse
        if rest and done and scope.is_one_of_several:
            self.skips = True
        elif rest:
            self.dead += done
            self.walk_block(rest, scope, (*branches, (number, -arm, " and ".join(refused))) if arm else branches)
            self.dead -= done

    def _walk_loop(self, statement: ast.For | ast.AsyncFor, scope: Scope, branches: tuple[Branch, ...]) -> None:
        self._call_handlers(statement, [statement.iter], scope, branches)
        self.note_dependence(statement.iter, scope)
        self.loops.append((statement, len(branches)))
        for bound in unroll_loop(statement.target, statement.iter, scope) or [{}]:
            self.walk_block(statement.body, scope.with_bound(bound) if bound else scope, branches)
        self.loops.pop()
        self.walk_block(statement.orelse, scope, branches)

    def note_dependence(self, node: ast.expr, scope: Scope) -> None:
        """Take note that what stands around depends on the arguments of calls, where an expression reads a parameter."""
        if any(isinstance(one, ast.Name) and reads_parameter(one, scope) for one in ast.walk(node)):
            self._depends = True

    def _walk_compound(self, statement: ast.stmt, scope: Scope, branches: tuple[Branch, ...]) -> None:
        self._ifs += 1
        number = self._ifs
        for name in ("body", "orelse", "finalbody"):
            self.walk_block(getattr(statement, name, None) or [], scope, branches)
        for arm, handler in enumerate(getattr(statement, "handlers", ())):
            kind = f"except {format_expression(handler.type)}" if handler.type else "except"
            self.walk_block(handler.body, scope, (*branches, (number, arm + 1, kind)))
        for arm, case in enumerate(getattr(statement, "cases", ())):
            text = f"{format_expression(statement.subject)} is {format_expression(case.pattern)}"  # type: ignore[attr-defined]
            self.walk_block(case.body, scope, (*branches, (number, arm, text)))

    def _walk_function(self, function: Function, scope: Scope, branches: tuple[Branch, ...]) -> None:
        inside = Scope(function, scope)
        before, depended = self.found, self._depends
        self.found, self._depends = [], False
        loops, self.loops = self.loops, []
        self.walk_block(function.body, inside, branches)
        self.loops = loops
        plain, depends = self.found, self._depends
        self.found, self._depends = before, depended
        if depends and self._depth < 2:
            self._waiting.append((function, inside, branches, plain))  # its callers may stand further down
        else:
            self.found += plain

    def _walk_with_calls(
        self, function: Function, inside: Scope, branches: tuple[Branch, ...], plain: list[FoundSetting]
    ) -> list[FoundSetting]:
        """Return what a function sets with the arguments of its calls in this file filled in."""
        calls = self.find_calls(function.name)
        if len(calls) > MOST_CALLS:
            return [_explain(setting, f"{function.name}() is called {len(calls)} times, more than are followed") for setting in plain]
        runs: list[CallRun] = []
        self._depth += 1
        for mark in [mark for mark, site in self.current.items() if mark[0] == inside.name and "@" not in site]:
            del self.current[mark]  # what it names may have been made since
        for call, where in calls:
            bound = bind_call_arguments(function, inside, call, where)
            if bound is None:
                runs.clear()
                break
            tests, never = self.list_tests(call, where)
            kept, self.found = self.found, []
            self.walk_block(function.body, inside.with_bound(bound), branches)
            runs.append(CallRun(call, tests, [setting._replace(dead=setting.dead or never) for setting in self.found]))
            self.found = kept
        self._depth -= 1
        return merge_call_runs(self.script, plain, runs) if runs and not make_different_objects(inside.name, plain, runs) else plain

    def find_alias(self, name: str, scope: Scope) -> ast.expr | None:
        """Return what a second name stands for, as seen from a scope."""
        where: Scope | None = scope
        while where is not None:
            if (where.name, name) in self.aliases:
                return self.aliases[where.name, name]
            where = where.outer
        return None

    def resolve_site(self, scope: Scope, root: str, surface: str, node: ast.AST) -> str:
        """Return the name of the configuration object that a variable stands for here."""
        if root in scope.bound:
            expression, caller = scope.bound[root]
            return self.resolve_site(caller, format_expression(expression), surface, node)
        first, dot, rest = root.partition(".")
        if scope.label and dot and first in scope.bound:
            expression, caller = scope.bound[first]
            return self.resolve_site(caller, f"{format_expression(expression)}.{rest}", surface, node)
        where: Scope | None = scope
        while where is not None:
            known = self.current.get((where.name, root))
            if known is not None:
                return known
            where = where.outer
        name = f"{scope.name or '<module>'}:{root}"
        self.current[scope.name, root] = name
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        self.sites.setdefault(name, Site(name, surface, line, self.script.column(line, column), root))
        return name

    def new_site(self, scope: Scope, root: str, surface: str, node: ast.AST, branches: tuple[Branch, ...], closed: bool = True) -> str:
        """Begin a configuration object; return its name."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        name = f"{scope.name or '<module>'}:{root}@{line}"
        self.current[scope.name, root] = name
        first, dot, rest = root.partition(".")
        while scope.label and dot and first in scope.bound:  # it is the object's: its other methods have it too
            expression, scope = scope.bound[first]
            first, dot, rest = (root := f"{format_expression(expression)}.{rest}").partition(".")
            self.current[scope.name, root] = name
        self.sites.setdefault(name, Site(name, surface, line, self.script.column(line, column), root, closed, None, branches))
        return name

    def add_fact(self, fact: str, value: Any) -> None:
        """Keep a remark for the linter, once."""
        known = self.facts.setdefault(fact, [])
        marks = self._told.setdefault(fact, set())
        if value not in marks:
            marks.add(value)
            known.append(value)
            if self.caller is not None:
                self.facts.setdefault(OF_HELPERS, {}).setdefault(fact, set()).add(value)

    def add_setting(self, node: ast.AST, surface: str, key: str, name: str, **more: Any) -> None:
        """Add a setting at the place of a node."""
        at = self.place or node
        line = at.lineno  # type: ignore[attr-defined]
        column = self.script.column(line, at.col_offset)  # type: ignore[attr-defined]
        self._order += 1
        more.setdefault("dead", self.dead > 0)
        more["value"], more["relative"] = take_here_out(more.get("value"))
        more["written"] = take_here_out(more.get("written"))[0]
        if more["relative"] and self.caller is not None and not self._is_beside_caller():
            more |= {"value": None, "written": None, "relative": False, "kind": "", "reason": "depends on the folder of the script"}
        self.names.add(name)
        self.found.append(FoundSetting(self.script.path, line, column, surface, key, name, order=self._order, **more))

    def _is_beside_caller(self) -> bool:
        top = self
        while top.caller is not None:
            top = top.caller
        return posixpath.dirname(top.script.path) == posixpath.dirname(self.script.path)

    def evaluate_expression(self, node: ast.expr, scope: Scope) -> tuple[Any, str, Any]:
        """Return ``(value, reason, default)`` of an expression; the reason is empty where the value is known."""
        try:
            value = fold_expression(node, scope)
            if isinstance(value, str) and not value.isascii():
                value.encode()
            return value, "", None
        except UnicodeEncodeError:
            return None, HALF_CHARACTER, None
        except Unknown as unknown:
            if reads_parameter(node, scope):
                self._depends = True
            return None, unknown.reason, self._find_default(node, scope) if unknown.flag else find_parameter_default(node, scope)

    def _find_default(self, node: ast.expr, scope: Scope) -> Any:
        """Return what an expression is where nobody says otherwise on the command line; None where that is not known."""
        try:
            return fold_with_defaults(node, scope, self.flag_default)
        except Unknown:
            return None


def _explain(setting: FoundSetting, reason: str) -> FoundSetting:
    """Return a setting without a value with another reason for that."""
    return setting._replace(reason=f"the key is computed: {reason}" if not setting.key else reason) if setting.reason else setting
