"""Optimizer entries of a configuration: where they are added, what they are called, and who else is handed one."""

from __future__ import annotations

import ast
import re

from npuprof.model import Record, find_nearest_names
from npuprof.scripts.reading.found import Branch
from npuprof.scripts.reading.surfaces.walk import Walk
from npuprof.scripts.reading.values.literals import format_expression
from npuprof.scripts.reading.values.scopes import Scope

_GLOBAL, _RETURN = re.compile(r"\bglobal\b"), re.compile(r"\breturn\b")


class LaidOn(Record):
    """A call that hands an object to a function which sets more in it under a name of its own.

    ``scope`` is that of the settings, ``expression`` the object at the call, ``seen`` the function it stands in; ``certain`` tells
    whether the call runs there once, if the ``tests`` around it hold.
    """

    scope: str
    expression: str
    seen: str
    line: int
    certain: bool
    tests: tuple[Branch, ...] = ()


class AddedEntry(Record):
    """An optimizer entry that is added to a configuration: where, and to what.

    ``owner`` is the expression that the entry is added to, ``config`` what that begins with. ``site`` is where the entry gets its
    name later, ``name`` the one it is made with. ``loop`` are the first and the last line of a loop that adds it in each turn.
    """

    line: int
    column: int
    scope: str
    owner: str
    branches: tuple[Branch, ...]
    site: str = ""
    name: str = ""
    loop: tuple[int, int] | tuple[()] = ()

    @property
    def config(self) -> str:
        """The object whose entry it is."""
        return self.owner.partition(".graph_options")[0]


def is_foreign_optimizer(name: str) -> bool:
    """Return whether an optimizer entry belongs to somebody else (TensorRT has one): no slip of the adapter's own name."""
    return name != "NpuOptimizer" and not find_nearest_names(name, ("NpuOptimizer",), 1)


def note_added_entry(
    walk: Walk, call: ast.expr, place: tuple[int, int], scope: Scope, branches: tuple[Branch, ...], site: str, name: str
) -> None:
    """Take note of an entry that is added, with the name it is made with, if any."""
    assert isinstance(call, ast.Call)
    for keyword in call.keywords:
        if keyword.arg == "name":
            text, reason, _ = walk.evaluate_expression(keyword.value, scope)
            name = str(text) if not reason else name
    if not walk.dead and isinstance(call.func, ast.Attribute):
        owner, where = _find_owner(format_expression(call.func.value), scope)
        walk.add_fact(
            "added entries", AddedEntry(*place, where.name, owner, branches, site, name, _find_loop(walk, owner, scope, branches))
        )


def _find_owner(owner: str, scope: Scope) -> tuple[str, Scope]:
    """Return what an entry is added to, in the words of the script that hands it to a function of another file."""
    root, dot, rest = owner.partition(".")
    while scope.label and root in scope.bound:
        given, scope = scope.bound[root]
        root, more, behind = format_expression(given).partition(".")
        rest = f"{behind}{dot}{rest}" if more else rest
    return f"{root}{'.' if rest else ''}{rest}", scope


def _find_loop(walk: Walk, owner: str, scope: Scope, branches: tuple[Branch, ...]) -> tuple[int, int] | tuple[()]:
    """Return the lines of the loop that adds an entry to the same object in each of its turns, nothing where there may be one only."""
    if not walk.loops or walk.loops[-1][1] != len(branches):
        return ()
    loop = walk.loops[-1][0]
    turns, unknown, _ = walk.evaluate_expression(loop.iter, scope)
    changing = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    if owner.partition(".")[0].partition("[")[0] in changing or (not unknown and isinstance(turns, (list, tuple)) and len(turns) < 2):
        return ()
    return loop.lineno, loop.end_lineno or loop.lineno


def is_optimizer_added(node: ast.expr) -> bool:
    """Return whether an expression adds an optimizer entry to a configuration."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "add":
        return False
    owner = node.func.value
    return isinstance(owner, ast.Attribute) and owner.attr == "custom_optimizers"


def is_entry_handed_on(walk: Walk, scope: Scope, root: str) -> bool:
    """Return whether an optimizer entry is handed to other code, which may set more in it."""
    if not root.isidentifier():
        return True
    known: bool | None = walk.handed.get((scope.node, root))
    if known is None:
        lines = walk.find_lines_with(scope, root)
        known = walk.handed[scope.node, root] = _is_returned(lines, root) or _is_given_to_others(walk, lines, root)
    return known


def _is_returned(lines: list[str], root: str) -> bool:
    name = re.compile(rf"\b{root}\b"), re.compile(rf"\b{root}\b(?!\.)")
    for line in lines:
        for word, pattern in zip((_GLOBAL, _RETURN), name, strict=True):
            if (leads := word.search(line)) and pattern.search(line, leads.end()):
                return True
    return False


def _is_given_to_others(walk: Walk, lines: list[str], root: str) -> bool:
    handed = re.compile(rf"(?<![\w.])([\w.]*)\((?:[^()]*,)?\s*(?:\w+\s*=\s*)?{root}\s*[,)]")
    return any(name not in walk.defined_names for line in lines for name in handed.findall(line))
