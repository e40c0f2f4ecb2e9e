"""Attributes of objects of the script's own classes: what ``self.mode`` always is, where that is certain.

It is where all that the class is made of is in sight, in this file or in those that it imports, its attribute is given a value in
one place, at the beginning of its objects, and nothing in these files could change it unseen.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from typing import Any

from npuprof.scripts.reading.values.lineages import (
    bind_inits,
    find_class,
    find_given_call,
    find_init,
    find_init_call,
    find_made,
    find_module,
    get_first_parameter,
    list_class_line,
)
from npuprof.scripts.reading.values.order import is_read_too_early
from npuprof.scripts.reading.values.returned import find_only_return
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import Unknown, format_expression, name_callee

TYPE_CHECKING = False
if TYPE_CHECKING:
    Fold = Callable[[ast.expr, Scope], Any]

#: What may give any attribute a value, or answer for one that has none.
_UNSEEN = frozenset({"vars", "__dict__", "__getattr__", "__getattribute__", "__setattr__", "__new__"})
_MOST_CALLS = 40
_MOST_HEIRS = 20


class _Survey:
    """Of one module: what gives attributes values, the calls of names, how often names are read alone, and what classes build on."""

    def __init__(self, module: Scope) -> None:
        self.stores: dict[str, list[ast.Attribute]] = {}
        self.calls: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self.reads: dict[str, int] = {}
        self.bases: Counter[str] = Counter()
        self.classes: list[Scope] = []
        self.is_open = False
        waiting: list[tuple[ast.AST, Scope]] = [(module.node, module)]
        while waiting:
            node, scope = waiting.pop()
            for child in ast.iter_child_nodes(node):
                self._note(child, scope)
                is_scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                inner = Scope(child, scope) if is_scope else scope  # type: ignore[arg-type]
                if isinstance(child, ast.ClassDef):
                    self.classes.append(inner)
                waiting.append((child, inner))

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
            if name_callee(node) in ("setattr", "delattr") and node.args:
                self._note_setattr(node.args[0], node.args[1] if len(node.args) > 1 else None)
            if name_callee(node) in ("super", "isinstance"):  # they only look at a class
                for one in node.args:
                    if isinstance(one, ast.Name):
                        self.reads[one.id] = self.reads.get(one.id, 0) - 1
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.is_open = self.is_open or node.name in _UNSEEN
        elif isinstance(node, ast.ClassDef):
            self.bases.update(format_expression(base).rpartition(".")[2] for base in node.bases)

    def _note_setattr(self, owner: ast.expr, name: ast.expr | None) -> None:
        root: ast.expr = owner
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(owner, ast.Subscript) or (isinstance(root, ast.Call) and name_callee(root) == "global_options"):
            return  # nothing that is of a class of the script
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self.stores.setdefault(name.value, []).append(ast.copy_location(ast.Attribute(owner, name.value, ast.Store()), owner))
        else:
            self.is_open = True

    def is_used_plainly(self, name: str) -> bool:
        """Return whether a class is only called and built on: what else is handed it might change it."""
        calls = sum(isinstance(call.func, ast.Name) for call, _ in self.calls.get(name, ()))
        return self.reads.get(name, 0) <= calls + self.bases[name]

    def list_heirs(self, name: str) -> list[Scope]:
        """Return the classes of the module that are made of one, and those made of these."""
        names, found = [name], []
        for one in names:
            for heir in self.classes if self.bases[one] else ():
                assert isinstance(heir.node, ast.ClassDef)
                if heir.node.name not in names and any(format_expression(base).rpartition(".")[2] == one for base in heir.node.bases):
                    names.append(heir.node.name)
                    found.append(heir)
        return found


def fold_object_attribute(node: ast.Attribute, scope: Scope, fold: Fold) -> Any:
    """Return what an attribute of an object always is. Raises Unknown, with a text where there is more to say than its name."""
    if node.attr == "value" and isinstance(node.value, ast.Attribute) and (member := _find_member(node.value, scope)):
        return fold(*member)
    if isinstance(node.value, ast.Name) and scope.label and node.value.id in scope.bound:  # the object that a call is of
        expression, caller = scope.bound[node.value.id]
        return _fold_of_owner(ast.copy_location(ast.Attribute(expression, node.attr, ast.Load()), node), caller, fold)
    if not isinstance(node.value, ast.Name) or scope.label:
        raise Unknown("")
    if around := _find_class_around(node.value.id, scope):
        values = [_fold_of_class(one, node, scope, None, fold) for one in _list_concrete(around, node.attr)]
        if any(type(one) is not type(values[0]) or one != values[0] for one in values):
            raise Unknown(f"classes made of {around.name} differ in it")
        return values[0]
    if owner := _find_class_of(node.value, scope):
        return _fold_of_class(owner[0], node, scope, owner[1:], fold)
    if cls := find_class(node.value, scope):  # what its objects have is not its own
        return _fold_of_class(cls, node, scope, None, fold, with_objects=False)
    raise Unknown("")


def _fold_of_owner(node: ast.Attribute, scope: Scope, fold: Fold) -> Any:
    """Return what an attribute of the object of a call is, in the words of the script that makes the call. Raises Unknown."""
    made = find_made(node.value, scope)
    if made is not None and made.call is not None and made.where is not None:
        return _fold_of_class(made.cls, node, made.where, (made.call, made.where), fold)
    if isinstance(node.value, ast.Name):
        return fold_object_attribute(node, scope, fold)
    raise Unknown("")


def _find_member(node: ast.Attribute, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return what the member of an enumeration is given, and the scope to read it in."""
    cls = find_class(node.value, scope)
    bases = [format_expression(base).rpartition(".")[2] for base in cls.node.bases] if cls and isinstance(cls.node, ast.ClassDef) else []
    bindings = cls.list_bindings(node.attr) if cls and not {"Enum", "IntEnum", "StrEnum"}.isdisjoint(bases) else []
    value = bindings[0].node if len(bindings) == 1 and bindings[0].kind == "assign" else None
    return (value, cls) if cls and isinstance(value, ast.expr) else None


def _list_concrete(cls: Scope, attribute: str) -> list[Scope]:
    """Return the classes that an object may be of in a method of one. Raises Unknown where some may be out of sight."""
    assert isinstance(cls.node, ast.ClassDef)
    survey, name = look_over(cls), cls.node.name
    heirs = survey.list_heirs(name)
    names = [name, *(one.node.name for one in heirs if isinstance(one.node, ast.ClassDef))]
    if len(heirs) > _MOST_HEIRS:
        raise Unknown(f"{len(heirs)} classes are made of {name}, more than are followed")
    called = any(survey.calls.get(one) for one in names)
    if not called and cls.home is not None and cls.home.may_others_set(names, attribute):
        raise Unknown(f"another file that has objects of {name} may set it")
    return [*heirs, *([cls] if survey.calls.get(name) or not heirs else [])]


def _fold_of_class(
    cls: Scope, node: ast.Attribute, scope: Scope, made: tuple[ast.Call, Scope] | None, fold: Fold, with_objects: bool = True
) -> Any:
    """Return what an attribute is in objects of one class; ``made`` is the call that makes the one in question, and where it stands."""
    line = list_class_line(cls)
    modules = {id(find_module(one).node): look_over(one) for one in (*line, scope, *((made[1],) if made else ()))}
    plain = all(look_over(one).is_used_plainly(one.node.name) for one in line if isinstance(one.node, ast.ClassDef))
    if not line or not plain or any(survey.is_open for survey in modules.values()):
        raise Unknown("")
    stores = [store for survey in modules.values() for store in survey.stores.get(node.attr, ())]
    if not stores:
        bound = next((found for one in line if (found := [(one, binding) for binding in one.list_bindings(node.attr)])), [])
        if len(bound) == 1 and bound[0][1].kind == "assign" and isinstance(bound[0][1].node, ast.expr):
            return fold(bound[0][1].node, bound[0][0])
        if with_objects and len(bound) == 1 and (given := _find_property(bound[0][1].node)) is not None:
            return fold(given[1], Scope(given[0], bound[0][0]))
        raise Unknown("")
    stored = _find_stored(line, stores, node, scope) if with_objects else None
    if stored is None or any(binding.kind != "assign" for one in line for binding in one.list_bindings(node.attr)):
        raise Unknown("")
    return _fold_initial(stored[1], stored[0], line, made, fold)


def _find_property(node: ast.AST) -> tuple[ast.FunctionDef, ast.expr] | None:
    """Return a property of a class, and the one expression that it gives."""
    if not isinstance(node, ast.FunctionDef) or [format_expression(one) for one in node.decorator_list] != ["property"]:
        return None
    value = find_only_return(node)
    return (node, value) if value is not None else None


def look_over(scope: Scope) -> _Survey:
    """Return what gives attributes their values in the module of a scope."""
    module = find_module(scope)
    survey: _Survey | None = module.memo.get("objects")
    if survey is None:
        survey = module.memo["objects"] = _Survey(module)
    return survey


def _find_class_around(name: str, scope: Scope) -> Scope | None:
    """Return the class of whose method a name is the first parameter: its own object."""
    function, cls = scope.node, scope.outer
    if cls is None or not isinstance(cls.node, ast.ClassDef) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    first = get_first_parameter(function)
    plain = all(isinstance(one, ast.Name) and one.id in ("classmethod", "property") for one in function.decorator_list)
    return cls if first == name and plain and scope.list_binding_kinds(name) == {"parameter"} else None


def _find_class_of(name: ast.Name, scope: Scope) -> tuple[Scope, ast.Call, Scope] | None:
    """Return the class of the one object that a name stands for, the call that makes it, and where that stands."""
    given = find_given_call(name, scope)
    if given is None or is_read_too_early(name, scope, *given[1:]):
        return None
    call, home, _ = given
    cls = find_class(call.func, home)
    return (cls, call, home) if cls is not None else None


def _find_stored(line: list[Scope], stores: list[ast.Attribute], node: ast.Attribute, scope: Scope) -> tuple[Scope, ast.expr] | None:
    """Return the class whose ``__init__`` gives an attribute its value in every case, and that; None where that is not so.

    Of several classes of a line it is the first: it hears of what those above it did before it sets its own.
    """
    inits = [(cls, init) for cls in line if (init := find_init(cls)) is not None]
    given = {cls: own for cls, init in inits if (own := [one for one in ast.walk(init) if one in stores])}
    if sum(map(len, given.values())) != len(stores) or any(len(own) > 1 for own in given.values()):
        return None
    for cls, init in inits:
        above = find_init_call(init, cls)
        if cls not in given:
            if above is None or (scope.node is init and node.lineno <= above.lineno):
                return None
            continue
        first, store = get_first_parameter(init), given[cls][0]
        for statement in init.body:
            if isinstance(statement, ast.Assign) and statement.targets == [store]:
                is_own = isinstance(store.value, ast.Name) and store.value.id == first
                late = above is not None and above.lineno > store.lineno and len(given) > 1
                unset = scope.node is init and node.lineno <= statement.value.lineno
                return (cls, statement.value) if is_own and not late and not unset else None
            if any(isinstance(one, ast.Return) for one in ast.walk(statement)):
                return None
    return None


def _fold_initial(value: ast.expr, above: Scope, line: list[Scope], made: tuple[ast.Call, Scope] | None, fold: Fold) -> Any:
    init = find_init(above)
    assert init is not None
    try:
        return fold(value, Scope(init, above))
    except Unknown:
        pass
    assert isinstance(line[0].node, ast.ClassDef)
    name = line[0].node.name
    calls = look_over(line[0]).calls.get(name, []) if made is None else [made]
    calls = sorted(calls, key=lambda pair: pair[0].lineno)
    if not calls or len(calls) > _MOST_CALLS:
        raise Unknown(f"{name}() is called nowhere here" if not calls else f"{name}() is called {len(calls)} times, more than are followed")
    values: list[Any] = []
    for call, where in calls:
        inside = bind_inits(line, above, call, where)
        if inside is None:
            raise Unknown(f"stars hide what {name}() is given in line {call.lineno}")
        values.append(fold(value, inside))
    if any(type(one) is not type(values[0]) or one != values[0] for one in values):
        raise Unknown(f"{name}() is called with different values in lines {', '.join(str(call.lineno) for call, _ in calls[:5])}")
    return values[0]
