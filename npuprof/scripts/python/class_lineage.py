"""What a class is made of, in the order in which its attributes are looked for; through imports, where these are followed."""

from __future__ import annotations

import ast
from typing import cast
from weakref import WeakKeyDictionary

from npuprof.scripts.python.scopes import Function, Scope, iterate_statements, list_targets
from npuprof.scripts.python.terms import format_expression

#: What brings no attribute that a script sets: the root of all classes, and the mark of an abstract one.
_PLAIN_BASES = frozenset(("object", "ABC", "abc.ABC"))
_PLAIN_KEYWORDS = frozenset(("ABCMeta", "abc.ABCMeta"))
_DEEPEST = 8
#: What methods give attributes of their class, as long as somebody has its tree.
_GIVEN: WeakKeyDictionary[ast.ClassDef, dict[str, list[tuple[ast.expr | None, Function]]]] = WeakKeyDictionary()


def list_class_line(cls: Scope) -> list[Scope]:
    """Return a class and all that it is made of, itself first; nothing where a part of that is out of sight or is more than a class."""
    found: list[Scope] = []
    return found if _follow_bases(cls, found, 0) else []


def _follow_bases(cls: Scope, found: list[Scope], depth: int) -> bool:
    node = cast("ast.ClassDef", cls.node)
    plain = all(one.arg == "metaclass" and format_expression(one.value) in _PLAIN_KEYWORDS for one in node.keywords)
    if node.decorator_list or not plain or depth > _DEEPEST or any(one.node is node for one in found):
        return False  # who comes by two ways has a place of its own among the others
    found.append(cls)
    for base in node.bases:
        if format_expression(base) not in _PLAIN_BASES:
            inner = find_class(base, cls.outer or cls)
            if inner is None or not _follow_bases(inner, found, depth + 1):
                return False
    return True


def find_class(node: ast.expr, scope: Scope) -> Scope | None:
    """Return the one class that an expression names, of this file or of one that it imports."""
    cls, home = scope.resolve_only(node)
    return Scope(cls, home) if isinstance(cls, ast.ClassDef) else None


def find_class_of_object(node: ast.expr, scope: Scope) -> Scope | None:
    """Return the class of the one object that an expression is: what a call makes, a name or an attribute that is given it, or ``self``."""
    if isinstance(node, ast.Call):
        return find_class(node.func, scope)
    if isinstance(node, ast.Attribute):
        return _find_class_of_attribute(node, scope)
    if not isinstance(node, ast.Name):
        return None
    if node.id in scope.bound:
        return find_class_of_object(*scope.bound[node.id])
    if (around := find_class_of_method(scope)) is not None and get_first_parameter(scope.node) == node.id:  # type: ignore[arg-type]
        return around
    call, home = scope.resolve_only(node)
    return find_class(call.func, home) if isinstance(call, ast.Call) and not home.is_aliased(node.id) else None


def _find_class_of_attribute(node: ast.Attribute, scope: Scope) -> Scope | None:
    """Return the class of the object that the methods of a class give an attribute of ``self``, in one place."""
    cls = find_class_of_method(scope)
    if cls is None or not isinstance(node.value, ast.Name) or node.value.id != get_first_parameter(scope.node):  # type: ignore[arg-type]
        return None
    given = _list_given_attributes(cast("ast.ClassDef", cls.node)).get(node.attr, [])
    value, function = given[0] if len(given) == 1 else (None, None)
    return find_class(value.func, Scope(function, cls)) if isinstance(value, ast.Call) and function is not None else None


def _list_given_attributes(cls: ast.ClassDef) -> dict[str, list[tuple[ast.expr | None, Function]]]:
    """Return what the methods of a class give attributes, by their names, with the method."""
    if cls in _GIVEN:
        return _GIVEN[cls]
    given = _GIVEN[cls] = {}
    for function in cls.body:
        for statement in iterate_statements(function.body) if isinstance(function, Function) else ():
            for name in {target.attr for target in list_targets(statement) if isinstance(target, ast.Attribute)}:
                given.setdefault(name, []).append((getattr(statement, "value", None), function))  # type: ignore[arg-type]
    return given


def find_class_of_method(scope: Scope) -> Scope | None:
    """Return the class that a function is a method of, by its object; None for others."""
    cls = scope.outer
    if not isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)) or cls is None or not isinstance(cls.node, ast.ClassDef):
        return None
    plain = all(not isinstance(one, ast.Name) or one.id not in ("staticmethod", "classmethod") for one in scope.node.decorator_list)
    return cls if plain and scope.list_binding_kinds(get_first_parameter(scope.node)) == {"parameter"} else None


def get_first_parameter(function: Function) -> str:
    """Return what a function calls the object that it is a method of."""
    return next((arg.arg for arg in (*function.args.posonlyargs, *function.args.args)), "")
