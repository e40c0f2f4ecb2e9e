"""Which function of the tree a call enters: one of a module, the method of a class or of an object, or what makes an object of a class."""

from __future__ import annotations

import ast
from typing import NamedTuple

from npuprof.scripts.python.class_lineage import (
    find_class,
    find_class_of_method,
    find_class_of_object,
    get_first_parameter,
    list_class_line,
)
from npuprof.scripts.python.loops import Given
from npuprof.scripts.python.scopes import Function, Scope
from npuprof.scripts.python.terms import name_callee


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
        function = next((one for one in cls.node.body if isinstance(one, Function) and one.name == method.attr), None)
        if function is None:
            continue
        marks = {one.id if isinstance(one, ast.Name) else "" for one in function.decorator_list}
        if not marks <= {"staticmethod", "classmethod"}:
            return None
        given = call.args
        if owner is None and not marks and given and not isinstance(given[0], ast.Starred):  # Base.method(self, ...)
            owner, given = given[0], given[1:]
        called = ast.copy_location(ast.Call(method, given, call.keywords), call)
        return Entered(function, cls, called, (owner, where) if owner is not None and not marks else None)
    return None


def _find_target(call: ast.Call, statement: ast.stmt) -> ast.expr:
    """Return what the object that a call makes is called from then on, the call itself where it gets no name."""
    targets = statement.targets if isinstance(statement, ast.Assign) and statement.value is call else []
    return targets[0] if len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute)) else call
