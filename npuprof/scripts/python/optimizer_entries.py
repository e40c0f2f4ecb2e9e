"""Optimizer entries of a configuration: their creation and names."""

from __future__ import annotations

import ast
from typing import TypeGuard

from npuprof.model import find_nearest_names
from npuprof.scripts.python.expressions import format_expression
from npuprof.scripts.python.scopes import Scope
from npuprof.scripts.python.visitor import Visitor
from npuprof.scripts.script_records import Branches, LocatedRecord


class AddedEntry(LocatedRecord):
    """An optimizer entry added to a configuration in the function ``scope``.

    ``owner`` is the expression that the entry is added to, ``config`` its root. ``site`` is its
    scope in settings, empty if it is named at once; ``name`` is its initial name.
    """

    scope: str
    owner: str
    branches: Branches
    site: str
    name: str

    @property
    def config(self) -> str:
        """The object that contains the entry."""
        return self.owner.partition(".graph_options")[0]


class NamedEntry(LocatedRecord):
    """The naming of an optimizer entry.

    ``site`` is its configuration, empty if it is created elsewhere.
    """

    name: str
    site: str


def is_foreign_optimizer(name: str) -> bool:
    """Return whether an optimizer entry belongs to another product, such as TensorRT.

    Misspellings of the adapter's do not.
    """
    return name != "NpuOptimizer" and not find_nearest_names(name, ("NpuOptimizer",), 1)


def note_added_entry(
    visitor: Visitor, call: ast.Call, node: ast.expr, scope: Scope, site: str, name: str
) -> None:
    """Record an added entry, with its initial name, if any."""
    if visitor.dead or not isinstance(call.func, ast.Attribute):
        return
    for keyword in call.keywords:
        if keyword.arg == "name":
            text, reason = visitor.evaluate_expression(keyword.value, scope)
            name = str(text) if not reason else name
    owner, caller_scope = scope.name_outside(format_expression(call.func.value))
    entry = AddedEntry(
        visitor.module.path,
        *visitor.locate(node),
        scope=caller_scope.name,
        owner=owner,
        branches=visitor.branches,
        site=site,
        name=name,
    )
    visitor.add_record(entry)


def is_optimizer_added(node: ast.expr) -> TypeGuard[ast.Call]:
    """Return whether an expression adds an optimizer entry to a configuration."""
    match node:
        case ast.Call(ast.Attribute(ast.Attribute(attr="custom_optimizers"), "add")):
            return True
    return False
