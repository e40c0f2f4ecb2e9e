"""The commits that touched a store, newest first, with the files that differ from each parent."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice

from npuprof.model import NpuprofError, Record
from npuprof.store.gitstore.objects import Git
from npuprof.store.gitstore.repository import SUBMODULE, Repository, TreeFile
from npuprof.store.layout import Layout, Located
from npuprof.system import decode_safely

_NO_FILE = ("000000", SUBMODULE)
#: The maximum number of commits for which the contents of a file are read together.
_MOST_AHEAD = 256

#: Records begin with the byte 1 after a NUL. User text (author, subject) follows a blank, so it
#: cannot imitate that. The ``-c`` settings and ``--no-`` flags undo the user's own configuration.
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

    They are None where the file is missing. The two names differ for a renamed file.
    """

    was: str | None
    old: TreeFile | None
    now: str | None
    new: TreeFile | None


class StoreMove(Record):
    """The location of a store before a commit moved it, the commit's parent and other changes."""

    repository: Repository
    parent: str
    changes: list[FileChange]


class TreeComparison(Record):
    """The previous folder of most store files (None: none), and git's raw comparison."""

    former: str | None
    raw_lines: list[bytes]


class Commit(Record):
    """One commit, with the files that differ from each parent in the order of ``parents``.

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
    ids, author, email, date, subject = map(str.strip, decode_safely(headers).split("\0"))
    oid, *parents = ids.split(" ")
    date = date.replace("Z", "+00:00")  # as some versions of git write it
    commit = Commit(oid, tuple(parents), author, email, date, subject, {})
    return commit, (b":" + files).split(b"\0") if files else []


def walk_commits(
    repository: Repository,
    tip: str,
    everything: bool = False,
    layout: Layout | None = None,
    simplified: bool = False,
) -> Generator[Commit, None, None]:
    """Yield the commits behind ``tip`` that touched presets, children before parents.

    With ``everything``, all commits. ``simplified`` omits branches from which a merge took nothing.
    ``layout`` is the layout of presets for all commits; by default that of ``npuprof.toml`` at the
    tip. The commits come from one git process. If the store came from another folder, the commits
    that touched it there follow, from another process.
    """
    layout = layout if layout is not None else repository.find_layout(tip)
    below = () if everything else ("--", *layout.pathspecs)
    names: dict[bytes, Located | None] = {}
    history = () if simplified else ("--full-history",)
    blocks = repository.git.stream_output(*_LOG_COMMAND, *history, tip, *below)
    for record in _split_log_records(blocks):
        commit, files = _parse_commit(record)
        if len(commit.parents) > 1:  # --diff-merges=off: git lists no changes of merges
            repository.load_store_trees((commit.id, *commit.parents))
            for parent in commit.parents:
                commit.changes[parent] = list_tree_changes(repository, parent, commit.id, layout)
            yield commit
            continue
        changed = _parse_raw_changes(files, layout, names)
        # git log only sees the store's own paths: there, a move is a commit of new files
        has_new_file = any(change.was is None for change in changed)
        move = _find_store_move(repository, commit.id, changed, layout) if has_new_file else None
        if move:
            # git's remaining commits are older than the move, or on branches without it.
            yield from _walk_past_move(commit, move, everything, layout, simplified)
            return
        commit.changes[commit.parents[0] if commit.parents else ""] = changed
        yield commit


def _walk_past_move(
    commit: Commit, move: StoreMove, everything: bool, layout: Layout, simplified: bool
) -> Iterator[Commit]:
    """Yield the commit that moved a store, then the commits of the store's previous folder."""
    former = layout._replace(prefix=move.repository.prefix)
    older = walk_commits(move.repository, move.parent, everything, former, simplified)
    nearest = next(older, None)
    # the parent itself may have touched other files only
    parent = nearest.id if nearest else move.parent
    yield commit._replace(
        parents=(parent,), changes={parent: move.changes}, former_prefix=move.repository.prefix
    )
    if nearest:
        yield nearest
        yield from older


class ReadAhead:
    """Reads files along a walk, together with their versions in the next commits of the batch."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._names: set[str] = set()
        #: The unread versions (blob ids) of each preset at the commits of this batch.
        self._ahead: dict[str, list[str]] = {}
        self._contents: dict[str, bytes] = {}

    def walk(self, commits: Iterator[Commit]) -> Iterator[Commit]:
        """Yield the commits of a walk, read in growing batches.

        The first batch is one commit, so that it does not wait for later ones.
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
            for commit in batch:
                for change in chain.from_iterable(commit.changes.values()):
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
            oids = {oid: None}  # ordered, each once
            for known in self._names:
                oids.update(dict.fromkeys(self._ahead.pop(known, ())))
            try:
                objects = self._git.read_objects([*oids])
                self._contents |= {file.oid: file.content for file in objects if file}
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
    commit_object = repository.git.read_object(commit)
    if commit_object is None:
        return None
    # git log simplifies parents to those that touched the store; the object has the real ones
    headers = commit_object.content.partition(b"\n\n")[0]
    parents = re.findall(rb"^parent (\S+)$", headers, re.MULTILINE)
    if len(parents) != 1:  # merged from several stores
        return None
    parent = parents[0].decode()
    if not repository.git.read_object(parent):  # missing in a shallow clone
        return None
    if repository.list_profile_files(parent, Layout(repository.prefix)):
        return None  # the commit added files to an existing store
    trees = _compare_commit_trees(repository, parent, commit)
    if trees.former is None:
        return None
    moved = _parse_raw_changes(trees.raw_lines, layout, {}, layout._replace(prefix=trees.former))
    # presets that only moved with their folder keep name and content
    others = [change for change in moved if change.was != change.now or change.old != change.new]
    return StoreMove(repository.with_store_prefix(trees.former), parent, others)


def find_former_folder(repository: Repository, old: str, new: str) -> str | None:
    """Return the folder of commit ``new``'s store at ``old``, ending in ``/`` or empty.

    None if it did not exist.
    """
    return _compare_commit_trees(repository, old, new).former


def _compare_commit_trees(repository: Repository, old: str, new: str) -> TreeComparison:
    """Return git's comparison of two commits, and the previous folder of most store files."""
    output = repository.git.run_command("-c", "diff.renameLimit=4000", *_COMPARISON, old, new)
    raw = output.split(b"\0")
    counts = Counter[bytes]()  # of moved store files, by previous folder
    store = Layout(repository.prefix)
    # a rename is ":MODES OIDS R100", the old path, the new path
    for line, was, now in zip(raw, raw[1:], raw[2:], strict=False):
        name = now.removeprefix(os.fsencode(repository.prefix))
        if (
            line.startswith(b":")
            and b" R" in line
            and store.name_of(os.fsdecode(now))
            # the same path below another folder; without the slash, rebase.toml would match
            # base.toml
            and (b"/" + was).endswith(b"/" + name)
        ):
            counts[was.removesuffix(name)] += 1
    best = max(counts, key=counts.__getitem__, default=None)
    return TreeComparison(os.fsdecode(best) if best is not None else None, raw)


def list_tree_changes(
    repository: Repository, parent: str, commit: str, layout: Layout
) -> list[FileChange]:
    """Return the changes between two commits, from their trees; git is called only for renames."""
    if not layout.globs:
        store_tree = repository.find_store_tree(parent)
        if store_tree == repository.find_store_tree(commit):
            return []
    old = repository.list_profile_files(parent, layout)
    new = repository.list_profile_files(commit, layout)
    # a rename needs a name that is gone and one that is new
    if old.keys() - new.keys() and new.keys() - old.keys():
        raw = repository.git.run_command(*_COMPARISON, parent, commit, "--", *layout.pathspecs)
        return _parse_raw_changes(raw.split(b"\0"), layout, {})
    return [
        FileChange(
            was=name if name in old else None,
            old=old.get(name),
            now=name if name in new else None,
            new=new.get(name),
        )
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


def _split_log_records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield git's record of each commit: its id and parents, NUL, then raw lines and paths."""
    rest = b""
    for block in blocks:
        *records, rest = (rest + block).split(b"\0\1")
        for record in records:
            # the first record still has the byte that the split removed from the others
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
    fields = iter(files)
    for line in fields:  # ":100644 100644 OLD NEW M", or an empty text after the last NUL
        path = next(fields, None)
        if path is None:
            break
        if path not in names:
            names[path] = layout.locate(os.fsdecode(path))
        was = now = names[path]
        old_mode, new_mode, old_id, new_id, status = line[1:].decode().split(" ")
        if status == "M" and old_mode != SUBMODULE != new_mode:  # the common case
            if was is not None:
                old = TreeFile(old_mode, old_id, was.outside)
                new = TreeFile(new_mode, new_id, was.outside)
                changes.append(FileChange(was.name, old, was.name, new))
            continue
        if status[0] == "R":  # the path after the rename follows
            now = layout.locate(os.fsdecode(next(fields)))
        if former is not None:
            was = former.locate(os.fsdecode(path))
        if old_mode in _NO_FILE:
            was = None
        if new_mode in _NO_FILE:
            now = None
        if was or now:
            changes.append(
                FileChange(
                    was=was.name if was else None,
                    old=TreeFile(old_mode, old_id, was.outside) if was else None,
                    now=now.name if now else None,
                    new=TreeFile(new_mode, new_id, now.outside) if now else None,
                )
            )
    return changes
