"""Which names of a script always hold the same value: found when somebody asks, one function at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol

from npuprof.scripts.python.terms import format_expression

#: A name, how it gets a value (see ``Binding``), and where.
NewBinding = tuple[str, str, ast.AST]
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Whether a file is of interest to who asks, by its path.
Reached = Callable[[str], bool]

#: The most frequent statements without a body.
_SIMPLE = (ast.Assign, ast.Expr, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Import, ast.ImportFrom)
_CHANGING = {"append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "sort", "reverse", "add"}


class Binding(NamedTuple):
    """One way a name gets a value: ``kind`` is assign, parameter, loop, change, import, or other.

    ``name`` is what it is called there, which may be another name than that of who imports it.
    """

    kind: str
    node: Any
    name: str


#: A name that is given a value more often has no value that could be told.
MOST_BINDINGS = 12


class ModuleHome(Protocol):
    """Where the imports of a file lead to, for scopes of files whose imports are followed."""

    path: str

    def list_defined(self, reached: Reached) -> frozenset[str]:
        """Return the names of functions and classes of the files that it imports, and those import, as far as they are ``reached``."""

    def list_rebound(self) -> frozenset[str]:
        """Return the names of the file to which the script that is being read gives other values."""

    def find_name(self, name: str, bindings: Iterable[Binding]) -> tuple[Scope, list[Binding]] | None:
        """Return what an imported name stands for where it comes from; None where that is not in sight."""

    def find_starred(self, name: str, bindings: Sequence[Binding]) -> tuple[Scope, list[Binding]] | None:
        """Return what a name stands for that an import of all names brings; None where that is not in sight."""

    def find_attribute(self, node: ast.Attribute, scope: Scope) -> tuple[Scope, list[Binding]] | None:
        """Return what a name of an imported module stands for; None where that is not in sight."""

    def locate_bound(self, text: str, bindings: Iterable[Binding]) -> str:
        """Return the file that a name, or one with dots, stands for by imports, empty for none."""


class Scope:
    """A module, a class or a function, with the scope around it; ``bound`` are names a caller has filled in.

    ``home`` leads from the file to those that it imports. ``label`` tells a call from another file that is being followed from others.
    """

    __slots__ = ("_bindings", "_kinds", "bound", "home", "label", "list_rebound", "node", "outer")

    def __init__(self, node: ast.Module | ast.ClassDef | Function, outer: Scope | None = None) -> None:
        self.node = node
        self.outer = outer
        self.bound: dict[str, tuple[ast.expr, Scope]] = {}
        self.home: ModuleHome | None = outer.home if outer else None
        self.label: str = outer.label if outer else ""
        self._bindings: dict[str, list[Binding]] | None = None
        self._kinds: dict[str, set[str]] = {}
        #: Returns the names of the file that get a value where their scope does not show it, see ``NodeIndex``.
        self.list_rebound: Callable[[], frozenset[str]] = outer.list_rebound if outer else frozenset

    @property
    def name(self) -> str:
        """The dotted name, that of the module being its label, if any."""
        if isinstance(self.node, ast.Module):
            return self.label
        before = self.outer.name if self.outer else ""
        return f"{before}.{self.node.name}" if before else self.node.name

    @property
    def file(self) -> str:
        """The file it belongs to, empty where files are not followed."""
        return self.home.path if self.home is not None else ""

    def with_bound(self, names: dict[str, tuple[ast.expr, Scope]]) -> Scope:
        """Return the same scope with names filled in."""
        inner = copy(self)
        inner.bound = {**self.bound, **names}
        return inner

    def with_label(self, label: str, rebound: frozenset[str] = frozenset()) -> Scope:
        """Return the same scope as a call from another file sees it; ``rebound`` are names that file gives other values."""
        self.list_bindings("")  # looked for once for all of them
        inner = self.with_bound({})
        inner.label = label
        if rebound:
            inner.list_rebound = lambda: self.list_rebound() | rebound
        return inner

    def list_bindings(self, name: str) -> list[Binding]:
        """Return every way a name gets a value in this scope itself."""
        if self._bindings is None:
            self._bindings = _collect_bindings(self.node)
        return self._bindings.get(name, [])

    def list_binding_kinds(self, name: str) -> set[str]:
        """Return the kinds of all ways a name gets a value in this scope itself."""
        if name not in self._kinds:
            self._kinds[name] = {binding.kind for binding in self.list_bindings(name)}
        return self._kinds[name]

    def is_aliased(self, name: str) -> bool:
        """Return whether a name of this scope is given to another name, through which a list may be changed."""
        return bool(self.list_bindings(f"={name}"))

    def resolve_name(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that binds a name, seen from here, and how; None for a name of nobody.

        What is imported from a file of the same tree is bound there.
        """
        scope, found = self.find_binding(name)
        if name in scope.bound:
            return scope, []
        if scope.home is None or (found and scope.list_binding_kinds(name) != {"import"}):
            return (scope, found) if found else None
        imported = scope.home.find_name(name, found) if found else scope.home.find_starred(name, scope.list_bindings("*"))
        return imported or ((scope, found) if found else None)

    def find_binding(self, name: str) -> tuple[Scope, list[Binding]]:
        """Return the scope that binds a name, seen from here, and how; the module and nothing for a name that this file does not bind."""
        scope = self
        while name not in scope.bound and not scope.list_bindings(name):
            outer = scope.outer
            while outer is not None and isinstance(outer.node, ast.ClassDef):
                outer = outer.outer
            if outer is None:
                return scope, []
            scope = outer
        return scope, scope.list_bindings(name)

    def name_outside(self, text: str) -> tuple[str, Scope]:
        """Return an object that a function is handed, or a part of one, in the words of who hands it over, and the scope of these."""
        root, dot, rest = text.partition(".")
        scope = self
        while root in scope.bound and (not rest or scope.label or isinstance(scope.bound[root][0], ast.Name)):
            given, scope = scope.bound[root]
            root, dot, rest = f"{format_expression(given)}{dot}{rest}".partition(".")
        return f"{root}{dot}{rest}", scope

    def resolve(self, node: ast.expr) -> tuple[Scope, list[Binding]] | None:
        """Return what a name, or a name of an imported module, stands for, as ``resolve_name`` does; None for other expressions."""
        if isinstance(node, ast.Name):
            return self.resolve_name(node.id)
        return self.home.find_attribute(node, self) if isinstance(node, ast.Attribute) and self.home is not None else None

    def resolve_only(self, node: ast.expr) -> tuple[Any, Scope]:
        """Return the one node that gives a name, or a name of an imported module, its value, and the scope of that; None for others."""
        found = self.resolve(node)
        return (found[1][0].node, found[0]) if found and len(found[1]) == 1 else (None, self)


def _collect_bindings(node: ast.Module | ast.ClassDef | Function) -> dict[str, list[Binding]]:
    """Return every way each name of one scope gets a value."""
    found: dict[str, list[Binding]] = {}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = node.args
        for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))):
            found.setdefault(arg.arg, []).append(Binding("parameter", arg, arg.arg))
    for statement in iterate_statements(node.body):
        binder = _BINDERS.get(type(statement))
        for name, kind, where in binder(statement) if binder else ():
            found.setdefault(name, []).append(Binding(kind, where, name))
    return found


def _bind_assign(statement: ast.Assign) -> Iterator[NewBinding]:
    for target in statement.targets:
        yield from _bind_target(target, statement.value)
    if isinstance(statement.value, ast.Name) and any(isinstance(target, ast.Name) for target in statement.targets):
        yield f"={statement.value.id}", "alias", statement


def _bind_annotated(statement: ast.AnnAssign) -> Iterator[NewBinding]:
    if statement.value is not None:
        yield from _bind_target(statement.target, statement.value)


def _bind_augmented(statement: ast.AugAssign) -> Iterator[NewBinding]:
    if isinstance(statement.target, ast.Name):
        yield statement.target.id, "change", statement


def _bind_loop(statement: ast.For | ast.AsyncFor) -> Iterator[NewBinding]:
    return ((name, "loop", statement) for name in _iterate_target_names(statement.target))


def _bind_with(statement: ast.With | ast.AsyncWith) -> Iterator[NewBinding]:
    return ((name, "other", statement) for item in statement.items for name in _iterate_target_names(item.optional_vars))


def _bind_definition(statement: Function | ast.ClassDef) -> Iterator[NewBinding]:
    yield statement.name, "other", statement


def _bind_import(statement: ast.Import | ast.ImportFrom) -> Iterator[NewBinding]:
    return (((alias.asname or alias.name).partition(".")[0], "import", statement) for alias in statement.names)


def _bind_deletion(statement: ast.Delete) -> Iterator[NewBinding]:
    return ((name, "change", statement) for target in statement.targets for name in _iterate_target_names(target))


def _bind_changing_call(statement: ast.Expr) -> Iterator[NewBinding]:
    call = statement.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING:
        yield from ((name, "change", statement) for name in _iterate_target_names(call.func.value))


def _bind_handlers(statement: ast.Try) -> Iterator[NewBinding]:
    return ((handler.name, "other", handler) for handler in statement.handlers if handler.name)


#: How each kind of statement binds names.
_BINDERS: dict[type[ast.stmt], Callable[[Any], Iterator[NewBinding]]] = {
    ast.Assign: _bind_assign, ast.AnnAssign: _bind_annotated, ast.AugAssign: _bind_augmented,
    ast.For: _bind_loop, ast.AsyncFor: _bind_loop, ast.With: _bind_with, ast.AsyncWith: _bind_with,
    ast.FunctionDef: _bind_definition, ast.AsyncFunctionDef: _bind_definition, ast.ClassDef: _bind_definition,
    ast.Import: _bind_import, ast.ImportFrom: _bind_import, ast.Delete: _bind_deletion, ast.Expr: _bind_changing_call,
    ast.Try: _bind_handlers,
}  # fmt: skip


def _bind_target(target: ast.expr, value: ast.expr) -> Iterator[NewBinding]:
    """Yield what a target of an assignment binds: names, and changed tables."""
    for part, given, is_shown in pair_targets(target, value):
        if isinstance(part, ast.Name) and is_shown:
            yield part.id, "assign", given
        else:
            yield from ((name, "change" if isinstance(part, ast.Subscript) else "other", part) for name in _iterate_target_names(part))


def pair_targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Yield the parts of a target with what each is given; the whole value, and False, where that does not show them one by one."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value, True
        return
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
    is_shown = len(values) == len(target.elts) and not any(isinstance(item, ast.Starred) for item in target.elts)
    for inner, item in zip(target.elts, values if is_shown else [value] * len(target.elts), strict=True):
        yield from ((part, given, shown and is_shown) for part, given, shown in pair_targets(inner, item))


def list_targets(statement: ast.stmt) -> list[ast.expr]:
    """Return what a statement assigns to."""
    target = getattr(statement, "target", None)
    return statement.targets if isinstance(statement, ast.Assign) else [target] if target is not None else []


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
    if isinstance(statement, _SIMPLE):
        return []
    blocks = [block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, None))]
    return blocks + [arm.body for arm in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
