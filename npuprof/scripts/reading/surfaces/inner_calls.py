"""Calls inside expressions that set something: in a comprehension, behind ``and``, in a lambda.

What a comprehension over something written out does is a loop's; what a lambda does is done where it is called, which is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuprof.model import Record
from npuprof.scripts.reading.found import Branch
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.literals import format_expression
from npuprof.scripts.reading.values.loops import Node, unroll_loop
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: What goes through all that a generator gives where that is ``None``, as calls that set something give it.
_EXHAUSTING = frozenset(("list", "tuple", "set", "frozenset", "dict", "deque", "any", "sorted", "enumerate"))
#: So many turns of comprehensions, one inside the other.
_MOST_TURNS = 300
_IN_GENERATOR = "stands in a generator, which something has to go through"
_IN_LAMBDA = "stands in a lambda, whose calls are not followed"


class InnerCall(Record):
    """A call inside an expression, with the scope to read it in, the tests it stands under, and why it is not followed, if so."""

    node: ast.expr
    scope: Scope
    branches: tuple[Branch, ...]
    reason: str = ""

    @property
    def call(self) -> ast.Call:
        """The call."""
        assert isinstance(self.node, ast.Call)
        return self.node


def iterate_inner_calls(
    walk: Walk, statement: ast.stmt, expressions: list[ast.expr], scope: Scope, branches: tuple[Branch, ...]
) -> Iterator[InnerCall]:
    """Yield the calls inside the expressions of a statement, but for one that is all of the statement."""
    whole = statement.value if isinstance(statement, ast.Expr) else None
    for expression in expressions:
        if isinstance(expression, (ast.Constant, ast.Name, ast.Attribute)) or not walk.is_hot(expression):
            continue
        waiting = [InnerCall(expression, scope, branches, _IN_GENERATOR if isinstance(expression, ast.GeneratorExp) else "")]
        while waiting:
            one = waiting.pop()
            if isinstance(one.node, ast.Call) and one.node is not whole:
                yield one
            waiting += reversed(list(_step_inside(walk, one.node, one)))


def _step_inside(walk: Walk, node: ast.expr, around: InnerCall) -> Iterator[InnerCall]:
    if isinstance(node, ast.Lambda):
        yield around._replace(node=node.body, reason=_IN_LAMBDA)
    elif isinstance(node, ast.IfExp):
        number, text = walk.number_test(), format_expression(node.test)
        yield around._replace(node=node.test)
        yield around._replace(node=node.body, branches=(*around.branches, (number, 0, text)))
        yield around._replace(node=node.orelse, branches=(*around.branches, (number, -1, f"not ({text})")))
    elif isinstance(node, ast.BoolOp):
        tests = around.branches
        for value in node.values:
            yield around._replace(node=value, branches=tests)
            text = format_expression(value)
            tests = (*tests, (walk.number_test(), 0, text if isinstance(node.op, ast.And) else f"not ({text})"))
    elif isinstance(node, _COMPREHENSIONS):
        yield from _step_into_comprehension(walk, node, around)
    else:
        lazy = not isinstance(node, ast.Call) or name_callee(node) not in _EXHAUSTING
        for child in ast.iter_child_nodes(node):
            inner = child.value if isinstance(child, ast.keyword) else child
            if isinstance(inner, ast.expr):
                doubt = _IN_GENERATOR if lazy and isinstance(inner, ast.GeneratorExp) else ""
                yield around._replace(node=inner, reason=around.reason or doubt)


def _step_into_comprehension(
    walk: Walk, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, around: InnerCall
) -> Iterator[InnerCall]:
    yield around._replace(node=node.generators[0].iter)
    turns = [around]
    for generator in node.generators:
        turns = [after for before in turns for after in _turn(walk, generator, before)]
    done = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for turn in turns[:_MOST_TURNS]:
        for one in done:
            yield turn._replace(node=one)


def _turn(walk: Walk, generator: ast.comprehension, around: InnerCall) -> list[InnerCall]:
    """Return what is around in each turn of one part of a comprehension."""
    bounds: list[dict[str, Node]] = unroll_loop(generator.target, generator.iter, around.scope)
    reason = around.reason or ("" if bounds else f"stands in a comprehension over {format_expression(generator.iter)}")
    found = []
    for bound in bounds or [{}]:
        one = around._replace(scope=around.scope.with_bound(bound) if bound else around.scope, reason=reason)
        tests = [(test, walk.fold_test(test, one.scope)) for test in generator.ifs]
        if all(truth is not False for _, truth in tests):
            asked = tuple((walk.number_test(), 0, format_expression(test)) for test, truth in tests if truth is None)
            found.append(one._replace(branches=(*one.branches, *asked)))
    return found
