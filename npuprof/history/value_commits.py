"""The commit that last changed each value of a resolved preset."""

from __future__ import annotations

import os
from contextlib import closing
from difflib import SequenceMatcher

from npuprof import document
from npuprof.catalog import values
from npuprof.model import (
    NpuprofError,
    Origin,
    Path,
    Record,
    TomlTable,
    TomlValue,
    is_same_typed_value,
)
from npuprof.resolve.config import Config
from npuprof.store.gitstore.commits import Commit, ReadAhead, walk_commits
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.layout import Layout
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.stores import SourceStore
from npuprof.system import list_items


class PendingValue(Record):
    """A value being traced: its number, its path in the file, and the file's last seen data."""

    number: int
    path: Path
    data: TomlTable


class BlamedValue(Record):
    """One value of a preset: its key and origin, and the commit that wrote it (None: uncommitted).

    For a value in a vendored copy whose history is missing, only the ``copied`` commit is known.
    """

    key: str
    tail: Path
    value: TomlValue
    origin: Origin | None
    commit: Commit | None
    copied: str = ""


def blame_config_values(repository: StoreRepository, config: Config) -> list[BlamedValue]:
    """Return every value of a preset, list elements included, with the commit that wrote it.

    Commits that only move or format a line do not count; renames are followed.
    """
    blamed = [
        value for key in config.ordered_settings() for value in _collect_blamed_values(config, key)
    ]
    own_origins, source_origins = _group_by_home(config, blamed)
    commits: dict[int, Commit] = {}
    copied: dict[int, str] = {}
    for source, origins in source_origins.items():
        # a vendored copy has no history
        if source.copy is not None and not os.path.isdir(find_mirror_folder(source.locked.url)):
            copied |= dict.fromkeys(origins, source.commit)
        else:  # the commit is in the repository of the source
            commits |= _BlameWalk(source.revision.repository).find_writing_commits(
                source.commit, origins
            )
    for start, origins in _group_by_start(repository, own_origins).items():
        # The store may have had another folder then.
        commits |= _BlameWalk(repository.load_revision(start).repository).find_writing_commits(
            start, origins
        )
    return [
        value._replace(commit=commits.get(number), copied=copied.get(number, ""))
        for number, value in enumerate(blamed)
    ]


def _group_by_home(
    config: Config, blamed: list[BlamedValue]
) -> tuple[dict[int, Origin], dict[SourceStore, dict[int, Origin]]]:
    """Return the origins of values by number: those of the store itself, and those of each source.

    Values without an origin are omitted.
    """
    sources = {
        id(profile.document): profile.home
        for profile in config.lineage
        if isinstance(profile.home, SourceStore)
    }
    own_origins: dict[int, Origin] = {}
    source_origins: dict[SourceStore, dict[int, Origin]] = {}
    for number, value in enumerate(blamed):
        if value.origin is None:
            continue
        source = sources.get(id(value.origin.document))
        origins = own_origins if source is None else source_origins.setdefault(source, {})
        origins[number] = value.origin
    return own_origins, source_origins


def _group_by_start(
    repository: StoreRepository, origins: dict[int, Origin]
) -> dict[str, dict[int, Origin]]:
    """Return the origins of values by the commit to start from.

    That is the commit of a pinned parent, else the last one.
    """
    starts: dict[str, dict[int, Origin]] = {}
    head = ""
    for number, origin in origins.items():
        start = origin.revision or head
        if not start:
            start = head = repository.resolve_commit("HEAD")
        starts.setdefault(start, {})[number] = origin
    return starts


def _collect_blamed_values(config: Config, key: str) -> list[BlamedValue]:
    blamed = []

    def collect_leaf_values(value: TomlValue, tail: Path) -> None:
        if isinstance(value, values.Leaf):
            blamed.append(BlamedValue(key, tail, value.value, value.origin, None))
        # an empty table or list has no leaf with an origin
        elif not value:
            blamed.append(BlamedValue(key, tail, value, config.origin(key, tail), None))
        else:
            for name, item in list_items(value):
                collect_leaf_values(item, (*tail, name))

    collect_leaf_values(config.traced_value(key), ())
    return blamed


class _ParentValue(Record):
    """A value in the file ``name`` of a parent commit."""

    commit: str
    name: str
    value: PendingValue


class _BlameWalk:
    """Traces values back through the commits, each until the one that wrote it."""

    def __init__(self, repository: StoreRepository) -> None:
        self._repository = repository
        self._ahead = ReadAhead(repository.git)
        self._read: dict[str, TomlTable | None] = {}

    def find_writing_commits(self, start: str, origins: dict[int, Origin]) -> dict[int, Commit]:
        """Return the commit that wrote each value, by number.

        Values missing at ``start`` are omitted.
        """
        writers = {}
        waiting: dict[str, dict[str, list[PendingValue]]] = {}
        # the walk ends early, and its git has to end with it
        with closing(walk_commits(self._repository, start)) as walk:
            for index, commit in enumerate(self._ahead.walk(walk)):
                if index == 0:
                    # The first commit of the walk is ``start``.
                    values_of_files = self._locate_values(start, origins)
                else:
                    values_of_files = waiting.pop(commit.id, {})
                for name, pending in values_of_files.items():
                    for value in pending:
                        earlier = self._find_parent_value(commit, name, value)
                        if earlier is None:
                            writers[value.number] = commit
                            continue
                        files = waiting.setdefault(earlier.commit, {})
                        files.setdefault(earlier.name, []).append(earlier.value)
                # every value has its commit: older commits are not read
                if not waiting:
                    break
        return writers

    def _locate_values(
        self, start: str, origins: dict[int, Origin]
    ) -> dict[str, list[PendingValue]]:
        """Return the values by file at a commit; values missing there are omitted."""
        files = self._repository.list_profile_files(start)
        layout = self._repository.find_layout(start)
        located: dict[str, list[PendingValue]] = {}
        for number, origin in origins.items():
            name = _find_origin_name(origin, layout)
            if name is None or name not in files:
                continue
            data = self._load_blob_data(name, files[name].oid)
            if data is None:
                continue
            path = find_earlier_path(origin.path, origin.document.data, data)
            if path is not None:
                located.setdefault(name, []).append(PendingValue(number, path, data))
        return located

    def _find_parent_value(
        self, commit: Commit, name: str, value: PendingValue
    ) -> _ParentValue | None:
        """Return a value in the first parent of a commit that has it, None if that wrote it."""
        for parent in commit.parents:
            change = next((change for change in commit.changes[parent] if change.now == name), None)
            if change is None:
                return _ParentValue(parent, name, value)
            if change.was is None or change.old is None:
                continue
            older = self._load_blob_data(change.was, change.old.oid)
            if older is None:
                # It is unreadable in this parent: look further back.
                return _ParentValue(parent, change.was, value)
            path = find_earlier_path(value.path, value.data, older)
            if path is not None:
                return _ParentValue(parent, change.was, PendingValue(value.number, path, older))
        return None

    def _load_blob_data(self, name: str, oid: str) -> TomlTable | None:
        """Return the data of a file by blob id; None if it cannot be read."""
        if oid not in self._read:
            raw = self._ahead.read_content(name, oid)
            try:
                self._read[oid] = document.parse_document("", "", raw).data
            except NpuprofError:
                self._read[oid] = None
        return self._read[oid]


def _find_origin_name(origin: Origin, layout: Layout) -> str | None:
    """Return the preset name of an origin's file; None if it is not a preset."""
    if ":" in origin.profile:
        return origin.profile.rpartition(":")[2]  # a source's preset
    return origin.profile if origin.revision is None else layout.name_of(origin.file)


def find_earlier_path(path: Path, new: TomlValue, old: TomlValue) -> Path | None:
    """Return the path in ``old`` of a value of ``new``, None if it is missing or differs.

    List elements are found even if elements before them were added or removed.
    """
    earlier: Path = ()
    for depth, part in enumerate(path, 1):
        key: str | int | None = None
        if isinstance(old, dict):
            key = part if part in old else None
        elif isinstance(old, list) and isinstance(new, list):
            key = _find_aligned_index(part, new, old)
            if key is None and depth < len(path) and part < len(old):
                key = part  # another element that may contain the value
        if key is None:
            return None
        new, old, earlier = new[part], old[key], (*earlier, key)
    return earlier if is_same_typed_value(new, old) else None


def _find_aligned_index(index: int, new: list[TomlValue], old: list[TomlValue]) -> int | None:
    """Return the index in ``old`` of an element of ``new``, None if it was added later."""
    # the common case: nothing before the element has changed
    if index < len(old) and is_same_typed_value(new[: index + 1], old[: index + 1]):
        return index
    new_texts, old_texts = (
        [f"{type(item).__name__} {item!r}" for item in side] for side in (new, old)
    )
    # autojunk would ignore elements that are frequent in long lists
    for block in SequenceMatcher(None, new_texts, old_texts, autojunk=False).get_matching_blocks():
        if block.a <= index < block.a + block.size:
            return block.b + index - block.a
    return None
