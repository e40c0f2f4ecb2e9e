"""What the verbs of sources share: to fetch what locks name, sources of sources too, and to lock sources anew."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.commands.source.place import ProjectPlace
from npuprof.model import Finding, NpuprofError
from npuprof.store.sources import fetching
from npuprof.store.sources.lock import Lock, LockedSource
from npuprof.store.sources.locking import compute_store_digest, lock_source
from npuprof.store.sources.mirror import open_mirror
from npuprof.store.sources.project import Project, Source
from npuprof.store.sources.reading import Sources, find_sources
from npuprof.store.versions import parse_version_text


def lock_sources(place: ProjectPlace, wanted: Iterable[Source], accept_moved: bool = False) -> dict[str, LockedSource]:
    """Fetch sources, and theirs, and return what they are locked to now. Raises NpuprofError with all faults."""
    references = place.list_references()
    found: dict[str, LockedSource] = {}
    problems: list[Finding] = []
    for source in wanted:
        origin = place.project.find_source_origin(source.name)
        try:
            known = place.lock.sources.get(source.name)
            fetched = _fetch(source, accept_moved, known)
            asked = [reference for reference in references.get(source.name, ()) if "@" in reference]
            found[source.name] = lock_source(source, fetched, asked, origin, known)
            for commit in {found[source.name].commit, *(pin.commit for pin in found[source.name].versions.values())}:
                fetching.keep_commit(source.url, commit)
            fetch_sources_of(source.name, found[source.name])
        except NpuprofError as error:
            problems += error.findings
    if problems:
        raise NpuprofError(problems)
    return found


def _fetch(source: Source, accept_moved: bool, known: LockedSource | None) -> fetching.Fetched:
    """Return what a source has now. Raises NpuprofError (NP046) where tags of versions are not what they were; others may move."""
    fetched = fetching.fetch_source(source.url, accept_moved=accept_moved)
    versions = [moved for moved in fetched.moved if is_version_tag(moved[0])]
    if known is not None and known.url == source.url:
        versions += [moved for moved in _list_moved(known, fetched) if moved[0] not in [one[0] for one in versions]]
    if versions and not accept_moved:
        hint = "ask its owners whether that was meant; to take them as they are now say --moved"
        raise NpuprofError([fetching.build_moved_finding(source.url, (moved,))._replace(hint=hint) for moved in versions])
    return fetching.fetch_source(source.url, accept_moved=True) if fetched.moved and not accept_moved else fetched


def _list_moved(known: LockedSource, fetched: fetching.Fetched) -> list[tuple[str, str, str]]:
    """Return the tags that the lock knows at other commits than they are at now: a mirror that is new has seen none of them."""
    locked = {known.tag: known.commit} if known.tag else {}
    locked |= {f"{name.partition('@')[0]}/v{pin.version}": pin.commit for name, pin in known.versions.items() if pin.version != "-"}
    git = open_mirror(known.name, known.url, known.path).git
    names = [tag for tag in locked if tag in fetched.tags]
    found = git.read_objects([f"refs/tags/{tag}^{{commit}}" for tag in names])
    return [(tag, locked[tag], one.oid) for tag, one in zip(names, found, strict=True) if one is not None and one.oid != locked[tag]]


def is_version_tag(tag: str) -> bool:
    """Return whether a tag names a version: ``v2.1.0`` of a whole store, ``base/v2.1.0`` of a preset."""
    number = tag.rpartition("/")[2]
    return number.startswith("v") and parse_version_text(number) is not None


def fetch_sources_of(name: str, locked: LockedSource, seen: set[tuple[str, str]] | None = None) -> None:
    """Fetch what the lock of a source names, also at the versions of it that are referred to, and so on for the sources of that.

    Raises NpuprofError, among others where a source needs another npuprof.
    """
    seen = set() if seen is None else seen
    store = Sources(_name_project(locked), Lock(sources={locked.name: locked})).open_source(locked.name)
    for part in (store, *store.list_versions()):
        part.refuse_unmet_requirement()
        for nested in find_sources(part).lock.sources.values():
            if (nested.url, nested.commit) in seen:
                continue
            seen.add((nested.url, nested.commit))
            sync_source(f"{name}/{nested.name}", nested)
            fetch_sources_of(f"{name}/{nested.name}", nested, seen)


def _name_project(locked: LockedSource) -> Project:
    return Project(sources={locked.name: Source(locked.name, locked.url, locked.path, locked.rev)})


def sync_source(name: str, locked: LockedSource) -> bool:
    """Have exactly what a lock names on this machine; return whether anything was missing. Raises NpuprofError."""
    missing = False
    for commit in dict.fromkeys((locked.commit, *(pin.commit for pin in locked.versions.values()))):
        known = _is_known(locked, commit)
        missing |= not known
        if not known and not fetching.fetch_commit(locked.url, commit):
            what = f"the source {name!r} no longer has the commit {commit[:7]} that npuprof.lock names"
            why = "Its history was rewritten, or the commit was never pushed."
            hint = f"lock another one: npuprof source update {name}; who still has the commit can vendor it: npuprof source vendor {name}"
            raise NpuprofError([Finding("NP043", what, why, hint)])
        fetching.keep_commit(locked.url, commit)
    repository = open_mirror(name, locked.url, locked.path)
    if compute_store_digest(repository, locked.commit) != locked.digest:
        what = f"the store of the source {name!r} at {locked.commit[:7]} is not what npuprof.lock says: its digest is another"
        why = "The lock was edited by hand, or merged wrongly."
        raise NpuprofError([Finding("NP049", what, why, f"restore npuprof.lock, or lock it anew: npuprof source update {name}")])
    return missing


def _is_known(locked: LockedSource, commit: str) -> bool:
    try:
        return open_mirror(locked.name, locked.url, locked.path).has_commit(commit)
    except NpuprofError as error:
        if error.findings[0].code != "NP043":
            raise
        return False
