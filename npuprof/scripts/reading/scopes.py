"""Which names of a script always hold the same value: found when somebody asks, one function at a time."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef

_CHANGING = {"append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "sort", "reverse", "add"}


class Binding:
    """One way a name gets a value: ``kind`` is assign, parameter, loop, change, or other."""

    __slots__ = ("kind", "node")

    def __init__(self, kind: str, node: ast.AST) -> None:
        self.kind = kind
        self.node = node


class Scope:
    """A module, a class or a function, with the scope around it; ``bound`` are names a caller has filled in."""

    __slots__ = ("_bindings", "bound", "node", "outer", "rebound")

    def __init__(self, node: ast.Module | ast.ClassDef | Function, outer: Scope | None = None) -> None:
        self.node = node
        self.outer = outer
        self.bound: dict[str, tuple[ast.expr, Scope]] = {}
        self.rebound: frozenset[str] = outer.rebound if outer else frozenset()
        self._bindings: dict[str, list[Binding]] | None = None

    @property
    def name(self) -> str:
        """The dotted name, empty for the module."""
        if isinstance(self.node, ast.Module):
            return ""
        before = self.outer.name if self.outer else ""
        return f"{before}.{self.node.name}" if before else self.node.name

    def with_bound(self, names: dict[str, tuple[ast.expr, Scope]]) -> Scope:
        """Return the same scope with names filled in."""
        other = Scope(self.node, self.outer)
        other._bindings = self._bindings
        other.rebound = self.rebound
        other.bound = {**self.bound, **names}
        return other

    def list_bindings(self, name: str) -> list[Binding]:
        """Return every way a name gets a value in this scope itself."""
        if self._bindings is None:
            self._bindings = _collect_bindings(self.node)
        return self._bindings.get(name, [])

    def is_aliased(self, name: str) -> bool:
        """Return whether a name of this scope is given to another name, through which a list may be changed."""
        return bool(self.list_bindings(f"={name}"))

    def resolve_name(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that binds a name, seen from here, and how; None for a name of nobody."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bound:
                return scope, []
            if found := scope.list_bindings(name):
                return scope, found
            scope = scope.outer
            while scope is not None and isinstance(scope.node, ast.ClassDef):
                scope = scope.outer
        return None


def _collect_bindings(node: ast.Module | ast.ClassDef | Function) -> dict[str, list[Binding]]:
    found: dict[str, list[Binding]] = {}

    def add_binding(name: str, kind: str, where: ast.AST) -> None:
        found.setdefault(name, []).append(Binding(kind, where))

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = node.args
        for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))):
            add_binding(arg.arg, "parameter", arg)
    for statement in iterate_statements(node.body):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                _bind_targets(target, statement.value, add_binding)
            if isinstance(statement.value, ast.Name) and any(isinstance(target, ast.Name) for target in statement.targets):
                add_binding(f"={statement.value.id}", "alias", statement)
        elif isinstance(statement, ast.AnnAssign):
            if statement.value is not None:
                _bind_targets(statement.target, statement.value, add_binding)
        elif isinstance(statement, ast.AugAssign):
            if isinstance(statement.target, ast.Name):
                add_binding(statement.target.id, "change", statement)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            for name in _iterate_target_names(statement.target):
                add_binding(name, "loop", statement)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                for name in _iterate_target_names(item.optional_vars):
                    add_binding(name, "other", statement)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            add_binding(statement.name, "other", statement)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                add_binding((alias.asname or alias.name).partition(".")[0], "import", statement)
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                for name in _iterate_target_names(target):
                    add_binding(name, "change", statement)
        elif isinstance(statement, ast.Expr):
            call = statement.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING:
                for name in _iterate_target_names(call.func.value):
                    add_binding(name, "change", statement)
        elif isinstance(statement, ast.Try):
            for handler in statement.handlers:
                if handler.name:
                    add_binding(handler.name, "other", handler)
    return found


def _bind_targets(target: ast.expr, value: ast.expr, bind: object) -> None:
    assert callable(bind)
    if isinstance(target, ast.Name):
        bind(target.id, "assign", value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        pairs = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        if pairs and not any(isinstance(item, ast.Starred) for item in target.elts):
            assert isinstance(value, (ast.Tuple, ast.List))
            for inner, item in zip(target.elts, value.elts, strict=True):
                _bind_targets(inner, item, bind)
        else:
            for name in _iterate_target_names(target):
                bind(name, "other", target)
    elif isinstance(target, ast.Subscript):
        for name in _iterate_target_names(target.value):
            bind(name, "change", target)


def _iterate_target_names(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _iterate_target_names(item)
    elif isinstance(node, (ast.Starred, ast.Subscript)):
        yield from _iterate_target_names(node.value)


def iterate_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield every statement below a body, in the order of the text; functions and classes are not entered."""
    waiting = list(body)[::-1]
    while waiting:
        statement = waiting.pop()
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting += [inner for block in statement_blocks(statement) for inner in block][::-1]


def statement_blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the bodies a compound statement has."""
    found = [block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, None))]
    found += [handler.body for handler in getattr(statement, "handlers", ())]
    found += [case.body for case in getattr(statement, "cases", ())]
    return found
