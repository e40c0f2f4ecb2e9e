"""What git says of a work tree: files that differ from the last commit, are kept out of it, or are stored as other bytes."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable
from typing import NamedTuple

from npuprof.store import Folder, is_profile_name
from npuprof.store.gitstore.repository import Repository, TreeFile
from npuprof.store.layout import Layout, list_project_paths

_KEPT_OUT = b"S "


class ChangedPaths(NamedTuple):
    """The paths of files, from the top, that differ from the last commit, and which of them git does not know yet."""

    changed: list[str]
    untracked: list[str]


def list_changed_paths(repository: Repository, layout: Layout) -> ChangedPaths:
    """Return which profile files differ from the last commit; ``layout`` says where those are.

    Unless the repository's git runs filters, a file that has one counts as changed once git cannot tell from its size and time.
    """
    changed = _list_changed(repository, layout.pathspecs)
    return _sort_paths({path: new for path, new in changed.items() if (name := layout.name_of(path)) and is_profile_name(name)})


def list_changed_beside(repository: Repository, copies: Collection[str]) -> ChangedPaths:
    """Return which files that say where presets come from differ from the last commit: npuprof.toml, the lock, files in the copies.

    ``copies`` are the folders of copied stores, from the folder of npuprof.toml.
    """
    files = list_project_paths(repository.prefix)
    paths = [*files, *(posixpath.join(posixpath.dirname(files[0]), folder) for folder in copies)]
    return _sort_paths(_list_changed(repository, [f":(top,literal){path}" for path in paths]))


def _list_changed(repository: Repository, pathspecs: Iterable[str]) -> dict[str, bool]:
    """Return the paths of files that differ from the last commit, and whether git does not know them yet."""
    words = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all", "--")
    changed: dict[str, bool] = {}
    for record in filter(None, os.fsdecode(repository.git.run_command(*words, *pathspecs)).split("\0")):
        # git lists a file that was taken out of the index and left in place twice, and does not know it
        changed[record[3:]] = changed.get(record[3:], False) or record.startswith("??")
    return changed


def _sort_paths(changed: dict[str, bool]) -> ChangedPaths:
    return ChangedPaths(sorted(changed), sorted(path for path, is_new in changed.items() if is_new))


def list_absent_files(repository: Repository, layout: Layout) -> dict[str, TreeFile]:
    """Return the files of presets that the index has and the work tree need not have, by their names."""
    listed = repository.git.run_command("ls-files", "-t", "--stage", "-z", "--", *layout.pathspecs)
    files: dict[str, TreeFile] = {}
    for record in listed.split(b"\0"):
        if record.startswith(_KEPT_OUT):
            head, _, path = record.removeprefix(_KEPT_OUT).partition(b"\t")
            mode, oid, _ = head.decode().split(" ")
            if located := layout.locate(os.fsdecode(path)):
                files[located.name] = TreeFile(mode, oid, located.outside)
    return files


def find_work_tree_layout(repository: Repository, folder: Folder) -> Layout:
    """Return where the presets of a work tree are, from the top of its repository: its own ``npuprof.toml`` says so."""
    return Layout(repository.prefix, folder.layout.globs)


def find_converted_files(repository: Repository, names: Collection[str], then: dict[str, TreeFile]) -> set[str]:
    """Return which presets are in the work tree as ``then`` has them though their bytes differ; no filter is run for that."""
    head = repository.git.read_objects(["HEAD"])[0]
    if head is None:
        return set()
    layout, last = repository.find_layout(head.oid), repository.list_profile_files(head.oid)
    changed = set(list_changed_paths(repository, layout).changed)
    same = [name for name in names if last.get(name) == then[name] and not then[name].is_link]
    return {name for name in same if layout.path_of(name, then[name].outside) not in changed}
