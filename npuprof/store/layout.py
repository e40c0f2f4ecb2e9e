"""Where presets lie and what they are called: below the folder of the store, and outside of it where ``npuprof.toml`` says so.

This is the one place that makes a name of a path, and a path of a name.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from npuprof.document import parse_toml_text
from npuprof.model import Record
from npuprof.store import FILE, LOCK_FILE

#: A file or a folder: its name, and its mode by itself, of a link the link's.
_Entry = tuple[str, int]


#: What the globs have left to match in a folder: the segments of each.
GlobState = frozenset[tuple[str, ...]]


class Located(Record):
    """What a file is called as a preset, and whether it lies outside the store's folder."""

    name: str
    outside: bool


class Layout(Record):
    """Where the presets of a repository lie. ``prefix`` is the store's folder from the top, ending in ``/``, or empty.

    ``globs`` name files outside of it, from the folder of ``npuprof.toml``; such a preset is called by its path from there.
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
        """The store's folder as it is called beside ``npuprof.toml``, ending in ``/``; empty where that lies in the store."""
        return self.prefix[len(self.base) :]

    def locate(self, path: str) -> Located | None:
        """Return which preset the file of a path from the top is; None where it is none."""
        if not path.endswith(".toml"):
            return None
        if path.startswith(self.prefix):
            name = path[len(self.prefix) : -5]
            return None if _is_hidden(name) or path == FILE else Located(name, False)
        name = path[len(self.base) : -5]
        return Located(name, True) if self.globs and path.startswith(self.base) and self.takes(name) else None

    def name_of(self, path: str) -> str | None:
        """Return what the file of a path from the top is called as a preset; None where it is none."""
        located = self.locate(path)
        return located.name if located else None

    def path_of(self, name: str, outside: bool = False) -> str:
        """Return the path of a preset's file from the top of the repository, as git writes it."""
        return f"{self.base if outside else self.prefix}{name}.toml"

    def takes(self, name: str) -> bool:
        """Return whether a glob names a file outside the store that would be called so."""
        if not self.globs or not self.prefix or _is_hidden(name) or f"{name}.toml" == FILE or name.startswith(self.store_folder):
            return False
        *folders, last = f"{name}.toml".split("/")
        state = self.start
        for folder in folders:
            state = enter_folder(state, folder)
        return accepts_file(state, last)

    @cached_property
    def start(self) -> GlobState:
        """What the globs have left to match in the folder of ``npuprof.toml``."""
        return _expand(tuple(glob.split("/")) for glob in self.globs if self.prefix)

    @property
    def pathspecs(self) -> tuple[str, ...]:
        """The store's folder, and the files outside of it, as git takes them for paths from wherever it runs.

        git means more by a glob than is meant here: what it finds has to be located.
        """
        if not self.prefix:
            return (":(top)",)
        plain = "".join(f"\\{char}" if char in "\\*?[]" else char for char in self.base)
        return (f":(top,literal){self.prefix.rstrip('/')}", *(f":(top,glob){plain}{glob}" for glob in self.globs))


def list_project_paths(prefix: str) -> tuple[str, str]:
    """Return the paths of npuprof.toml and npuprof.lock from the top of a repository whose store is in the folder ``prefix``."""
    base = Layout(prefix).base
    return f"{base}{FILE}", f"{base}{LOCK_FILE}"


def enter_folder(state: GlobState, folder: str) -> GlobState:
    """Return what the globs have left to match in a folder below; nothing if no preset can be in there."""
    if folder.startswith("."):
        return frozenset()
    from fnmatch import fnmatchcase  # few projects have globs

    below = [segments[1:] for segments in state if len(segments) > 1 and fnmatchcase(folder, segments[0])]
    return _expand([*below, *(segments for segments in state if segments[0] == "**")])


def accepts_file(state: GlobState, name: str) -> bool:
    """Return whether a glob names a file of the folder that it was followed into."""
    if name.startswith(".") or not name.endswith(".toml"):
        return False
    from fnmatch import fnmatchcase

    return any(len(segments) == 1 and fnmatchcase(name, segments[0]) for segments in state)


def list_plain_names(state: GlobState) -> set[str] | None:
    """Return the only names of a folder that the globs can take; None if that takes looking at all of them."""
    names = {segments[0] for segments in state}
    return None if any("*" in name for name in names) else names


def find_glob_fault(glob: str) -> str:
    """Return what is wrong with a glob, an empty text where nothing is."""
    parts = glob.split("/")
    if not glob.endswith(".toml"):
        return "must end in .toml"
    if not all(parts) or ".." in parts or not glob.isprintable():
        return "is no path below the folder of npuprof.toml"
    if odd := next((char for char in "?[]{}!\\" if char in glob), ""):
        return f"holds {odd!r}: only * (in one segment) and ** (any number of folders) mean more than themselves"
    if any("**" in part and part != "**" for part in parts):
        return "has ** beside other characters: it stands for whole folders"
    if any(part.startswith((".", "-")) for part in parts):
        return "has a segment that begins with '.' or '-', which no name of a preset has"
    return ""


@lru_cache(64)
def read_globs(raw: bytes) -> tuple[str, ...]:
    """Return the globs in the text of an ``npuprof.toml``, as far as they can be understood: its faults are told elsewhere."""
    try:
        presets = parse_toml_text(raw.decode("utf-8-sig")).get("presets")
    except (ValueError, RecursionError):
        return ()
    globs = presets if isinstance(presets, list) else []
    return tuple(glob for glob in globs if isinstance(glob, str) and not find_glob_fault(glob))


def _expand(globs: Iterable[tuple[str, ...]]) -> GlobState:
    """Return globs as segments, with what follows a ``**``, which may stand for no folder at all."""
    expanded: set[tuple[str, ...]] = set()
    for segments in globs:
        expanded.add(segments)
        while segments[0] == "**" and len(segments) > 1:
            segments = segments[1:]
            expanded.add(segments)
    return frozenset(expanded)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or "/." in name


def scan_outside_presets(folder: str, layout: Layout) -> Iterator[tuple[str, bool]]:
    """Yield the names of the presets outside a store, and whether each is a plain file; ``folder`` is that of ``npuprof.toml``.

    No link is followed, and neither folders that begin with a dot nor other repositories are entered. Raises OSError.
    """
    waiting: list[tuple[str, GlobState]] = [("", layout.start)]
    while waiting:
        below, state = waiting.pop()
        for name, mode in _list_entries(os.path.join(folder, below), state, bool(below)):
            is_folder = stat.S_ISDIR(mode)
            if is_folder and f"{below}{name}/" != layout.store_folder and (inner := enter_folder(state, name)):
                waiting.append((f"{below}{name}/", inner))
            if accepts_file(state, name) and layout.takes(f"{below}{name[:-5]}"):
                yield f"{below}{name[:-5]}", stat.S_ISREG(mode)  # a folder that looks like a preset: reading it tells


def _list_entries(folder: str, state: GlobState, is_below: bool) -> Iterator[_Entry]:
    """Yield what of a folder the globs may take; nothing of one that is a repository itself."""
    wanted = list_plain_names(state)
    if wanted is not None:
        if is_below and os.path.lexists(os.path.join(folder, ".git")):
            return
        for name in wanted:
            try:
                yield name, os.lstat(os.path.join(folder, name)).st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
        return
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
    except FileNotFoundError:  # gone meanwhile
        return
    if is_below and any(entry.name == ".git" for entry in entries):
        return
    for entry in entries:
        kind = stat.S_IFDIR if entry.is_dir(follow_symlinks=False) else stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0
        yield entry.name, kind
