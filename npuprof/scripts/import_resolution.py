"""Resolves imports within a script's source tree, and assigns settings of helpers to their callers.

The tree is the named folder, else the repository, else the script's own folder. Modules are
searched in the script's folder and its parents, as if these were on Python's path; installed
packages are never read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial

from npuprof.report.text import count_rest
from npuprof.scripts.grouping import group_by
from npuprof.scripts.python.imports import ModuleCache, Modules
from npuprof.scripts.script_records import Followed, ImportedFile, ScriptSetting
from npuprof.system import find_repository_top, join_normal
from npuprof.system.files import read_plain_file

#: In larger trees, the users of a function are unknown.
_MOST_FILES = 5000
#: The same of all its files.
_MOST_OTHERS = 25_000
#: The number of cached imports: those of a folder are looked up one after the other.
_MOST_FOUND = 10_000
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__"))


def open_modules(
    folders: Sequence[str],
    with_sourced: bool = True,
    roots: Sequence[str] = (),
    loaded: ModuleCache | None = None,
) -> Modules:
    """Return the modules of scripts' trees, below one of the folders or in a repository.

    Without ``with_sourced``, shell scripts are read without their sourced files. Modules that are
    not in the tree of a script are searched in ``roots``. The cache ``loaded`` may
    have modules of other trees.
    """
    finder = _Finder(folders)

    def locate(path: str, name: str, level: int) -> str:
        outside = [] if level else [os.path.join(root, "root.py") for root in roots]
        found = (finder.locate(each, name, level) for each in (path, *outside))
        return next(filter(None, found), "")

    return Modules(
        locate if roots else finder.locate,
        _read_module,
        finder.list_files,
        finder.locate_file if with_sourced else None,
        loaded,
    )


def _read_module(path: str) -> bytes | None:
    """Return the content of a module, None if it is unreadable."""
    with suppress(OSError):
        return read_plain_file(path)
    return None


class _Finder:
    """Locates modules; each folder is listed once."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._tops = _resolve_tops(folders)
        self._list_names = cache(list_names)
        self._resolve = cache(os.path.realpath)
        self._list_tree = cache(_list_tree)
        self._list_folders = cache(partial(_climb_to_top, self._tops))
        self._find = lru_cache(_MOST_FOUND)(self._find_module)

    def locate(self, path: str, name: str, level: int) -> str:
        """Return the file of an imported module, empty if it is outside the tree."""
        return self._find(os.path.dirname(path), name, level)

    def locate_file(self, path: str, name: str, is_fixed: bool) -> tuple[str, ...]:
        """Return the files that a path denotes in a script.

        It is relative to the script's folder, or to any folder up to the top.
        """
        top, chain = self._list_folders(os.path.dirname(path))
        files: dict[str, str] = {}
        for folder in chain[:1] if is_fixed else chain:
            file = join_normal(folder, name)
            real = self._resolve(file) if os.path.isfile(file) else ""
            # a link may lead out of the tree
            if real.startswith(os.path.join(top, "")):
                files.setdefault(real, file)
        return tuple(files.values())

    def list_files(self, path: str, name: str = "") -> Sequence[str] | None:
        """Return the Python files of a file's tree, or all with a name; None for a large tree."""
        _, chain = self._list_folders(os.path.dirname(path))
        programs, by_name = self._list_tree(chain[-1])
        if not name:
            return programs
        return None if by_name is None else by_name.get(name, ())

    def _find_module(self, folder: str, name: str, level: int) -> str:
        """Return the file of a module imported in a folder, empty if it is outside the tree.

        ``level`` is the number of dots of a relative import.
        """
        top, chain = self._list_folders(folder)
        parts = [part for part in name.split(".") if part]
        for root in chain[level - 1 : level] if level else chain:
            file = self._find_below(root, parts)
            if file and self._resolve(file).startswith(os.path.join(top, "")):
                return file
            if parts and self._find_below(root, parts[:1]):
                return ""  # hides all others of that name
        return ""

    def _find_below(self, folder: str, parts: list[str]) -> str:
        """Return the file of a module below a folder: a package, or else a file."""
        for part in parts[:-1]:
            if part not in self._list_names(folder):
                return ""
            folder = os.path.join(folder, part)
        names = self._list_names(folder)
        files = []
        if not parts:  # of "from . import name": the package itself
            files.append(os.path.join(folder, "__init__.py"))
        # as in Python, a package comes before a module with its name
        elif parts[-1] in names:
            files.append(os.path.join(folder, parts[-1], "__init__.py"))
        if parts and f"{parts[-1]}.py" in names:
            files.append(os.path.join(folder, f"{parts[-1]}.py"))
        return next(filter(os.path.isfile, files), "")


def list_enclosing_folders(folder: str, named: Sequence[str]) -> list[str]:
    """Return a folder and those above it, up to the top of its tree, relative to it."""
    return _climb_to_top(_resolve_tops(named), folder)[1]


def _resolve_tops(folders: Sequence[str]) -> list[str]:
    """Return the full paths of folders, the longest first: of nested ones, the inner is the top."""
    return sorted((os.path.realpath(folder) for folder in folders), key=len, reverse=True)


def _climb_to_top(tops: Sequence[str], folder: str) -> tuple[str, list[str]]:
    """Return the top of a folder's tree, and the folders from there up to the top.

    They are relative to the folder.
    """
    full = os.path.realpath(folder or ".")
    enclosing = (top for top in tops if f"{full}{os.sep}".startswith(os.path.join(top, "")))
    top = next(enclosing, "") or find_repository_top(full) or full
    levels = os.path.relpath(full, top).count(os.sep) + 1 if full != top else 0
    chain = [folder]
    for _ in range(levels):
        parent = join_normal(chain[-1] or ".", os.pardir)
        chain.append("" if parent == "." else parent)
    return top, chain


def list_names(folder: str) -> frozenset[str]:
    """Return the names in a folder."""
    with suppress(OSError):
        return frozenset(os.listdir(folder or "."))
    return frozenset()


def _list_tree(top: str) -> tuple[tuple[str, ...] | None, dict[str, list[str]] | None]:
    """Return the Python files below a folder, and all by name, None where there are too many."""
    programs: list[str] = []
    files: list[str] = []
    for folder, folders, names in os.walk(top or "."):
        # in place: os.walk enters only these, in this order
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS
        )
        paths = [join_normal(folder, name) for name in sorted(names)]
        programs += [path for path in paths if path.endswith((".py", ".ipynb"))]
        files += paths if len(files) <= _MOST_OTHERS else ()
        if min(len(programs) - _MOST_FILES, len(files) - _MOST_OTHERS) > 0:
            break
    return (
        tuple(programs) if len(programs) <= _MOST_FILES else None,
        group_by(files, os.path.basename) if len(files) <= _MOST_OTHERS else None,
    )


def set_callers_apart(
    files: Iterable[ImportedFile],
) -> tuple[Callable[[ImportedFile], ImportedFile], dict[str, str]]:
    """Return a function that removes settings of callers from a file, and the callers by path.

    A function of a helper that a script calls is read with that script: its settings are the
    script's, and would be counted twice.
    """
    # by the path of the helper: each caller's path, and the part of the helper that it uses
    calls = group_by(
        ((file.file, called) for file in files for called in file.followed),
        lambda call: os.path.normpath(call[1].file),
    )

    def exclude_passed(imported: ImportedFile) -> ImportedFile:
        ranges = [
            (called.first, called.last)
            for _, called in calls.get(os.path.normpath(imported.file), ())
        ]
        if not ranges:
            return imported

        def is_own(setting: ScriptSetting) -> bool:
            if setting.location.call:  # from another file, by a call in this one
                return True
            return not any(first <= setting.line <= last for first, last in ranges)

        return imported._replace(
            settings=tuple(filter(is_own, imported.settings)),
            other_variables=tuple(filter(is_own, imported.other_variables)),
        )

    return exclude_passed, {path: _describe_callers(several) for path, several in calls.items()}


def _describe_callers(calls: list[tuple[str, Followed]]) -> str:
    """Return the callers of a helper, and its functions that they use, as text."""
    callers = dict.fromkeys(file for file, _ in calls)
    names = dict.fromkeys(f"{called.name}()" for _, called in calls if called.name)
    used = f"used by {count_rest(callers)}" + (f" ({count_rest(names)})" if names else "")
    return f"{used}: its settings are in the preset of each script that uses it"
