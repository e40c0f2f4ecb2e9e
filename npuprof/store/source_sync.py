"""Fetches the commits that ``npuprof.lock`` names, including the sources of sources, and locks sources anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

from npuprof.model import Finding, NpuprofError, Record
from npuprof.store.project_files import ProjectFiles
from npuprof.store.sources import fetching
from npuprof.store.sources.lock import Lock, LockedSource
from npuprof.store.sources.locking import (
    advise_store_release,
    is_own_name,
    is_own_reference,
    list_unfetched_tags,
    list_versioned_references,
    lock_source,
    select_refs,
)
from npuprof.store.sources.mirror import name_mirror
from npuprof.store.sources.mirrorgit import open_mirror, shorten_ids
from npuprof.store.sources.project import Project, Source
from npuprof.store.sources.reading import Sources, find_source_store_among, find_sources
from npuprof.store.sources.released import list_newer_releases, load_released_tags
from npuprof.store.sources.storedigest import build_digest_finding, compute_kept_digest
from npuprof.store.sources.stores import SourceStore
from npuprof.store.sources.urls import hide_credentials
from npuprof.store.versions import is_version_tag, parse_version_range, parse_version_text

#: How many tags a remark names.
_SHOWN = 5


class Locking(Record):
    """What sources are locked to now, the versions that were locked and are gone upstream, as users see them, by source, and remarks."""

    sources: dict[str, LockedSource]
    gone: dict[str, tuple[str, ...]]
    remarks: tuple[str, ...] = ()


def lock_sources(place: ProjectFiles, wanted: Iterable[Source], accept_moved: bool = False) -> Locking:
    """Fetch sources, and theirs, and return what they are locked to now. Raises NpuprofError with all faults."""
    references = place.list_references()
    found: dict[str, LockedSource] = {}
    gone: dict[str, tuple[str, ...]] = {}
    problems: list[Finding] = []
    remarks: list[str] = []
    for source in wanted:
        asked = [reference for reference in references.get(source.name, ()) if "@" in reference]
        try:
            try:
                fetched, found[source.name] = _lock_source(place, source, asked, accept_moved)
            except NpuprofError as error:
                if error.findings[0].code != "NP054":
                    raise
                fetched, found[source.name] = _lock_source(place, source, asked, accept_moved, remake=True)
            gone[source.name] = _list_gone(place.lock.sources.get(source.name), found[source.name], fetched)
            remarks += _tell_remade(source.name, fetched.remade)
            remarks += _list_unshared_releases(source, fetched, found[source.name])
            fetch_sources_of(open_locked(source.name, found[source.name]))
        except NpuprofError as error:
            problems += error.findings
    if problems:
        raise NpuprofError(problems)
    return Locking(found, gone, tuple(remarks))


def _tell_remade(name: str, tags: Iterable[str]) -> list[str]:
    """Return that tags of versions were made anew where they were: git calls that another tag, and what they name is the same."""
    shown = sorted(filter(is_version_tag, tags))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return [f"{name}: made anew at the commit where they were, so the same versions: {', '.join(shown[:_SHOWN])}{more}"] if shown else []


def _list_unshared_releases(source: Source, fetched: fetching.Fetched, locked: LockedSource) -> list[str]:
    """Return that presets have newer releases than the newest store release that ``rev`` allows; a fixed ``rev`` asks for none."""
    wanted = parse_version_range(source.rev)
    if wanted is None or wanted.is_fixed:
        return []
    newer = list_newer_releases(open_mirror(source.name, source.url, source.path), locked.commit, fetched.tags)
    if not newer:
        return []
    shown = f"{', '.join(newer[:_SHOWN])}{f' and {len(newer) - _SHOWN} more' if len(newer) > _SHOWN else ''}"
    return [f"{source.name} {locked.shown} lacks newer releases of presets, {shown}; {advise_store_release(source, fetched)}"]


def _lock_source(
    place: ProjectFiles, source: Source, asked: Iterable[str], accept_moved: bool, remake: bool = False
) -> tuple[fetching.Fetched, LockedSource]:
    known = place.lock.sources.get(source.name)
    fetched = _fetch(source, asked, accept_moved, known, remake)
    if known is not None and known.url == source.url:
        _fetch_known(known)
    origin = place.project.find_source_origin(source.name)
    find_asked = partial(place.find_reference, source.name)
    known = known if known is None or not known.doubt else None  # what npuprof did not write is not kept
    locked = lock_source(source, fetched, asked, origin, known, find_asked)
    if unfetched := list_unfetched_tags(source, fetched, locked):  # released elsewhere than on the way to the locked commit
        fetching.fetch_source(source.url, name=source.name, select=lambda _: unfetched)
        locked = lock_source(source, fetched, asked, origin, known, find_asked)
    fetching.keep_commits(source.url, [locked.commit, *(pin.commit for pin in locked.versions.values())])
    return fetched, locked


def _fetch(source: Source, references: Iterable[str], accept_moved: bool, known: LockedSource | None, remake: bool) -> fetching.Fetched:
    """Return what a source has now, once what decides its lock is here.

    Raises NpuprofError (NP046) where tags of versions are not what they were; others may move.
    """
    select = partial(select_refs, source, references, known if known is not None and known.url == source.url else None)
    fetched = fetching.fetch_source(source.url, accept_moved=accept_moved, name=source.name, select=select, remake=remake)
    versions = [moved for moved in fetched.moved if is_version_tag(moved[0])]
    hint = "ask its owners whether that was meant; to take them as they are now say --moved"
    problems = [fetching.build_moved_finding(source.url, (moved,))._replace(hint=hint) for moved in versions]
    if known is not None and known.url == source.url:
        others = [moved for moved in _list_moved(known, fetched) if moved[0] not in [one[0] for one in versions]]
        problems += [_build_contradiction(source, moved) for moved in others]
    if problems and not accept_moved:
        raise NpuprofError(problems)
    if fetched.moved and not accept_moved:
        return fetching.fetch_source(source.url, accept_moved=True, name=source.name, select=select)
    return fetched


def _build_contradiction(source: Source, moved: tuple[str, str, str]) -> Finding:
    """Return that the lock has another commit for a tag than the source; nobody saw the tag move."""
    locked, now = shorten_ids(*moved[1:])
    what = f"npuprof.lock says that {moved[0]} of the source {source.name!r} is {locked}, and there it is {now}"
    why = "The lock was edited by hand, or merged wrongly; or the tag moved before it was ever seen here."
    hint = "restore npuprof.lock (git checkout npuprof.lock), or ask the owners of the source; to take what is there now say --moved"
    return Finding("NP046", what, why, hint)


def _fetch_known(known: LockedSource) -> None:
    """Have what a source was locked to, as far as it can be had: what an update changes is compared with it. Raises NpuprofError."""
    there = open_mirror(known.name, known.url, known.path)
    for commit in {known.commit, *(pin.commit for pin in known.versions.values())}:
        if not there.has_commit(commit):
            try:
                fetching.fetch_locked(known.url, [commit], name=known.name)
            except NpuprofError as error:
                if error.findings[0].code != "NP045":
                    raise


def _list_gone(known: LockedSource | None, now: LockedSource, fetched: fetching.Fetched) -> tuple[str, ...]:
    """Return the versions that were locked, that the source has no longer, and in place of which an older one would be locked."""
    if known is None or known.url != now.url or known.doubt:
        return ()
    steps = [(known.tag, known.tag, now.tag)]
    for reference, pin in known.versions.items():
        name = reference.partition("@")[0]
        after = now.versions[reference].version if reference in now.versions else "-"
        steps.append((f"{name}/v{pin.version}", pin.version, after))
    found = []
    for tag, before, after in steps:
        old, new = parse_version_text(before), parse_version_text(after)
        if old is not None and tag not in fetched.tags and (new is None or new.order < old.order):
            found.append(tag.removeprefix("v") if tag == known.tag else tag)
    return tuple(found)


def _list_moved(known: LockedSource, fetched: fetching.Fetched) -> list[tuple[str, str, str]]:
    """Return the tags that the lock knows at other commits than they are at now: a mirror that is new has seen none of them."""
    locked = {known.tag: known.commit} if known.tag else {}
    locked |= {f"{name.partition('@')[0]}/v{pin.version}": pin.commit for name, pin in known.versions.items() if pin.version != "-"}
    git = open_mirror(known.name, known.url, known.path).git
    names = [tag for tag in locked if tag in fetched.tags]
    found = git.read_objects([f"refs/tags/{tag}^{{commit}}" for tag in names])
    return [(tag, locked[tag], one.oid) for tag, one in zip(names, found, strict=True) if one is not None and one.oid != locked[tag]]


class LostCommitsError(NpuprofError):
    """A source no longer has commits that a lock names (NP043)."""

    def __init__(self, name: str, url: str, commits: Iterable[str]) -> None:
        above, _, own = name.rpartition("/")
        first = name.partition("/")[0]
        self.lost = [(name, url, commit) for commit in commits]
        hint = f"lock another one: npuprof source update {first}; who still has the commit can vendor it: npuprof source vendor {first}"
        if above:  # what is locked there is none of this repository's choice
            hint = f"where {above} is kept, npuprof source update {own} has to lock another one; then, here: npuprof source update {first}"
            hint = f"{hint}; or {advise_return(url, self.lost[0][2])}"
        super().__init__([build_lost_finding(name, commit, hint) for commit in commits])


def advise_return(url: str, commit: str) -> str:
    """Return how a commit that a source no longer has comes back to it, in words for another machine than this one."""
    mirror = f'"${{XDG_CACHE_HOME:-$HOME/.cache}}/npuprof/{name_mirror(url)}"'
    push = f"git --git-dir={mirror} push {hide_credentials(url)} {commit}:refs/tags/kept/{commit[:7]}"
    return f"who synced it before has it still, and can give it back: {push}"


def build_lost_finding(name: str, commit: str, hint: str) -> Finding:
    """Return that a source no longer has a commit that a lock names."""
    above = name.rpartition("/")[0]
    lock = f"the lock of {above}" if above else "npuprof.lock"
    what = f"the source {name!r} no longer has the commit {commit[:7]} that {lock} names"
    return Finding("NP043", what, "Its history was rewritten, or the commit was never pushed.", hint)


class Synced(Record):
    """The store of a source that is on this machine as it is locked, and whether anything of it was missing."""

    store: SourceStore
    missing: bool


def fetch_sources_of(store: SourceStore, seen: set[object] | None = None) -> list[str]:
    """Fetch what the lock of a source names, also at the versions of it that are referred to, and so on for the sources of that.

    Return what was missing, as ``team/core 1.0.0``.
    Raises NpuprofError, among others where a source needs another npuprof.
    """
    seen = set() if seen is None else seen
    fetched: list[str] = []
    for part in _walk_versions(store):
        part.require_fit()
        for nested in find_sources(part).lock.sources.values():
            mark = (nested.url, nested.path, nested.commit, tuple(sorted(nested.versions.items())))
            if mark in seen:
                continue
            seen.add(mark)
            found = sync_source(f"{part.source}/{nested.name}", nested)
            fetched += [f"{found.store.source} {nested.shown}"] if found.missing else []
            fetched += fetch_sources_of(found.store, seen)
    return fetched


def _walk_versions(store: SourceStore) -> Iterator[SourceStore]:
    """Yield a store, and each version that its presets build on, which may name other sources than today's, before it is read further."""
    yield store
    waiting = [(store, reference) for reference in sorted({*store.locked.versions, *list_versioned_references(store.revision)})]
    seen: set[tuple[str, str]] = set()
    while waiting:
        home, reference = waiting.pop()
        with suppress(NpuprofError):  # who reads it is told
            there = open_reference(home, reference)
            name = reference.rpartition(":")[2].partition("@")[0]
            if (place := f"{there.source} {there.commit} {there.shown}", name) in seen:
                continue
            if (place, "") not in seen:
                yield there
            seen |= {(place, ""), (place, name)}
            waiting += [(there, parent) for parent in there.profile(name).extends if is_own_name(parent) or "@" in parent]


def open_reference(home: SourceStore, reference: str) -> SourceStore:
    """Return the store that a reference is read from, seen from one of a source. Raises NpuprofError."""
    if is_own_reference(reference):
        return home.find_version(reference, is_own=True)
    return home if is_own_name(reference) else find_source_store_among(find_sources(home), reference)


def sync_source(name: str, locked: LockedSource) -> Synced:
    """Have exactly what a lock names on this machine. Raises NpuprofError."""
    commits = list(dict.fromkeys((locked.commit, *(pin.commit for pin in locked.versions.values()))))
    missing = not all(_is_known(locked, commit) for commit in commits)
    tags = [f"{name.partition('@')[0]}/v{pin.version}" for name, pin in locked.versions.items() if pin.version != "-"]
    lost = fetching.fetch_locked(locked.url, commits, [locked.tag, *tags] if locked.tag else tags, name=name)
    if lost:
        raise LostCommitsError(name, locked.url, lost)
    store = open_locked(name, locked)
    if compute_kept_digest(store.revision.repository, locked.url, locked.path, locked.commit) != locked.digest:
        raise NpuprofError([build_digest_finding(name, locked)])
    with suppress(NpuprofError):  # who asks for a version is told
        load_released_tags(locked, lambda: store.revision.repository)
    return Synced(store, missing)


def open_locked(name: str, locked: LockedSource) -> SourceStore:
    """Return the store of a source, or of a source of one (``team/core``), as it is locked. Raises NpuprofError."""
    above = name.rpartition("/")[0]
    project = Project(sources={locked.name: Source(locked.name, locked.url, locked.path, locked.rev)})
    return Sources(project, Lock(sources={locked.name: locked}), f"{above}/" if above else "").open_source(locked.name)


def _is_known(locked: LockedSource, commit: str) -> bool:
    try:
        return open_mirror(locked.name, locked.url, locked.path).has_commit(commit)
    except NpuprofError as error:
        if error.findings[0].code not in ("NP043", "NP054"):
            raise
        return False
