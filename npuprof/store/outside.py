"""Presets outside a store's folder, in the work tree: looked for where the globs of ``npuprof.toml`` can lead, and nowhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from npuprof.store.layout import GlobState, Layout, accepts_file, enter_folder, list_plain_names

#: A file or a folder: its name, and its mode by itself, of a link the link's.
_Entry = tuple[str, int]


def scan_outside_presets(folder: str, layout: Layout) -> Iterator[tuple[str, bool]]:
    """Yield the names of the presets outside a store, and whether each is a plain file; ``folder`` is that of ``npuprof.toml``.

    No link is followed, and neither folders that begin with a dot nor other repositories are entered. Raises OSError.
    """
    waiting: list[tuple[str, GlobState]] = [("", layout.start())]
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
        with os.scandir(folder) as found:
            entries = list(found)
    except FileNotFoundError:  # gone meanwhile
        return
    if is_below and any(entry.name == ".git" for entry in entries):
        return
    for entry in entries:
        kind = stat.S_IFDIR if entry.is_dir(follow_symlinks=False) else stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0
        yield entry.name, kind
