"""Finds the source of the programs that scripts start, and reads each parser once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from npuprof import catalog
from npuprof.model import find_nearest_names
from npuprof.scripts.import_resolution import list_enclosing_folders, list_names, open_modules
from npuprof.scripts.programs.argparse_calls import ParserReader
from npuprof.scripts.programs.hydra_configs import HydraConfig, read_hydra_config
from npuprof.scripts.programs.parsers import Parser, ParserArgument
from npuprof.scripts.python.imports import ModuleCache
from npuprof.scripts.script_records import UsedFile
from npuprof.scripts.steps import TooManySteps, limit_steps
from npuprof.scripts.words import list_words
from npuprof.system import decode_safely, find_repository_top, is_below, join_normal
from npuprof.system.files import find_packages

#: The flag of an argument, and a field of a class; what begins with a text is searched faster.
_DEFINITIONS = (
    re.compile(rb"""add_argument\(\s*['"]--([\w-]+)"""),
    re.compile(rb"\n    ([A-Za-z]\w+)[ ]*:[ ]*[A-Za-z].*="),
)
#: What may give a module other names than those in its text.
_DYNAMIC = re.compile(rb"import[ \t(]+\*|__getattr__|globals\(\)|setattr\(|sys\.modules")
#: The beginning of a path in a folder near the script, which a command or the current one names.
_SOME_FOLDER = re.compile(r"\A(?:\$\(.*(?:pwd|dirname|realpath).*\)|\.\.)/(?:\.\./)*")
#: Takes a table of defaults, such as a YAML file of arguments.
_TAKES_DEFAULTS = re.compile(rb"\.set_defaults\(\*\*\w")
#: The minimum share of a file's keys that are arguments of its program.
_KNOWN_KEYS = 0.8
#: The minimum similarity of a name and that for which it may be a slip.
_VERY_ALIKE = 0.95
#: The same of a missing path and another one, in a folder that is there and in any other.
_ALIKE, _MORE_ALIKE = 0.7, 0.85
#: The same of a name alone.
_MOST_ALIKE = 0.9
#: This many folders above a script count as near it.
_CLOSE = 3
#: The number of folders from that of a script to the top, if its folder is directly below the top.
_SHALLOW = 2
#: The number of cached parsers: the scripts that start a program are near each other.
_MOST_PARSERS = 100
#: What is read of a program.
Read = TypeVar("Read")


class Programs:
    """The programs of the trees of ``folders``, and of other folders with ``programs``.

    ``loaded`` has the modules of the scan.
    """

    def __init__(
        self,
        folders: Sequence[str],
        programs: Sequence[str] = (),
        loaded: ModuleCache | None = None,
    ) -> None:
        for path in programs:
            os.stat(path)  # a missing one would judge nothing
        self._programs = [os.path.normpath(each) for each in programs]
        roots = [each if os.path.isdir(each) else os.path.dirname(each) for each in self._programs]
        # not the modules of the scan, which keep other words of each file
        self._tops = [*map(_find_top, (*folders, os.curdir)), *roots]
        #: in their folders and in ``src`` there, modules are searched as by a file there
        self._homes = [
            join_normal(top, home, "program.py") for top in self._tops for home in ("", "src")
        ]
        self._modules = open_modules(self._tops, roots=roots, loaded=loaded)
        #: Returns the parser of a program by its file, None if it is not read.
        self.read_parser = lru_cache(_MOST_PARSERS)(
            partial(self._read, ParserReader(self._modules).read)
        )
        self.list_tree = self._modules.list_tree
        self._list_defined = cache(self._find_defined)
        self._list_defaulting = cache(self._find_defaulting)
        #: Returns the module that lacks what a dotted name in a file of a folder has next.
        self.find_lacking = cache(self._find_lacking)
        # launches and configurations have many names in common
        self.find_nearest = cache(self._find_nearest)
        self._finds = cache(self._search)
        #: Returns the top of the tree of a folder, whose launches are compared with the same names.
        self.find_top = cache(_find_top)

    def read_own_parser(self, path: str) -> Parser | None:
        """Return the parser of a program if its file defines one: those of others take longer."""
        return self.read_parser(path) if b"ArgumentParser" in self._modules.read(path) else None

    def find_by_keys(self, path: str, keys: Collection[str]) -> Parser | None:
        """Return the parser that takes a file's keys as defaults, None if there are several.

        It is that of programs in the folders above the file. Its gaps do not matter for defaults.
        """
        found = {}
        for file in chain.from_iterable(map(self._list_defaulting, Path(path).parents)):
            parser = self.read_parser(file)
            if parser and sum(key in parser.keys for key in keys) >= len(keys) * _KNOWN_KEYS:
                found[frozenset(parser.keys)] = parser._replace(gaps=())
        return found.popitem()[1] if len(found) == 1 else None

    def _find_defaulting(self, folder: Path) -> list[str]:
        """Return the programs in a folder that take a table of defaults, or import what does."""
        return [
            file
            for file in map(str, sorted(folder.glob("*.py")))
            if any(is_below(file, top) for top in self._tops)
            for each in (file, *self._modules.list_imported(file))
            if _TAKES_DEFAULTS.search(self._modules.read(each))
        ]

    def find(self, file: str, script: str, module: str) -> str:
        """Return the file of a program that a script starts, empty if it is not found."""
        if module:
            return self._find_module(file, module)
        locate = self._modules.locate_file
        if locate and not os.path.isabs(script):
            near = _SOME_FOLDER.sub("", script)
            if found := locate(file, script, False) or locate(file, near, False):
                return found[0] if len(found) == 1 else ""
        names = (script, os.path.basename(script))
        below = [os.path.join(top, name) for top in self._programs for name in names]
        below += [each for each in self._programs if os.path.basename(each) in names]
        return next(filter(_is_python, below), "")

    def _locate_all(self, file: str, *modules: str) -> list[str]:
        """Return the files of modules, by the folders above a file and those of the trees."""
        homes = (os.path.normpath(file), *self._homes)
        found = [self._modules.locate(each, name, 0) for each in homes for name in modules]
        return [*filter(None, found)]

    def _find_module(self, file: str, module: str) -> str:
        found = self._locate_all(file, f"{module}.__main__", module)
        package, *rest = module.split(".")
        for folder in find_packages(package)[:1]:
            path = os.path.join(folder, *rest)
            found += filter(os.path.isfile, (f"{path}.py", f"{path}/__main__.py"))
        return next((each for each in found if not each.endswith("__init__.py")), "")

    def find_package(self, file: str, module: str) -> str:
        """Return the package in the tree of a script that should have a module, empty if none.

        A package that the tree lacks may be elsewhere, as ``package_dir`` of setuptools says.
        """
        package, found = module, ""
        while not found and (package := package.rpartition(".")[0]):
            found = self._modules.locate(file, package, 0)
        if not found.endswith("__init__.py"):
            return ""
        end = f"{'/'.join(module.split('.')[-2:])}.py"
        # another folder may be mapped to one of the package
        is_direct = module.count(".") == package.count(".") + 1
        is_missing = is_direct or self._list_ends(file, end) == []
        return os.path.dirname(found) if is_missing else ""

    def _find_lacking(self, folder: str, name: str) -> str:
        file, module, part = os.path.join(folder, "program"), name, ""
        while not (files := self._locate_all(file, module)):
            module, _, part = module.rpartition(".")
            if not module:
                return ""
        found = files[0]
        top = found.rpartition(module.replace(".", "/"))[0]
        data = self._modules.read(found)
        is_there = (
            part.encode() in list_words(data)
            or _DYNAMIC.search(data)
            or os.path.exists(os.path.join(os.path.dirname(found), part))
            or os.path.exists(f"{top}__init__.py")  # another package with the name of a folder
        )
        return "" if is_there else found

    def _list_ends(self, file: str, end: str) -> list[str] | None:
        """Return the files in the tree of a script with an end, None for a large tree."""
        named = self.list_tree(file, os.path.basename(end))
        return None if named is None else [each for each in named if f"/{each}".endswith(f"/{end}")]

    def find_missing(self, file: str, used: Sequence[UsedFile]) -> Iterator[tuple[UsedFile, str]]:
        """Yield the paths of a script that its tree lacks, with hints, but for those in doubt."""
        found: list[UsedFile] = []
        missing: list[UsedFile] = []
        if locate := self._modules.locate_file:
            for each in used:
                (found if locate(file, each.path, each.is_fixed) else missing).append(each)
        if not missing:
            return
        above = [each or "." for each in list_enclosing_folders(os.path.dirname(file), self._tops)]
        # one at the top is started there; of others, files that are there tell the folder
        starts = [
            home
            for home in above
            if any(
                os.path.isfile(os.path.join(home, each.path))
                for each in used
                if not (each.is_fixed or each.is_open)
            )
        ]
        # what git ignores or takes from other repositories, and what the script has elsewhere
        unclear = {os.path.basename(each.path) for each in found} | {
            re.split("[/= ]", line.rstrip().rstrip("/*"))[-1]
            for name in (".gitignore", ".gitmodules")
            for line in decode_safely(self._modules.read(f"{above[-1]}/{name}")).splitlines()
        }
        for each in missing:
            homes = above[:1] if each.is_fixed else starts if len(starts) == 1 else above
            is_certain = len(homes) == 1 and not each.is_open
            hint = self._find_near(file, each, homes, is_certain, unclear)
            # a path that may begin anywhere is searched in the whole tree
            if hint and (is_certain or self._list_ends(file, each.path) == []):
                yield each, hint

    def _find_near(
        self, file: str, used: UsedFile, homes: Sequence[str], is_certain: bool, unclear: set[str]
    ) -> str:
        """Return a hint about a missing path, empty if it may be right.

        It is relative to one of some folders, or to the only one if that ``is_certain``. Paths
        with ``unclear`` names may be right.
        """
        path = used.path
        folder, name = os.path.split(path)
        parts, ending = folder.split("/"), os.path.splitext(name)[1]
        if not unclear.isdisjoint((*filter(None, parts), name, f"*{ending}")):
            return ""
        found = (
            (length, home)
            for length in (len(parts), 2, 1)
            for home in homes
            if os.path.isdir(os.path.join(home, *parts[:length]))
        )
        length, home = next(found, (0, homes[0]))
        if os.path.lexists(os.path.join(home, path)):  # a link out of the tree, or to nothing
            return ""
        here = join_normal(home, folder)
        # for a name alone, a scan of single files does not search the tree
        is_searched = not used.is_open and (folder or len(self._tops) > 1)
        same = self._list_ends(file, name) if is_searched else []
        moved = [os.path.relpath(each, home) for each in same or ()]
        beside = sorted(each for each in list_names(here) if each.endswith(ending))
        is_program = ending in (".py", ".sh")
        is_there = length == len(parts) and folder and not used.is_open
        near: Sequence[str] = ()
        if len(moved) == 1:
            where = os.path.dirname(join_normal(home, moved[0]))
            # deeper folders may be parts of other repositories
            is_own = not length and len(homes) <= _SHALLOW and where == os.path.dirname(file)
            if is_own or _is_like(folder, os.path.dirname(moved[0]), is_certain):
                near = moved
        inside = [each for each in moved if not each.startswith(os.pardir)]
        if is_certain and len(inside) == 1:
            near = inside
        if length and not near:
            likeness = _MORE_ALIKE if length == 1 < len(parts) else _ALIKE
            near = folder and find_nearest_names(path, moved, 1, likeness)
            is_own = here == (os.path.dirname(file) or ".")
            if not near and (ending != ".json" or "conf" in path or is_own):  # others are data
                is_near = is_there or (is_certain and is_program and is_own)
                likeness = _ALIKE if is_near else _MORE_ALIKE if folder else _MOST_ALIKE
                nearest = find_nearest_names(name, beside, 1, likeness)
                near = [os.path.join(folder, each) for each in nearest]
        if near:
            return f"did you mean {near[0]}?"
        is_close = len(parts) > 1 or home in homes[:_CLOSE]
        is_gone = is_program and is_there and is_close and len(beside) > 1 - is_certain
        return "correct the path" if is_gone else ""

    def read_named(self, read: Callable[[str], Read | None]) -> list[Read]:
        """Return what is read of the named programs, and of those in the named folders."""
        inside = (f"{top}/{name}" for top in self._programs for name in sorted(list_names(top)))
        return [*filter(None, map(read, filter(_is_python, (*self._programs, *inside))))]

    def read_config(self, path: str, overrides: Mapping[str, Any]) -> HydraConfig | None:
        """Return the configuration of a program of Hydra, None if it is not read."""
        return self._read(read_hydra_config, path, self._modules, overrides)

    def _read(self, read: Callable[..., Read | None], path: str, *others: Any) -> Read | None:
        """Return what is read of a program, None for a path that is empty."""
        with suppress(TooManySteps, RecursionError), limit_steps():
            return read(path, *others) if path else None
        return None

    def list_defined(self, path: str, is_reported: bool = False) -> dict[str, ParserArgument]:
        """Return the arguments that the tree of a program defines, by flag: any may be its own.

        A scan of single files searches no tree, unless a finding ``is_reported`` without that.
        """
        is_searched = is_reported or len(self._tops) > 1
        return self._list_defined((is_searched and self.list_tree(path)) or ())

    def _find_nearest(self, section: str, name: str, folder: str) -> str:
        """Return the known name for which an unknown one is likely a slip, empty if there is none.

        Known are the names of a section, and those that the tree of a folder defines.
        """
        defined = self.list_defined(os.path.join(folder, "program"))
        recorded = catalog.record_names(section)
        if f"--{name}" in defined or name in recorded:
            return ""
        table, dot, last = name.rpartition(".")
        if dot:  # the names of tables are long, and alike in all keys below one
            keys = [key for key in recorded if key.rpartition(".")[0] == table]
            beside = [key.removeprefix(f"{table}.") for key in keys]
            near = find_nearest_names(last, beside, 1, _MOST_ALIKE)
            return f"{table}.{near[0]}" if near else ""
        names = (*recorded, *(flag[2:] for flag in defined))
        for nearest in find_nearest_names(name, names, 1, _VERY_ALIKE):
            if SequenceMatcher(None, name, nearest).ratio() >= _VERY_ALIKE:  # in its letter case
                return nearest
        same = (each for each in names if len(each) == len(name) and sorted(each) == sorted(name))
        return next(same, "")

    def _find_defined(self, files: Sequence[str]) -> dict[str, ParserArgument]:
        found = {}
        for file in files:
            data = self._modules.read(file)
            for name in chain(*(pattern.findall(data) for pattern in _DEFINITIONS)):
                flag = f"--{name.decode()}"
                found[flag] = found[flag.replace("_", "-")] = ParserArgument((flag,), file)
        return found

    def is_quoted(self, flag: str, path: str, files: Sequence[str] | None = None) -> bool:
        """Return whether files of a program have the name of an unknown flag elsewhere.

        Without files, all those in the tree of a path count.
        """
        name = re.escape(flag.lstrip("-"))
        pattern = rf"['\"]{re.escape(flag)}['\"=]"  # what the arguments are compared with
        if files is None:
            either = re.sub(r"\\-|_", "[-_]", name)
            # with or without dashes; a pattern that begins with a fixed text is searched faster
            pattern = (
                rf"{either}(?![\w-])"
                rf"(?:(?<![\w-]{either})|(?<=--{either})(?<![\w-]--{either}))"
            )
            files = self.list_tree(path)
        if files is None:
            return True
        # a search for a fixed text is faster than the pattern
        return self._finds(max(re.split("[-_]", flag), key=len).encode(), pattern, files)

    def _search(self, part: bytes, pattern: str, files: Sequence[str]) -> bool:
        """Return whether a pattern, whose matches have a fixed part, is found in some files."""
        quoted = re.compile(pattern.encode())
        return any(part in data and quoted.search(data) for data in map(self._modules.read, files))


def _is_like(folder: str, other: str, is_certain: bool) -> bool:
    """Return whether a folder, which may be ``is_certain``, has the names of another one."""
    names, others = ({*each.split("/")} - {""} for each in (folder, other))
    if other.count("..") > folder.count("..") + bool(names):
        return False
    if not is_certain:
        return bool(names) and names <= others
    near = find_nearest_names(folder, [other], 1, _ALIKE)
    return names <= others or others <= names or bool(near)


def _is_python(path: str) -> bool:
    return path.endswith(".py") and os.path.isfile(path)


def _find_top(folder: str) -> str:
    """Return the top of a program's tree: its repository, else the current folder above it."""
    here = os.getcwd()
    top = find_repository_top(folder) or (here if is_below(folder, here) else folder)
    return os.path.relpath(top) if is_below(top, here) else top
