"""One Python file: its tree, its module scope, and an index of its nodes."""

from __future__ import annotations

import ast
import posixpath
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from npuprof.model import TomlTable
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.expressions import (
    get_last_name,
    list_nodes,
    name_callee,
    write_source,
)
from npuprof.scripts.python.flag_defaults import collect_flag_defaults
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.scopes import Function, Scope
from npuprof.scripts.python.statements import Definition, find_start, list_lines
from npuprof.scripts.script_records import HERE
from npuprof.system import decode_safely, group_pairs

_get_line = attrgetter("lineno")
#: Names after "as" without a letter before it; patterns that begin with letters are faster.
_RENAMED = re.compile(r"as(?<!\was)[ \t]+(\w+)")

Node = TypeVar("Node", bound=ast.AST)


@lru_cache(100)  # the files of an import cycle supply the same names
def _list_last_names(names: frozenset[bytes]) -> frozenset[str]:
    return frozenset(decode_safely(name.rpartition(b".")[2]) for name in names)


class NodeIndex:
    """An index of all nodes of a file, computed on demand.

    Most imported files are read for a single constant.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the file, outermost first."""
        return list_nodes(self._tree)

    @cached_property
    def _by_kind(self) -> dict[type, list[Any]]:
        return group_by(self.nodes, type)

    def list_of(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of one class, outermost first."""
        return self._by_kind.get(kind, [])

    @cached_property
    def definitions(self) -> list[Definition]:
        """The functions and classes, in text order."""
        found: list[Definition] = [
            *self.list_of(ast.FunctionDef),
            *self.list_of(ast.AsyncFunctionDef),
            *self.list_of(ast.ClassDef),
        ]
        return sorted(found, key=find_start)

    @cached_property
    def calls(self) -> list[ast.Call]:
        """The calls, in line order."""
        return sorted(self.list_of(ast.Call), key=_get_line)

    @cached_property
    def _lines_by_name(self) -> dict[str, list[int]]:
        """The lines of calls and arguments by their name, and of classes by that of a base.

        Those that change an item of a table, or a table as a whole, are named ``=``.
        """
        pairs = [(name_callee(call), call.lineno) for call in self.calls]
        pairs += [(each.arg or "", each.lineno) for each in self.list_of(ast.keyword)]
        pairs += [("=", change.lineno) for change in self.list_of(ast.AugAssign)]
        for item in self.list_of(ast.Subscript):
            if isinstance(item.ctx, ast.Store):
                pairs.append(("=", item.lineno))
        for cls in self.list_of(ast.ClassDef):
            pairs += [(get_last_name(base), base.lineno) for base in cls.bases]
        return group_pairs(pairs)

    def list_lines(self, names: Iterable[str]) -> Iterable[int]:
        """Return the lines of some names."""
        return chain.from_iterable(self._lines_by_name.get(name, ()) for name in names)

    @cached_property
    def passed_on(self) -> set[str]:
        """The names that are read without being called, such as callbacks."""
        called: set[ast.AST] = {call.func for call in self.calls}
        names = {
            node.id
            for node in self.list_of(ast.Name)
            if isinstance(node.ctx, ast.Load) and node not in called
        }
        for attribute in self.list_of(ast.Attribute):
            match attribute.value:
                case ast.Name("self") if attribute not in called:
                    names.add(attribute.attr)
        return names

    @cached_property
    def attributes(self) -> dict[str, list[ast.expr]]:
        """The values assigned to object attributes and to names in expressions.

        By text: ``self.dump_config``.
        """
        pairs = [(named.target.id, named.value) for named in self.list_of(ast.NamedExpr)]
        pairs += [
            (write_source(target), assigned.value)
            for assigned in self.list_of(ast.Assign)
            for target in assigned.targets
            if isinstance(target, ast.Attribute)
        ]
        return group_pairs(pairs)

    @cached_property
    def declared(self) -> frozenset[str]:
        """The names declared as global or nonlocal."""
        names = set[str]()
        for global_statement in self.list_of(ast.Global):
            names.update(global_statement.names)
        for nonlocal_statement in self.list_of(ast.Nonlocal):
            names.update(nonlocal_statement.names)
        return frozenset(names)

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The names that are rebound outside their scope.

        Attributes of a name as ``name.attribute``.
        """
        names = set(self.declared)
        names.update(node.target.id for node in self.list_of(ast.NamedExpr))
        for node in self.list_of(ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                names.add(write_source(node))
        for call in self.list_of(ast.Call):
            if name_callee(call) == "setattr" and call.args:
                # setattr() may assign any attribute
                names.add(f"{write_source(call.args[0])}.*")
        return frozenset(names)

    @cached_property
    def stored(self) -> frozenset[str]:
        """The last names of assigned attributes: they may be constants of other modules."""
        return frozenset(text.rpartition(".")[2] for text in self.rebound if "." in text)

    def list_called(self, function: Function) -> set[str]:
        """Return the names called in a function."""
        begin = bisect_left(self.calls, function.lineno, key=_get_line)
        end = bisect_right(self.calls, list_lines(function)[-1], key=_get_line)
        return set(map(name_callee, self.calls[begin:end]))


class Module:
    """A Python file and its module scope; ``home`` resolves its imports."""

    def __init__(self, script: Script, home: Any) -> None:
        assert script.tree is not None
        self.path = script.path
        self.script = script
        self.tree = script.tree
        self.home = home
        self._callable: frozenset[str] | None = None
        self.surfaces: tuple[Any, ...] | None = None  #: those of the visitor
        # once for the file, since it is asked at each call
        self.names_npu = "npu" in script.text
        # once for the trees of a scan and of its programs
        self.index = index = script.index = script.index or NodeIndex(self.tree)
        self.scope = Scope(self.tree)
        self.scope.home = home
        self.scope.list_rebound = lambda: index.rebound
        file_name = posixpath.basename(self.path.replace("\\", "/"))
        # a scope without bindings: its own would be a reference cycle
        self.scope.bound["__file__"] = ast.Constant(f"{HERE}./{file_name}"), Scope(self.tree)

    def list_callable(self, supplied: frozenset[bytes]) -> frozenset[str]:
        """Return the callable names of functions and classes that may set something.

        Those ``supplied`` by the file, under other names too.
        """
        if self._callable is None:
            names = _list_last_names(supplied)
            renamed = _RENAMED.findall(self.script.text) if names else ()
            self._callable = names.union(("__init__", *renamed))
        return self._callable

    def list_flags(self) -> TomlTable:
        """Return the defaults of the command line flags that it declares."""
        # most files declare no flags: searching the text costs less than listing all calls
        text = self.script.text
        if "add_argument" not in text and "DEFINE_" not in text:
            return {}
        calls, attributes = self.index.list_of(ast.Call), self.index.list_of(ast.Attribute)
        return collect_flag_defaults(self.tree, calls, attributes)
