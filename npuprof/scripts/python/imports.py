"""Modules of a script's source tree: read once, on demand, and never executed.

Functions passed by the caller locate and read modules: this module does not access folders.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from typing import NamedTuple

from npuprof.scripts.python.calls import name_method
from npuprof.scripts.python.expressions import find_root, write_source
from npuprof.scripts.python.module import Module, NodeIndex
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.scopes import Binding, Resolved, Scope
from npuprof.scripts.steps import count_steps
from npuprof.scripts.words import ONLY_CALLS, list_words, split_words
from npuprof.system import decode_safely

#: The size of all cached files, in bytes: scripts that share a helper are read one after the other.
#: Trees take forty times as much.
_MOST_CACHED = 1_300_000
#: The number of cached texts, which are much smaller: an import cycle reads its files in turn.
_MOST_TEXTS = 300
#: The size above which scripts are not cached, in bytes: their trees are a hundred times larger.
_LARGEST_CACHED = 100_000
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
    rb"[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n]*)"
    rb"|import[ \t]+(?P<modules>[\w., \t]+))"
)
_NAME = re.compile(r"\w+")
_WORD = re.compile(rb"\w+")
_IMPORT_KEYWORD = re.compile(rb"import\b")
#: The options of TensorFlow 2.
OPTIONS = re.compile(
    rb"\b(?:npu\w*\.global_options|global_options(?=\(\))|import\s*\(?[\w\s,]*\bglobal_options)\b"
)
#: An object of a module.
_INSTANCE = re.compile(rb"^(\w+)[ \t]*=[ \t]*(\w+)\(", re.MULTILINE)
_DEFINED = re.compile(rb"(?:def|class)[ \t]+(?P<name>\w+)")
#: The start of a function, class or outer compound statement.
_HEAD = re.compile(
    rb"\n(?:(?P<blank>[ \t]*)(?:(?:async[ \t]+)?def|(?P<class>class))[\s\\]+(?P<name>\w+)"
    rb"(?(class)(?:\((?P<bases>[^()]*))?)"
    rb"|(?:if|elif|else|try|except|finally|with|for|while)\b)"
)

#: Returns the file of a module, given the importing file, the dotted name, and the number of
#: leading dots. Empty for others.
Locate = Callable[[str, str, int], str]
#: Returns the bytes of a file, None if it cannot be read.
Read = Callable[[str], "bytes | None"]
#: Whether a part of a text can set something: arguments are the whole text, the part, and whether
#: it is a class whose methods set something together.
CanSet = Callable[[bytes, bytes, bool], bool]
#: Returns the Python files of a file's tree; None if there are too many.
ListFiles = Callable[..., "Sequence[str] | None"]
#: Returns the files that a path may denote: relative to the script, or to an unknown start folder.
LocateFile = Callable[[str, str, bool], "tuple[str, ...]"]


@lru_cache(100)  # the files of an import cycle supply the same names
def _list_owners(names: frozenset[bytes]) -> frozenset[bytes]:
    """Return the functions, and the classes of the methods."""
    return frozenset(name.partition(b".")[0] for name in names)


def _get_folder(path: str) -> str:
    return path[: max(path.rfind("/"), path.rfind("\\")) + 1]


def has_options(data: bytes) -> bool:
    """Return whether a text has the options of TensorFlow 2."""
    # a search for a fixed text is faster than the pattern
    return b"global_options" in data and OPTIONS.search(data) is not None


class ImportLine(NamedTuple):
    """An import in a text: ``source`` and ``names`` of ``from``, else the ``modules``.

    A tuple, as each import of a tree is looked up by its hash.
    """

    source: bytes
    names: bytes
    modules: bytes


class ModuleCache:
    """The last used texts and scripts of some trees, each script with its modules in these."""

    def __init__(self, read: Read) -> None:
        #: Returns the bytes of a module, empty if it cannot be read.
        self.read = lru_cache(_MOST_TEXTS)(lambda path: read(path) or b"")
        #: by path and content, the last used at the end
        self._kept: OrderedDict[tuple[str, bytes], tuple[Script, dict[Modules, Module]]]
        self._kept = OrderedDict()
        #: the modules of the current script, by tree and path
        self.used: dict[tuple[Modules, str], Module | None] = {}

    def load(self, path: str, data: bytes, tree: Modules) -> Module | None:
        """Return the module of a script in a tree; None if it cannot be parsed."""
        if (path, data) not in self._kept:
            self._add(Script(path, data), data)
        self._kept.move_to_end((path, data))
        script, modules = self._kept[path, data]
        if script.tree is not None and tree not in modules:
            modules[tree] = Module(script, tree.open_home(path))
        return modules.get(tree)

    def pop_script(self, path: str, data: bytes) -> Script:
        """Return a parsed script, with the tree that an importer loaded before, if there is one.

        Its modules are dropped: an import cycle parses the file again, as functions are
        distinguished by their nodes.
        """
        kept = self._kept.pop((path, data), None)
        return kept[0] if kept is not None else Script(path, data)

    def keep_script(self, script: Script, data: bytes) -> None:
        """Keep the tree of a script for importers that load it next.

        Unless the script is large or has problems.
        """
        if not script.problems and len(data) <= _LARGEST_CACHED:
            self._add(script, data)

    def _add(self, script: Script, data: bytes) -> None:
        self._kept[script.path, data] = script, {}
        size = sum(len(text) for _, text in self._kept)
        while size > _MOST_CACHED and len(self._kept) > 1:
            (_, text), _ = self._kept.popitem(last=False)
            size -= len(text)


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
        loaded: ModuleCache | None = None,
    ) -> None:
        self.locate_file = locate_file
        self._locate = locate
        self.loaded = loaded or ModuleCache(read)
        #: Returns the Python files of a file's tree, or all with a name; None for a large tree.
        self.list_tree = list_files
        self._find_importers = lru_cache(1)(self._index_importers)
        self.read = self.loaded.read
        self._locate_line = lru_cache(_MOST_LINES)(self._find_imported)
        #: Returns the import context of a file.
        self.open_home = cache(lambda path: Home(path, self))
        self._imports: dict[str, tuple[str, ...]] = {}
        self._names_options = cache(lambda path: has_options(self.read(path)))
        #: Returns the names of a module's functions and classes.
        self.list_defined = cache(
            lambda path: frozenset(map(decode_safely, _DEFINED.findall(self.read(path))))
        )
        self._foreign: dict[tuple[str, bytes], bool] = {}
        self._supplied: dict[str, frozenset[bytes]] = {}
        self._setters: dict[str, set[bytes]] = {}
        #: the methods that may set something, by their name
        self._classes = defaultdict[bytes, set[bytes]](set)
        self.requested: set[tuple[str, str]] = set()
        #: the index of the current script, whose assignments may rebind names of modules
        self.index: NodeIndex | None = None

    def replace_texts(self, texts: Mapping[str, bytes]) -> Modules:
        """Return the same files, some of them with other content."""
        return Modules(
            self._locate,
            lambda path: texts.get(path) or self.read(path),
            self.list_tree,
            self.locate_file,
        )

    def locate(self, path: str, name: str, level: int) -> str:
        """Return the file of an imported module.

        Empty for modules outside the tree, and for the file itself.
        """
        top_package, _, _ = name.partition(".")
        if not level and top_package in _FOREIGN:
            return ""
        file = self._locate(path, name, level)
        return file if file != path else ""

    def load(self, path: str) -> Module | None:
        """Return the module of a file; None if it cannot be parsed."""
        # whether another script has it in the cache changes neither its nodes nor the steps
        used = self.loaded.used
        if (self, path) not in used:
            data = self.read(path)
            count_steps(len(data) // 4)
            used[self, path] = self.loaded.load(path, data, self)
        return used[self, path]

    def begin_script(self, index: NodeIndex) -> None:
        """Start reading another script."""
        self.index = index
        self.loaded.used.clear()

    def list_imported(self, path: str, data: bytes | None = None) -> tuple[str, ...]:
        """Return the files of the tree that a text imports, without parsing it.

        By default the text of the file.
        """
        if path not in self._imports:
            # by folder, so that all its files share the answers
            folder = _get_folder(path)
            files = {}
            for line in _iterate_imports(self.read(path) if data is None else data):
                files.update(dict.fromkeys(self._locate_line(folder, line)))
            self._imports[path] = tuple(file for file in files if file not in ("", path))
        return self._imports[path]

    def has_options(self, path: str) -> bool:
        """Return whether a module, or one that it imports, names the options of TensorFlow 2."""
        return any(map(self._names_options, (path, *self.list_imported(path))))

    def _find_imported(self, folder: str, line: ImportLine) -> list[str]:
        """Return the files of the tree that an import may mean in a folder, empty for others.

        The folder ends in a slash.
        """
        if line.modules:
            files = []
            for module in decode_safely(line.modules).split(","):
                name, _, _ = module.strip().partition(" ")  # without its alias
                files.append(self.locate(folder, name, 0))
            return files
        source = decode_safely(line.source).lstrip(".")
        level = len(line.source) - len(line.source.lstrip(b"."))
        file = self.locate(folder, source, level)
        # a file, unlike a package, has no modules inside
        if file and not file.endswith("__init__.py"):
            return [file]
        # the names may be modules of a package
        names, _, _ = line.names.partition(b"#")
        modules = [f"{source}.{name}".lstrip(".") for name in _NAME.findall(decode_safely(names))]
        return [file, *(self.locate(folder, module, level) for module in modules)]

    def is_named_elsewhere(self, path: str, name: str) -> bool:
        """Return whether a file that may import another one contains a name.

        True if there are too many files.
        """
        files = self.list_tree(path)
        if files is None:
            return True
        stem, _ = posixpath.splitext(posixpath.basename(path.replace("\\", "/")))
        importers = self._find_importers(files).get(stem, ())
        return any(
            name.encode() in self.read(importer) for importer in importers if importer != path
        )

    def _index_importers(self, files: tuple[str, ...]) -> dict[str, list[str]]:
        """Return the files that import modules, by each name in their imports."""
        importers = defaultdict(list)
        for path in files:
            for name in _list_import_words(self.read(path)):
                importers[decode_safely(name)].append(path)
        return importers

    def may_call(self, path: str, data: bytes, can_set: CanSet, by_word: bool = False) -> bool:
        """Return whether a text calls something that sets settings in imported modules.

        Without parsing it. With ``by_word``, naming it is enough.
        """
        words = list_words(data)
        files = self.list_imported(path, data)
        parts = {names for file in files if (names := self.list_supplied(file, can_set))}
        # most texts have no such word at all
        if all(map(words.isdisjoint, map(_list_owners, parts))):
            return False
        supplied = frozenset().union(*parts)
        called = _list_called(data, _list_import_words(data)).union(
            *(split_words(head["bases"] or b"") for head in _HEAD.finditer(b"\n" + data))
        )
        # options of TensorFlow 2 may have any name
        return not supplied.isdisjoint(words if by_word or b"" in supplied else called) or any(
            each in supplied and each.rpartition(b".")[0] in words
            for name in called
            if name[:1] == b"."
            for each in self._classes.get(name[1:], ())
        )

    def _is_foreign(self, path: str, cls: bytes) -> bool:
        """Return whether a class of a module has a base outside the tree: no call enters it."""
        if (path, cls) in self._foreign:
            return self._foreign[path, cls]
        self._foreign[path, cls] = False  # for import cycles
        data = self.read(path)
        if found := re.search(rb"(?m)^class[ \t]+%b[ \t]*\(([^()]*)\)" % cls, data):
            is_foreign = any(
                self._is_foreign(path, base)
                for base in map(bytes.strip, found[1].split(b","))
                if _WORD.fullmatch(base) and base not in (b"object", b"ABC")
            )
        else:
            lines = [line for line in _iterate_imports(data) if cls in split_words(line.names)]
            files = {
                # under another name, a class may be any
                path if b" as " in line.names else file
                for line in lines
                for file in self._locate_line(_get_folder(path), line)
            }
            is_foreign = bool(lines) and all(self._is_foreign(file, cls) for file in files - {""})
        self._foreign[path, cls] = is_foreign
        return is_foreign

    def list_setters(self, path: str, can_set: CanSet) -> Set[bytes]:
        """Return the functions and classes that a module defines and that may set something."""
        self.list_supplied(path, can_set)
        return self._setters.get(path, set())

    def list_supplied(self, path: str, can_set: CanSet) -> frozenset[bytes]:
        """Return the functions and classes of a module that may set something, by text.

        Including re-exported ones. All its words if it shares the options of TensorFlow 2, as any
        of them may denote these.
        """
        if path not in self._supplied:
            for cycle in self._iterate_cycles(path):
                # modules of a cycle re-export each other's names, so they all have the same
                imported = {file for member in cycle for file in self.list_imported(member)}
                parts = {self._supplied[file] for file in imported.difference(cycle)}
                # most modules add nothing: the same object is compared and hashed once
                names = parts.pop() if len(parts) == 1 else frozenset().union(*parts)
                own = self._list_own_names(cycle, can_set, names)
                supplied = names if own == names else frozenset(own)
                self._supplied.update(dict.fromkeys(cycle, supplied))
        return self._supplied[path]

    def _iterate_cycles(self, start: str) -> Iterator[list[str]]:
        """Yield each import cycle that a module reaches, and each module without one.

        These are the strongly connected components (Tarjan) of the import graph that have no names
        yet, imported ones first.
        """
        waiting = [(start, iter(self.list_imported(start)))]
        opened = [start]  # modules whose cycle is not complete
        numbers = {start: 0}
        lowest = {start: 0}  # by module, the first module of its cycle, as far as it is known
        while waiting:
            path, imported = waiting[-1]
            file = next((file for file in imported if file not in self._supplied), "")
            if file in numbers:
                lowest[path] = min(lowest[path], numbers[file])
            elif file:
                numbers[file] = lowest[file] = len(numbers)
                opened.append(file)
                waiting.append((file, iter(self.list_imported(file))))
            else:
                waiting.pop()
                for importer, _ in waiting[-1:]:
                    lowest[importer] = min(lowest[importer], lowest[path])
                if lowest[path] == numbers[path]:
                    cycle = opened[opened.index(path) :]
                    del opened[-len(cycle) :]
                    yield cycle

    def _list_own_names(
        self, paths: list[str], can_set: CanSet, imported: frozenset[bytes]
    ) -> set[bytes]:
        """Return the names that modules of a cycle supply, given those from outside the cycle."""
        names = set(imported)
        words: dict[str, frozenset[bytes]] = {}
        for path in paths:
            data = self.read(path)
            if self._names_options(path):
                self._setters[path] = {b"", *list_words(data)}
                names |= self._setters[path]
            else:
                words[path] = list_words(data)
                if can_set(data, data, False):
                    words[path] |= {b""}
        others = list(words)
        callers = defaultdict[bytes, list[_Mention]](list)
        heirs = defaultdict[bytes, set[bytes]](set)
        direct = {b""} - names
        names.add(b"")
        fresh = set(names)
        while fresh:
            parts = {part for name in fresh for part in name.split(b".")}
            for path in [each for each in others if not parts.isdisjoint(words[each])]:
                others.remove(path)
                data = self.read(path)
                for name, cls in _INSTANCE.findall(data):
                    heirs[cls].add(name)
                for mention in _iterate_mentions(path, data, can_set, b"" in words[path]):
                    for word in mention.called:
                        callers[word].append(mention)
                    for cls in mention.bases:
                        heirs[cls].add(mention.owners[0])
            found = set[bytes]()
            for name in fresh:
                cls, _, method = name.rpartition(b".")
                if cls:
                    self._classes[method].add(name)
                    found.update(b"%b.%b" % (heir, method) for heir in heirs[cls])
                for mention in callers[b"." + method if cls else method]:
                    if not cls or cls in words[mention.path]:
                        self._setters.setdefault(mention.path, set()).update(mention.owners)
                        found.update(
                            owner
                            for owner in mention.owners
                            if not self._is_foreign(mention.path, owner.partition(b".")[0])
                        )
            fresh = found - names
            names |= fresh
        return names - direct


class _Mention(NamedTuple):
    """The names that a function calls, and the names of itself and of the functions around it.

    A class stands for its constructor. What can set something calls an empty name.
    """

    path: str
    owners: list[bytes]
    called: set[bytes]
    bases: list[bytes]


def _iterate_mentions(path: str, data: bytes, can_set: CanSet, sets: bool) -> Iterator[_Mention]:
    """Yield the mentions in a text; ``sets`` is whether it can set something."""
    imported = _list_import_words(data)
    heads = [*_HEAD.finditer(b"\n" + data)]  # their start is that of the line in the text
    indents = [len(head["blank"] or b"") for head in heads]
    starts = [*(head.start() for head in heads), len(data)]
    around: list[tuple[int, bytes, bool, bool]] = []  # indentation, name, is class, and sets
    for number, (head, indent) in enumerate(zip(heads, indents, strict=True)):
        while around and around[-1][0] >= indent:
            around.pop()
        if not (name := head["name"]):
            continue
        is_class = head["class"] is not None
        _, outer, in_class, all_set = around[-1] if around else (0, b"", False, False)
        start, end = starts[number : number + 2]
        called, bases = set[bytes](), list[bytes]()
        owners = [name_method(outer, name) if in_class and not is_class else name]
        if is_class:
            last = number + 1
            while last < len(heads) and indents[last] > indent:
                last += 1
            all_set = sets and can_set(data, data[start : starts[last]], True)
            bases = split_words(head["bases"] or b"")
            called = set(bases)
        else:
            all_set = in_class and all_set
            owners += [each for _, each, is_outer_class, _ in around if not is_outer_class]
            called = _list_called(data[head.end() - 1 : end], imported)
        if all_set or (sets and not is_class and can_set(data, data[start:end], False)):
            called.add(b"")
        around.append((indent, owners[0], is_class, all_set))
        yield _Mention(path, owners, called, bases)


def _list_called(data: bytes, imported: frozenset[bytes]) -> set[bytes]:
    """Return the names in a text before a bracket, or those that an import renames.

    With a dot before those of methods; what is in an imported module may be a function too.
    """
    called = set[bytes]()
    for piece in set(data.translate(ONLY_CALLS).replace(b" as ", b"(").split(b"(")[:-1]):
        owner, dot, name = piece.rstrip().rpartition(b" ")[2].rpartition(b".")
        if dot:
            called.add(b"." + name)
        if not dot or owner.partition(b".")[0] in imported:
            called.add(name)
    return called - {b""}


def _list_import_words(data: bytes) -> frozenset[bytes]:
    """Return the words of the imports of a text."""
    return frozenset(split_words(b" ".join(map(b" ".join, _iterate_imports(data)))))


def _iterate_imports(data: bytes) -> Iterator[ImportLine]:
    """Yield the imports of a text."""
    end = 0
    for keyword in _IMPORT_KEYWORD.finditer(data):
        if keyword.start() < end:
            continue  # inside the import before
        line_start = data.rfind(b"\n", 0, keyword.start()) + 1
        match = _IMPORT.match(data, line_start)
        if match is not None:
            end = match.end()
            yield ImportLine(match["source"] or b"", match["names"] or b"", match["modules"] or b"")


class Home:
    """A file as the context of its imports."""

    def __init__(self, path: str, modules: Modules) -> None:
        self.path = path
        self.modules = modules

    def find_name(self, name: str, bindings: Iterable[Binding]) -> Resolved | None:
        """Return the binding of a name imported from modules of the tree.

        None if one of them is outside, or if they differ.
        """
        common: Resolved | None = None
        for binding in bindings:
            resolved = self._find_imported_name(name, binding.node)
            if resolved is None:
                return None
            if common is not None:
                _, before = common
                _, bindings_there = resolved
                if bindings_there is not before:
                    return None
            common = resolved
        return common

    def _find_imported_name(self, name: str, node: ast.AST) -> Resolved | None:
        """Return the binding of a name that an import statement binds."""
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    path = self.modules.locate(self.path, node.module or "", node.level)
                    return self._find_in_module(path, alias.name)
        return None

    def find_starred(self, name: str, bindings: Sequence[Binding]) -> Resolved | None:
        """Return the binding of a name from a star import of the tree; the last import wins."""
        # a star import leaves such names out
        if name.startswith("_"):
            return None
        for binding in reversed(bindings):
            node = binding.node
            if isinstance(node, ast.ImportFrom):
                path = self.modules.locate(self.path, node.module or "", node.level)
                resolved = self._find_in_module(path, name, starred=True)
                if resolved is not None:
                    return resolved
        return None

    def _find_in_module(self, path: str, name: str, starred: bool = False) -> Resolved | None:
        count_steps(10)  # locating and searching the file takes longer than other steps
        modules = self.modules
        request = path, name
        if not path or request in modules.requested or len(modules.requested) > _DEEPEST:
            return None  # outside the tree, an import cycle, or a long chain
        # the script may assign the name in that module
        if modules.index is not None and name in modules.index.stored:
            return None
        # parsing is the expensive part: the bytes tell that most modules do not define the name
        if (modules, path) not in modules.loaded.used:
            data = modules.read(path)
            if name.encode() not in data and b"import *" not in data:
                return None
        module = modules.load(path)
        if module is None or (starred and not _is_public(module, name)):
            return None
        modules.requested.add(request)
        try:
            return module.scope.resolve_name(name)
        finally:
            modules.requested.discard(request)

    def find_module(self, node: ast.expr, scope: Scope) -> str:
        """Return the file of a module expression, ``npu_utils`` or ``utils.npu``.

        Empty for others, and if its imports differ.
        """
        root = find_root(node)
        resolved = scope.resolve_name(root.id) if isinstance(root, ast.Name) else None
        if resolved is None:
            return ""
        binding_scope, bindings = resolved
        home = binding_scope.home
        if home is None or any(binding.kind != "import" for binding in bindings):
            return ""
        text = write_source(node)
        paths = set()
        for binding in bindings:
            statement = binding.node
            prefix, level = "", 0
            if isinstance(statement, ast.ImportFrom):
                prefix, level = f"{statement.module or ''}.", statement.level
            for alias in statement.names:
                if (alias.asname or alias.name) == text:
                    module = f"{prefix}{alias.name}".lstrip(".")
                    paths.add(self.modules.locate(home.path, module, level))
        return paths.pop() if len(paths) == 1 else ""

    def find_attribute(self, node: ast.Attribute, scope: Scope) -> Resolved | None:
        """Return the binding of a module attribute: ``settings.PRECISION``.

        None if the module is outside the tree, or if the script assigns the attribute.
        """
        path = self.find_module(node.value, scope)
        if not path:
            return None
        owner = write_source(node.value)
        # setattr() may have set any attribute of the module
        if scope.list_rebound().isdisjoint((f"{owner}.{node.attr}", f"{owner}.*")):
            return self._find_in_module(path, node.attr)
        return None


def _is_public(module: Module, name: str) -> bool:
    """Return whether a star import includes a name.

    If the module has a literal ``__all__``, only its names.
    """
    match [binding.node for binding in module.scope.list_bindings("__all__")]:
        case [ast.List(items) | ast.Tuple(items)]:
            return any(isinstance(item, ast.Constant) and item.value == name for item in items)
    return True
