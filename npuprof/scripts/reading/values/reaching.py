"""Which values a name may hold where it is read, and under which tests a value that was there before is still there."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

from npuprof.model import Record
from npuprof.scripts.reading.values.order import DEFINITIONS, is_main_test, leaves_block
from npuprof.scripts.reading.values.scopes import Scope, iterate_statements
from npuprof.scripts.reading.values.terms import format_expression, write_source

#: The values that may be there, each with the tests that it has come through; None where nothing runs. None is changed once it is made.
State = dict[ast.expr, tuple[str, ...]]
Fold = Callable[[ast.expr], bool | None]

#: What stands for a value that no expression shows: of a loop, a ``with``, an unpacked tuple.
UNSEEN = ast.Constant(None)
#: The test that what only the handler of an error gives stands under.
_CAUGHT = "an error is caught"


class Reaching(Record):
    """A value that a name may hold where it is read; ``tests`` hold where it has not been replaced since.

    ``alone`` says that it holds nothing else there, unless an error was caught.
    """

    value: ast.expr
    tests: tuple[str, ...]
    alone: bool


def list_reaching_values(scope: Scope, name: str, place: ast.expr | None, fold: Fold) -> list[Reaching] | None:
    """Return what a name, or one with dots, may hold where ``place`` reads it, of what the statements of its scope give it.

    Without a place it is what it may hold behind all of them. None where the place is not there.
    ``fold`` tells whether a test always or never holds. A value is told without the tests it is given under, but with those that
    stand for its not being replaced.
    """
    read = _read_scope(scope, name, fold)
    state = read.last if place is None else read.seen.get(place)
    if state is None:
        return None
    usual = [value for value, tests in state.items() if _CAUGHT not in tests]
    return [Reaching(value, tests, usual == [value]) for value, tests in state.items()]


def is_ever_read(scope: Scope, name: str, value: ast.expr, fold: Fold) -> bool:
    """Return whether a statement of a scope may read a value that a name is given there; of a module also what comes behind it."""
    read = _read_scope(scope, name, fold)
    return any(value in state for state in read.seen.values()) or (isinstance(scope.node, ast.Module) and value in read.last)


class _Read(NamedTuple):
    """What a name may hold: at each place that reads it, and behind all statements."""

    seen: dict[ast.expr, State]
    last: State


def _read_scope(scope: Scope, name: str, fold: Fold) -> _Read:
    """Return what a name may hold in a scope, worked out once where the tests in it hold alike for all who ask.

    What is kept knows of no scope, which would keep the tree for as long as it is there itself.
    """
    shared = not scope.label and (isinstance(scope.node, ast.Module) or not scope.bound)
    known: dict[str, _Read] = scope.memo.setdefault("reads", {}) if shared else {}
    if name not in known:
        lines = _find_lines(scope)
        reader = _Reader(name, fold, sorted({*lines.get(name.rpartition(".")[2], ()), *lines.get("", ())}))
        known[name] = reader.run_all(scope.node.body)
    return known[name]


def _find_lines(scope: Scope) -> dict[str, list[int]]:
    """Return in which lines of a scope each name stands, those of attributes too, and under an empty one what leaves a block."""
    known: dict[str, list[int]] | None = scope.memo.get("lines of names")
    if known is None:
        known = scope.memo["lines of names"] = {}
        for statement in iterate_statements(scope.node.body):
            if isinstance(statement, DEFINITIONS):
                known.setdefault(statement.name, []).append(statement.lineno)
                continue
            if leaves_block([statement]):
                known.setdefault("", []).append(statement.lineno)
            inner = (ast.stmt, ast.excepthandler, ast.match_case)
            for part in (one for one in ast.iter_child_nodes(statement) if not isinstance(one, inner)):
                for node in ast.walk(part):
                    if isinstance(node, ast.Name):
                        known.setdefault(node.id, []).append(node.lineno)
                    elif isinstance(node, ast.Attribute):
                        known.setdefault(node.attr, []).append(node.end_lineno or node.lineno)
                    elif isinstance(node, ast.alias):
                        known.setdefault((node.asname or node.name).partition(".")[0], []).append(statement.lineno)
    return known


class _Reader:
    """A way through the statements of a scope; ``lines`` are those that matter, in order."""

    def __init__(self, name: str, fold: Fold, lines: list[int]) -> None:
        self.name = name
        self.fold = fold
        self.lines = lines
        self.seen: dict[ast.expr, State] = {}  #: what there may be at each place that reads the name
        self.left: list[State] = []  #: what returns take along
        self.breaks: list[list[State]] = []

    def run_all(self, body: list[ast.stmt]) -> _Read:
        """Go through all statements."""
        last = self.run(body, {})
        return _Read(self.seen, _join_all([last, *self.left]) or {})

    def run(self, body: Iterable[ast.stmt], state: State | None) -> State | None:
        """Go through some statements one after the other."""
        for statement in body:
            if state is None:
                return None  # never runs, or after what only another turn can reach
            at = bisect_left(self.lines, statement.lineno)
            if at < len(self.lines) and self.lines[at] <= (statement.end_lineno or statement.lineno):
                state = self._step(statement, state)
        return state

    def _step(self, statement: ast.stmt, state: State) -> State | None:
        if isinstance(statement, DEFINITIONS):
            return {UNSEEN: ()} if statement.name == self.name else state
        if isinstance(statement, ast.If):
            return self._choose(statement, state)
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            return self._turn(statement, state)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                state = self._read(item.context_expr, state)
                if item.optional_vars is not None and self._is_named_in(item.optional_vars):
                    state = {UNSEEN: ()}
            return self.run(statement.body, state)
        if isinstance(statement, ast.Try) or type(statement).__name__ == "TryStar":
            return self._attempt(statement, state)  # type: ignore[arg-type]
        if isinstance(statement, ast.Match):
            state = self._read(statement.subject, state)
            ends = [self.run(case.body, state) for case in statement.cases]
            return _join_all([state, *ends])
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                state = self._read(child, state)
        state = self._assign(statement, state)
        if leaves_block([statement]):
            if isinstance(statement, ast.Return):
                self.left.append(state)
            elif isinstance(statement, (ast.Break, ast.Continue)) and self.breaks:
                self.breaks[-1].append(state)
            return None
        return state

    def _read(self, node: ast.expr, state: State) -> State:
        """Take note of what an expression reads, and of names that it gives values."""
        if not isinstance(node, ast.Constant):
            for one in ast.walk(node):
                if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load) and self._is_named(one):
                    before = self.seen.get(one)
                    self.seen[one] = state if before is None else _join(before, state) or {}
                elif isinstance(one, ast.NamedExpr) and one.target.id == self.name:
                    state = {one.value: ()}
        return state

    def _assign(self, statement: ast.stmt, state: State) -> State:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if self._is_named(target):
                    state = {statement.value: ()}
                elif isinstance(target, (ast.Tuple, ast.List)) and self._is_named_in(target):
                    state = {self._unpack(target, statement.value): ()}
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None and self._is_named(statement.target):
                state = {statement.value: ()}
        elif isinstance(statement, ast.AugAssign):
            if self._is_named(statement.target):
                state = {UNSEEN: ()}
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name).partition(".")[0] == self.name for alias in statement.names):
                state = {UNSEEN: ()}
        elif isinstance(statement, ast.Delete) and any(self._is_named_in(target) for target in statement.targets):
            state = {}
        return state

    def _unpack(self, target: ast.Tuple | ast.List, value: ast.expr) -> ast.expr:
        """Return which of the values of a tuple the name gets."""
        if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
            return UNSEEN
        if any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts)):
            return UNSEEN
        return next((one for inner, one in zip(target.elts, value.elts, strict=True) if self._is_named(inner)), UNSEEN)

    def _is_named_in(self, target: ast.expr) -> bool:
        return any(map(self._is_named, ast.walk(target)))

    def _is_named(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id == self.name
        return isinstance(node, ast.Attribute) and self.name.endswith(f".{node.attr}") and write_source(node) == self.name

    def _choose(self, statement: ast.If, state: State) -> State | None:
        state = self._read(statement.test, state)
        truth = True if is_main_test(statement.test) else self.fold(statement.test)
        ways = self.run(statement.body, state), self.run(statement.orelse, state)
        if truth is not None:
            return ways[0 if truth else 1]
        text = format_expression(statement.test)
        return _join(*ways, dict.fromkeys(state, (text, f"not ({text})")))

    def _turn(self, statement: ast.For | ast.AsyncFor | ast.While, state: State) -> State | None:
        """Go through a loop twice, since what a turn leaves is there in the next."""
        state = self._read(statement.test if isinstance(statement, ast.While) else statement.iter, state)
        before: State | None = state
        self.breaks.append([])
        for _ in range(2):
            if not isinstance(statement, ast.While) and self._is_named_in(statement.target):
                before = {UNSEEN: ()}
            after = self.run(statement.body, before or {})
            before = _join_all([before, after, *self.breaks[-1]])
        self.breaks.pop()
        return self.run(statement.orelse, before)

    def _attempt(self, statement: ast.Try, state: State) -> State | None:
        """Go through a ``try``, as one that raises nothing; a handler may find what was there before any of the statements."""
        after: State | None = state
        seen: list[State | None] = [after]
        for one in statement.body:
            if after is None:
                break
            after = self._step(one, after)
            seen.append(after)
        if after is not None:
            after = self.run(statement.orelse, after)
        caught = _join_all(seen) or {}
        for handler in statement.handlers:
            end = self.run(handler.body, caught)
            if end is not None and after is None:
                after = end
            elif end is not None:
                after = {**{value: (*tests, _CAUGHT) for value, tests in end.items() if value not in caught}, **(after or {})}
        return self.run(statement.finalbody, after) if statement.finalbody else after


def _join_all(states: Iterable[State | None]) -> State | None:
    result: State | None = None
    for state in states:
        result = _join(result, state)
    return result


def _join(one: State | None, other: State | None, tests: dict[ast.expr, tuple[str, str]] | None = None) -> State | None:
    """Return what may be there behind two ways that come together.

    ``tests`` are those of the two ways for each value that was there before: one that only one way has left there stands under its test.
    """
    if one is None or other is None:
        return other if one is None else one
    result = {value: min(one[value], other[value], key=len) for value in one if value in other}
    for number, (state, beside) in enumerate(((one, other), (other, one))):
        for value, come in state.items():
            if value not in beside:
                result[value] = (*come, tests[value][number]) if tests and value in tests else come
    return result
