"""What a class is made of, in the order in which its attributes are looked for; through imports, where these are followed."""

from __future__ import annotations

import ast

from npuprof.scripts.python.scopes import Binding, Function, Scope, iterate_statements
from npuprof.scripts.python.terms import format_expression

#: What brings no attribute that a script sets: the root of all classes, and the mark of an abstract one.
_PLAIN_BASES = frozenset(("object", "ABC", "abc.ABC"))
_PLAIN_KEYWORDS = frozenset(("ABCMeta", "abc.ABCMeta"))
_DEEPEST = 8


def list_class_line(cls: Scope) -> list[Scope]:
    """Return a class and all that it is made of, itself first; nothing where a part of that is out of sight or is more than a class."""
    found: list[Scope] = []
    return found if _follow_bases(cls, found, 0) else []


def _follow_bases(cls: Scope, found: list[Scope], depth: int) -> bool:
    node = cls.node
    assert isinstance(node, ast.ClassDef)
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
    found = scope.resolve(node)
    only: list[Binding] = found[1] if found else []
    inner = only[0].node if len(only) == 1 else None
    return Scope(inner, found[0]) if found and isinstance(inner, ast.ClassDef) else None


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
    found = scope.resolve_name(node.id)
    call = found[1][0].node if found and len(found[1]) == 1 and found[1][0].kind == "assign" else None
    if found is None or not isinstance(call, ast.Call) or found[0].is_aliased(node.id):
        return None
    return find_class(call.func, found[0])


def _find_class_of_attribute(node: ast.Attribute, scope: Scope) -> Scope | None:
    """Return the class of the object that the methods of a class give an attribute of ``self``, in one place."""
    cls = find_class_of_method(scope)
    if cls is None or not isinstance(node.value, ast.Name) or node.value.id != get_first_parameter(scope.node):  # type: ignore[arg-type]
        return None
    given: list[tuple[ast.expr, Scope]] = []
    for function in cls.node.body:
        for statement in iterate_statements(function.body) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            if any(isinstance(target, ast.Attribute) and target.attr == node.attr for target in targets):
                given.append((getattr(statement, "value", None) or node, Scope(function, cls)))  # type: ignore[arg-type]
    value, where = given[0] if len(given) == 1 else (None, cls)
    return find_class(value.func, where) if isinstance(value, ast.Call) else None


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
