"""The ways through a script: tests, loops, and what an error ends. Both arms of a test are gone through, loops once."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.rehearsal.expressions import Expressions
from npuprof.scripts.reading.rehearsal.happenings import Spot
from npuprof.scripts.reading.rehearsal.heap import Values
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.values.order import is_main_test, leaves_block
from npuprof.scripts.reading.values.terms import name_callee
from npuprof.scripts.reading.values.turns import Turns


class Passages(Expressions):
    """The part of a rehearsal that knows what runs, what may run, and what runs instead of something else."""

    def __init__(self, script: Script, wanted: dict[Spot, set[str]], turns: Turns) -> None:
        super().__init__(script, wanted)
        self._turns = turns
        self._tests = self._loops = 0
        self.left: set[int] = set()  #: the tests of returns that may leave a function early

    def run_block(self, body: list[ast.stmt]) -> None:
        """Go through the statements of one body."""
        raise NotImplementedError

    def assign(self, target: ast.expr, values: Values, value: ast.expr | None) -> None:
        """Let a target stand for values, those of an expression if there is one."""
        raise NotImplementedError

    def run_if(self, statement: ast.If) -> None:
        """Go through the arms of a test."""
        self.evaluate(statement.test)
        if is_main_test(statement.test):
            self.run_block(statement.body)
        elif isinstance(statement.test, ast.Constant):
            self.run_block(statement.body if statement.test.value else statement.orelse)
        else:
            self.run_arms([statement.body, statement.orelse])

    def next_test(self) -> int:
        """Return the number of a new test."""
        self._tests += 1
        return self._tests

    def run_arms(self, bodies: list[list[ast.stmt]], number: int = 0) -> None:
        """Go through bodies of which one runs; what follows runs with those that do not leave."""
        number, arms = number or self.next_test(), self.arms
        changed = []
        staying = []
        returning = []
        for arm, body in enumerate(bodies):
            self.arms = (*arms, (number, arm))
            self.heap.begin_branch()
            self.run_block(body)
            change = self.heap.end_branch()
            if not leaves_block(body):
                changed.append(change)
                staying.append(arm)
            elif isinstance(body[-1], ast.Return) and self.frame.running is not None:
                returning.append(body[-1].lineno)
        self.heap.unite(changed)
        self.arms = (*arms, (number, staying[0])) if len(staying) == 1 else arms
        for line in returning if staying else ():
            self.note_left(line)

    def note_left(self, line: int) -> None:
        """Take note that a line may leave the function: what comes behind in it may be passed over."""
        number = self.next_test()
        self.left.add(number)
        self.guards[number] = f"line {line} may leave the function before it"
        self.maybe = (*self.maybe, (number, 0))

    def run_loop(self, statement: ast.For | ast.AsyncFor | ast.While) -> None:
        """Go through a loop once; without certain turns it may be passed over."""
        if isinstance(statement, ast.While):
            self.evaluate(statement.test)
        else:
            self.assign(statement.target, self.evaluate(statement.iter), None)
        self._loops += 1
        self.loops = (*self.loops, self._loops)
        certain, number = bool(self._turns.count(statement)), self.next_test()
        if not certain:
            self.guards[number] = f"the loop in line {statement.lineno} may have no turn"
            self.maybe = (*self.maybe, (number, 0))
        self.heap.begin_branch()
        self.run_block(statement.body)
        self.heap.unite([self.heap.end_branch(), *([] if certain else [{}])])
        self.loops = self.loops[:-1]
        self.maybe = tuple(arm for arm in self.maybe if certain or arm[0] != number)
        self.run_block(statement.orelse)

    def run_try(self, statement: ast.Try) -> None:
        """Go through a ``try``: what stands behind what may fail in it may be passed over."""
        number = self.next_test()
        if statement.handlers:
            goes_on = any(isinstance(handler.body[-1], ast.Raise) for handler in statement.handlers)
            self.run_body_of_try(statement.body, number, goes_on)
        else:
            self.run_block(statement.body)
        self.run_arms([statement.orelse, *(handler.body for handler in statement.handlers)], number)
        self.run_block(statement.finalbody)

    def run_body_of_try(self, body: list[ast.stmt], number: int, goes_on: bool) -> None:
        """Go through what an error ends without ending the program."""
        before, self.tries = self.tries, (*self.tries, (number, goes_on))
        self.run_block(body)
        self.tries = before
        self.maybe = tuple(arm for arm in self.maybe if arm[0] != number)


def may_swallow(context: ast.expr) -> bool:
    """Return whether the context of a ``with`` may take errors in its block, by its name."""
    name = name_callee(context).lower() if isinstance(context, ast.Call) else ""
    return any(word in name for word in ("suppress", "ignor", "catch"))
