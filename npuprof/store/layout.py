"""The layout of presets: below the store's folder, or outside of it by ``npuprof.toml``.

The only module that converts between paths and names.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache

from npuprof.document import parse_toml_text
from npuprof.model import Record
from npuprof.store import FILE, LOCK_FILE

#: A file or folder: its name, and its mode, that of the link itself for a link.
_Entry = tuple[str, int]


#: The remaining segments of the globs in a folder.
GlobState = frozenset[tuple[str, ...]]


class Located(Record):
    """The preset name of a file, and whether it is outside the store's folder."""

    name: str
    outside: bool


class Layout(Record):
    """The layout of a repository's presets.

    ``prefix`` is the store's folder from the top, ending in ``/``, or empty. ``globs`` match files
    outside of it, relative to ``npuprof.toml``; such a preset is named by its path from there.
    """

    prefix: str
    globs: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The folder of ``npuprof.toml`` from the top, ending in ``/``, or empty."""
        folder = posixpath.dirname(self.prefix.rstrip("/"))
        return f"{folder}/" if folder else ""

    @property
    def project_file(self) -> str:
        """The path of ``npuprof.toml`` from the top."""
        return f"{self.base}{FILE}"

    @property
    def store_folder(self) -> str:
        """The store's folder relative to ``npuprof.toml``, ending in ``/``.

        Empty if that is in the store.
        """
        return self.prefix[len(self.base) :]

    def locate(self, path: str) -> Located | None:
        """Return the preset of a path relative to the top; None if it is not a preset."""
        if not path.endswith(".toml"):
            return None
        if path.startswith(self.prefix):
            name = path[len(self.prefix) : -5]
            return None if _is_hidden(name) or path == FILE else Located(name, False)
        if not self.globs or not path.startswith(self.base):
            return None
        name = path[len(self.base) : -5]
        return Located(name, True) if self.takes(name) else None

    def name_of(self, path: str) -> str | None:
        """Return the preset name of a path relative to the top; None if it is not a preset."""
        located = self.locate(path)
        return located.name if located else None

    def path_of(self, name: str, outside: bool = False) -> str:
        """Return the path of a preset's file relative to the repository."""
        return f"{self.base if outside else self.prefix}{name}.toml"

    def takes(self, name: str) -> bool:
        """Return whether a glob matches a file outside the store with that preset name."""
        if (
            not self.globs
            or not self.prefix
            or _is_hidden(name)
            or f"{name}.toml" == FILE
            # a preset in the store has its shorter name only
            or name.startswith(self.store_folder)
        ):
            return False
        *folders, last = f"{name}.toml".split("/")
        state = self.start
        for folder in folders:
            state = enter_folder(state, folder)
        return accepts_file(state, last)

    @cached_property
    def start(self) -> GlobState:
        """The remaining segments of the globs in the folder of ``npuprof.toml``."""
        return _expand(tuple(glob.split("/")) for glob in self.globs if self.prefix)

    @property
    def pathspecs(self) -> tuple[str, ...]:
        """The store's folder and the files outside of it, as git pathspecs for any current folder.

        git's globs match more than npuprof's, so the results must be located.
        """
        if not self.prefix:
            return (":(top)",)
        return (
            f":(top,literal){self.prefix.rstrip('/')}",
            *(f":(top,glob){escape_glob(self.base)}{glob}" for glob in self.globs),
        )


def escape_glob(path: str) -> str:
    """Return a path as a glob that matches only it."""
    return "".join(f"\\{char}" if char in "\\*?[]" else char for char in path)


def list_project_paths(prefix: str) -> tuple[str, str]:
    """Return the paths of npuprof.toml and npuprof.lock for a store, relative to the top."""
    base = Layout(prefix).base
    return f"{base}{FILE}", f"{base}{LOCK_FILE}"


def enter_folder(state: GlobState, folder: str) -> GlobState:
    """Return the remaining segments of the globs in a subfolder.

    Empty if it cannot contain presets.
    """
    if folder.startswith("."):
        return frozenset()
    from fnmatch import fnmatchcase  # few projects have globs

    below = []
    for segments in state:
        if segments[0] == "**":  # matches any number of folders
            below.append(segments)
        if len(segments) > 1 and fnmatchcase(folder, segments[0]):
            below.append(segments[1:])
    return _expand(below)


def accepts_file(state: GlobState, name: str) -> bool:
    """Return whether a glob matches a file in the current folder."""
    if name.startswith(".") or not name.endswith(".toml"):
        return False
    from fnmatch import fnmatchcase

    return any(len(segments) == 1 and fnmatchcase(name, segments[0]) for segments in state)


def list_plain_names(state: GlobState) -> set[str] | None:
    """Return the only names in a folder that the globs can match; None if all must be tested."""
    names = {segments[0] for segments in state}
    return None if any("*" in name for name in names) else names


def find_glob_fault(glob: str) -> str:
    """Return the fault of a glob, an empty string if there is none."""
    parts = glob.split("/")
    if not glob.endswith(".toml"):
        return "must end in .toml"
    if not all(parts) or ".." in parts or not glob.isprintable():
        return "is not a path below the folder of npuprof.toml"
    if special := next((char for char in "?[]{}!\\" if char in glob), ""):
        return (
            f"contains {special!r}: only * (in one segment) and ** (any number of folders) are "
            "wildcards"
        )
    if any("**" in part and part != "**" for part in parts):
        return "has ** next to other characters: it matches whole folders"
    if any(part.startswith((".", "-")) for part in parts):
        return "has a segment that begins with '.' or '-', which no name of a preset has"
    return ""


def find_globs_fault(
    globs: Iterable[str], find_fault: Callable[[str], str] = find_glob_fault
) -> str:
    """Return the first faulty glob with its fault, an empty string if there is none."""
    for glob in globs:
        if fault := find_fault(glob):
            return f"{glob!r} {fault}"
    return ""


@lru_cache(64)
def read_globs(raw: bytes) -> tuple[str, ...]:
    """Return the valid globs in an ``npuprof.toml``; its faults are reported elsewhere."""
    try:
        presets = parse_toml_text(raw.decode("utf-8-sig")).get("presets")
    except (ValueError, RecursionError):
        return ()
    globs = presets if isinstance(presets, list) else []
    return tuple(glob for glob in globs if isinstance(glob, str) and not find_glob_fault(glob))


def _expand(globs: Iterable[tuple[str, ...]]) -> GlobState:
    """Return globs as segments, including the variants in which ``**`` matches no folder."""
    expanded = set()
    for segments in globs:
        expanded.add(segments)
        while segments[0] == "**" and len(segments) > 1:
            segments = segments[1:]
            expanded.add(segments)
    return frozenset(expanded)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or "/." in name


def scan_outside_presets(folder: str, layout: Layout) -> Iterator[tuple[str, bool]]:
    """Yield the names of presets outside a store, and whether each is a plain file.

    ``folder`` is that of ``npuprof.toml``. Links, folders that begin with a dot, and other
    repositories are skipped. Raises OSError.
    """
    waiting = [("", layout.start)]
    while waiting:
        below, state = waiting.pop()
        for name, mode in _list_entries(os.path.join(folder, below), state, bool(below)):
            path = f"{below}{name}"
            if stat.S_ISDIR(mode) and f"{path}/" != layout.store_folder:
                inner = enter_folder(state, name)
                if inner:
                    waiting.append((f"{path}/", inner))
            # also a folder with a preset's name: reading it reports that
            if accepts_file(state, name) and layout.takes(path[:-5]):
                yield path[:-5], stat.S_ISREG(mode)


def _list_entries(folder: str, state: GlobState, is_below: bool) -> Iterator[_Entry]:
    """Yield the entries of a folder that the globs may match; none for a nested repository."""
    expected = list_plain_names(state)
    if expected is not None:  # lists no folder that may have thousands of entries
        if is_below and os.path.lexists(os.path.join(folder, ".git")):
            return
        for name in expected:
            try:
                yield name, os.lstat(os.path.join(folder, name)).st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
        return
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
    except FileNotFoundError:  # deleted meanwhile
        return
    if is_below and any(entry.name == ".git" for entry in entries):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield entry.name, stat.S_IFDIR
        elif entry.is_file(follow_symlinks=False):
            yield entry.name, stat.S_IFREG
        else:
            yield entry.name, 0
