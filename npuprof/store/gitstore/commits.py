"""The commits that touched a store, newest first, each with its changed files relative
to each parent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import islice

from npuprof.model import NpuprofError, Record
from npuprof.store.gitstore.objects import Git
from npuprof.store.gitstore.repository import SUBMODULE, Repository, TreeFile
from npuprof.store.layout import Layout, Located

_NO_FILE = ("000000", SUBMODULE)
#: The maximum number of commits for which the contents of a file are read together.
_MOST_AHEAD = 256

#: The leading blank keeps user text apart: a record begins where 1 follows 0.
_LOG_COMMAND = (
    "-c",
    "log.showRoot=true",
    "-c",
    "log.showSignature=false",
    "-c",
    "diff.renameLimit=4000",
    "log",
    "--topo-order",
    "--parents",
    "-z",
    "--raw",
    "-M",
    "--diff-merges=off",
    "--no-abbrev",
    "--no-decorate",
    "--encoding=UTF-8",
    "--no-notes",
    "--no-mailmap",
    "--no-color",
    "--no-ext-diff",
    "--no-relative",
    "--format=%x01%H %P%x00 %an%x00 %ae%x00%aI%x00 %s",
)

_COMPARISON = ("diff-tree", "-r", "-M", "--raw", "-z", "--no-abbrev", "--no-relative")


class FileChange(Record):
    """A file changed by a commit relative to one parent: name and file before and after.

    None if missing.

    The two names differ for a renamed file.
    """

    was: str | None
    old: TreeFile | None
    now: str | None
    new: TreeFile | None


class StoreMove(Record):
    """The location of a store before a commit moved it, the commit's parent, and the commit's other
    changes.
    """

    repository: Repository
    parent: str
    changes: list[FileChange]


class TreeComparison(Record):
    """The previous folder of most store files (None: none), and git's comparison of the
    two commits.
    """

    former: str | None
    raw_lines: list[bytes]


class Commit(Record):
    """One commit: ``changes`` are the files that differ from each parent, in the order
    of ``parents``.

    ``date`` is ``2026-01-31T12:00:00+01:00`` in the author's time zone, ``subject`` the first line
    of the message. Parents may be the nearest ancestors that touched the store; the changes of a
    root commit are below ``""``. ``former_prefix`` is the store's previous folder, if the commit
    moved it.
    """

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    subject: str
    changes: dict[str, list[FileChange]]
    former_prefix: str | None = None


def load_commits(repository: Repository, oids: Iterable[str]) -> dict[str, Commit]:
    """Return commits by id, without their changes. Raises NpuprofError."""
    listed = repository.git.run_command(*_LOG_COMMAND, "--no-walk=unsorted", *oids, "--")
    return {commit.id: commit for commit, _ in map(_parse_commit, _split_log_records([listed]))}


def _parse_commit(record: bytes) -> tuple[Commit, list[bytes]]:
    """Return a commit without its changes, and git's raw lines and paths of these."""
    headers, _, files = record.partition(b"\0\n:")
    ids, author, email, date, subject = map(str.strip, headers.decode(errors="replace").split("\0"))
    oid, *parents = ids.split(" ")
    date = date.replace("Z", "+00:00")  # as some versions of git write it
    return Commit(oid, tuple(parents), author, email, date, subject, {}), (b":" + files).split(
        b"\0"
    ) if files else []


def walk_commits(
    repository: Repository,
    tip: str,
    everything: bool = False,
    layout: Layout | None = None,
    simplified: bool = False,
) -> Generator[Commit, None, None]:
    """Yield the commits behind ``tip`` that touched presets, children before parents, from one git
    process.

    With ``everything``, all commits. ``simplified`` omits branches from which a merge took nothing.
    ``layout`` is the layout of presets for all commits; by default that of ``npuprof.toml`` at the
    tip.

    If the store came from another folder, the commits that touched it there follow, from another
    process.
    """
    layout = layout if layout is not None else repository.find_layout(tip)
    below = () if everything else ("--", *layout.pathspecs)
    names: dict[bytes, Located | None] = {}
    whole = () if simplified else ("--full-history",)
    for record in _split_log_records(
        repository.git.stream_output(*_LOG_COMMAND, *whole, tip, *below)
    ):
        commit, files = _parse_commit(record)
        if len(commit.parents) > 1:
            repository.load_store_trees((commit.id, *commit.parents))
            commit.changes.update(
                (old, list_tree_changes(repository, old, commit.id, layout))
                for old in commit.parents
            )
            yield commit
            continue
        changed = _parse_raw_changes(files, layout, names)
        if any(change.was is None for change in changed) and (
            move := _find_store_move(repository, commit.id, changed, layout)
        ):
            # Remaining commits are older than the move, or on branches without it.
            moved = layout._replace(prefix=move.repository.prefix)
            older = walk_commits(move.repository, move.parent, everything, moved, simplified)
            nearest = next(older, None)
            parent = (
                nearest.id if nearest else move.parent
            )  # the parent itself may have touched other files
            yield commit._replace(
                parents=(parent,),
                changes={parent: move.changes},
                former_prefix=move.repository.prefix,
            )
            if nearest:
                yield nearest
                yield from older
            return
        commit.changes[commit.parents[0] if commit.parents else ""] = changed
        yield commit


class ReadAhead:
    """Reads files along a walk, each with its older versions in the next commits, and with those of
    files read before.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._names: set[str] = set()
        self._ahead: dict[
            str, list[str]
        ] = {}  # the unread versions of each preset at the commits of this batch
        self._contents: dict[str, bytes] = {}

    def walk(self, commits: Iterator[Commit]) -> Iterator[Commit]:
        """Yield the commits of a walk in growing batches, so that the first commit does not wait
        for later ones.
        """
        size, error = 1, None
        while size and not error:
            batch = []
            try:
                for commit in islice(commits, size):
                    batch.append(commit)  # noqa: PERF402 - an error keeps the commits before it
            except NpuprofError as failure:
                error = failure
            self._ahead, self._contents = {}, {}
            for change in (
                change
                for commit in batch
                for changes in commit.changes.values()
                for change in changes
            ):
                if change.was and change.old:
                    self._ahead.setdefault(change.was, []).append(change.old.oid)
            yield from batch
            size = min(4 * size, _MOST_AHEAD) if batch else 0
        if error:
            raise error

    def read_content(self, name: str, oid: str) -> bytes:
        """Return the content of the file of a preset, by blob id. Raises NpuprofError."""
        if oid not in self._contents:
            self._names.add(name)
            ahead = [older for known in self._names for older in self._ahead.pop(known, ())]
            try:
                read = self._git.read_objects([*dict.fromkeys([oid, *ahead])])
                self._contents |= {file.oid: file.content for file in read if file}
            except NpuprofError:  # perhaps for one of the next commits: read them alone
                self._ahead = {}
            if oid not in self._contents:
                return self._git.read_contents([oid])[oid]
        return self._contents[oid]


def _find_store_move(
    repository: Repository, commit: str, changed: list[FileChange], layout: Layout
) -> StoreMove | None:
    """Return the previous location of a store that a commit created.

    None if the store is new, or existed before.
    """
    inside = [
        change
        for change in changed
        if not any(file is not None and file.outside for file in (change.old, change.new))
    ]
    if not inside or any(change.was is not None for change in inside):
        return None
    read = repository.git.read_objects([commit])[0]
    parents = (
        re.findall(rb"^parent (\S+)$", read.content.partition(b"\n\n")[0], re.MULTILINE)
        if read
        else []
    )
    if len(parents) != 1 or not repository.git.read_objects([parent := parents[0].decode()])[0]:
        return None
    if repository.list_profile_files(parent, Layout(repository.prefix)):
        # merged from several stores, with a missing parent in a shallow clone, or added to an
        # existing store
        return None
    trees = _compare_commit_trees(repository, parent, commit)
    if trees.former is None:
        return None
    moved = _parse_raw_changes(trees.raw_lines, layout, {}, layout._replace(prefix=trees.former))
    besides = [change for change in moved if (change.was, change.old) != (change.now, change.new)]
    return StoreMove(repository.with_store_prefix(trees.former), parent, besides)


def find_former_folder(repository: Repository, old: str, new: str) -> str | None:
    """Return the folder of commit ``new``'s store at ``old``, ending in ``/`` or empty.

    None if it did not exist.
    """
    return _compare_commit_trees(repository, old, new).former


def _compare_commit_trees(repository: Repository, old: str, new: str) -> TreeComparison:
    """Return git's comparison of two commits, and the previous folder of most store files."""
    raw = repository.git.run_command("-c", "diff.renameLimit=4000", *_COMPARISON, old, new).split(
        b"\0"
    )
    places: dict[bytes, int] = {}
    store = Layout(repository.prefix)
    for line, was, now in zip(raw, raw[1:], raw[2:], strict=False):
        name = now.removeprefix(os.fsencode(repository.prefix))
        if (
            line.startswith(b":")
            and b" R" in line
            and store.name_of(os.fsdecode(now))
            and (b"/" + was).endswith(b"/" + name)
        ):
            place = was.removesuffix(name)
            places[place] = places.get(place, 0) + 1
    best = max(places, key=lambda place: places[place], default=None)
    return TreeComparison(os.fsdecode(best) if best is not None else None, raw)


def list_tree_changes(
    repository: Repository, parent: str, commit: str, layout: Layout
) -> list[FileChange]:
    """Return the changes between two commits, from their trees; git is called only for renames."""
    if not layout.globs and repository.find_store_tree(parent) == repository.find_store_tree(
        commit
    ):
        return []
    old, new = (
        repository.list_profile_files(parent, layout),
        repository.list_profile_files(commit, layout),
    )
    if old.keys() - new.keys() and new.keys() - old.keys():
        raw = repository.git.run_command(*_COMPARISON, parent, commit, "--", *layout.pathspecs)
        return _parse_raw_changes(raw.split(b"\0"), layout, {})
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [
        FileChange(
            name if name in old else None,
            old.get(name),
            name if name in new else None,
            new.get(name),
        )
        for name in names
    ]


def _split_log_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield git's record of each commit: its id and parents, NUL, then raw lines and paths."""
    rest = b""
    for block in blocks:
        *records, rest = (rest + block).split(b"\0\1")
        for record in records:
            yield record.lstrip(b"\1")
    if rest:
        yield rest.lstrip(b"\1").removesuffix(b"\0")


def _parse_raw_changes(
    files: list[bytes],
    layout: Layout,
    names: dict[bytes, Located | None],
    former: Layout | None = None,
) -> list[FileChange]:
    """Return the preset changes in raw lines and paths; ``names`` caches the preset names of paths.

    ``former`` is the previous layout, if it was different.
    """
    changes = []
    place = 0
    while place + 1 < len(files):
        path = files[place + 1]
        if path not in names:
            names[path] = layout.locate(os.fsdecode(path))
        was = now = names[path]
        before, after, old_id, new_id, status = files[place][1:].decode().split(" ")
        place += 2
        if status == "M" and before != SUBMODULE != after:
            if was is not None:
                changes.append(
                    FileChange(
                        was.name,
                        TreeFile(before, old_id, was.outside),
                        was.name,
                        TreeFile(after, new_id, was.outside),
                    )
                )
            continue
        if status[0] == "R":
            now = layout.locate(os.fsdecode(files[place]))
            place += 1
        if former is not None:
            was = former.locate(os.fsdecode(path))
        old = (
            TreeFile(before, old_id, was.outside)
            if was is not None and before not in _NO_FILE
            else None
        )
        new = (
            TreeFile(after, new_id, now.outside)
            if now is not None and after not in _NO_FILE
            else None
        )
        if old or new:
            changes.append(
                FileChange(
                    was.name if was and old else None, old, now.name if now and new else None, new
                )
            )
    return changes
