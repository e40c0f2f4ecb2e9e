"""Name bindings of a script, and which are constant; computed on demand, function by function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, cast

from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.expressions import format_expression
from npuprof.scripts.python.statements import DEFINITIONS, FUNCTIONS
from npuprof.scripts.steps import count_steps

Function = ast.FunctionDef | ast.AsyncFunctionDef

_CHANGING = {
    "append",
    "extend",
    "insert",
    "remove",
    "pop",
    "popitem",
    "clear",
    "update",
    "setdefault",
    "sort",
    "reverse",
    "add",
}


class Binding(NamedTuple):
    """One binding of a name: ``kind`` is assign, parameter, loop, change, import, or other.

    ``name`` is its name in the defining module, which may differ from the importing one's.
    A tuple, as there is one for each binding of a file.
    """

    kind: str
    node: Any
    name: str


class TargetPart(NamedTuple):
    """A part of an assignment target with its value.

    ``is_split`` is false for the whole value of a target that could not be split.
    A tuple, as there is one for each assignment of a file.
    """

    target: ast.expr
    value: ast.expr
    is_split: bool


#: The scope that binds a name, and all its bindings there.
Resolved = tuple["Scope", list[Binding]]
#: Names with more bindings are treated as unknown.
MOST_BINDINGS = 12


class Scope:
    """A module, class or function scope with its outer scope; ``bound`` are names set by a caller.

    ``home`` resolves imports of the file. ``label`` distinguishes followed calls from other files.
    """

    __slots__ = ("bound", "home", "label", "list_rebound", "node", "outer")

    def __init__(
        self, node: ast.Module | ast.ClassDef | Function, outer: Scope | None = None
    ) -> None:
        self.node = node
        self.outer = outer
        self.bound: dict[str, tuple[ast.expr, Scope]] = {}
        #: the ``Home`` of its file in ``imports``, None if imports are not followed
        self.home: Any = outer.home if outer else None
        self.label: str = outer.label if outer else ""
        #: Returns the names rebound outside their scope, see ``NodeIndex``.
        self.list_rebound: Callable[[], frozenset[str]] = outer.list_rebound if outer else frozenset

    @property
    def name(self) -> str:
        """The dotted name; that of the module is its label, if any."""
        if isinstance(self.node, ast.Module):
            return self.label
        before = self.outer.name if self.outer else ""
        return f"{before}.{self.node.name}" if before else self.node.name

    @property
    def file(self) -> str:
        """The file of the scope, empty if files are not followed."""
        return str(self.home.path) if self.home is not None else ""

    def with_bound(self, names: dict[str, tuple[ast.expr, Scope]]) -> Scope:
        """Return the same scope with names set."""
        inner = copy(self)
        inner.bound = {**self.bound, **names}
        return inner

    def with_label(self, label: str, rebound: frozenset[str]) -> Scope:
        """Return the same scope for a call from another file.

        ``rebound`` are names that the file rebinds.
        """
        inner = self.with_bound({})
        inner.label = label
        if rebound:
            inner.list_rebound = cache(lambda: self.list_rebound() | rebound)
        return inner

    def list_bindings(self, name: str) -> list[Binding]:
        """Return all bindings of a name in this scope itself.

        For ``=name``, its aliases, through which a list may be changed.
        """
        # in the node itself, for the lifetime of its tree: a function is entered by several calls
        kept = vars(self.node)
        if "bindings" not in kept:
            kept["bindings"] = _collect_bindings(self.node)
        return kept["bindings"].get(name, [])  # type: ignore[no-any-return]

    def list_binding_kinds(self, name: str) -> set[str]:
        """Return the kinds of all bindings of a name in this scope itself."""
        return {binding.kind for binding in self.list_bindings(name)}

    def resolve_name(self, name: str) -> Resolved | None:
        """Return the scope that binds a name, seen from here, with its bindings.

        None for an unbound name. Imports from the same source tree are followed.
        """
        count_steps()
        scope, bindings = self.find_binding(name)
        if name in scope.bound:
            return scope, []
        own = (scope, bindings) if bindings else None
        home = scope.home
        if home is None or (bindings and scope.list_binding_kinds(name) != {"import"}):
            return own
        imported: Resolved | None = (
            home.find_name(name, bindings)
            if bindings
            else home.find_starred(name, scope.list_bindings("*"))
        )
        if imported is None:
            return own
        _, imported_bindings = imported
        return imported if imported_bindings else own  # __file__ of another file has none

    def find_binding(self, name: str) -> tuple[Scope, list[Binding]]:
        """Return the scope that binds a name, seen from here, with its bindings.

        The module and an empty list for an unbound name.
        """
        scope = self
        while name not in scope.bound and not scope.list_bindings(name):
            outer = scope.outer
            # methods do not see the names of their class
            while outer is not None and isinstance(outer.node, ast.ClassDef):
                outer = outer.outer
            if outer is None:
                return scope, []
            scope = outer
        return scope, scope.list_bindings(name)

    def name_outside(self, text: str) -> tuple[str, Scope]:
        """Return an argument object, or a part of it, as the caller's expression.

        The second value is the caller's scope.
        """
        root, dot, rest = text.partition(".")
        scope = self
        while root in scope.bound:
            expression, outer = scope.bound[root]
            if rest and not scope.label and not isinstance(expression, ast.Name):
                break
            scope = outer
            root, dot, rest = f"{format_expression(expression)}{dot}{rest}".partition(".")
        return f"{root}{dot}{rest}", scope

    def resolve(self, node: ast.expr) -> Resolved | None:
        """Return the bindings of a name or module attribute, as ``resolve_name`` does.

        None for other expressions.
        """
        if isinstance(node, ast.Name):
            return self.resolve_name(node.id)
        if isinstance(node, ast.Attribute) and self.home is not None:
            return cast("Resolved | None", self.home.find_attribute(node, self))
        return None

    def resolve_only(self, node: ast.expr) -> tuple[Any, Scope]:
        """Return the only node that binds a name or module attribute, with its scope.

        None for others.
        """
        scope, bindings = self.resolve(node) or (self, [])
        return (bindings[0].node, scope) if len(bindings) == 1 else (None, self)


def _collect_bindings(node: ast.Module | ast.ClassDef | Function) -> dict[str, list[Binding]]:
    """Return all bindings of each name of one scope."""
    bindings = []
    if isinstance(node, FUNCTIONS):
        parameters = node.args
        named = (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs)
        unpacked = filter(None, (parameters.vararg, parameters.kwarg))
        bindings = [Binding("parameter", arg, arg.arg) for arg in (*named, *unpacked)]
    for statement in iterate_statements(node.body):
        bindings += _iterate_new_bindings(statement)
    return group_by(bindings, attrgetter("name"))


def _iterate_new_bindings(statement: ast.stmt) -> Iterator[Binding]:
    """Yield the names that a statement binds, without those in its body."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _bind_target(target, statement.value)
        names_target = any(isinstance(target, ast.Name) for target in statement.targets)
        if isinstance(statement.value, ast.Name) and names_target:
            yield Binding("alias", statement, f"={statement.value.id}")
    elif isinstance(statement, ast.AnnAssign):
        if statement.value is not None:
            yield from _bind_target(statement.target, statement.value)
    elif isinstance(statement, DEFINITIONS):
        yield Binding("other", statement, statement.name)
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield Binding("import", statement, (alias.asname or alias.name).partition(".")[0])
    elif isinstance(statement, ast.Try):
        for handler in statement.handlers:
            if handler.name:
                yield Binding("other", handler, handler.name)
    else:
        kind, targets = _list_hidden_targets(statement)
        for hidden in targets:
            for name in _iterate_target_names(hidden):
                yield Binding(kind, statement, name)


def _list_hidden_targets(statement: ast.stmt) -> tuple[str, Sequence[ast.expr | None]]:
    """Return the binding kind of a statement that hides its values, and its targets."""
    match statement:
        case ast.For(target) | ast.AsyncFor(target):
            return "loop", [target]
        case ast.With(items) | ast.AsyncWith(items):
            return "other", [item.optional_vars for item in items]
        case ast.AugAssign(ast.Name() as target):
            return "change", [target]
        case ast.Expr(ast.Call(ast.Attribute(target, method))) if method in _CHANGING:
            return "change", [target]
        case ast.Delete(targets):
            return "change", targets
    return "change", []


def _bind_target(target: ast.expr, value: ast.expr) -> Iterator[Binding]:
    """Yield the bindings of an assignment target: names, and changed tables."""
    for part in pair_targets(target, value):
        if isinstance(part.target, ast.Name) and part.is_split:
            yield Binding("assign", part.value, part.target.id)
        else:
            kind = "change" if isinstance(part.target, ast.Subscript) else "other"
            for name in _iterate_target_names(part.target):
                yield Binding(kind, part.target, name)


def pair_targets(target: ast.expr, value: ast.expr) -> Iterator[TargetPart]:
    """Yield the parts of a target with their values."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield TargetPart(target, value, is_split=True)
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    is_starred = any(isinstance(item, ast.Starred) for item in target.elts)
    is_split = len(values) == len(target.elts) and not is_starred
    if not is_split:
        values = [value] * len(target.elts)
    for inner_target, inner_value in zip(target.elts, values, strict=True):
        for part in pair_targets(inner_target, inner_value):
            yield part if is_split else part._replace(is_split=False)


def _iterate_target_names(node: ast.AST | None) -> Iterator[str]:
    match node:
        case ast.Name(name):
            yield name
        case ast.Tuple(items) | ast.List(items):
            for item in items:
                yield from _iterate_target_names(item)
        case ast.Starred(inner) | ast.Subscript(inner):
            yield from _iterate_target_names(inner)


def iterate_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield every statement in a body, in text order, without entering functions and classes."""
    waiting = list(body)[::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        if not isinstance(statement, DEFINITIONS):
            for block in reversed(statement_blocks(statement)):
                waiting += reversed(block)


def statement_blocks(statement: ast.AST) -> list[list[ast.stmt]]:
    """Return the bodies of a compound statement."""
    fields = vars(statement)
    blocks = [fields[name] for name in ("body", "orelse", "finalbody") if fields.get(name)]
    return blocks + [arm.body for name in ("handlers", "cases") for arm in fields.get(name, ())]
