"""Modules of the same tree as a script: read once, only where something is asked of them, and never run.

Where a module lies, and its bytes, are told by functions that are handed in: nothing here knows of folders.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from npuprof.scripts.python.module import Module
from npuprof.scripts.python.scopes import Binding, Scope
from npuprof.scripts.python.syntax import Script
from npuprof.scripts.python.terms import write_source

#: So many files are kept at hand, those that were asked for last: scripts that share a helper are read one after the other.
_MOST_KEPT = 256
#: A name is followed through so many modules that import it from each other.
_DEEPEST = 8
#: Packages of the adapter and of what it extends: a copy in the tree is no helper of anybody.
_FOREIGN = frozenset(("npu_bridge", "npu_device", "npu_compat", "tensorflow", "tensorflow_core", "hccl", "npuprof"))
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_NAME = re.compile(r"\w+")
_WORD = re.compile(rb"\w+")

#: The path of the file that a module is: by the file that imports it, its dotted name, and the dots before that. Empty for others.
Locate = Callable[[str, str, int], str]
#: The bytes of a file, None where it cannot be read.
Read = Callable[[str], "bytes | None"]
#: The Python files of the tree that a file is in; None where there are too many to look at.
ListFiles = Callable[[str], "tuple[str, ...] | None"]
#: The files of the tree that a path may mean to a script: from where that lies, or else from where it is started, which nobody knows.
LocateFile = Callable[[str, str, bool], "tuple[str, ...]"]


Kept = TypeVar("Kept")


class Modules:
    """The files of a tree that have been asked for. ``rebound`` are names of modules that the script in question gives other values.

    Without ``locate_file`` what a shell script takes in is not followed.
    """

    def __init__(self, locate: Locate, read: Read, list_files: ListFiles = lambda path: (), locate_file: LocateFile | None = None) -> None:
        self.locate_file = locate_file
        self._locate = locate
        self._read = read
        self._list_files = list_files
        self._importers: dict[tuple[str, ...], dict[str, list[str]]] = {}
        self._bytes: dict[str, bytes] = {}
        self._modules: dict[str, Module | None] = {}
        self._homes: dict[str, Home] = {}
        self._imports: dict[str, tuple[str, ...]] = {}
        self._supplies: dict[str, bool] = {}
        self.asked: set[tuple[str, str]] = set()
        self.rebound: set[tuple[str, str]] = set()

    def lay_over(self, texts: Mapping[str, bytes]) -> Modules:
        """Return the same files where some of them hold other bytes."""
        return Modules(self._locate, lambda path: texts.get(path) or self._read(path), self._list_files, self.locate_file)

    def open_home(self, path: str) -> Home:
        """Return where the imports of a file begin."""
        if path not in self._homes:
            self._homes[path] = Home(path, self)
        return self._homes[path]

    def locate(self, path: str, name: str, level: int) -> str:
        """Return the file that a module is, as a file imports it; empty for modules that are not of the tree, and for the file itself."""
        if not level and name.partition(".")[0] in _FOREIGN:
            return ""
        found = self._locate(path, name, level)
        return found if found != path else ""

    def read(self, path: str) -> bytes:
        """Return the bytes of a module, none where it cannot be read."""
        return _keep(self._bytes, path, lambda: self._read(path) or b"")

    def load(self, path: str) -> Module | None:
        """Return a module by its file; None where it cannot be parsed."""

        def parse() -> Module | None:
            script = Script(path, self.read(path))
            return Module(script, self.open_home(path)) if script.tree is not None else None

        return _keep(self._modules, path, parse)

    def list_imported(self, path: str, data: bytes) -> tuple[str, ...]:
        """Return the files of the tree that a text imports, without parsing it."""
        if path not in self._imports:
            self._imports[path] = tuple(dict.fromkeys(filter(None, self._iterate_imported(path, data))))
        return self._imports[path]

    def _iterate_imported(self, path: str, data: bytes) -> Iterator[str]:
        for source, names, plain in _IMPORT.findall(data):
            if plain:
                for part in plain.decode(errors="replace").split(","):
                    yield self.locate(path, part.strip().partition(" ")[0], 0)
                continue
            module = source.decode(errors="replace").lstrip(".")
            level = len(source) - len(source.lstrip(b"."))
            yield self.locate(path, module, level)
            for name in _NAME.findall(names.partition(b"#")[0].decode(errors="replace")):
                yield self.locate(path, f"{module}.{name}".lstrip("."), level)

    def is_named_elsewhere(self, path: str, name: str) -> bool:
        """Return whether a file of the tree that may import another one holds a name; also where there are too many to look at."""
        files = self._list_importers(path)
        return files is None or any(name.encode() in self.read(one) for one in files)

    def _list_importers(self, path: str) -> list[str] | None:
        """Return the files of the tree that may import another one; None where there are too many to look at."""
        files = self._list_files(path)
        if files is None:
            return None
        if files not in self._importers:
            self._importers = {files: self._index_importers(files)}
        stem = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))[0]
        return [one for one in self._importers[files].get(stem, ()) if one != path]

    def _index_importers(self, files: Iterable[str]) -> dict[str, list[str]]:
        """Return the files that name modules in their imports, by the last part of the name."""
        found: dict[str, list[str]] = {}
        for path in files:
            words = {word for match in _IMPORT.findall(self._read(path) or b"") for part in match for word in _WORD.findall(part)}
            for word in words:
                found.setdefault(word.decode(errors="replace"), []).append(path)
        return found

    def supplies(self, path: str, mentions: Callable[[bytes], bool], depth: int = 0) -> bool:
        """Return whether a module can hold a function that sets something, or the options of TensorFlow 2, by its text or its imports."""
        if path not in self._supplies:
            self._supplies[path] = False  # a circle says nothing
            data = self.read(path)
            found = (b"def " in data or b"global_options" in data) and mentions(data)
            if not found and depth < _DEEPEST:
                found = any(self.supplies(one, mentions, depth + 1) for one in self.list_imported(path, data))
            self._supplies[path] = found
        return self._supplies[path]


def _keep(known: dict[str, Kept], path: str, make: Callable[[], Kept]) -> Kept:
    """Return what belongs to a file, made where it is not at hand; what nobody has asked for longest goes."""
    found = known.pop(path) if path in known else make()
    known[path] = found
    if len(known) > _MOST_KEPT:
        del known[next(iter(known))]
    return found


class Home:
    """A file as the place where imports begin."""

    def __init__(self, path: str, modules: Modules) -> None:
        self.path = path
        self.modules = modules

    def leads(self) -> bool:
        """Return whether the file imports others of the tree."""
        return bool(self.modules.list_imported(self.path, self.modules.read(self.path)))

    def list_rebound(self) -> frozenset[str]:
        """Return the names of the file to which the script that is being read gives other values."""
        return frozenset(name for path, name in self.modules.rebound if path == self.path)

    def find_name(self, name: str, bindings: Iterable[Binding]) -> tuple[Scope, list[Binding]] | None:
        """Return what a name stands for that is imported from modules of the tree; None where one of them is no such module."""
        found = None
        for binding in bindings:
            one = self._find_imported(name, binding.node) if isinstance(binding.node, ast.ImportFrom) else None
            if one is None or (found is not None and one[1] is not found[1]):
                return None
            found = one
        return found

    def _find_imported(self, name: str, node: ast.ImportFrom) -> tuple[Scope, list[Binding]] | None:
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                path = self.modules.locate(self.path, node.module or "", node.level)
                return self._find_in_module(path, alias.name) if path else None
        return None

    def find_starred(self, name: str, bindings: Iterable[Binding]) -> tuple[Scope, list[Binding]] | None:
        """Return what a name stands for that comes with all others of a module of the tree; the last one wins."""
        if name.startswith("_"):
            return None
        for binding in reversed(list(bindings)):
            if isinstance(binding.node, ast.ImportFrom):
                path = self.modules.locate(self.path, binding.node.module or "", binding.node.level)
                if path and (found := self._find_in_module(path, name, starred=True)):
                    return found
        return None

    def _find_in_module(self, path: str, name: str, starred: bool = False) -> tuple[Scope, list[Binding]] | None:
        modules = self.modules
        mark = path, name
        if mark in modules.asked or len(modules.asked) > _DEEPEST or mark in modules.rebound:
            return None
        data = modules.read(path)
        if name.encode() not in data and b"import *" not in data:
            return None
        module = modules.load(path)
        if module is None or (starred and not _is_public(module, name)):
            return None
        modules.asked.add(mark)
        try:
            return module.scope.resolve_name(name)
        finally:
            modules.asked.discard(mark)

    def find_module(self, node: ast.expr, scope: Scope) -> str:
        """Return the file of the module that an expression is, ``npu_utils`` or ``utils.npu``; empty for others."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        found = scope.resolve_name(root.id) if isinstance(root, ast.Name) else None
        if not found or not found[1] or found[0].home is None or any(binding.kind != "import" for binding in found[1]):
            return ""
        return found[0].home.locate_bound(write_source(node), found[1])

    def locate_bound(self, text: str, bindings: Iterable[Binding]) -> str:
        """Return the file that a name, or one with dots, stands for by imports; empty where they differ, or where it is of no tree."""
        asked: dict[tuple[str, int], None] = {}
        for binding in bindings:
            node = binding.node
            for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
                if (alias.asname or alias.name) == text:
                    inside = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
                    asked[f"{inside}{alias.name}".lstrip("."), node.level if isinstance(node, ast.ImportFrom) else 0] = None
        paths = {self.modules.locate(self.path, name, level) for name, level in asked}
        return paths.pop() if len(paths) == 1 else ""

    def find_attribute(self, node: ast.Attribute, scope: Scope) -> tuple[Scope, list[Binding]] | None:
        """Return what a name of a module stands for: ``settings.PRECISION``. None where the module is none of the tree."""
        path = self.find_module(node.value, scope)
        if not path:
            return None
        owner = write_source(node.value)
        return self._find_in_module(path, node.attr) if scope.rebound.isdisjoint((f"{owner}.{node.attr}", f"{owner}.*")) else None


def _is_public(module: Module, name: str) -> bool:
    """Return whether a star takes a name along: where the module lists some, only those."""
    listed = module.scope.list_bindings("__all__")
    if not listed:
        return True
    names = listed[0].node
    if len(listed) > 1 or not isinstance(names, (ast.List, ast.Tuple)):
        return True
    return any(isinstance(item, ast.Constant) and item.value == name for item in names.elts)
