"""The history of one resolved preset: which commits changed what it resolves to, through any parent."""

from __future__ import annotations

from itertools import islice
from typing import Any

from npuprof import document
from npuprof.catalog import values
from npuprof.compare import changes as diff
from npuprof.document import keys
from npuprof.document.profile import Profile
from npuprof.history.quick import compare_key_lines, compile_header_pattern
from npuprof.model import Context, Finding, NpuprofError, Origin, Path, Record
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store.commits import Commit, FileChange, walk_commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from npuprof.compare.changes import Change
    from npuprof.store.repository import Repository, TreeFile

#: What a preset was at a commit: resolved, not resolvable (the findings), or not there.
Result = "Config | NpuprofError | None"
_CACHE_LIMIT = 400  # folds and profiles kept for the next commit


class HistoryStep(Record):
    """One commit that changed the resolved preset. ``kind`` is ``changed``, ``created``, ``removed``, ``broken`` or ``mended``.

    ``name`` is what the preset was called after it, ``findings`` why it could not be resolved.
    """

    commit: Commit
    kind: str
    name: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()


class Timeline:
    """One preset along the commits behind a tip, newest first; renames are followed."""

    def __init__(self, repository: Repository, tip: str, name: str, context: Context) -> None:
        self._repository = repository
        self._tip = tip
        self._name = name
        self._resolver = Resolver(self._find_extended_profile, context)
        self._profiles: dict[tuple[str, str], Profile | NpuprofError] = {}
        self._files: dict[str, TreeFile] = {}
        self._texts: dict[str, bytes] = {}
        self._last: set[str] = set()
        self._members: set[str] = {name}
        self._header = compile_header_pattern(b"")

    def walk_steps(self, key: str = "", tail: Path = ()) -> Iterator[HistoryStep]:
        """Yield the commits that changed the resolved preset, or the value at a key or below it."""
        states: dict[str, tuple[dict[str, TreeFile], str]] = {}
        results: dict[str, Any] = {}
        name = bytes(keys.split_section_and_name(key)[1], "utf-8") if key and not tail else b""
        self._header = compile_header_pattern(name)
        for commit in self._prefetch_commits():
            if not states and not results:
                states[commit.id] = (self._repository.list_profile_files(self._tip), self._name)
            if commit.id not in states:
                continue  # nothing that is asked for leads here
            files, called = states.pop(commit.id)
            if len(commit.parents) == 1 and commit.parents[0] not in states and isinstance(results.get(commit.id), KnownSetting):
                # The plainest case by far, and the one that long histories are made of.
                now, parent = results[commit.id], commit.parents[0]
                changed = commit.changes[parent]
                if _is_unrelated_change(changed, now.members):
                    for was, old, _, _ in changed:
                        files[was] = old  # type: ignore[index,assignment]
                    del results[commit.id]
                    states[parent], results[parent] = (files, called), now
                    continue
            if commit.id not in results:
                results[commit.id] = self._resolve_result(files, called)
            now = results.pop(commit.id)
            before = []
            for place, parent in enumerate(commit.parents or ("",)):
                changed = commit.changes[parent]
                was = next((change.was for change in changed if change.now == called and change.was), called)
                if parent in results and parent in states:
                    before.append(results[parent])
                    continue
                whole = files if place == len(commit.parents or ("",)) - 1 else dict(files)
                for change in changed:
                    if change.now and change.now != change.was:
                        whole.pop(change.now, None)
                for change in changed:
                    if change.was and change.old:
                        whole[change.was] = change.old
                then = now
                if _may_change_result(changed, now, called, files):
                    then = (self._infer_plain_result(changed, now, key, name) if name else None) or self._resolve_result(whole, was)
                before.append(then)
                if parent:
                    states[parent], results[parent] = (whole, was), then
            step = _build_history_step(commit, called, before, now, key, tail)
            if step is not None:
                yield step

    def _prefetch_commits(self) -> Iterator[Commit]:
        """Yield the commits; the texts that the next ones need are read in one go, while these are looked at."""
        waiting: list[tuple[list[Commit], set[str], Callable[[], dict[str, bytes]]]] = []
        try:
            for some in _split_into_batches(walk_commits(self._repository, self._tip)):
                known = self._members
                wanted = {
                    change.old[1]
                    for commit in some
                    for changed in commit.changes.values()
                    for change in changed
                    if change.old and change.was in known
                }
                waiting.append((some, wanted, self._repository.request_contents(wanted)))
                if len(waiting) > 1:
                    yield from self._yield_with_texts(*waiting.pop(0))
            while waiting:
                yield from self._yield_with_texts(*waiting.pop(0))
        finally:
            for _, _, texts in waiting:
                texts()  # nobody wants them any more, but git is writing them

    def _yield_with_texts(self, some: list[Commit], wanted: set[str], texts: Callable[[], dict[str, bytes]]) -> Iterator[Commit]:
        kept = {oid: text for oid, text in self._texts.items() if oid in self._last}
        self._texts = kept | texts()
        self._last = wanted
        yield from some

    def _load_blob_text(self, oid: str) -> bytes:
        if oid not in self._texts:
            self._texts.update(self._repository.read_blobs([oid]))
        return self._texts.get(oid, b"")

    def _infer_plain_result(self, changed: list[FileChange], now: Any, key: str, name: bytes) -> Any:
        """Return what the preset was before one file changed plainly, or None where that takes resolving it again."""
        if now is None or isinstance(now, NpuprofError):
            return None
        if isinstance(now, Config):
            now = KnownSetting(now, key)
        members = now.members
        touched = [change for change in changed if change[0] in members or change[2] in members]
        if len(touched) != 1:
            return None
        was, old, name_now, new = touched[0]
        if was != name_now or old is None or new is None or old[0] == "120000" or new[0] == "120000":
            return None
        texts = self._texts
        before = texts[old[1]] if old[1] in texts else self._load_blob_text(old[1])
        after = texts[new[1]] if new[1] in texts else self._load_blob_text(new[1])
        found = compare_key_lines(before, after, name, self._header, now.appended)
        if found is None:
            return None
        if not found.line:
            return now
        if (name_now, found.line) != now.place or not values.is_same_typed_value(found.new, now.settings[key]):
            return None
        return now.with_value(found.old)

    def _resolve_result(self, files: dict[str, TreeFile], name: str) -> Any:
        if name not in files:
            return None
        self._files = files
        resolver = self._resolver
        resolver.forget_lineages(_CACHE_LIMIT)
        try:
            found = resolver.resolve_profile(self._load_profile(name), name)
        except NpuprofError as error:
            return error
        self._members = {profile.name for profile in found.lineage}
        return found

    def _find_extended_profile(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        asked = referrer.origin("profile", "extends", index) if referrer else None
        home = referrer.home if referrer else None
        if "@" in reference:
            from npuprof.store import revisions

            return revisions.load_profile_at_revision(
                home or revisions.load_repository_revision(self._repository, self._tip), reference, asked
            )[0]
        if home is not None:
            pinned: Profile = home.profile(reference, asked)
            return pinned
        if reference not in self._files:
            assert referrer is not None, "the preset itself has been looked for"
            what = f"{referrer.name} extends {reference!r}, which was not there"
            raise NpuprofError([Finding("NP101", "error", what, "", "", asked, "profile.extends", (referrer.name,))])
        return self._load_profile(reference)

    def _load_profile(self, name: str) -> Profile:
        mode, oid = self._files[name]
        found = self._profiles.get((name, oid)) if mode != "120000" else None
        if found is None:
            if len(self._profiles) > _CACHE_LIMIT:
                self._profiles.clear()
            from npuprof.store.revision import Revision

            try:
                raw = (
                    self._load_blob_text(oid)
                    if mode != "120000"
                    else Revision(self._repository, self._tip, self._files).read_profile_text(name)
                )
                found = Profile(document.parse_document(name, self._repository.source_path(name), raw), key=f"{name}@{oid}")
            except NpuprofError as error:
                found = error
            self._profiles[name, oid] = found
        if isinstance(found, NpuprofError):
            raise found
        return found


def _is_unrelated_change(changed: list[FileChange], members: set[str]) -> bool:
    """Return whether plain files changed in place, and none that a preset is made of."""
    for was, old, now, new in changed:
        if was != now or was in members or old is None or new is None or old[0] == "120000" or new[0] == "120000":
            return False
    return True


def _may_change_result(changed: list[Any], now: Any, name: str, files: dict[str, TreeFile]) -> bool:
    """Return whether the files that changed can have changed a preset that is ``now`` what it is."""
    if now is None:
        return any(name in (change.was, change.now) for change in changed)
    if isinstance(now, NpuprofError):
        return bool(changed)
    members = now.members if isinstance(now, KnownSetting) else {profile.name for profile in now.lineage}
    if any(change.was in members or change.now in members for change in changed):
        return True
    return bool(changed) and any(files.get(member, ("",))[0] == "120000" for member in members)


def _build_history_step(commit: Commit, name: str, before: list[Any], now: Any, key: str, tail: Path) -> HistoryStep | None:
    """Return what a commit did to a preset, None where it is as it was in one of the parents."""
    if any(then is now for then in before):
        return None
    if now is None or isinstance(now, NpuprofError):
        if any(type(then) is type(now) for then in before):
            return None
        kind = "removed" if now is None else "broken"
        if key and now is None and not _was_key_reported(before, key, tail):
            return None
        return HistoryStep(commit, kind, name, (), now.findings if now else ())
    resolved = [then for then in before if then is not None and not isinstance(then, NpuprofError)]
    if len(resolved) < len(before):
        if resolved and not all(_compare_results(then, now, key, tail) for then in resolved):
            return None
        kind = "created" if None in before else "mended"
        if key and not _has_setting(now, key, tail) and not _was_key_reported(before, key, tail):
            return None
        return HistoryStep(commit, kind, name, tuple(_build_added_changes(now, key)))
    if any(isinstance(side, KnownSetting) for side in (now, *resolved)):
        if any(_is_same_setting(then, now, key, tail) for then in resolved):
            return None
        return HistoryStep(commit, "changed", name, (_build_known_change(resolved[0], now, key),))
    found = [_compare_results(then, now, key, tail) for then in resolved]
    if not all(found):
        return None
    common = set.intersection(*({change.key for change in changes} for changes in found))
    # A merge may differ from each parent only in what it took from the others: then it is told against the first.
    changes = [change for change in found[0] if not common or change.key in common]
    return HistoryStep(commit, "changed", name, tuple(diff.trace_changes(resolved[0], now, changes)))


def _build_known_change(then: Any, now: Any, key: str) -> Change:
    old, new = (side.origin(key) if key in side.settings else None for side in (then, now))
    return diff.build_setting_change(key, then.settings.get(key), now.settings.get(key), old, new)


def _split_into_batches(found: Iterator[Commit]) -> Iterator[list[Commit]]:
    """Yield commits in lists: short ones first, so that a few steps of a long history come at once."""
    size = 16
    while some := list(islice(found, size)):
        yield some
        size = min(8 * size, 8192)


class KnownSetting:
    """A preset of which one setting is known without resolving it: a plain scalar, on a line of one of its files."""

    def __init__(self, config: Config, key: str) -> None:
        self.members = {profile.name for profile in config.lineage}
        self.appended = {
            keys.split_section_and_name(step.key)[1].encode()
            for profile in config.lineage
            for steps in (profile.steps, *(override.steps for override in profile.overrides))
            for step in steps
            if step.op == "append"
        }
        self.settings = {key: config.settings[key]} if key in config.settings else {}
        self._origin = config.origin(key) if self.settings else None
        origin = self._origin
        plain = origin is not None and origin.layer == "values" and len(origin.path) == 2 and type(self.settings[key]) in (bool, int, str)
        self.place = (origin.profile, origin.line) if origin is not None and plain else None

    def origin(self, key: str) -> Origin | None:
        """Return who set the setting."""
        return self._origin

    def with_value(self, value: Any) -> KnownSetting:
        """Return the same with another value on the same line."""
        other = object.__new__(KnownSetting)
        other.members, other.appended, other.place, other._origin = self.members, self.appended, self.place, self._origin
        other.settings = dict.fromkeys(self.settings, value)
        return other


def _compare_results(then: Any, now: Any, key: str, tail: Path) -> list[Change]:
    if isinstance(then, KnownSetting) or isinstance(now, KnownSetting):
        return [] if _is_same_setting(then, now, key, tail) else [_build_known_change(then, now, key)]
    if not key:
        return diff.compare_configs(then, now, trace=False)
    if (key in then.settings) == (key in now.settings) and (key not in now.settings or _is_same_setting(then, now, key, tail)):
        return []
    return _select_changes_below(diff.compare_configs(then, now, trace=False), key, tail)


def _was_key_reported(before: list[Any], key: str, tail: Path) -> bool:
    """Return whether the history has told anything of a key before: its value, or that it cannot be known."""
    return any(isinstance(then, NpuprofError) or _has_setting(then, key, tail) for then in before)


def _has_setting(result: Any, key: str, tail: Path) -> bool:
    settings = getattr(result, "settings", {})
    return key in settings and values.find_value(key, settings[key], tail)[0]


def _is_same_setting(then: Any, now: Any, key: str, tail: Path) -> bool:
    if (key in then.settings) != (key in now.settings) or key not in now.settings:
        return key not in then.settings and key not in now.settings
    if not tail:
        return values.is_equivalent_setting(key, then.settings[key], now.settings[key])
    left, right = (values.find_value(key, config.settings[key], tail) for config in (then, now))
    return left[0] == right[0] and values.is_same_typed_value(left[1], right[1])


def _select_changes_below(changes: list[Change], key: str, tail: Path) -> list[Change]:
    """Return the changes at a place, inside it, or of what it stands in."""
    if not key:
        return changes
    return [change for change in changes if change.setting == key and change.tail[: len(tail)] == tail[: len(change.tail)]]


def _build_added_changes(config: Config | KnownSetting, key: str) -> list[Change]:
    settings = config.settings if isinstance(config, KnownSetting) else config.ordered_settings()
    asked = {name: value for name, value in settings.items() if not key or name == key}
    return diff.build_one_sided_changes(asked, "added", config.origin)
