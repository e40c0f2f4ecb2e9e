"""What an expression stands for, and what its calls do to configuration objects, as the script comes by."""

from __future__ import annotations

import ast

from npuprof.scripts.reading.rehearsal.happenings import Cleared, Spot, Used
from npuprof.scripts.reading.rehearsal.heap import (
    ANY,
    ENVIRON,
    NOTHING,
    OPTIONS,
    Above,
    Callable,
    Frame,
    Instance,
    Made,
    Thing,
    Values,
    list_functions,
    list_things,
)
from npuprof.scripts.reading.rehearsal.known_calls import (
    COPYING,
    EMPTYING,
    INWARD,
    KEEPING,
    LOOKING,
    OF_MESSAGES,
    PASSING,
    QUIET,
    TRAINING,
    WRITTEN,
    describe_taking,
)
from npuprof.scripts.reading.rehearsal.members import Members
from npuprof.scripts.reading.values.terms import write_source


def is_environ(node: ast.expr) -> bool:
    """Return whether an expression is the environment of the process; ``os`` itself sets variables too."""
    if isinstance(node, ast.Attribute):
        return node.attr == "environ" and isinstance(node.value, ast.Name) and node.value.id == "os"
    return isinstance(node, ast.Name) and node.id == "environ"


class Expressions(Members):
    """The part of a rehearsal that knows of expressions."""

    def run_function(self, function: Callable, call: ast.Call | None, given: list[Values], named: dict[str, Values]) -> Values | None:
        """Go through a function, and return what it returns; None where that is not done."""
        raise NotImplementedError

    def hand_functions(self, name: str, values: Values) -> None:
        """Go through functions that a function out of sight is given, as far as it calls them now."""
        raise NotImplementedError

    def define_lambda(self, node: ast.Lambda) -> Callable:
        """Return a lambda as the function that it is."""
        raise NotImplementedError

    def evaluate(self, node: ast.expr | None) -> Values:
        """Return what an expression stands for, after what its calls do."""
        if node is None or isinstance(node, ast.Constant):
            return NOTHING
        if isinstance(node, ast.Name):
            owner = self.frame.find_owner(node.id)
            return owner.values[node.id] if owner is not None else NOTHING
        if isinstance(node, ast.Attribute):
            return self._evaluate_attribute(node)
        if isinstance(node, ast.Call):
            return self._evaluate_call(node)
        if isinstance(node, ast.Subscript):
            self.evaluate(node.slice)
            found = self.evaluate(node.value)
            self.note_loose(frozenset(one for one in found if isinstance(one, Thing) and not one.path))
            if isinstance(node.ctx, ast.Load) and not list_things(found):
                self.note_failing(node.lineno)
            return frozenset(self._step_into(value, node.slice) for value in found if isinstance(value, Thing))
        if isinstance(node, ast.IfExp):
            self.evaluate(node.test)
            return self.evaluate(node.body) | self.evaluate(node.orelse)
        if isinstance(node, ast.NamedExpr):
            values = self.evaluate(node.value)
            self.heap.bind(self.frame, node.target.id, values)
            return values
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            self.heap.share(self.evaluate(node.value))
            return NOTHING
        if isinstance(node, ast.Lambda):
            return frozenset((self.define_lambda(node),))
        generators = getattr(node, "generators", [])
        for generator in generators:
            self.note_loose(self.evaluate(generator.iter))
        parts = [self.evaluate(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        holding = isinstance(node, (ast.BoolOp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Starred, ast.Await))
        if not holding:
            self.note_loose(NOTHING.union(*parts))
        return NOTHING.union(*parts) if holding else NOTHING

    def _step_into(self, thing: Thing, index: ast.expr) -> Thing:
        """Return an item: by its key, or which of those that were added it is by its number."""
        sign = -1 if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) else 1
        index = index.operand if isinstance(index, ast.UnaryOp) else index
        key = index.value if isinstance(index, ast.Constant) else None
        if isinstance(key, str):
            return thing.step(f"[{key!r}]")
        added = self.added.get(thing, [])
        number = key * sign if isinstance(key, int) else len(added)
        return thing.step(added[number] if -len(added) <= number < len(added) else ANY)

    def _evaluate_attribute(self, node: ast.Attribute) -> Values:
        owners = self.evaluate(node.value)
        found: set[object] = set()
        for one in owners:
            if isinstance(one, Thing):
                found.add(one.step(node.attr))
            elif isinstance(one, (Instance, Made, Above)):
                found |= self.find_attribute(one, node.attr)
        if not owners and node.attr in INWARD:
            given = self.make_unknown(node.value)
            found |= {given.step(node.attr)} if given is not None else set()
        elif not owners and (known := self.find_slot(node)):
            found |= known
        return frozenset(found)  # type: ignore[arg-type]

    def _evaluate_call(self, node: ast.Call) -> Values:
        function = node.func
        if isinstance(function, ast.Attribute) and is_environ(function.value):
            return self._call_environ(node, function.attr)
        owners = self.evaluate(function.value) if isinstance(function, ast.Attribute) else NOTHING
        given = [self.evaluate(one) for one in node.args]
        named = {one.arg or "**": self.evaluate(one.value) for one in node.keywords}
        name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
        every = NOTHING.union(*given, *named.values())
        spot = self.find_spot(node)
        if things := list_things(owners):
            return self._call_method(node, name, things, every, spot)
        if name == "setattr" and given:
            self.note_assigned(given[0], spot, node)
        if name == "open" and self._is_device_opened(function):
            self.happened += [Used(self.find_now(node.lineno), number, "npu.open()", True) for number in (OPTIONS, ENVIRON)]
        if name == "super":
            return self.find_above(given)
        if name in ("run", "main") and not node.args and (main := self.frame.find_module().values.get("main")):
            every |= main if isinstance(function, ast.Attribute) and _ends_with(function.value, "app") else NOTHING
        functions = self._find_functions(function, owners)
        if functions:
            return self._call_functions(node, functions, given, named, spot)
        if spot is not None:  # another file sets something there
            self.note_assigned(every, spot, node)
        return self._call_unknown(node, name, every, spot)

    def _call_environ(self, node: ast.Call, name: str) -> Values:
        """Do what a method of the environment does: set variables, or take one out."""
        given = [*node.args, *(one.value for one in node.keywords)]
        for one in given:
            self.evaluate(one)
        inner = (part for one in given for part in ast.walk(one) if isinstance(part, ast.expr))
        for part in (node, *inner):
            if (spot := self.find_spot(part)) is not None:
                self.note_assigned(NOTHING, spot, part)
        if name in ("pop", "unsetenv") and node.args:
            self.note_variable_taken_out(node.args[0], node.lineno)
        return NOTHING

    def note_variable_taken_out(self, name: ast.expr, line: int) -> None:
        """Take note that a variable is taken out of the environment."""
        if isinstance(name, ast.Constant):
            self.happened.append(Cleared(self.find_now(line), ENVIRON, (f"[{name.value!r}]",)))

    def _is_device_opened(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return "npu_device import open" in self.script.text and self.frame.find_owner("open") is None
        return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and "npu" in function.value.id

    def _find_functions(self, function: ast.expr, owners: Values) -> list[Callable | Made]:
        values = self._evaluate_attribute_of(function, owners) if isinstance(function, ast.Attribute) else self.evaluate(function)
        called = NOTHING.union(*(self.find_attribute(one, "__call__") for one in values if isinstance(one, Instance)))
        return list_functions(values | called)

    def _evaluate_attribute_of(self, node: ast.Attribute, owners: Values) -> Values:
        found: set[object] = set()
        for one in owners:
            if isinstance(one, (Instance, Made, Above)):
                found |= self.find_attribute(one, node.attr)
        return frozenset(found)  # type: ignore[arg-type]

    def _call_functions(
        self, node: ast.Call, functions: list[Callable | Made], given: list[Values], named: dict[str, Values], spot: Spot | None
    ) -> Values:
        self.calls += [spot] if spot is not None else []
        returned: set[object] = set()
        for one in functions[:4]:
            function = one
            if isinstance(one, Made):
                instance = Instance(one, Frame())
                returned.add(instance)
                makers = [value for value in self._find_member(one, "__init__") if isinstance(value, Callable)]
                if not makers:  # what makes it is out of sight
                    self.note_loose(NOTHING.union(*given, *named.values()))
                    continue
                function = makers[0]._replace(owner=instance)
            result = self.run_function(function, node, given, named)  # type: ignore[arg-type]
            if result is None:
                self.note_used(node, NOTHING.union(*given, *named.values()), f"{_shorten(node.func)}()", False)
            elif not isinstance(one, Made):
                returned |= result
        if spot is not None:
            self.calls.pop()
        return frozenset(returned)  # type: ignore[arg-type]

    def _call_method(self, node: ast.Call, name: str, things: list[Thing], every: Values, spot: Spot | None) -> Values:
        """Do what a method of a protobuf message does."""
        if name not in OF_MESSAGES:
            self.note_loose(frozenset(one for one in things if not one.path))
        if name == "add":
            mark = f"[{node.lineno}:{node.col_offset}]"
            for one in things:
                self.added.setdefault(one, []).append(mark)
            return frozenset(one.step(mark) for one in things)
        if name in WRITTEN:
            self.note_used(node, frozenset(things), f"{name}() took a copy", True)
            return frozenset(things)
        if name in EMPTYING:
            for one in things:
                self.note_cleared(one, node.lineno, inside=name == "clear")
        elif name == "ClearField":
            field = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            for one in things:
                self.note_cleared(one.step(str(field)) if field else one, node.lineno)
        elif name == "pop" and any(one.path[-1:] == ("custom_optimizers",) for one in things):
            for one in things:
                self.note_cleared(one, node.lineno, inside=True)
        elif name == "pop" and node.args and isinstance(node.args[0], ast.Constant):
            for one in (thing.step(f"[{node.args[0].value!r}]") for thing in things):
                self.note_assigned(frozenset((one,)), spot, node)
                self.note_cleared(one, node.lineno)
        elif name in ("CopyFrom", "MergeFrom", "update", "extend", "append"):
            inside = any("parameter_map" in one.path for one in things)
            if inside:
                self.note_assigned(frozenset(things), spot, node)
            elif name == "CopyFrom":
                for one in things:
                    self.note_cleared(one, node.lineno)
            self.note_used(node, every, f"{name}() took a copy", True)
            if name.endswith("From") and not inside:
                self._copy(things, every, node.lineno)
        elif name in ("get_or_create", "get", "setdefault"):
            key = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            return frozenset(one.step(f"[{key!r}]" if isinstance(key, str) else ANY) for one in things)
        return NOTHING

    def _make_copy(self, node: ast.Call, values: Values) -> Values:
        if not values:
            return NOTHING
        made = self.heap.make(self.describe_birth(False, node))
        self._copy([made], values, node.lineno)
        return frozenset((made,))

    def _copy(self, targets: list[Thing], values: Values, line: int) -> None:
        for target in targets:
            for source in list_things(values):
                if source.number != target.number:
                    self.note_copied(target, source, line)

    def _call_unknown(self, node: ast.Call, name: str, every: Values, spot: Spot | None) -> Values:
        """Do what a function out of sight may do."""
        if name == "ConfigProto" or name in PASSING:
            if name in PASSING and any(isinstance(one, Thing) for one in every):
                return every
            return frozenset((self.heap.make(self.describe_birth(False, node)),))
        if name == "global_options":
            return NOTHING
        if name not in QUIET:
            self.note_failing(node.lineno)
        if name in LOOKING:
            return NOTHING
        if name in ("getattr", "setattr", "partial"):
            self.note_loose(every)
        if name in KEEPING and name not in ("copy",):
            self.heap.share(every)
            return every
        if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            attribute = str(node.args[1].value)
            found = [self.find_attribute(one, attribute) for one in every if isinstance(one, (Instance, Made))]
            return NOTHING.union(*found) | {one.step(attribute) for one in every if isinstance(one, Thing)}
        if name in ("getattr", "setattr", "partial"):
            return every
        if name == "FromString":
            return self._make_copy(node, every)
        what = describe_taking(name)
        taking = bool(what)
        if what == "the session was made":
            given = any(one.arg in (None, "config", "session_config") for one in node.keywords) or len(node.args) > 2
            self.sessions.append((node.lineno, f"{_shorten(node.func)}({'...' if node.args or node.keywords else ''})", given))
        self.note_used(node, every, what or f"{_shorten(node.func)}()", taking)
        if what == "the session was made" or name in TRAINING:
            self.happened.append(Used(self.find_now(node.lineno), ENVIRON, what or f"{name}() ran", True))
        self.hand_functions(name, every)
        if name in COPYING:
            return self._make_copy(node, every)
        return frozenset(one for one in every if isinstance(one, Thing)) if not taking or "RunConfig" in name else NOTHING


def _ends_with(node: ast.expr, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name)


def _shorten(node: ast.expr) -> str:
    text = write_source(node) if isinstance(node, (ast.Name, ast.Attribute)) else "a function"
    return text if len(text) <= 40 else f"...{text[-37:]}"
