"""The folder of a site: written only where something changed, and never over what somebody else put there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report import output
from npuprof.report.locks import find_foreign_file
from npuprof.report.output import read_plain_file
from npuprof.report.writing import Wanted, write_wanted_files
from npuprof.site.kept import digest_content
from npuprof.system.tree import Tree

#: Says which files are npuprof's, each with the digest of what it wrote: what it does not write any more is removed.
MARK = ".npuprof-site.json"
_SCHEMA, _OLD_SCHEMA = "npuprof.site/2", "npuprof.site/1"


class Written(Record):
    """How many files were written, removed, and left as they were; ``left`` are those that should have gone, and may be somebody's work."""

    written: int
    removed: int
    kept: int
    left: tuple[str, ...] = ()


def write_site(folder: str, files: Mapping[str, bytes | None]) -> Written:
    """Write the files of a site below a folder, by their paths in it; None stays as it is there.

    What an earlier site had and this one has not goes, where it still is what was written and git does not track it. Raises
    NpuprofError: NP980 where the folder holds something else, NP941 where a link in it leads elsewhere.
    """
    known = read_own_files(folder)
    output.make_folder(folder)
    tree = Tree(folder)
    changed = {name: content for name, content in files.items() if content is not None and not _holds(os.path.join(folder, name), content)}
    gone = {name: digest for name, digest in known.items() if name not in files and os.path.lexists(os.path.join(folder, name))}
    now = _digest_files(folder, files)
    if changed or gone:
        _write_mark(folder, {**known, **now})  # who dies on the way leaves a folder that the next run knows
    for name in changed:
        tree.make_folder(os.path.dirname(name))
    # Pages are made again at any time, and what a crash of the machine left of one is no page that the next run keeps.
    wanted = [Wanted(os.path.join(folder, name), content, below=folder, durable=False) for name, content in sorted(changed.items())]
    write_wanted_files(wanted)
    left = _remove_gone(tree, gone)
    _write_mark(folder, {**now, **{name: gone[name] for name in left}})
    return Written(len(changed), len(gone) - len(left), len(files) - len(changed), tuple(left))


def _digest_files(folder: str, files: Mapping[str, bytes | None]) -> dict[str, str]:
    return {name: digest_content(_read(os.path.join(folder, name)) if content is None else content) for name, content in files.items()}


def _remove_gone(tree: Tree, gone: Mapping[str, str]) -> list[str]:
    """Remove files that a site has no longer; return those that are not what was written, or that git tracks. Raises NpuprofError."""
    if not gone:
        return []
    tracked, left = _list_tracked(tree.top), []
    for name, digest in sorted(gone.items()):
        with suppress(OSError):
            with tree.open_reader(name) as file:
                is_ours = digest_content(file.read()) == digest and name not in tracked
            if is_ours:
                tree.remove_file(name)
                tree.remove_empty_folders(os.path.dirname(name))
                continue
        left.append(name)
    return left


def _list_tracked(folder: str) -> set[str]:
    """Return the files in a folder that git tracks, by their paths in it."""
    from npuprof.store.git import Git

    try:
        return set(map(os.fsdecode, Git(folder).list_files(folder, only_tracked=True)))
    except NpuprofError:
        return set()


def _write_mark(folder: str, files: Mapping[str, str]) -> None:
    content = (json.dumps({"schema": _SCHEMA, "files": dict(sorted(files.items()))}, indent=1) + "\n").encode()
    write_wanted_files([Wanted(os.path.join(folder, MARK), content, below=folder)])


def read_own_files(folder: str) -> dict[str, str]:
    """Return the files that the last run wrote, with their digests; what an older npuprof wrote has none.

    Raises NpuprofError where the folder is somebody else's, or holds a file that is.
    """
    try:
        held = os.listdir(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NpuprofError([Finding("NP012", f"cannot write {folder}: {output.describe_os_error(error, folder)}", "", "")]) from None
    if not held:
        return {}
    known = _read_mark(os.path.join(folder, MARK))
    if known is None:
        what = f"{folder} holds something else than a site that npuprof wrote"
        why = "A site is written over only where npuprof wrote it: what lies there may be somebody's work."
        raise NpuprofError([Finding("NP980", what, why, "name an empty folder, or one that is not there yet", where=Place(folder))])
    if other := find_foreign_file(folder, {*known, MARK}):
        what = f"{folder} holds {other}, which npuprof did not write"
        why = "A site is written over only where all is npuprof's: the rest may be somebody's work."
        hint = "move it elsewhere, or name another folder"
        raise NpuprofError([Finding("NP980", what, why, hint, where=Place(os.path.join(folder, other)))])
    return known


def _read_mark(path: str) -> dict[str, str] | None:
    """Return what the list in a folder says, None where it is none."""
    try:
        said = json.loads(read_plain_file(path))
        files = said["files"]
        if said["schema"] == _OLD_SCHEMA:
            files = dict.fromkeys(files, "")
        elif said["schema"] != _SCHEMA:
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    good = isinstance(files, dict) and all(_is_own_name(name) and isinstance(digest, str) for name, digest in files.items())
    return files if good else None


def _is_own_name(name: object) -> bool:
    return isinstance(name, str) and not name.startswith("/") and ".." not in name.split("/") and "\\" not in name


def _read(path: str) -> bytes:
    try:
        return read_plain_file(path)
    except (OSError, ValueError):
        return b""


def _holds(path: str, content: bytes) -> bool:
    try:
        return os.path.getsize(path) == len(content) and read_plain_file(path) == content
    except (OSError, ValueError):
        return False
