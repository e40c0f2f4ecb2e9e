"""The state of a work tree in git: files that are changed, excluded, or converted."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable

from npuprof.model import Record
from npuprof.store import is_profile_name
from npuprof.store.gitstore.repository import Repository, TreeFile
from npuprof.store.layout import Layout, list_project_paths

#: The status of files that git keeps out of the work tree (skip-worktree), in ls-files -t.
_SKIPPED = b"S "


class ChangedPaths(Record):
    """The paths from the top of files that differ from the last commit; some are untracked."""

    changed: list[str]
    untracked: list[str]


def list_changed_paths(repository: Repository, layout: Layout) -> ChangedPaths:
    """Return the profile files that differ from the last commit; ``layout`` locates them.

    If the repository's git runs no filters, a filtered file counts as changed unless its size and
    time are unchanged.
    """
    profiles = {}
    for path, is_new in _list_changed(repository, layout.pathspecs).items():
        name = layout.name_of(path)
        if name and is_profile_name(name):
            profiles[path] = is_new
    return _sort_paths(profiles)


def list_changed_beside(repository: Repository, copies: Collection[str]) -> ChangedPaths:
    """Return the changed npuprof.toml, lock and files in vendored copies.

    They decide the origin of presets. ``copies`` are the folders of vendored stores, relative to
    npuprof.toml.
    """
    files = list_project_paths(repository.prefix)
    base = posixpath.dirname(files[0])
    paths = [*files, *(posixpath.join(base, folder) for folder in copies)]
    return _sort_paths(_list_changed(repository, [f":(top,literal){path}" for path in paths]))


def _list_changed(repository: Repository, pathspecs: Iterable[str]) -> dict[str, bool]:
    """Return the files that differ from the last commit, and whether they are untracked."""
    output = repository.git.run_command(
        "status",
        "--porcelain=v1",
        "-z",
        # a rename would have two paths in one record; here, each file counts by itself
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=all",
        "--",
        *pathspecs,
    )
    changed: dict[str, bool] = {}
    for record in os.fsdecode(output).split("\0"):
        if not record:
            continue
        status, path = record[:2], record[3:]
        # a file removed from the index but not from the folder is listed twice, also as untracked
        changed[path] = changed.get(path, False) or status == "??"
    return changed


def _sort_paths(changed: dict[str, bool]) -> ChangedPaths:
    return ChangedPaths(sorted(changed), sorted(path for path, is_new in changed.items() if is_new))


def list_absent_files(repository: Repository, layout: Layout) -> dict[str, TreeFile]:
    """Return the preset files in the index that the work tree may lack, by name."""
    listed = repository.git.run_command("ls-files", "-t", "--stage", "-z", "--", *layout.pathspecs)
    files = {}
    for record in listed.split(b"\0"):
        if record.startswith(_SKIPPED):
            head, _, path = record.removeprefix(_SKIPPED).partition(b"\t")
            mode, oid, _ = head.decode().split(" ")
            if located := layout.locate(os.fsdecode(path)):
                files[located.name] = TreeFile(mode, oid, located.outside)
    return files


def find_converted_files(
    repository: Repository, names: Collection[str], then: dict[str, TreeFile]
) -> set[str]:
    """Return the presets that equal ``then`` in the work tree although their bytes differ.

    No filters are run.
    """
    head = repository.git.read_object("HEAD")
    if head is None:
        return set()
    layout, last = repository.find_layout(head.oid), repository.list_profile_files(head.oid)
    changed = set(list_changed_paths(repository, layout).changed)
    # a link is compared by its target, which no conversion touches
    same = [name for name in names if last.get(name) == then[name] and not then[name].is_link]
    return {name for name in same if layout.path_of(name, then[name].outside) not in changed}
