"""The files of the tree that a script may import, and what becomes of helpers whose settings belong to the scripts that call them.

The tree is the folder that was named, else that of the repository, else the folder of the script itself. Modules are looked for
in the folder of a script, then in the folders above it, as Python would with these on its path; what is installed is never looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from npuprof.report import output
from npuprof.report.text import count_rest
from npuprof.scripts.python.imports import Modules
from npuprof.scripts.records import ImportedFile, ScriptSetting
from npuprof.system.tree import find_repository_top

#: In larger trees it is not known which files name a function.
_MOST_FILES = 5000
_PASSED_OVER = frozenset(("node_modules", "__pycache__"))


def open_modules(folders: Sequence[str] = (), with_sourced: bool = True) -> Modules:
    """Return the modules of the trees of scripts, which lie below one of the folders, or in a repository.

    Unless ``with_sourced``, shell scripts are read without those that they take in.
    """
    finder = _Finder(folders)
    return Modules(finder.locate, _read_module, finder.list_files, finder.locate_file if with_sourced else None)


def _read_module(path: str) -> bytes | None:
    with suppress(OSError):
        return output.read_plain_file(path)
    return None


class _Finder:
    """Where modules lie; each folder is listed once."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._tops = sorted((os.path.realpath(folder) for folder in folders), key=len, reverse=True)
        self._listed: dict[str, frozenset[str]] = {}
        self._chains: dict[str, tuple[str, list[str]]] = {}
        self._inside: dict[tuple[str, str], bool] = {}
        self._known: dict[tuple[str, str, int], str] = {}
        self._files: dict[str, tuple[str, ...] | None] = {}

    def locate(self, path: str, name: str, level: int) -> str:
        """Return the file of a module as the file of another imports it, empty where it is not of the tree."""
        folder = os.path.dirname(path)
        mark = folder, name, level
        if mark not in self._known:
            self._known[mark] = self._find(folder, name, level)
        return self._known[mark]

    def locate_file(self, path: str, name: str, beside: bool) -> tuple[str, ...]:
        """Return the files of the tree that a path means to a script: from its own folder, or else from any folder up to the top."""
        folder = os.path.dirname(path)
        top, chain = self._list_folders(folder)
        found: dict[str, str] = {}
        for place in chain[:1] if beside else chain:
            file = os.path.normpath(os.path.join(place, name))
            real = os.path.realpath(file)
            if os.path.isfile(file) and real.startswith(os.path.join(top, "")):
                found.setdefault(real, file)
        return tuple(found.values())

    def list_files(self, path: str) -> tuple[str, ...] | None:
        """Return the Python files of the tree that a file is in; None where there are too many."""
        folder = os.path.dirname(path)
        top = self._list_folders(folder)[1][-1]
        if top not in self._files:
            found: list[str] = []
            for where, folders, names in os.walk(top or "."):
                folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _PASSED_OVER)
                found += [os.path.normpath(os.path.join(where, name)) for name in sorted(names) if name.endswith((".py", ".ipynb"))]
                if len(found) > _MOST_FILES:
                    break
            self._files[top] = tuple(found) if len(found) <= _MOST_FILES else None
        return self._files[top]

    def _find(self, folder: str, name: str, level: int) -> str:
        top, chain = self._list_folders(folder)
        parts = [part for part in name.split(".") if part]
        if level > len(chain):
            return ""
        names = (parts[0], f"{parts[0]}.py") if parts else ()
        for place in chain[level - 1 : level] if level else chain:
            if names and self._list(place).isdisjoint(names):
                continue
            found = self._find_below(place, parts)
            if found and self._is_inside(found, top):
                return found
            if parts and self._find_below(place, parts[:1]):
                return ""  # it hides all others of that name
        return ""

    def _is_inside(self, file: str, top: str) -> bool:
        if os.path.islink(file):
            return os.path.realpath(file).startswith(os.path.join(top, ""))
        folder = os.path.dirname(file)
        if (folder, top) not in self._inside:
            self._inside[folder, top] = os.path.join(os.path.realpath(folder), "").startswith(os.path.join(top, ""))
        return self._inside[folder, top]

    def _find_below(self, place: str, parts: list[str]) -> str:
        """Return the file of a module that is at a path below a folder: a package, or else a file."""
        for part in parts[:-1]:
            if part not in self._list(place):
                return ""
            place = os.path.join(place, part)
        if parts and parts[-1] not in self._list(place) and f"{parts[-1]}.py" not in self._list(place):
            return ""
        files = (os.path.join(place, *parts[-1:], "__init__.py"), *([os.path.join(place, f"{parts[-1]}.py")] if parts else []))
        return next(filter(os.path.isfile, files), "")

    def _list_folders(self, folder: str) -> tuple[str, list[str]]:
        """Return the top of the tree that a folder is in, and the folders from there up to the top, in the words of the folder."""
        if folder not in self._chains:
            full = os.path.realpath(folder or ".")
            named = next((top for top in self._tops if full == top or full.startswith(os.path.join(top, ""))), "")
            top = named or find_repository_top(full) or full
            depth = len(os.path.relpath(full, top).split(os.sep)) if full != top else 0
            chain = [folder]
            for _ in range(depth):
                above = os.path.normpath(os.path.join(chain[-1] or ".", os.pardir))
                chain.append("" if above == "." else above)
            self._chains[folder] = top, chain
        return self._chains[folder]

    def _list(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            try:
                self._listed[folder] = frozenset(os.listdir(folder or "."))
            except OSError:
                self._listed[folder] = frozenset()
        return self._listed[folder]


def set_callers_apart(files: Iterable[ImportedFile]) -> tuple[Callable[[ImportedFile], ImportedFile], dict[str, str]]:
    """Return what takes out of a file the settings that others of the files have by calling its functions, and who does, by its path."""
    used: dict[str, dict[tuple[int, int], str]] = {}
    users: dict[str, dict[str, None]] = {}
    names: dict[str, dict[str, None]] = {}
    for one in files:
        for called in one.followed:
            path = os.path.normpath(called.file)
            used.setdefault(path, {})[called.first, called.last] = called.name
            users.setdefault(path, {})[one.file] = None
            names.setdefault(path, {}).update({f"{called.name}()": None} if called.name else {})

    def take_out(imported: ImportedFile) -> ImportedFile:
        ranges = used.get(os.path.normpath(imported.file))
        if not ranges:
            return imported

        def is_own(one: ScriptSetting) -> bool:
            return bool(one.place.call) or not any(first <= one.line <= last for first, last in ranges)

        return imported._replace(found=tuple(filter(is_own, imported.found)), others=tuple(filter(is_own, imported.others)))

    return take_out, {path: _describe_callers(callers, names[path]) for path, callers in users.items()}


def _describe_callers(callers: Collection[str], names: Collection[str]) -> str:
    verbs = ("calls", "sources") if len(callers) == 1 else ("call", "source")
    presets = "the preset of that" if len(callers) == 1 else "the presets of those"
    does = f"{verbs[0]} {count_rest(list(names))}" if names else f"{verbs[1]} it"
    return f"{count_rest(list(callers))} {does}: what is set there is in {presets}"
