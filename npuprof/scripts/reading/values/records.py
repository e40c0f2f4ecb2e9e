"""Attributes of plain records that a script fills once: named tuples, data classes, namespaces.

A value counts where the one call that makes the record says it, and nothing in the file could change it.
"""

from __future__ import annotations

import ast

from npuprof.scripts.reading.values.objects import look_over
from npuprof.scripts.reading.values.order import is_read_too_early
from npuprof.scripts.reading.values.scopes import Scope
from npuprof.scripts.reading.values.terms import name_callee

_NAMESPACES = frozenset(("SimpleNamespace", "Namespace"))


def find_record_value(node: ast.Attribute, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """Return what an attribute of a record always is, and the scope that stands in; None where that is not certain."""
    name = node.value.id if isinstance(node.value, ast.Name) and not scope.label else ""
    found = scope.resolve_name(name) if name else None
    if found is None or len(found[1]) != 1 or found[1][0].kind != "assign" or name in found[0].rebound or found[0].is_aliased(name):
        return None
    call, home = found[1][0].node, found[0]
    if not isinstance(call, ast.Call) or any(one.arg is None for one in call.keywords) or is_read_too_early(node.value, scope, *found):
        return None
    survey = look_over(scope)
    if survey.is_open or survey.stores.get(node.attr) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    fields = _find_fields(call, home)
    if fields is None or survey.reads.get(name, 0):  # what is handed on whole may be changed elsewhere
        return None
    given = {one.arg: one.value for one in call.keywords} | dict(zip(fields, call.args, strict=False))
    value = given.get(node.attr)
    if value is not None:
        return value, home
    default = fields.get(node.attr)
    return (default[0], default[1]) if default is not None else None


def _find_fields(call: ast.Call, home: Scope) -> dict[str, tuple[ast.expr, Scope] | None] | None:
    """Return the fields of what a call makes, with their defaults; None where that is no record."""
    if name_callee(call) in _NAMESPACES and not call.args:
        return {}
    known = home.resolve_name(call.func.id) if isinstance(call.func, ast.Name) else None
    made = known[1][0].node if known and len(known[1]) == 1 else None
    if isinstance(made, ast.Call) and name_callee(made) == "namedtuple" and len(made.args) == 2 and not made.keywords:
        names = made.args[1]
        if isinstance(names, ast.Constant) and isinstance(names.value, str):
            return dict.fromkeys(names.value.replace(",", " ").split())
        if isinstance(names, (ast.List, ast.Tuple)) and all(isinstance(one, ast.Constant) for one in names.elts):
            return {one.value: None for one in names.elts}  # type: ignore[attr-defined]
    if isinstance(made, ast.ClassDef) and known is not None and _is_record_class(made):
        fields = [one for one in made.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
        inside = Scope(made, known[0])
        return {one.target.id: (one.value, inside) if one.value is not None else None for one in fields}  # type: ignore[union-attr]
    return None


def _is_record_class(node: ast.ClassDef) -> bool:
    """Return whether a class is a data class, or a named tuple, of fields and nothing else."""
    kinds = [one.func if isinstance(one, ast.Call) else one for one in (*node.decorator_list, *node.bases)]
    names = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in kinds]
    plain = all(
        isinstance(one, (ast.AnnAssign, ast.Pass)) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in node.body
    )
    return plain and names in (["dataclass"], ["NamedTuple"])
