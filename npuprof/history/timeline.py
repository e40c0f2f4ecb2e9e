"""The history of one resolved preset: which commits changed what it resolves to, through any parent."""

from __future__ import annotations

from typing import Any

from npuprof import changes as diff
from npuprof import document, values
from npuprof.errors import NpuprofError
from npuprof.history.commits import Commit, commits
from npuprof.model import Context, Finding, Path
from npuprof.profile import Profile
from npuprof.record import Record
from npuprof.resolve import Resolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from npuprof.changes import Change
    from npuprof.config import Config
    from npuprof.history.repository import Entry, Repository

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

    def steps(self, key: str = "", tail: Path = ()) -> Iterator[Step]:
        """Yield the commits that changed the resolved preset, or the value at a key or below it."""
        states: dict[str, tuple[dict[str, Entry], str]] = {}
        results: dict[str, Any] = {}
        first = True
        for commit in commits(self._repository, self._tip):
            if first:
                states[commit.id] = (self._repository.files(self._tip), self._name)
                first = False
            if commit.id not in states:
                continue  # nothing that is asked for leads here
            files, name = states.pop(commit.id)
            if commit.id not in results:
                results[commit.id] = self._result(files, name)
            now = results.pop(commit.id)
            before = []
            for place, parent in enumerate(commit.parents or ("",)):
                changed = commit.changes[parent]
                was = next((change.was for change in changed if change.now == name and change.was), name)
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
                then = self._result(whole, was) if _concerns(changed, now, name, files) else now
                before.append(then)
                if parent:
                    states[parent], results[parent] = (whole, was), then
            step = _step(commit, name, before, now, key, tail)
            if step is not None:
                yield step

    def _result(self, files: dict[str, Entry], name: str) -> Any:
        if name not in files:
            return None
        self._files = files
        resolver = self._resolver
        resolver.renew(_KEPT)
        try:
            return resolver.config(self._profile(name), name)
        except NpuprofError as error:
            return error

    def _lookup(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        asked = referrer.origin("profile", "extends", index) if referrer else None
        home = referrer.home if referrer else None
        if "@" in reference:
            from npuprof import history

            return history.profile(home or history.at_repository(self._repository, self._tip), reference, asked)[0]
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
            from npuprof.history.revision import Revision

            try:
                raw = Revision(self._repository, self._tip, self._files).text(name)
                found = Profile(document.read(name, self._repository.source(name), raw), key=f"{name}@{oid}")
            except NpuprofError as error:
                found = error
            self._profiles[name, oid] = found
        if isinstance(found, NpuprofError):
            raise found
        return found


def _concerns(changed: list[Any], now: Any, name: str, files: dict[str, Entry]) -> bool:
    """Return whether the files that changed can have changed a preset that is ``now`` what it is."""
    if now is None:
        return any(name in (change.was, change.now) for change in changed)
    if isinstance(now, NpuprofError):
        return bool(changed)
    members = {profile.name for profile in now.lineage}
    if any(change.was in members or change.now in members for change in changed):
        return True
    return bool(changed) and any(files.get(member, ("",))[0] == "120000" for member in members)


def _step(commit: Commit, name: str, before: list[Any], now: Any, key: str, tail: Path) -> Step | None:
    """Return what a commit did to a preset: only what differs from all its parents."""
    if any(then is now for then in before):
        return None
    if now is None or isinstance(now, NpuprofError):
        if any(type(then) is type(now) for then in before):
            return None
        kind = "removed" if now is None else "broken"
        if key and now is None and not any(_holds(then, key, tail) for then in before):
            return None
        return Step(commit, kind, name, (), now.findings if now else ())
    resolved = [then for then in before if then is not None and not isinstance(then, NpuprofError)]
    if len(resolved) < len(before):
        if resolved and not all(_differ(then, now, key, tail) for then in resolved):
            return None
        kind = "created" if None in before else "mended"
        if key and not _holds(now, key, tail):
            return None
        return Step(commit, kind, name, tuple(_alone(now, key, tail)))
    found = [_differ(then, now, key, tail) for then in resolved]
    common = set.intersection(*({change.key for change in changes} for changes in found))
    changes = [change for change in diff.compare(before[0], now) if change.key in common] if common else []
    return Step(commit, "changed", name, tuple(_below(changes, key, tail))) if common else None


def _differ(then: Config, now: Config, key: str, tail: Path) -> list[Change]:
    if not key:
        return diff.compare(then, now, trace=False)
    if (key in then.settings) == (key in now.settings) and (key not in now.settings or _same(then, now, key, tail)):
        return []
    return _below(diff.compare(then, now, trace=False), key, tail)


def _holds(result: Any, key: str, tail: Path) -> bool:
    settings = getattr(result, "settings", {})
    return key in settings and values.find(key, settings[key], tail)[0]


def _same(then: Config, now: Config, key: str, tail: Path) -> bool:
    if not tail:
        return values.equal(key, then.settings[key], now.settings[key])
    left, right = (values.find(key, config.settings[key], tail) for config in (then, now))
    return left[0] == right[0] and values.same(left[1], right[1])


def _below(changes: list[Change], key: str, tail: Path) -> list[Change]:
    """Return the changes at a place, inside it, or of what it stands in."""
    if not key:
        return changes
    return [change for change in changes if change.setting == key and change.tail[: len(tail)] == tail[: len(change.tail)]]


def _alone(config: Config, key: str, tail: Path) -> list[Change]:
    return [
        diff.Change(name, "added", None, value, name, (), False, *diff.facts(name), (None, config.origin(name)))
        for name, value in config.ordered().items()
        if not key or name == key
    ]
