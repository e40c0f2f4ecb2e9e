"""Who last wrote each value of a resolved preset: the commit since which it stands in its file as it does."""

from __future__ import annotations

from typing import Any

from npuprof import document
from npuprof.catalog import values
from npuprof.model import NpuprofError, Origin, Path, Record
from npuprof.store.commits import Commit, walk_commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config
    from npuprof.store.repository import Repository

    #: A value on its way back: its number, its path in the file, and the file's data as last seen.
    Pending = tuple[int, Path, dict[str, Any]]


class BlamedValue(Record):
    """One value of a preset: its place, where it stands now, and the commit that wrote it (None: not committed yet)."""

    key: str
    tail: Path
    value: Any
    origin: Origin | None
    commit: Commit | None


def blame_config_values(repository: Repository, config: Config) -> list[BlamedValue]:
    """Return every value of a preset, list elements included, with the commit that wrote it.

    A value counts as written when it changed, not when its line was moved or formatted; renames are followed.
    """
    from npuprof.store import revisions

    lines = [line for key in config.ordered_settings() for line in _collect_blamed_values(config, key)]
    starts: dict[str, list[int]] = {}
    head = ""
    for number, line in enumerate(lines):
        if line.origin is None:
            continue
        start = line.origin.revision
        if start is None:
            head = head or repository.resolve_commit("HEAD")
            start = head
        starts.setdefault(start, []).append(number)
    found: dict[int, Commit] = {}
    for start, numbers in starts.items():
        then = revisions.load_repository_revision(repository, start).repository  # the store may have been another folder then
        found.update(_BlameWalk(then).find_writing_commits(start, numbers, lines))
    return [line._replace(commit=found.get(number)) for number, line in enumerate(lines)]


def _collect_blamed_values(config: Config, key: str) -> list[BlamedValue]:
    found: list[BlamedValue] = []

    def collect_leaf_values(value: Any, tail: Path) -> None:
        if isinstance(value, values.Leaf):
            found.append(BlamedValue(key, tail, value.value, value.origin, None))
        elif not value:
            found.append(BlamedValue(key, tail, value, config.origin(key, tail), None))
        else:
            for name, item in value.items() if isinstance(value, dict) else enumerate(value):
                collect_leaf_values(item, (*tail, name))

    collect_leaf_values(config.traced_value(key), ())
    return found


class _BlameWalk:
    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._read: dict[str, dict[str, Any] | None] = {}

    def find_writing_commits(self, start: str, numbers: list[int], lines: list[BlamedValue]) -> dict[int, Commit]:
        files = self._repository.list_profile_files(start)
        first: dict[str, list[Pending]] = {}
        for number in numbers:
            origin = lines[number].origin
            assert origin is not None, "only those are looked for"
            name = _find_origin_name(origin, self._repository.prefix, files)
            if name is None or name not in files:
                continue
            held = self._load_blob_data(files[name][1])
            path = find_earlier_path(origin.path, origin.document.data, held) if held is not None else None
            if path is not None and held is not None:
                first.setdefault(name, []).append((number, path, held))
        found: dict[int, Commit] = {}
        waiting: dict[str, dict[str, list[Pending]]] = {}
        walk = walk_commits(self._repository, start)
        try:
            for place, commit in enumerate(walk):
                here = first if not place else waiting.pop(commit.id, {})
                for name, items in here.items():
                    for item in items:
                        passed = self._find_parent_value(commit, name, item)
                        if passed is None:
                            found[item[0]] = commit
                        else:
                            parent, called, moved = passed
                            waiting.setdefault(parent, {}).setdefault(called, []).append(moved)
                if not waiting:
                    break
        finally:
            walk.close()
        return found

    def _find_parent_value(self, commit: Commit, name: str, item: Pending) -> tuple[str, str, Pending] | None:
        """Return the parent that has a value already, with its file and place there; None where the commit wrote it."""
        number, path, data = item
        for parent in commit.parents:
            change = next((change for change in commit.changes[parent] if change.now == name), None)
            if change is None:
                return parent, name, item
            if change.was is None or change.old is None:
                continue
            older = self._load_blob_data(change.old[1])
            if older is None:
                return parent, change.was, item  # not readable then: look further back
            place = find_earlier_path(path, data, older)
            if place is not None:
                return parent, change.was, (number, place, older)
        return None

    def _load_blob_data(self, oid: str) -> dict[str, Any] | None:
        if oid not in self._read:
            raw = self._repository.read_blobs([oid]).get(oid, b"")
            try:
                self._read[oid] = document.parse_document("", "", raw).data
            except NpuprofError:
                self._read[oid] = None
        return self._read[oid]


def _find_origin_name(origin: Origin, prefix: str, files: dict[str, Any]) -> str | None:
    """Return the name below the store of the file an origin is in."""
    if origin.revision is not None:
        return origin.file.removeprefix(prefix).removesuffix(".toml")
    return origin.profile if origin.profile in files else None


def find_earlier_path(path: Path, new: Any, old: Any) -> Path | None:
    """Return where a value of ``new`` stands in ``old``, or None where it is not there or is another.

    Elements of lists are followed where others came or went before them.
    """
    found: Path = ()
    for step, part in enumerate(path):
        if isinstance(new, dict) and isinstance(old, dict):
            if part not in new or part not in old:
                return None
            new, old = new[part], old[part]
        elif isinstance(new, list) and isinstance(old, list) and isinstance(part, int) and part < len(new):
            place = _find_aligned_index(part, new, old)
            if place is None and step + 1 < len(path) and part < len(old):
                place = part
            if place is None:
                return None
            new, old, part = new[part], old[place], place
        else:
            return None
        found = (*found, part)
    return found if values.is_same_typed_value(new, old) else None


def _find_aligned_index(index: int, new: list[Any], old: list[Any]) -> int | None:
    if index < len(old) and values.is_same_typed_value(new[: index + 1], old[: index + 1]):
        return index
    from difflib import SequenceMatcher

    marks = [[f"{type(item).__name__} {item!r}" for item in side] for side in (new, old)]
    for block in SequenceMatcher(None, marks[0], marks[1], autojunk=False).get_matching_blocks():
        if block.a <= index < block.a + block.size:
            return block.b + index - block.a
    return None
