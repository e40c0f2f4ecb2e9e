"""Functions entered by calls: module functions, methods or constructors; classes of objects."""

from __future__ import annotations

import ast
from typing import cast

from npuprof.model import Record
from npuprof.scripts.python.expressions import format_expression, name_callee
from npuprof.scripts.python.loops import Scoped
from npuprof.scripts.python.scopes import Function, Scope
from npuprof.scripts.python.statements import FUNCTIONS

#: Bases without settings attributes: object, and the mark of an abstract class.
_PLAIN_BASES = frozenset(("object", "ABC", "abc.ABC"))
_PLAIN_KEYWORDS = frozenset(("ABCMeta", "abc.ABCMeta"))
_DEEPEST = 8


class Entered(Record):
    """A function entered by a call.

    ``scope`` encloses it, ``call`` is the call as its parameters see it, ``owner`` is the object of
    a method.
    """

    function: Function
    scope: Scope
    call: ast.Call
    owner: Scoped | None = None

    @property
    def name(self) -> bytes:
        """The name of the function, with its class; of a constructor, that of the class."""
        cls, name = self.scope.node, self.function.name.encode()
        return name_method(cls.name.encode(), name) if isinstance(cls, ast.ClassDef) else name


def name_method(cls: bytes, name: bytes) -> bytes:
    """Return the name of a method with its class, which stands for its constructor."""
    return cls if name == b"__init__" else b"%b.%b" % (cls, name)


def find_entered(call: ast.Call, statement: ast.stmt, scope: Scope) -> Entered | None:
    """Return the function entered by a call, None for others.

    It is the named function, ``__init__`` for a new object, or a method.
    """
    function, home = scope.resolve_only(call.func)
    if isinstance(function, FUNCTIONS):
        return Entered(function, home, call)
    if cls := find_class(call.func, scope):
        constructor = ast.copy_location(ast.Attribute(call.func, "__init__", ast.Load()), call)
        target = _find_target(call, statement)
        return _enter(list_class_line(cls), constructor, call, scope, target)
    method = call.func
    if not isinstance(method, ast.Attribute):
        return None
    owner = method.value
    if isinstance(owner, ast.Call) and name_callee(owner) == "super":
        own_class, self_name = find_class_of_method(scope)
        if own_class is None:
            return None
        self_node = ast.copy_location(ast.Name(self_name, ast.Load()), owner)
        return _enter(list_class_line(own_class)[1:], method, call, scope, self_node)
    if cls := find_class(owner, scope):  # Base.method(self, ...)
        return _enter(list_class_line(cls), method, call, scope, None)
    cls = find_class_of_object(owner, scope)
    return _enter(list_class_line(cls), method, call, scope, owner) if cls is not None else None


def _enter(
    line: list[Scope], method: ast.Attribute, call: ast.Call, where: Scope, owner: ast.expr | None
) -> Entered | None:
    """Return the first method with a name in a class's resolution order."""
    for cls in line:
        for function in cls.node.body:
            if isinstance(function, FUNCTIONS) and function.name == method.attr:
                return _enter_method(function, cls, method, call, where, owner)
    return None


def _enter_method(
    function: Function,
    cls: Scope,
    method: ast.Attribute,
    call: ast.Call,
    where: Scope,
    owner: ast.expr | None,
) -> Entered | None:
    """Return a method as a call enters it; None if its decorators may change that."""
    decorators = {node.id if isinstance(node, ast.Name) else "" for node in function.decorator_list}
    if not decorators <= {"staticmethod", "classmethod"}:
        return None
    arguments = call.args
    has_object = not decorators
    if has_object and owner is None and arguments and not isinstance(arguments[0], ast.Starred):
        owner, *arguments = arguments  # Base.method(self, ...)
    called = ast.copy_location(ast.Call(method, arguments, call.keywords), call)
    passed = (owner, where) if has_object and owner is not None else None
    return Entered(function, cls, called, passed)


def _find_target(call: ast.Call, statement: ast.stmt) -> ast.expr:
    """Return the target that a new object is assigned to, else the call itself."""
    match statement:
        case ast.Assign([ast.Name() | ast.Attribute() as target], value) if value is call:
            return target
    return call


def list_class_line(cls: Scope) -> list[Scope]:
    """Return a class and its bases in resolution order.

    Empty if a part is not in the source or not a plain class.
    """
    classes: list[Scope] = []
    return classes if _follow_bases(cls, classes, 0) else []


def _follow_bases(cls: Scope, classes: list[Scope], depth: int) -> bool:
    """Add a class and its bases to ``classes``; return whether all are plain classes."""
    node = cast("ast.ClassDef", cls.node)
    # a decorator may return another class
    if node.decorator_list or depth > _DEEPEST:
        return False
    for keyword in node.keywords:
        if keyword.arg != "metaclass" or format_expression(keyword.value) not in _PLAIN_KEYWORDS:
            return False
    if any(known.node is node for known in classes):
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
    """Return the class of the object of an expression.

    The expression is a call, a name assigned once, or ``self``.
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
        decorators = [node.id for node in scope.node.decorator_list if isinstance(node, ast.Name)]
        has_object = "staticmethod" not in decorators and "classmethod" not in decorators
        # a method may assign another object to the name
        if has_object and scope.list_binding_kinds(name) == {"parameter"}:
            return cls, name
    return None, ""


def get_first_parameter(function: Function) -> str:
    """Return the name of a method's object parameter."""
    return next((arg.arg for arg in (*function.args.posonlyargs, *function.args.args)), "")
