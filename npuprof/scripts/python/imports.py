"""Modules of a script's source tree: read once, on demand, and never executed.

Functions passed by the caller locate and read modules: this module does not access folders.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from math import inf

from npuprof.scripts.python.expressions import find_root, write_source
from npuprof.scripts.python.module import Module, NodeIndex
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.scopes import Binding, Reached, Resolved, Scope

#: The number of cached files: scripts that share a helper are read one after the other.
_MOST_KEPT = 24
#: The size above which scripts are not kept, in bytes: their trees are a hundred times larger.
_LARGEST_KEPT = 100_000
#: The number of cached import lines: those of a folder resemble each other.
_MOST_LINES = 10_000
#: The maximum length of a chain of imports.
_DEEPEST = 8
#: Packages of the adapter and its frameworks: a copy in the tree is not a helper module.
_FOREIGN = frozenset(
    (
        "npu_bridge",
        "npu_device",
        "npu_compat",
        "torch",
        "torch_npu",
        "tensorflow",
        "tensorflow_core",
        "hccl",
        "npuprof",
    )
)
_IMPORT = re.compile(
    rb"[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([\w., \t]+))"
)
_NAME = re.compile(r"\w+")
_IMPORT_WORD = re.compile(rb"import\b")
#: Blanks for all characters outside of words: splitting is several times faster than a pattern.
_ONLY_WORDS = bytes(
    code if code < 128 and (chr(code).isalnum() or code == ord("_")) else ord(" ")
    for code in range(256)
)
_DEFINED = re.compile(rb"(?:def|class)[ \t]+(\w+)")
_HEAD = re.compile(
    rb"\n(?:(?P<blank>[ \t]*)(?:async[ \t]+)?(?:def|class)[ "
    rb"\t]+(?P<name>\w+)|(?:if|elif|else|try|except|finally|with|for|while)\b)"
)

#: Returns the file of a module, given the importing file, the dotted name, and the number of
#: leading dots. Empty for others.
Locate = Callable[[str, str, int], str]
#: Returns the bytes of a file, None if it cannot be read.
Read = Callable[[str], "bytes | None"]
#: Whether a part of a text can set something: arguments are the whole text, and the part.
CanSet = Callable[[bytes, bytes], bool]
#: Returns the Python files of a file's tree; None if there are too many.
ListFiles = Callable[[str], "tuple[str, ...] | None"]
#: Returns the files that a path may denote: relative to the script, or to an unknown start folder.
LocateFile = Callable[[str, str, bool], "tuple[str, ...]"]


class Modules:
    """The requested files of a tree, by default none.

    Without ``locate_file``, files sourced by shell scripts are not followed.
    """

    def __init__(
        self,
        locate: Locate = lambda path, name, level: "",
        read: Read = lambda path: None,
        list_files: ListFiles = lambda path: (),
        locate_file: LocateFile | None = None,
    ) -> None:
        self.locate_file = locate_file
        self._locate = locate
        self._read = read
        self._list_files = list_files
        self._find_importers = lru_cache(1)(self._index_importers)
        #: Returns the bytes of a module, empty if it cannot be read.
        self.read = lru_cache(_MOST_KEPT)(lambda path: read(path) or b"")
        self._loaded: OrderedDict[tuple[str, bytes], Module | None] = (
            OrderedDict()
        )  #: by path and content, the last used at the end
        self._locate_line = lru_cache(_MOST_LINES)(self._find_imported)
        #: Returns the import context of a file.
        self.open_home = cache(lambda path: Home(path, self))
        self._imports: dict[str, tuple[str, ...]] = {}
        self._names_options = cache(lambda path: b"global_options" in self.read(path))
        #: Returns the names of a module's functions and classes.
        self.list_defined = cache(
            lambda path: frozenset(
                name.decode(errors="replace") for name in _DEFINED.findall(self.read(path))
            )
        )
        self._supplied: dict[str, frozenset[bytes]] = {}
        self._settings: dict[
            str, bool
        ] = {}  #: whether modules can set something, by their whole text
        self.requested: set[tuple[str, str]] = set()
        #: the index of the current script, whose assignments may rebind names of modules
        self.index: NodeIndex | None = None

    def lay_over(self, texts: Mapping[str, bytes]) -> Modules:
        """Return the same files, some of them with other content."""
        return Modules(
            self._locate,
            lambda path: texts.get(path) or self._read(path),
            self._list_files,
            self.locate_file,
        )

    def locate(self, path: str, name: str, level: int) -> str:
        """Return the file of an imported module.

        Empty for modules outside the tree, and for the file itself.
        """
        is_foreign = not level and name.partition(".")[0] in _FOREIGN
        found = self._locate(path, name, level) if not is_foreign else ""
        return found if found != path else ""

    def load(self, path: str) -> Module | None:
        """Return the module of a file; None if it cannot be parsed."""
        data = self.read(path)
        if (path, data) not in self._loaded:
            self._add_module(Script(path, data), data)
        self._loaded.move_to_end((path, data))
        return self._loaded[path, data]

    def _add_module(self, script: Script, data: bytes) -> None:
        self._loaded[script.path, data] = (
            Module(script, self.open_home(script.path)) if script.tree is not None else None
        )
        if len(self._loaded) > _MOST_KEPT:
            self._loaded.popitem(last=False)

    def keep_script(self, script: Script, data: bytes) -> None:
        """Keep the tree of a script for importers that load it next, unless the script is large or
        has problems.
        """
        if not script.problems and len(data) <= _LARGEST_KEPT:
            self._add_module(script, data)

    def take_script(self, path: str, data: bytes) -> Script:
        """Return a parsed script, with the tree of the module that an importer loaded before, if
        there is one.

        That module is dropped: an import cycle parses the file again, as functions are told apart
        by their nodes.
        """
        module = self._loaded.pop((path, data), None)
        return module.script if module is not None else Script(path, data)

    def list_imported(self, path: str, data: bytes | None = None) -> tuple[str, ...]:
        """Return the files of the tree that a text (by default the file's) imports, without parsing
        it.
        """
        if path not in self._imports:
            lines = _iterate_imports(self.read(path) if data is None else data)
            folder = path[: max(path.rfind("/"), path.rfind("\\")) + 1]
            found = dict.fromkeys(
                file for line in lines for file in self._locate_line(folder, *line)
            )
            self._imports[path] = tuple(file for file in found if file not in ("", path))
        return self._imports[path]

    def has_options(self, path: str) -> bool:
        """Return whether a module, or one that it imports, names the options of TensorFlow 2."""
        return any(map(self._names_options, (path, *self.list_imported(path))))

    def _find_imported(self, folder: str, source: bytes, names: bytes, plain: bytes) -> list[str]:
        """Return the files of the tree that an import line may mean in the files of a folder, which
        ends in a slash; empty for others.
        """
        if plain:
            written = plain.decode(errors="replace").split(",")
            return [self.locate(folder, name.strip().partition(" ")[0], 0) for name in written]
        module = source.decode(errors="replace").lstrip(".")
        level = len(source) - len(source.lstrip(b"."))
        found = [self.locate(folder, module, level)]
        if not found[0] or found[0].endswith(
            "__init__.py"
        ):  # the names may be modules of a package
            written = _NAME.findall(names.partition(b"#")[0].decode(errors="replace"))
            found += [
                self.locate(folder, f"{module}.{name}".lstrip("."), level) for name in written
            ]
        return found

    def is_named_elsewhere(self, path: str, name: str) -> bool:
        """Return whether a file that may import another one contains a name.

        True if there are too many files.
        """
        files = self._list_files(path)
        stem = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))[0]
        importers = self._find_importers(files).get(stem, ()) if files is not None else ()
        return files is None or any(
            name.encode() in self.read(importer) for importer in importers if importer != path
        )

    def _index_importers(self, files: tuple[str, ...]) -> dict[str, list[str]]:
        """Return the files that import modules, by the last part of the module name."""
        found: dict[str, list[str]] = {}
        for path in files:
            words = {
                word
                for match in _iterate_imports(self._read(path) or b"")
                for part in match
                for word in split_words(part)
            }
            for word in words:
                found.setdefault(word.decode(errors="replace"), []).append(path)
        return found

    def may_call(self, path: str, data: bytes, can_set: CanSet) -> bool:
        """Return whether a text names something that sets settings in imported modules, without
        parsing it.
        """
        supplied = self._list_imported_names(path, data, can_set, 0)
        return not supplied.isdisjoint(split_words(data) if supplied else ())

    def forget_supplied(self) -> None:
        """Drop the answers of ``list_supplied``: in an import cycle, they depend on the file that
        was asked about first.
        """
        self._supplied.clear()

    def _list_imported_names(
        self, path: str, data: bytes | None, can_set: CanSet, depth: int
    ) -> frozenset[bytes]:
        imported = self.list_imported(path, data) if depth < _DEEPEST else ()
        return frozenset().union(*(self.list_supplied(one, can_set, depth + 1) for one in imported))

    def list_supplied(self, path: str, can_set: CanSet, depth: int = 0) -> frozenset[bytes]:
        """Return the functions and classes of a module that may set something, by text, including
        re-exported ones.

        All its words if it shares the options of TensorFlow 2, as any of them may denote these.
        """
        if path not in self._supplied:
            self._supplied[path] = frozenset()  # import cycles add nothing
            names = self._list_imported_names(path, None, can_set, depth)
            if path not in self._settings:
                data = self.read(path)
                self._settings[path] = can_set(data, data)
            own = (
                _list_setting_names(self.read(path), can_set, names)
                if names or self._settings[path]
                else ()
            )
            self._supplied[path] = names.union(
                split_words(self.read(path)) if self._names_options(path) else own
            )
        return self._supplied[path]


def _list_setting_names(data: bytes, can_set: CanSet, called: frozenset[bytes]) -> set[bytes]:
    """Return the functions and classes of a text that can set something, or call others
    that can.
    """
    heads = list(_iterate_outer_heads(data))
    ends = [*(head.start() for head in heads[1:]), len(data)]
    blocks = [
        (head["name"] or b"", data[head.start() : end])
        for head, end in zip(heads, ends, strict=False)
    ]
    known = {*called, *(name for name, block in blocks if can_set(data, block))}
    waiting = (
        [(name, split_words(block)) for name, block in blocks if name not in known] if known else []
    )
    for _ in range(_DEEPEST):
        found = {name for name, inner in waiting if not known.isdisjoint(inner)}
        if found <= known:
            break
        known |= found
    return known - {b""}


def split_words(data: bytes) -> list[bytes]:
    """Return the words of a text: letters, digits and underscores in ASCII."""
    return data.translate(_ONLY_WORDS).split()


def _iterate_imports(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the import lines of a text: the module and its names, or else the modules."""
    end = 0
    for word in _IMPORT_WORD.finditer(data):
        found = (
            _IMPORT.match(data, data.rfind(b"\n", 0, word.start()) + 1)
            if word.start() >= end
            else None
        )
        if found is not None:
            end = found.end()
            yield found[1] or b"", found[2] or b"", found[3] or b""


def _iterate_outer_heads(data: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the start of each top-level function and class of a text, and the
    statements around some.
    """
    deepest: float = 0  # indentation from which definitions are nested
    for head in _HEAD.finditer(b"\n" + data):  # its start is that of the line in the text
        if head["name"] is None or len(head["blank"]) <= deepest:
            yield head
            deepest = len(head["blank"]) if head["name"] else inf


class Home:
    """A file as the context of its imports."""

    def __init__(self, path: str, modules: Modules) -> None:
        self.path = path
        self.modules = modules

    def list_defined(self, reached: Reached) -> frozenset[str]:
        """Return the functions and classes of directly and indirectly imported files that are
        ``reached``.
        """
        names, seen, waiting = set[str](), {self.path}, [self.path]
        while waiting:
            fresh = {
                path
                for path in self.modules.list_imported(waiting.pop())
                if path not in seen and reached(path)
            }
            names.update(*map(self.modules.list_defined, fresh))
            seen |= fresh
            waiting += fresh
        return frozenset(names)

    def find_name(self, name: str, bindings: Iterable[Binding]) -> Resolved | None:
        """Return the binding of a name imported from modules of the tree.

        None if one of them is outside.
        """
        found = None
        for binding in bindings:
            node = binding.node
            source = next(
                (
                    one.name
                    for one in getattr(node, "names", ())
                    if (one.asname or one.name) == name
                ),
                "",
            )
            path = (
                self.modules.locate(self.path, node.module or "", node.level)
                if source and isinstance(node, ast.ImportFrom)
                else ""
            )
            one = self._find_in_module(path, source) if path else None
            if one is None or (found is not None and one[1] is not found[1]):
                return None
            found = one
        return found

    def find_starred(self, name: str, bindings: Sequence[Binding]) -> Resolved | None:
        """Return the binding of a name from a star import of the tree; the last import wins."""
        last_first = [binding.node for binding in reversed(bindings) if not name.startswith("_")]
        paths = (
            self.modules.locate(self.path, node.module or "", node.level)
            for node in last_first
            if isinstance(node, ast.ImportFrom)
        )
        return next(
            filter(
                None, (self._find_in_module(path, name, starred=True) for path in paths if path)
            ),
            None,
        )

    def _find_in_module(self, path: str, name: str, starred: bool = False) -> Resolved | None:
        modules = self.modules
        mark = path, name
        if (
            mark in modules.requested
            or len(modules.requested) > _DEEPEST
            or (modules.index is not None and name in modules.index.stored)
        ):
            return None
        data = modules.read(path)
        if name.encode() not in data and b"import *" not in data:
            return None
        module = modules.load(path)
        if module is None or (starred and not _is_public(module, name)):
            return None
        modules.requested.add(mark)
        try:
            return module.scope.resolve_name(name)
        finally:
            modules.requested.discard(mark)

    def find_module(self, node: ast.expr, scope: Scope) -> str:
        """Return the file of a module expression, ``npu_utils`` or ``utils.npu``.

        Empty for others, and if its imports differ.
        """
        root = find_root(node)
        found = scope.resolve_name(root.id) if isinstance(root, ast.Name) else None
        if (
            not found
            or not found[1]
            or found[0].home is None
            or any(binding.kind != "import" for binding in found[1])
        ):
            return ""
        text, home = write_source(node), found[0].home
        paths: set[str] = set()
        for bound in (binding.node for binding in found[1]):
            module, level = (
                (bound.module or "", bound.level) if isinstance(bound, ast.ImportFrom) else ("", 0)
            )
            names = [
                f"{module}.{alias.name}".lstrip(".")
                for alias in bound.names
                if (alias.asname or alias.name) == text
            ]
            paths.update(self.modules.locate(home.path, name, level) for name in names)
        return paths.pop() if len(paths) == 1 else ""

    def find_attribute(self, node: ast.Attribute, scope: Scope) -> Resolved | None:
        """Return the binding of a module attribute: ``settings.PRECISION``.

        None if the module is outside the tree.
        """
        path = self.find_module(node.value, scope)
        if not path:
            return None
        owner = write_source(node.value)
        return (
            self._find_in_module(path, node.attr)
            if scope.list_rebound().isdisjoint((f"{owner}.{node.attr}", f"{owner}.*"))
            else None
        )


def _is_public(module: Module, name: str) -> bool:
    """Return whether a star import includes a name: if the module has __all__, only
    listed names.
    """
    names = [binding.node for binding in module.scope.list_bindings("__all__")]
    listed = (
        names[0].elts if len(names) == 1 and isinstance(names[0], (ast.List, ast.Tuple)) else None
    )
    return listed is None or any(
        isinstance(item, ast.Constant) and item.value == name for item in listed
    )
