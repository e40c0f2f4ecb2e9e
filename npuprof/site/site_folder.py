"""Writes the folder of a site; replaces only files that npuprof wrote there.

A list in the folder names the files of the site. It may be part of a clone and is not trusted. The
digests of written files are in a record in the user's state, by folder path. Without a record, as
in another clone, a listed file is replaced if it equals HEAD.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import starmap

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report.text import format_count
from npuprof.store.gitstore.objects import Git
from npuprof.system import find_user_folder, join_lines
from npuprof.system.files import LARGEST_FILE, make_folder, read_plain_file
from npuprof.system.tree import Tree, is_plain_name, is_under_way, make_tree
from npuprof.system.writing import PlannedWrite, write_planned_files

#: The list of the site's files. Schema 2 also had their digests.
MARK = ".npuprof-site.json"
_SCHEMA = "npuprof.site/1"


class Written(Record):
    """The numbers of written, removed and unchanged files.

    ``left`` are files of an earlier site that git tracks.
    """

    written: int
    removed: int
    kept: int
    left: tuple[str, ...]


def write_site(folder: str, files: Mapping[str, bytes]) -> Written:
    """Write the files of a site, by path, and remove those of an earlier one.

    Files that git tracks stay. Raises NpuprofError, and writes nothing, if the folder contains a
    file that npuprof did not write (NP980), or a link (NP941).
    """
    make_folder(folder)
    tree = Tree(folder)
    git = Git(folder)
    digest = sha256(os.fsencode(os.path.realpath(folder))).hexdigest()
    record = os.path.join(find_user_folder("state"), "sites", digest[:32])
    # the list may be a clone's; only the record and HEAD prove that a file may be replaced
    known = _read_record(record)
    listed = _read_list(tree) | {line.partition(" ")[2] for line in known}
    existing = _compare_files(tree, files, listed, known)
    rest = existing.others
    committed = _list_committed(git, {name: rest[name] for name in listed & rest.keys()})
    foreign = sorted(rest.keys() - set(committed))
    if foreign:
        raise NpuprofError(_build_finding(os.path.join(folder, foreign[0]), len(foreign) - 1))
    gone = existing.proven.keys() - files.keys()
    if gone and git.top:
        # git would report them as deleted in the user's work tree
        gone.difference_update(map(os.fsdecode, git.list_files(folder, only_tracked=True)))
    left = sorted({*existing.proven, *rest}.difference(files, gone))
    changed = sorted(files.keys() - existing.same)
    now = set(starmap(_format_line, files.items()))
    _write_record(record, known | now)  # a killed run leaves files of both
    for path in dict.fromkeys(map(os.path.dirname, changed)):
        tree.make_folder(path)
    names = json.dumps({"schema": _SCHEMA, "files": sorted({*files, *left})}, indent=1) + "\n"
    # Pages can be rebuilt at any time, so they are not synced to disk.
    writes = [
        PlannedWrite(os.path.join(folder, name), files[name], below=folder, durable=False)
        for name in changed
    ]
    writes.append(PlannedWrite(os.path.join(folder, MARK), names.encode(), below=folder))
    write_planned_files(writes)
    # after the pages are written: a crash leaves too many files, not too few
    for name in gone:
        tree.remove_file(name)
        tree.remove_empty_folders(os.path.dirname(name))
    _write_record(record, now | {existing.proven[name] for name in left if name in existing.proven})
    return Written(len(changed), len(gone), len(existing.same), tuple(left))


class _ExistingFiles(Record):
    """The files of a folder.

    ``same`` are unchanged, ``proven`` are npuprof's with their lines in the record, ``others`` have
    digests, empty if they were not read.
    """

    same: set[str]
    proven: dict[str, str]
    others: dict[str, str]


def _compare_files(
    tree: Tree, files: Mapping[str, bytes], listed: Collection[str], known: Collection[str]
) -> _ExistingFiles:
    """Return the files of a folder compared with those of a site and with the record.

    Raises NpuprofError (NP941) if a site contains a link.
    """
    existing = _ExistingFiles(set(), {}, {})
    for subfolder, _, names in tree.walk():
        for file_name in names:
            if is_under_way(file_name):
                continue
            name = os.path.join(subfolder, file_name)
            # in a folder without a list, a link is the user's own file
            is_link = bool(listed) and os.path.islink(tree.find_path(name))
            content = _read_file(tree, name) if is_link or name in files or name in listed else None
            if content is not None and content == files.get(name):
                existing.same.add(name)
                continue
            if content is not None:
                line = _format_line(name, content)
                if line in known:
                    existing.proven[name] = line
                    continue
            # A system crash leaves empty files.
            if name != MARK and (content != b"" or name not in files):
                existing.others[name] = "" if content is None else _digest_lines(content)
    return existing


def _read_file(tree: Tree, name: str) -> bytes | None:
    """Return the content of a file, None if it cannot be read.

    Raises NpuprofError (NP941) if it is a link.
    """
    try:
        with tree.open_reader(name) as file:
            return file.read(LARGEST_FILE + 1)
    except OSError:
        return None


def _digest_lines(content: bytes) -> str:
    """Return the digest of a text, independent of line endings."""
    return sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _list_committed(git: Git, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the files of a folder, given with their digests, that equal HEAD.

    Raises NpuprofError.
    """
    if not files or not git.top:
        return
    prefix = os.path.relpath(os.path.realpath(git.folder), git.top)
    for name, digest in files.items():  # one at a time: together they may exceed the memory
        (blob,) = git.read_objects([f"HEAD:{os.path.normpath(os.path.join(prefix, name))}"])
        if blob and _digest_lines(blob.content) == digest:
            yield name


def _build_finding(path: str, others: int) -> Finding:
    what = f"{path} is not as npuprof wrote it" + (
        f" ({format_count(others, 'more such file')})" if others else ""
    )
    why = (
        "npuprof site replaces only files that it wrote there and nobody edited, and files equal "
        "to HEAD; nothing was written."
    )
    hint = (
        "name an empty folder, or empty this one if all of it can go"
        if others
        else f"name an empty folder, or remove {path} if it can go"
    )
    return Finding("NP980", what, why, hint, where=Place(path))


def _read_list(tree: Tree) -> set[str]:
    """Return the names in a folder's list, which is untrusted."""
    try:
        names = json.loads(_read_file(tree, MARK) or b"")["files"]
        return {name for name in names if isinstance(name, str) and is_plain_name(name)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return set()


def _format_line(name: str, content: bytes) -> str:
    return f"{sha256(content).hexdigest()} {name}"


def _read_record(path: str) -> set[str]:
    """Return the lines of the record: digests and names."""
    try:
        return set(read_plain_file(path).decode().splitlines())
    except (OSError, ValueError):
        return set()


def _write_record(path: str, lines: Collection[str]) -> None:
    folder, name = os.path.split(path)
    with suppress(OSError, NpuprofError):  # a user without a home has no record
        make_tree(folder, 0o700).write_file(name, join_lines(sorted(lines)).encode(), 0o600)
