"""One Python file: its tree, the scope of its names, and what a look at all its nodes tells."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from npuprof.scripts.python.flag_defaults import collect_flag_defaults
from npuprof.scripts.python.scopes import Function, ModuleHome, Scope, iterate_statements
from npuprof.scripts.python.syntax import Script
from npuprof.scripts.python.terms import name_callee, write_source
from npuprof.scripts.records import HERE

#: What returns the names of a scope as a table, through which they can be changed.
_TABLES = frozenset(("globals", "locals", "vars"))
_CHANGING = frozenset(("update", "setdefault", "__setitem__"))


class NodeIndex:
    """What a look at all nodes of a file tells.

    Attributes:
        defined: The names of its functions and classes.
        called: The names that it calls.
        passed_on: The names that it reads without calling them, such as those of functions that others are given.
        attributes: What attributes of objects are given, by their texts (``self.dump_config``), and names within expressions.

    """

    def __init__(self, tree: ast.Module) -> None:
        self.defined: set[str] = set()
        self.called: set[str] = set()
        self.passed_on: set[str] = set()
        self.attributes: dict[str, list[ast.expr]] = {}
        called: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, Function | ast.ClassDef):
                self.defined.add(node.name)
            elif isinstance(node, ast.Call):
                self.called.add(name_callee(node))
                called.add(node.func)
            elif isinstance(node, ast.NamedExpr):
                self.attributes.setdefault(node.target.id, []).append(node.value)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        self.attributes.setdefault(write_source(target), []).append(node.value)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in called:
                self.passed_on.add(node.id)
            elif isinstance(node, ast.Attribute) and node not in called and getattr(node.value, "id", "") == "self":
                self.passed_on.add(node.attr)


class Module:
    """One Python file and the scope of its names; without a ``home`` its imports lead nowhere.

    ``idle`` are functions that were called and set nothing.
    """

    def __init__(self, script: Script, home: ModuleHome | None) -> None:
        assert script.tree is not None
        self.path = script.path
        self.script = script
        self.tree = script.tree
        self.home = home
        self.idle: set[Function] = set()
        self.scope = Scope(self.tree)
        self.scope.home = home
        self.scope.rebound = frozenset(_iterate_rebound(self.tree))
        self.scope.bound["__file__"] = ast.Constant(f"{HERE}./{posixpath.basename(self.path.replace(chr(92), '/'))}"), self.scope

    @cached_property
    def index(self) -> NodeIndex:
        """What its nodes tell, looked at when somebody asks: most files that scripts import are read for a constant only."""
        return NodeIndex(self.tree)

    @cached_property
    def flags(self) -> dict[str, Any]:
        """The defaults of the command-line flags that it declares."""
        declares = any(word in self.script.text for word in ("add_argument", "DEFINE_"))
        return collect_flag_defaults(self.tree) if declares else {}


def _iterate_rebound(tree: ast.Module) -> Iterator[str]:
    """Yield the names that get a value where their scope does not show it; attributes of a name as ``name.attribute``."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, ast.NamedExpr):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield write_source(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_table(node.value):
            named = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
            yield from [node.slice.value] if named else _iterate_top_names(tree)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Call):
            name = name_callee(node)
            first = write_source(node.args[0]) if name == "setattr" and node.args else ""
            by_method = isinstance(node.func, ast.Attribute) and name in _CHANGING and _is_table(node.func.value)
            if by_method or first.startswith("sys.modules") or name == "exec":
                yield from _iterate_top_names(tree)
            elif first:
                yield f"{first}.*"


def _is_table(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_callee(node) in _TABLES


def _iterate_top_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that statements of the module assign."""
    for statement in iterate_statements(tree.body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))
