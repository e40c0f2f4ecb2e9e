"""Attributes of objects of the script's own classes: what ``self.mode`` always is, where that is certain.

It is where the class stands by itself, its attribute is given a value in one place, at the beginning of its objects, and nothing in
the file could change it unseen.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from npuprof.scripts.reading.arguments import bind_call_arguments
from npuprof.scripts.reading.order import is_read_too_early
from npuprof.scripts.reading.scopes import Function, Scope
from npuprof.scripts.reading.terms import Unknown, format_expression, name_callee

TYPE_CHECKING = False
if TYPE_CHECKING:
    Fold = Callable[[ast.expr, Scope], Any]

#: What may give any attribute a value, or answer for one that has none.
_UNSEEN = frozenset({"vars", "__dict__", "__getattr__", "__getattribute__", "__setattr__", "__new__"})
_MOST_CALLS = 40


class _Survey:
    """Of one module: what gives attributes values, the calls of names, how often names are read alone, and what classes build on."""

    def __init__(self, module: Scope) -> None:
        self.stores: dict[str, list[ast.Attribute]] = {}
        self.calls: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self.reads: dict[str, int] = {}
        self.bases: set[str] = set()
        self.is_open = False
        waiting: list[tuple[ast.AST, Scope]] = [(module.node, module)]
        while waiting:
            node, scope = waiting.pop()
            for child in ast.iter_child_nodes(node):
                self._note(child, scope)
                is_scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                waiting.append((child, Scope(child, scope) if is_scope else scope))  # type: ignore[arg-type]

    def _note(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Attribute):
            self.is_open = self.is_open or node.attr in _UNSEEN
            if isinstance(node.value, ast.Name):
                self.reads[node.value.id] = self.reads.get(node.value.id, 0) - 1  # for an attribute
            if not isinstance(node.ctx, ast.Load):
                self.stores.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.Name):
            self.is_open = self.is_open or node.id in _UNSEEN
            self.reads[node.id] = self.reads.get(node.id, 0) + isinstance(node.ctx, ast.Load)
        elif isinstance(node, ast.Call):
            self.calls.setdefault(name_callee(node), []).append((node, scope))
            if name_callee(node) in ("setattr", "delattr") and not (node.args and isinstance(node.args[0], ast.Subscript)):
                self.is_open = True
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.is_open = self.is_open or node.name in _UNSEEN
        elif isinstance(node, ast.ClassDef):
            self.bases |= {format_expression(base).rpartition(".")[2] for base in node.bases}


def fold_object_attribute(node: ast.Attribute, scope: Scope, fold: Fold) -> Any:
    """Return what an attribute of an object always is. Raises Unknown, with a text where there is more to say than its name."""
    if not isinstance(node.value, ast.Name) or scope.label:
        raise Unknown("")
    owner = _find_class_around(node.value.id, scope) or _find_class_of(node.value, scope)
    if owner is None:
        raise Unknown("")
    cls, made = owner
    survey = look_over(scope)
    if survey.is_open or not _stands_alone(cls, survey):
        raise Unknown("")
    stores = survey.stores.get(node.attr, [])
    constant = cls.list_bindings(node.attr)
    if not stores and len(constant) == 1 and constant[0].kind == "assign" and isinstance(constant[0].node, ast.expr):
        return fold(constant[0].node, cls)
    init = next((one for one in cls.node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    value = _find_stored(init, stores[0]) if init is not None and len(stores) == 1 else None
    if init is None or value is None or (scope.node is init and node.lineno <= value.lineno) or _is_bound_otherwise(cls, node.attr):
        raise Unknown("")
    return _fold_initial(value, cls, Scope(init, cls), made, survey, fold)


def look_over(scope: Scope) -> _Survey:
    """Return what gives attributes their values in the module of a scope."""
    while scope.outer is not None:
        scope = scope.outer
    survey: _Survey | None = scope.memo.get("objects")
    if survey is None:
        survey = scope.memo["objects"] = _Survey(scope)
    return survey


def _find_class_around(name: str, scope: Scope) -> tuple[Scope, ast.Call | None] | None:
    """Return the class of whose method a name is the first parameter: its own object."""
    function, cls = scope.node, scope.outer
    if cls is None or not isinstance(cls.node, ast.ClassDef) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    first = next((arg.arg for arg in (*function.args.posonlyargs, *function.args.args)), "")
    plain = all(isinstance(one, ast.Name) and one.id in ("classmethod", "property") for one in function.decorator_list)
    return (cls, None) if first == name and plain and scope.list_binding_kinds(name) == {"parameter"} else None


def _find_class_of(name: ast.Name, scope: Scope) -> tuple[Scope, ast.Call | None] | None:
    """Return the class of the one object that a name stands for, and the call that makes it."""
    found = scope.resolve_name(name.id)
    call = found[1][0].node if found and len(found[1]) == 1 and found[1][0].kind == "assign" else None
    if found is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or found[0].is_aliased(name.id):
        return None
    if is_read_too_early(name, scope, *found):
        return None
    made = found[0].resolve_name(call.func.id)
    node = made[1][0].node if made and len(made[1]) == 1 else None
    return (Scope(node, made[0]), call) if made and isinstance(node, ast.ClassDef) else None


def _stands_alone(cls: Scope, survey: _Survey) -> bool:
    """Return whether a class is made of no other and no other of it, and its name is used for nothing but calls."""
    node = cls.node
    assert isinstance(node, ast.ClassDef)
    plain = not node.decorator_list and not node.keywords and all(format_expression(base) == "object" for base in node.bases)
    calls = sum(isinstance(call.func, ast.Name) for call, _ in survey.calls.get(node.name, ()))
    return plain and node.name not in survey.bases and survey.reads.get(node.name, 0) <= calls


def _is_bound_otherwise(cls: Scope, name: str) -> bool:
    return any(binding.kind != "assign" for binding in cls.list_bindings(name))


def _find_stored(init: Function, store: ast.Attribute) -> ast.expr | None:
    """Return what ``__init__`` gives an attribute in every case; None where that is not so."""
    first = next((arg.arg for arg in (*init.args.posonlyargs, *init.args.args)), "")
    for statement in init.body:
        if isinstance(statement, ast.Assign) and statement.targets == [store]:
            return statement.value if isinstance(store.value, ast.Name) and store.value.id == first else None
        if any(isinstance(one, ast.Return) for one in ast.walk(statement)):
            return None
    return None


def _fold_initial(value: ast.expr, cls: Scope, inside: Scope, made: ast.Call | None, survey: _Survey, fold: Fold) -> Any:
    try:
        return fold(value, inside)
    except Unknown:
        pass
    assert isinstance(cls.node, ast.ClassDef)
    assert isinstance(inside.node, (ast.FunctionDef, ast.AsyncFunctionDef))
    name = cls.node.name
    calls = [(call, where) for call, where in survey.calls.get(name, ()) if made is None or call is made]
    calls.sort(key=lambda pair: pair[0].lineno)
    if not calls or len(calls) > _MOST_CALLS:
        raise Unknown(f"{name}() is called nowhere here" if not calls else f"{name}() is called {len(calls)} times, more than are followed")
    values: list[Any] = []
    for call, where in calls:
        method = ast.copy_location(ast.Call(ast.Attribute(call.func, "__init__", ast.Load()), call.args, call.keywords), call)
        bound = bind_call_arguments(inside.node, inside, method, where)
        if bound is None:
            raise Unknown(f"stars hide what {name}() is given in line {call.lineno}")
        values.append(fold(value, inside.with_bound(bound)))
    if any(type(one) is not type(values[0]) or one != values[0] for one in values):
        raise Unknown(f"{name}() is called with different values in lines {', '.join(str(call.lineno) for call, _ in calls[:5])}")
    return values[0]
