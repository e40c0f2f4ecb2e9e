"""Functions that calls enter, and the classes of objects: a function of a module, a method, or the constructor of a class."""

from __future__ import annotations

import ast
from typing import NamedTuple, cast

from npuprof.scripts.python.loops import Given
from npuprof.scripts.python.scopes import Function, Scope
from npuprof.scripts.python.terms import format_expression, name_callee

#: What brings no attribute that a script sets: the root of all classes, and the mark of an abstract one.
_PLAIN_BASES = frozenset(("object", "ABC", "abc.ABC"))
_PLAIN_KEYWORDS = frozenset(("ABCMeta", "abc.ABCMeta"))
_DEEPEST = 8


class Entered(NamedTuple):
    """A function that a call enters: the scope that it stands in, the call as its parameters see it, the object it is called of."""

    function: Function
    scope: Scope
    call: ast.Call
    owner: Given | None = None


def find_entered(call: ast.Call, statement: ast.stmt, scope: Scope) -> Entered | None:
    """Return the function that a call enters: the one it names, ``__init__`` where it makes an object, or a method; None for others."""
    function, home = scope.resolve_only(call.func)
    if isinstance(function, Function):
        return Entered(function, home, call)
    if cls := find_class(call.func, scope):
        making = ast.copy_location(ast.Attribute(call.func, "__init__", ast.Load()), call)
        return _enter(list_class_line(cls), making, call, scope, _find_target(call, statement))
    method = call.func
    if not isinstance(method, ast.Attribute):
        return None
    of = method.value
    if isinstance(of, ast.Call) and name_callee(of) == "super":
        around = find_class_of_method(scope)
        owner = ast.copy_location(ast.Name(get_first_parameter(scope.node), ast.Load()), of)  # type: ignore[arg-type]
        return _enter(list_class_line(around)[1:], method, call, scope, owner) if around is not None else None
    named = find_class(of, scope)
    cls = named or find_class_of_object(of, scope)
    return _enter(list_class_line(cls), method, call, scope, None if named else of) if cls is not None else None


def _enter(line: list[Scope], method: ast.Attribute, call: ast.Call, where: Scope, owner: ast.expr | None) -> Entered | None:
    """Return the first function of a line of classes that has the name of a method."""
    for cls in line:
        function = next((mark for mark in cls.node.body if isinstance(mark, Function) and mark.name == method.attr), None)
        if function is None:
            continue
        marks = {mark.id if isinstance(mark, ast.Name) else "" for mark in function.decorator_list}
        if not marks <= {"staticmethod", "classmethod"}:
            return None
        arguments = call.args
        if owner is None and not marks and arguments and not isinstance(arguments[0], ast.Starred):  # Base.method(self, ...)
            owner, arguments = arguments[0], arguments[1:]
        called = ast.copy_location(ast.Call(method, arguments, call.keywords), call)
        return Entered(function, cls, called, (owner, where) if owner is not None and not marks else None)
    return None


def _find_target(call: ast.Call, statement: ast.stmt) -> ast.expr:
    """Return what the object that a call makes is called from then on, the call itself where it gets no name."""
    targets = statement.targets if isinstance(statement, ast.Assign) and statement.value is call else []
    return targets[0] if len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute)) else call


def list_class_line(cls: Scope) -> list[Scope]:
    """Return a class and all that it is made of, itself first; nothing where a part of that is out of sight or is more than a class."""
    classes: list[Scope] = []
    return classes if _follow_bases(cls, classes, 0) else []


def _follow_bases(cls: Scope, classes: list[Scope], depth: int) -> bool:
    node = cast("ast.ClassDef", cls.node)
    plain = all(one.arg == "metaclass" and format_expression(one.value) in _PLAIN_KEYWORDS for one in node.keywords)
    if node.decorator_list or not plain or depth > _DEEPEST or any(one.node is node for one in classes):
        return False  # who comes by two ways has a place of its own among the others
    classes.append(cls)
    for base in node.bases:
        if format_expression(base) not in _PLAIN_BASES:
            inner = find_class(base, cls.outer or cls)
            if inner is None or not _follow_bases(inner, classes, depth + 1):
                return False
    return True


def find_class(node: ast.expr, scope: Scope) -> Scope | None:
    """Return the one class that an expression names, of this file or of one that it imports."""
    cls, home = scope.resolve_only(node)
    return Scope(cls, home) if isinstance(cls, ast.ClassDef) else None


def find_class_of_object(node: ast.expr, scope: Scope) -> Scope | None:
    """Return the class of the one object that an expression is: what a call makes, a name that is given it, or ``self``."""
    if isinstance(node, ast.Call):
        return find_class(node.func, scope)
    if not isinstance(node, ast.Name):
        return None
    if node.id in scope.bound:
        return find_class_of_object(*scope.bound[node.id])
    if (around := find_class_of_method(scope)) is not None and get_first_parameter(scope.node) == node.id:  # type: ignore[arg-type]
        return around
    call, home = scope.resolve_only(node)
    return find_class(call.func, home) if isinstance(call, ast.Call) else None


def find_class_of_method(scope: Scope) -> Scope | None:
    """Return the class that a function is a method of, by its object; None for others."""
    cls = scope.outer
    if not isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)) or cls is None or not isinstance(cls.node, ast.ClassDef):
        return None
    plain = all(not isinstance(mark, ast.Name) or mark.id not in ("staticmethod", "classmethod") for mark in scope.node.decorator_list)
    return cls if plain and scope.list_binding_kinds(get_first_parameter(scope.node)) == {"parameter"} else None


def get_first_parameter(function: Function) -> str:
    """Return what a function calls the object that it is a method of."""
    return next((arg.arg for arg in (*function.args.posonlyargs, *function.args.args)), "")
