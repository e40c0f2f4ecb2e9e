"""A script gone through as it would run, as far as configuration objects go: what is done to which of them, and in which order.

Functions of the script are entered where they are called; those that nothing in sight calls are gone through by themselves, in the
end. Both arms of a test are gone through, loops once.
"""

from __future__ import annotations

import ast

from npuprof.scripts.reading.rehearsal.expressions import is_environ
from npuprof.scripts.reading.rehearsal.happenings import Moment, Returned, Spot
from npuprof.scripts.reading.rehearsal.heap import NOTHING, Callable, Frame, Instance, Made, Thing, Values, list_functions, list_things
from npuprof.scripts.reading.rehearsal.idle import is_lazy
from npuprof.scripts.reading.rehearsal.known_calls import CALLING, DEFERRING
from npuprof.scripts.reading.rehearsal.passages import Passages, may_swallow
from npuprof.scripts.reading.source import Script
from npuprof.scripts.reading.values.order import LEAVING
from npuprof.scripts.reading.values.scopes import Function
from npuprof.scripts.reading.values.terms import write_source
from npuprof.scripts.reading.values.turns import Turns

_DEEPEST = 20
#: A function is entered so often, and so many statements are gone through for each one that the script has.
_MOST_RUNS = 6
_MOST_STEPS = 8


class Rehearsal(Passages):
    """The state while a script is gone through."""

    def __init__(self, script: Script, wanted: dict[Spot, set[str]], turns: Turns) -> None:
        super().__init__(script, wanted, turns)
        self._deferred: list[Callable] = []
        self._is_alone = False  #: whether the next function runs by itself
        self.entered: set[Function] = set()  #: the functions that some call leads to
        self._lambdas: dict[ast.Lambda, Function] = {}
        self._runs: dict[Function, int] = {}
        self._depth = 0
        self._early: list[tuple[Moment, int]] = []  #: the objects that the function returns under a test
        self._around = 0  #: the number of tests around the function
        self._defined: list[tuple[Callable, Made | None]] = []
        self._steps = 0
        self.replaced: dict[int, tuple[int, int]] = {}  #: the line that gives the name of an object to another, and that

    def run_script(self) -> None:
        """Go through all of it."""
        assert self.script.tree is not None
        self._steps = _MOST_STEPS * (len(self.script.lines) + 100)
        self.run_block(self.script.tree.body)
        for function in self._deferred:
            self.run_function(function, None, [], {})
        named = _collect_names(self.script.tree)
        for function, cls in sorted(self._defined, key=lambda pair: pair[0].node.name in named):  # what others call, they call first
            if function.node not in self._runs:
                self.run += 1
                self._is_alone = True
                self.run_function(function._replace(owner=Instance(cls) if cls is not None else None), None, [], {})

    def run_function(self, function: Callable, call: ast.Call | None, given: list[Values], named: dict[str, Values]) -> Values | None:
        """Go through a function, and return what it returns; None where that is not done."""
        node = function.node
        runs = self._runs.get(node, 0)
        if runs >= _MOST_RUNS or self._depth >= _DEEPEST or self._steps <= 0:
            self.is_complete = False
            return None
        self._runs[node] = runs + 1
        if not self._is_alone:
            self.entered.add(node)
        self._is_alone = False
        before, arms, maybe = self.frame, self.arms, self.maybe
        self.frame = Frame(function.home)
        self.frame.running = function
        early, self._early, self._around = (self._early, self._around), [], len(arms)
        self._bind_arguments(function, call, given, named)
        self._depth += 1
        self.run_block(node.body)
        self._depth -= 1
        returned = frozenset(self.frame.returned)
        self.happened += [Returned(moment, number, self.time) for moment, number in self._early]
        self._early, self._around = early
        if call is None:
            self.heap.share(returned)
        self.frame, self.arms = before, arms
        self.maybe = tuple(arm for arm in self.maybe if arm in maybe or arm[0] not in self.left)
        return returned

    def _bind_arguments(self, function: Callable, call: ast.Call | None, given: list[Values], named: dict[str, Values]) -> None:
        arguments = function.node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.node.decorator_list)
        if function.owner is not None and names and not static:
            given = [frozenset((function.owner,)), *given]
        for name in (*names, *(one.arg for one in arguments.kwonlyargs)):
            self.heap.bind(self.frame, name, named.get(name, NOTHING))
        for name, values in zip(names, given, strict=False):
            self.heap.bind(self.frame, name, values)
        known = {*names, *(one.arg for one in arguments.kwonlyargs)}
        rest = [NOTHING.union(*given[len(names) :]), NOTHING.union(*(values for name, values in named.items() if name not in known))]
        for extra, values in zip((arguments.vararg, arguments.kwarg), rest, strict=True):
            if extra is not None:
                self.heap.bind(self.frame, extra.arg, values)

    def run_block(self, body: list[ast.stmt]) -> None:
        """Go through the statements of one body."""
        arms = self.arms
        for statement in body:
            self._steps -= 1
            if self._steps <= 0:
                self.is_complete = False
                break
            self._run_statement(statement)
            if isinstance(statement, LEAVING):
                break
        self.arms = arms

    def _run_statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            self._run_assignment(statement)
        elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
            self.assign(statement.target, self.evaluate(statement.value), statement.value)
        elif isinstance(statement, ast.Expr):
            if not self._is_never_gone_through(statement.value):
                self.evaluate(statement.value)
        elif isinstance(statement, ast.Return):
            values = self.evaluate(statement.value)
            for number in {one.number for one in list_things(values)}:
                arms = {*self.arms, *self.maybe}
                self.implied[number] = self.implied.get(number, arms) & arms
            if len(self.arms) > self._around:
                self._early += [(self.find_now(statement.lineno), one.number) for one in list_things(values)]
            self.frame.returned |= values
        elif isinstance(statement, ast.If):
            self.run_if(statement)
        elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            self.run_loop(statement)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                values = self.evaluate(item.context_expr)
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, values, item.context_expr)
            if any(may_swallow(item.context_expr) for item in statement.items):
                self.run_body_of_try(statement.body, self.next_test(), False)
            else:
                self.run_block(statement.body)
        elif isinstance(statement, ast.Try) or hasattr(statement, "handlers"):
            self.run_try(statement)  # type: ignore[arg-type]
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._define_function(statement)
        elif isinstance(statement, ast.ClassDef):
            self._define_class(statement)
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                self._delete(target)
        elif isinstance(statement, ast.Global):
            self.frame.globals.update(statement.names)
        elif isinstance(statement, ast.Nonlocal):
            self.frame.nonlocals.update(statement.names)
        elif hasattr(statement, "cases"):
            self.evaluate(statement.subject)  # type: ignore[attr-defined]
            self.run_arms([*(case.body for case in statement.cases), []])
        else:
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    self.evaluate(child)
            if isinstance(statement, (ast.Import, ast.ImportFrom, ast.Assert, ast.Raise)):
                self.note_failing(statement.lineno)

    def _is_never_gone_through(self, node: ast.expr) -> bool:
        """Return whether an expression that stands alone only makes a generator or a coroutine."""
        functions = self.evaluate(node.func) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else NOTHING
        return bool(functions) and all(isinstance(one, Callable) and is_lazy(one.node) for one in functions)

    def _run_assignment(self, statement: ast.Assign) -> None:
        value, targets = statement.value, statement.targets
        first = targets[0]
        if len(targets) == 1 and isinstance(first, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            starred = any(isinstance(one, ast.Starred) for one in (*first.elts, *value.elts))
            if len(first.elts) == len(value.elts) and not starred:  # each has what stands in its place
                for target, values, item in zip(first.elts, [self.evaluate(one) for one in value.elts], value.elts, strict=True):
                    self.assign(target, values, item)
                return
        values = self.evaluate(value)
        for target in targets:
            self.assign(target, values, value)

    def assign(self, target: ast.expr, values: Values, value: ast.expr | None) -> None:
        """Let a target stand for values, those of an expression if there is one."""
        if isinstance(target, ast.Name):
            frame = self.frame.find_target(target.id)
            self._note_replaced(frame.values.get(target.id, NOTHING), values, target.lineno)
            self.heap.bind(frame, target.id, values)
            if frame.instance is not None:
                self.note_loose(values)
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            for number, inner in enumerate(target.elts):
                item = value.elts[number] if same else None  # type: ignore[union-attr]
                self.assign(inner, self.evaluate(item) if isinstance(item, (ast.Name, ast.Attribute)) else values, item)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, values, None)
        elif isinstance(target, ast.Attribute):
            things = list_things(self.evaluate(target.value))
            self.note_assigned(frozenset(one.step(target.attr) for one in things), self.find_spot(target), target)
            if things:
                self.heap.share(values)
            else:
                self.store_attribute(target, values)
        else:
            environ = isinstance(target, ast.Subscript) and is_environ(target.value)
            self.note_assigned(NOTHING if environ else self.evaluate(target), self.find_spot(target), target)
            self.heap.share(values)

    def _note_replaced(self, before: Values, after: Values, line: int) -> None:
        """Take note that a name for an object is given to another one."""
        now = next((one.number for one in list_things(after) if not one.path), 0)
        for one in before - after:
            if now and isinstance(one, Thing) and not one.path:
                self.replaced.setdefault(one.number, (line, now))

    def _delete(self, target: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._delete(one)
        elif isinstance(target, ast.Subscript) and is_environ(target.value):
            self.note_variable_taken_out(target.slice, target.lineno)
        elif isinstance(target, ast.Subscript):
            whole = isinstance(target.slice, ast.Slice)
            for value in list_things(self.evaluate(target.value if whole else target)):
                self.note_assigned(frozenset((value,)), self.find_spot(target), target)
                self.note_cleared(value, target.lineno, inside=whole)
        elif isinstance(target, ast.Name):
            self.assign(target, NOTHING, None)

    def _define_function(self, node: Function) -> None:
        for one in (*node.decorator_list, *node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
            self.note_loose(self.evaluate(one))
        home = self.frame
        while home.instance is not None and home.outer is not None:  # names of a class are not seen in its methods
            home = home.outer
        cls = self.frame.instance.cls if self.frame.instance is not None else None
        function = Callable(node, home, None, cls)
        self.heap.bind(self.frame, node.name, frozenset((function,)))
        if any(_is_kept_for_later(one) for one in node.decorator_list):
            self._deferred.append(function)
        self._defined.append((function, cls))

    def define_lambda(self, node: ast.Lambda) -> Callable:
        """Return a lambda as the function that it is."""
        if node not in self._lambdas:
            self.kept_names.update(one.id for one in ast.walk(node.body) if isinstance(one, ast.Name))
            body = ast.copy_location(ast.Return(node.body), node)
            made = ast.FunctionDef("<lambda>", node.args, [body], [], lineno=node.lineno, col_offset=node.col_offset)
            self._lambdas[node] = made
        return Callable(self._lambdas[node], self.frame)

    def hand_functions(self, name: str, values: Values) -> None:
        """Go through functions that a function out of sight is given: at the end, now, or now with a doubt whether it calls them."""
        functions = [one for one in list_functions(values)[:4] if isinstance(one, Callable)]
        if name in DEFERRING:
            self._deferred += functions
        elif functions:
            before = self.maybe
            if name not in CALLING:
                number = self.next_test()
                self.guards[number] = f"{name}() calls it, or does not" if name else "nobody knows who calls it"
                self.maybe = (*self.maybe, (number, 0))
            for one in functions:
                self.run_function(one, None, [], {})
            self.maybe = before

    def _define_class(self, node: ast.ClassDef) -> None:
        body = Frame(self.frame)
        cls = Made(node, body)
        body.instance = Instance(cls)
        self.heap.bind(self.frame, node.name, frozenset((cls,)))
        before, self.frame = self.frame, body
        self.run_block(node.body)
        self.frame = before


def _collect_names(tree: ast.Module) -> set[str]:
    """Return the names and attributes that are read anywhere."""
    read = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)]
    return {node.id if isinstance(node, ast.Name) else node.attr for node in read}


def _is_kept_for_later(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Attribute) and decorator.attr in DEFERRING and write_source(decorator.value) in ("atexit", "os")
