"""Functions entered by calls, and the classes of objects: a module function, a method, or a
constructor.
"""

from __future__ import annotations

import ast
from typing import NamedTuple, cast

from npuprof.scripts.python.expressions import format_expression, name_callee
from npuprof.scripts.python.loops import Given
from npuprof.scripts.python.scopes import Function, Scope
from npuprof.scripts.python.statements import FUNCTIONS

#: Bases without settings attributes: object, and the mark of an abstract class.
_PLAIN_BASES = frozenset(("object", "ABC", "abc.ABC"))
_PLAIN_KEYWORDS = frozenset(("ABCMeta", "abc.ABCMeta"))
_DEEPEST = 8


class Entered(NamedTuple):
    """A function entered by a call: its enclosing scope, the call as its parameters see it, and the
    object of a method.
    """

    function: Function
    scope: Scope
    call: ast.Call
    owner: Given | None = None


def find_entered(call: ast.Call, statement: ast.stmt, scope: Scope) -> Entered | None:
    """Return the function entered by a call: the named one, ``__init__`` for a new object, or a
    method; None for others.
    """
    function, home = scope.resolve_only(call.func)
    if isinstance(function, FUNCTIONS):
        return Entered(function, home, call)
    if cls := find_class(call.func, scope):
        making = ast.copy_location(ast.Attribute(call.func, "__init__", ast.Load()), call)
        return _enter(list_class_line(cls), making, call, scope, _find_target(call, statement))
    method = call.func
    if not isinstance(method, ast.Attribute):
        return None
    of = method.value
    if isinstance(of, ast.Call) and name_callee(of) == "super":
        around, name = find_class_of_method(scope)
        owner = ast.copy_location(ast.Name(name, ast.Load()), of)
        return (
            _enter(list_class_line(around)[1:], method, call, scope, owner)
            if around is not None
            else None
        )
    named = find_class(of, scope)
    cls = named or find_class_of_object(of, scope)
    return (
        _enter(list_class_line(cls), method, call, scope, None if named else of)
        if cls is not None
        else None
    )


def _enter(
    line: list[Scope], method: ast.Attribute, call: ast.Call, where: Scope, owner: ast.expr | None
) -> Entered | None:
    """Return the first method with a name in a class's resolution order."""
    for cls in line:
        function = next(
            (
                mark
                for mark in cls.node.body
                if isinstance(mark, FUNCTIONS) and mark.name == method.attr
            ),
            None,
        )
        if function is None:
            continue
        marks = {mark.id if isinstance(mark, ast.Name) else "" for mark in function.decorator_list}
        if not marks <= {"staticmethod", "classmethod"}:
            return None
        arguments = call.args
        if (
            owner is None and not marks and arguments and not isinstance(arguments[0], ast.Starred)
        ):  # Base.method(self, ...)
            owner, arguments = arguments[0], arguments[1:]
        called = ast.copy_location(ast.Call(method, arguments, call.keywords), call)
        return Entered(
            function, cls, called, (owner, where) if owner is not None and not marks else None
        )
    return None


def _find_target(call: ast.Call, statement: ast.stmt) -> ast.expr:
    """Return the target that a new object is assigned to, else the call itself."""
    targets = (
        statement.targets if isinstance(statement, ast.Assign) and statement.value is call else []
    )
    return (
        targets[0]
        if len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute))
        else call
    )


def list_class_line(cls: Scope) -> list[Scope]:
    """Return a class and its bases in resolution order.

    Empty if a part is not in the source or not a plain class.
    """
    classes: list[Scope] = []
    return classes if _follow_bases(cls, classes, 0) else []


def _follow_bases(cls: Scope, classes: list[Scope], depth: int) -> bool:
    node = cast("ast.ClassDef", cls.node)
    plain = all(
        one.arg == "metaclass" and format_expression(one.value) in _PLAIN_KEYWORDS
        for one in node.keywords
    )
    if (
        node.decorator_list
        or not plain
        or depth > _DEEPEST
        or any(one.node is node for one in classes)
    ):
        return False  # diamond inheritance has another order
    classes.append(cls)
    for base in node.bases:
        if format_expression(base) not in _PLAIN_BASES:
            inner = find_class(base, cls.outer or cls)
            if inner is None or not _follow_bases(inner, classes, depth + 1):
                return False
    return True


def find_class(node: ast.expr, scope: Scope) -> Scope | None:
    """Return the single class named by an expression, in this file or an imported one."""
    cls, home = scope.resolve_only(node)
    return Scope(cls, home) if isinstance(cls, ast.ClassDef) else None


def find_class_of_object(node: ast.expr, scope: Scope) -> Scope | None:
    """Return the class of the single object of an expression: a call, a name assigned once, or
    ``self``.
    """
    if isinstance(node, ast.Call):
        return find_class(node.func, scope)
    if not isinstance(node, ast.Name):
        return None
    if node.id in scope.bound:
        return find_class_of_object(*scope.bound[node.id])
    around, name = find_class_of_method(scope)
    if name == node.id:
        return around
    call, home = scope.resolve_only(node)
    return find_class(call.func, home) if isinstance(call, ast.Call) else None


def find_class_of_method(scope: Scope) -> tuple[Scope | None, str]:
    """Return the class of a method, and the name of its object parameter.

    None and an empty name for other functions.
    """
    cls = scope.outer
    if isinstance(scope.node, FUNCTIONS) and cls is not None and isinstance(cls.node, ast.ClassDef):
        name = get_first_parameter(scope.node)
        plain = all(
            not isinstance(mark, ast.Name) or mark.id not in ("staticmethod", "classmethod")
            for mark in scope.node.decorator_list
        )
        if plain and scope.list_binding_kinds(name) == {"parameter"}:
            return cls, name
    return None, ""


def get_first_parameter(function: Function) -> str:
    """Return the name of a method's object parameter."""
    return next((arg.arg for arg in (*function.args.posonlyargs, *function.args.args)), "")
