"""The commit that last changed each value of a resolved preset."""

from __future__ import annotations

import os
from contextlib import closing
from difflib import SequenceMatcher
from typing import NamedTuple

from npuprof import document
from npuprof.catalog import values
from npuprof.model import NpuprofError, Origin, Path, Record, TomlTable, TomlValue
from npuprof.resolve.config import Config
from npuprof.store.gitstore.commits import Commit, ReadAhead, walk_commits
from npuprof.store.gitstore.revisions import StoreRepository
from npuprof.store.layout import Layout
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.stores import SourceStore
from npuprof.system import group_pairs, list_items


class PendingValue(NamedTuple):
    """A value being traced: its number, its path in the file, and the file's last seen data."""

    number: int
    path: Path
    data: TomlTable


class BlamedValue(Record):
    """One value of a preset: place, origin, and the commit that wrote it (None: not committed).

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
    lines = [
        line for key in config.ordered_settings() for line in _collect_blamed_values(config, key)
    ]
    commits: dict[int, Commit] = {}
    homes = {
        id(profile.document): profile.home
        for profile in config.lineage
        if isinstance(profile.home, SourceStore)
    }
    origins = (
        (number, line.origin) for number, line in enumerate(lines) if line.origin is not None
    )
    by_home = group_pairs(
        (homes.get(id(origin.document)), (number, origin)) for number, origin in origins
    )
    copied: dict[int, str] = {}
    for home, own in by_home.items():
        if (
            home is not None
            and home.copy is not None
            and not os.path.isdir(find_mirror_folder(home.locked.url))
        ):
            copied.update((number, home.commit) for number, _ in own)
        elif home is not None:  # from another repository, which has the commit
            commits.update(
                _BlameWalk(home.revision.repository).find_writing_commits(home.commit, dict(own))
            )
    for start, own_values in _group_by_start(repository, by_home.get(None, [])).items():
        then = repository.load_revision(
            start
        ).repository  # the store may have had another folder then
        commits.update(_BlameWalk(then).find_writing_commits(start, own_values))
    return [
        line._replace(commit=commits.get(number), copied=copied.get(number, ""))
        for number, line in enumerate(lines)
    ]


def _group_by_start(
    repository: StoreRepository, origins: list[tuple[int, Origin]]
) -> dict[str, dict[int, Origin]]:
    """Return the origins of the values, by index, grouped by commit.

    That is the last commit, or the one they are pinned to.
    """
    starts: dict[str, dict[int, Origin]] = {}
    head = ""
    for number, origin in origins:
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
        elif not value:
            blamed.append(BlamedValue(key, tail, value, config.origin(key, tail), None))
        else:
            for name, item in list_items(value):
                collect_leaf_values(item, (*tail, name))

    collect_leaf_values(config.traced_value(key), ())
    return blamed


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
        writers: dict[int, Commit] = {}
        waiting: dict[str, dict[str, list[PendingValue]]] = {}
        with closing(walk_commits(self._repository, start)) as walk:
            for place, commit in enumerate(self._ahead.walk(walk)):
                here = waiting.pop(commit.id, {}) if place else self._locate_values(start, origins)
                for name, items in here.items():
                    for item in items:
                        earlier = self._find_parent_value(commit, name, item)
                        if earlier is None:
                            writers[item.number] = commit
                        else:
                            parent, was, value = earlier
                            waiting.setdefault(parent, {}).setdefault(was, []).append(value)
                if not waiting:
                    break
        return writers

    def _locate_values(
        self, start: str, origins: dict[int, Origin]
    ) -> dict[str, list[PendingValue]]:
        """Return the values by file at a commit; values missing there are omitted."""
        files, layout = (
            self._repository.list_profile_files(start),
            self._repository.find_layout(start),
        )
        located: dict[str, list[PendingValue]] = {}
        for number, origin in origins.items():
            name = _find_origin_name(origin, layout)
            data = self._load_blob_data(name, files[name].oid) if name in files else None
            path = (
                find_earlier_path(origin.path, origin.document.data, data)
                if data is not None
                else None
            )
            if name is not None and path is not None and data is not None:
                located.setdefault(name, []).append(PendingValue(number, path, data))
        return located

    def _find_parent_value(
        self, commit: Commit, name: str, item: PendingValue
    ) -> tuple[str, str, PendingValue] | None:
        """Return the parent commit that already has a value, the name of its file, and the value.

        None if the commit wrote it.
        """
        for parent in commit.parents:
            change = next((change for change in commit.changes[parent] if change.now == name), None)
            if change is None:
                return parent, name, item
            if change.was is None or change.old is None:
                continue
            older = self._load_blob_data(change.was, change.old.oid)
            if older is None:
                return parent, change.was, item  # unreadable then: look further back
            path = find_earlier_path(item.path, item.data, older)
            if path is not None:
                return parent, change.was, PendingValue(item.number, path, older)
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
        place: str | int | None = None
        if isinstance(old, dict):
            place = part if part in old else None
        elif isinstance(old, list) and isinstance(new, list):
            place = _find_aligned_index(part, new, old)
            if place is None and depth < len(path) and part < len(old):
                place = part  # another element that may contain the value
        if place is None:
            return None
        new, old, earlier = new[part], old[place], (*earlier, place)
    return earlier if values.is_same_typed_value(new, old) else None


def _find_aligned_index(index: int, new: list[TomlValue], old: list[TomlValue]) -> int | None:
    if index < len(old) and values.is_same_typed_value(new[: index + 1], old[: index + 1]):
        return index
    marks = [[f"{type(item).__name__} {item!r}" for item in side] for side in (new, old)]
    for block in SequenceMatcher(None, marks[0], marks[1], autojunk=False).get_matching_blocks():
        if block.a <= index < block.a + block.size:
            return block.b + index - block.a
    return None
