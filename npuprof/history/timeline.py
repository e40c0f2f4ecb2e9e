"""The history of one resolved preset: which commits changed what it resolves to, through any parent."""

from __future__ import annotations

from itertools import islice
from typing import Any

from npuprof import document
from npuprof.catalog import values
from npuprof.compare import changes as diff
from npuprof.document import keys
from npuprof.document.profile import Profile
from npuprof.history.quick import difference, headers
from npuprof.model import Context, Finding, NpuprofError, Origin, Path, Record
from npuprof.resolve import Resolver
from npuprof.resolve.config import Config
from npuprof.store.commits import Commit, FileChange, commits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from npuprof.compare.changes import Change
    from npuprof.store.repository import Entry, Repository

#: What a preset was at a commit: resolved, not resolvable (the findings), or not there.
Result = "Config | NpuprofError | None"
_KEPT = 400  # folds and profiles kept for the next commit


class Step(Record):
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
        self._resolver = Resolver(self._lookup, context)
        self._profiles: dict[tuple[str, str], Profile | NpuprofError] = {}
        self._files: dict[str, Entry] = {}
        self._texts: dict[str, bytes] = {}
        self._last: set[str] = set()
        self._members: set[str] = {name}
        self._header = headers(b"")

    def steps(self, key: str = "", tail: Path = ()) -> Iterator[Step]:
        """Yield the commits that changed the resolved preset, or the value at a key or below it."""
        states: dict[str, tuple[dict[str, Entry], str]] = {}
        results: dict[str, Any] = {}
        name = bytes(keys.section_and_name(key)[1], "utf-8") if key and not tail else b""
        self._header = headers(name)
        for commit in self._ahead():
            if not states and not results:
                states[commit.id] = (self._repository.files(self._tip), self._name)
            if commit.id not in states:
                continue  # nothing that is asked for leads here
            files, called = states.pop(commit.id)
            if len(commit.parents) == 1 and commit.parents[0] not in states and isinstance(results.get(commit.id), Known):
                # The plainest case by far, and the one that long histories are made of.
                now, parent = results[commit.id], commit.parents[0]
                changed = commit.changes[parent]
                if _apart(changed, now.members):
                    for was, old, _, _ in changed:
                        files[was] = old  # type: ignore[index,assignment]
                    del results[commit.id]
                    states[parent], results[parent] = (files, called), now
                    continue
            if commit.id not in results:
                results[commit.id] = self._result(files, called)
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
                if _concerns(changed, now, called, files):
                    then = (self._quick(changed, now, key, name) if name else None) or self._result(whole, was)
                before.append(then)
                if parent:
                    states[parent], results[parent] = (whole, was), then
            step = _step(commit, called, before, now, key, tail)
            if step is not None:
                yield step

    def _ahead(self) -> Iterator[Commit]:
        """Yield the commits; the texts that the next ones need are read in one go, while these are looked at."""
        waiting: list[tuple[list[Commit], set[str], Callable[[], dict[str, bytes]]]] = []
        try:
            for some in _batches(commits(self._repository, self._tip)):
                known = self._members
                wanted = {
                    change.old[1]
                    for commit in some
                    for changed in commit.changes.values()
                    for change in changed
                    if change.old and change.was in known
                }
                waiting.append((some, wanted, self._repository.contents(wanted)))
                if len(waiting) > 1:
                    yield from self._with_texts(*waiting.pop(0))
            while waiting:
                yield from self._with_texts(*waiting.pop(0))
        finally:
            for _, _, texts in waiting:
                texts()  # nobody wants them any more, but git is writing them

    def _with_texts(self, some: list[Commit], wanted: set[str], texts: Callable[[], dict[str, bytes]]) -> Iterator[Commit]:
        kept = {oid: text for oid, text in self._texts.items() if oid in self._last}
        self._texts = kept | texts()
        self._last = wanted
        yield from some

    def _text(self, oid: str) -> bytes:
        if oid not in self._texts:
            self._texts.update(self._repository.blobs([oid]))
        return self._texts.get(oid, b"")

    def _quick(self, changed: list[FileChange], now: Any, key: str, name: bytes) -> Any:
        """Return what the preset was before one file changed plainly, or None where that takes resolving it again."""
        if now is None or isinstance(now, NpuprofError):
            return None
        if isinstance(now, Config):
            now = Known(now, key)
        members = now.members
        touched = [change for change in changed if change[0] in members or change[2] in members]
        if len(touched) != 1:
            return None
        was, old, name_now, new = touched[0]
        if was != name_now or old is None or new is None or old[0] == "120000" or new[0] == "120000":
            return None
        texts = self._texts
        before = texts[old[1]] if old[1] in texts else self._text(old[1])
        after = texts[new[1]] if new[1] in texts else self._text(new[1])
        found = difference(before, after, name, self._header, now.appended)
        if found is None:
            return None
        if not found.line:
            return now
        if (name_now, found.line) != now.place or not values.same(found.new, now.settings[key]):
            return None
        return now.but(found.old)

    def _result(self, files: dict[str, Entry], name: str) -> Any:
        if name not in files:
            return None
        self._files = files
        resolver = self._resolver
        resolver.renew(_KEPT)
        try:
            found = resolver.config(self._profile(name), name)
        except NpuprofError as error:
            return error
        self._members = {profile.name for profile in found.lineage}
        return found

    def _lookup(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        asked = referrer.origin("profile", "extends", index) if referrer else None
        home = referrer.home if referrer else None
        if "@" in reference:
            from npuprof.store import revisions

            return revisions.profile(home or revisions.at_repository(self._repository, self._tip), reference, asked)[0]
        if home is not None:
            pinned: Profile = home.profile(reference, asked)
            return pinned
        if reference not in self._files:
            assert referrer is not None, "the preset itself has been looked for"
            what = f"{referrer.name} extends {reference!r}, which was not there"
            raise NpuprofError([Finding("NP101", "error", what, "", "", asked, "profile.extends", (referrer.name,))])
        return self._profile(reference)

    def _profile(self, name: str) -> Profile:
        mode, oid = self._files[name]
        found = self._profiles.get((name, oid)) if mode != "120000" else None
        if found is None:
            if len(self._profiles) > _KEPT:
                self._profiles.clear()
            from npuprof.store.revision import Revision

            try:
                raw = self._text(oid) if mode != "120000" else Revision(self._repository, self._tip, self._files).text(name)
                found = Profile(document.read(name, self._repository.source(name), raw), key=f"{name}@{oid}")
            except NpuprofError as error:
                found = error
            self._profiles[name, oid] = found
        if isinstance(found, NpuprofError):
            raise found
        return found


def _apart(changed: list[FileChange], members: set[str]) -> bool:
    """Return whether plain files changed in place, and none that a preset is made of."""
    for was, old, now, new in changed:
        if was != now or was in members or old is None or new is None or old[0] == "120000" or new[0] == "120000":
            return False
    return True


def _concerns(changed: list[Any], now: Any, name: str, files: dict[str, Entry]) -> bool:
    """Return whether the files that changed can have changed a preset that is ``now`` what it is."""
    if now is None:
        return any(name in (change.was, change.now) for change in changed)
    if isinstance(now, NpuprofError):
        return bool(changed)
    members = now.members if isinstance(now, Known) else {profile.name for profile in now.lineage}
    if any(change.was in members or change.now in members for change in changed):
        return True
    return bool(changed) and any(files.get(member, ("",))[0] == "120000" for member in members)


def _step(commit: Commit, name: str, before: list[Any], now: Any, key: str, tail: Path) -> Step | None:
    """Return what a commit did to a preset, None where it is as it was in one of the parents."""
    if any(then is now for then in before):
        return None
    if now is None or isinstance(now, NpuprofError):
        if any(type(then) is type(now) for then in before):
            return None
        kind = "removed" if now is None else "broken"
        if key and now is None and not _told(before, key, tail):
            return None
        return Step(commit, kind, name, (), now.findings if now else ())
    resolved = [then for then in before if then is not None and not isinstance(then, NpuprofError)]
    if len(resolved) < len(before):
        if resolved and not all(_differ(then, now, key, tail) for then in resolved):
            return None
        kind = "created" if None in before else "mended"
        if key and not _holds(now, key, tail) and not _told(before, key, tail):
            return None
        return Step(commit, kind, name, tuple(_alone(now, key, tail)))
    if any(isinstance(side, Known) for side in (now, *resolved)):
        if any(_same(then, now, key, tail) for then in resolved):
            return None
        return Step(commit, "changed", name, (_known(resolved[0], now, key),))
    found = [_differ(then, now, key, tail) for then in resolved]
    if not all(found):
        return None
    common = set.intersection(*({change.key for change in changes} for changes in found))
    # A merge may differ from each parent only in what it took from the others: then it is told against the first.
    changes = [change for change in _below(diff.compare(resolved[0], now), key, tail) if not common or change.key in common]
    return Step(commit, "changed", name, tuple(changes))


def _known(then: Any, now: Any, key: str) -> Change:
    kind = "added" if key not in then.settings else "removed" if key not in now.settings else "changed"
    origins = (then.origin(key) if kind != "added" else None, now.origin(key) if kind != "removed" else None)
    return diff.Change(key, kind, then.settings.get(key), now.settings.get(key), key, (), False, *diff.facts(key), origins)


def _batches(found: Iterator[Commit]) -> Iterator[list[Commit]]:
    """Yield commits in lists: short ones first, so that a few steps of a long history come at once."""
    size = 16
    while some := list(islice(found, size)):
        yield some
        size = min(8 * size, 8192)


class Known:
    """A preset of which one setting is known without resolving it: a plain scalar, on a line of one of its files."""

    def __init__(self, config: Config, key: str) -> None:
        self.members = {profile.name for profile in config.lineage}
        self.appended = {
            keys.section_and_name(step.key)[1].encode()
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

    def but(self, value: Any) -> Known:
        """Return the same with another value on the same line."""
        other = object.__new__(Known)
        other.members, other.appended, other.place, other._origin = self.members, self.appended, self.place, self._origin
        other.settings = dict.fromkeys(self.settings, value)
        return other


def _differ(then: Any, now: Any, key: str, tail: Path) -> list[Change]:
    if isinstance(then, Known) or isinstance(now, Known):
        return [] if _same(then, now, key, tail) else [_known(then, now, key)]
    if not key:
        return diff.compare(then, now, trace=False)
    if (key in then.settings) == (key in now.settings) and (key not in now.settings or _same(then, now, key, tail)):
        return []
    return _below(diff.compare(then, now, trace=False), key, tail)


def _told(before: list[Any], key: str, tail: Path) -> bool:
    """Return whether the history has told anything of a key before: its value, or that it cannot be known."""
    return any(isinstance(then, NpuprofError) or _holds(then, key, tail) for then in before)


def _holds(result: Any, key: str, tail: Path) -> bool:
    settings = getattr(result, "settings", {})
    return key in settings and values.find(key, settings[key], tail)[0]


def _same(then: Any, now: Any, key: str, tail: Path) -> bool:
    if (key in then.settings) != (key in now.settings) or key not in now.settings:
        return key not in then.settings and key not in now.settings
    if not tail:
        return values.equal(key, then.settings[key], now.settings[key])
    left, right = (values.find(key, config.settings[key], tail) for config in (then, now))
    return left[0] == right[0] and values.same(left[1], right[1])


def _below(changes: list[Change], key: str, tail: Path) -> list[Change]:
    """Return the changes at a place, inside it, or of what it stands in."""
    if not key:
        return changes
    return [change for change in changes if change.setting == key and change.tail[: len(tail)] == tail[: len(change.tail)]]


def _alone(config: Config | Known, key: str, tail: Path) -> list[Change]:
    return [
        diff.Change(name, "added", None, value, name, (), False, *diff.facts(name), (None, config.origin(name)))
        for name, value in (config.settings if isinstance(config, Known) else config.ordered()).items()
        if not key or name == key
    ]
