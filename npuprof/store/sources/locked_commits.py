"""Fetches the commits in ``npuprof.lock``, including the sources of sources, and locks sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

from npuprof.model import Finding, NpuprofError, Record, build_error, raise_any
from npuprof.report.isolating import collect_errors
from npuprof.report.text import count_rest
from npuprof.store import strip_revision
from npuprof.store.project import Source
from npuprof.store.sources import fetching
from npuprof.store.sources.fetching import Fetched
from npuprof.store.sources.lock import LockedSource, LockedVersion
from npuprof.store.sources.locking import (
    advise_store_release,
    is_own_name,
    is_own_reference,
    list_versioned_references,
    lock_source,
)
from npuprof.store.sources.lookups import Lookups
from npuprof.store.sources.mirror import name_mirror
from npuprof.store.sources.mirrorgit import MovedTag, is_verified, open_mirror
from npuprof.store.sources.opening import open_locked, read_sources
from npuprof.store.sources.project_files import ProjectFiles
from npuprof.store.sources.released import list_newer_releases, load_released_tags
from npuprof.store.sources.storedigest import build_digest_finding, compute_kept_digest
from npuprof.store.sources.stores import SourceStore
from npuprof.store.urls import hide_credentials
from npuprof.store.versions import parse_version_range, parse_version_text

#: The maximum number of tags in a note.
_SHOWN = 5


class Locking(Record):
    """The new lock entries of sources, and notes."""

    sources: dict[str, LockedSource]
    notes: tuple[str, ...]


def lock_sources(
    project_files: ProjectFiles, sources: Iterable[Source], accept_moved: bool
) -> Locking:
    """Fetch sources and their own sources, and return the new lock entries.

    Raises NpuprofError with all faults.
    """
    references = project_files.list_references()
    locked = {}
    problems: list[Finding] = []
    notes = []
    for source in sources:
        requested = [reference for reference in references.get(source.name, ()) if "@" in reference]
        with collect_errors(problems):
            fetched, locked[source.name] = _lock_source(
                project_files, source, requested, accept_moved
            )
            notes += _list_unshared_releases(source, fetched, locked[source.name])
            fetch_sources_of(open_locked(source.name, locked[source.name]))
    raise_any(problems)
    return Locking(locked, tuple(notes))


def _list_unshared_releases(source: Source, fetched: Fetched, locked: LockedSource) -> list[str]:
    """Return a note on preset releases that the newest store release in ``rev`` lacks.

    None for a fixed ``rev``.
    """
    accepted = parse_version_range(source.rev)
    if accepted is None or accepted.is_fixed:
        return []
    mirror = open_mirror(source.name, source.url, source.path)
    newer = list_newer_releases(mirror, locked.commit, fetched.tags)
    if not newer:
        return []
    lacks = (
        f"{source.name} {locked.shown} lacks newer releases of presets, {count_rest(newer, _SHOWN)}"
    )
    return [f"{lacks}; {advise_store_release(source, fetched)}"]


def _lock_source(
    project_files: ProjectFiles, source: Source, requested: Iterable[str], accept_moved: bool
) -> tuple[Fetched, LockedSource]:
    """Return a source's refs and its new lock entry.

    Raises NpuprofError, also (NP046) for moved or deleted tags, unless they are accepted.
    """
    fetched = fetching.fetch_source(source.url, accept_moved, source.name)
    known = project_files.lock.sources.get(source.name)
    if known is not None and (known.url != source.url or not known.is_sealed):
        known = None  # another repository, or a manual edit
    moved = dict.fromkeys(fetched.moved)
    if known is not None:
        moved |= dict.fromkeys(_list_moved(known, fetched))
    if moved and not accept_moved:
        raise NpuprofError([fetching.build_moved_finding(source.url, tag) for tag in moved])
    if known is not None:
        # before the new lock entry: locked versions whose tags were deleted stay only if they are
        # here
        with suppress(NpuprofError):  # an update is compared with it, if it is available
            fetching.fetch_locked(known.url, list_locked_commits(known), name=known.name)
    origin = project_files.project.find_source_origin(source.name)
    find_origin = partial(project_files.find_reference, source.name)
    locked = lock_source(source, fetched, requested, origin, known, find_origin)
    deleted = _list_deleted(known, locked, fetched) if known is not None else []
    if deleted and not accept_moved:
        what = (
            f"{', '.join(deleted)} of the source {source.name!r}, which npuprof.lock names, is "
            "gone, and the source is older"
        )
        hint = "ask its owners whether that was meant; to go back say --moved"
        raise build_error("NP046", what, "A released version stays.", hint, origin)
    # last: what was rejected above leaves no permanent ref
    fetching.pin_commits(source.url, list_locked_commits(locked), source.name)
    return fetched, locked


def list_locked_commits(locked: LockedSource) -> list[str]:
    """Return the commits in a source's lock entry, without duplicates."""
    return list(dict.fromkeys((locked.commit, *(pin.commit for pin in locked.versions.values()))))


def _list_deleted(known: LockedSource, now: LockedSource, fetched: Fetched) -> list[str]:
    """Return the deleted tags of locked versions that an older version would replace."""
    deleted = []
    if known.tag not in fetched.tags and _is_older(now.tag, known.tag):
        deleted.append(known.tag)
    for reference, pin in known.versions.items():
        tag = _name_tag(reference, pin)
        new = now.versions[reference].version if reference in now.versions else "-"
        if tag not in fetched.tags and _is_older(new, pin.version):
            deleted.append(tag)
    return deleted


def _is_older(new: str, old: str) -> bool:
    """Return whether a version is older than an old one, or no version in its place."""
    new_number, old_number = parse_version_text(new), parse_version_text(old)
    # a branch has no order, so that no step back can be seen
    if old_number is None:
        return False
    return new_number is None or new_number < old_number


def _list_moved(known: LockedSource, fetched: Fetched) -> list[MovedTag]:
    """Return the tags that the lock has at other commits than the remote.

    A new mirror has seen none of them.
    """
    # deleted tags are judged elsewhere: they are an error only for a step back
    locked = [(tag, commit) for tag, commit in _list_tags(known) if tag in fetched.tags]
    mirror = open_mirror(known.name, known.url, known.path)
    targets = mirror.git.read_objects([f"refs/tags/{tag}^{{commit}}" for tag, _ in locked])
    return [
        MovedTag(tag, commit, target.oid)
        for (tag, commit), target in zip(locked, targets, strict=True)
        if target is not None and target.oid != commit
    ]


def _list_tags(locked: LockedSource) -> list[tuple[str, str]]:
    """Return the tags that a lock entry names, each with its locked commit.

    A forged lock may give a tag several.
    """
    pins = [(_name_tag(reference, pin), pin.commit) for reference, pin in locked.versions.items()]
    return [(locked.tag, locked.commit), *pins]


def _name_tag(reference: str, pin: LockedVersion) -> str:
    return f"{reference.partition('@')[0]}/v{pin.version}"


def build_lost_finding(name: str, url: str, commit: str) -> Finding:
    """Return the finding for a locked commit that a source no longer has.

    The hint restores it from another machine.
    """
    above = name.rpartition("/")[0]
    what = (
        f"the source {name!r} no longer has the commit {commit[:7]} that "
        f"{f'the lock of {above}' if above else 'npuprof.lock'} names"
    )
    mirror = f'"${{XDG_CACHE_HOME:-$HOME/.cache}}/npuprof/{name_mirror(url)}"'
    push = (
        f"git --git-dir={mirror} push {hide_credentials(url)} {commit}:refs/tags/kept/{commit[:7]}"
    )
    hint = (
        f"lock another one: npuprof source update {name.partition('/')[0]}; or give it back from "
        f"where it was synced: {push}"
    )
    return Finding(
        "NP043", what, "Its history was rewritten, or the commit was never pushed.", hint
    )


def fetch_sources_of(store: SourceStore, seen: set[object] | None = None) -> list[str]:
    """Fetch the sources in a source's lock, also at its referenced versions, recursively.

    Returns the fetched ones, as ``team/core 1.0.0``. Raises NpuprofError, also if a source needs
    another npuprof.
    """
    seen = set() if seen is None else seen
    fetched = []
    for part in _walk_versions(store):
        part.require_fit()
        for nested in read_sources(part).lock.sources.values():
            # sources may refer to each other
            key = (nested.url, nested.path, nested.commit, tuple(sorted(nested.versions.items())))
            if key in seen:
                continue
            seen.add(key)
            synced, is_new = sync_source(f"{part.source}/{nested.name}", nested)
            if is_new:
                fetched.append(f"{synced.source} {nested.shown}")
            fetched += fetch_sources_of(synced, seen)
    return fetched


def _walk_versions(store: SourceStore) -> Iterator[SourceStore]:
    """Yield a store, and each version that its presets extend, before reading further.

    The lock of a version may name other sources.
    """
    yield store
    references = {*store.locked.versions, *list_versioned_references(store.revision)}
    waiting = [(store, reference) for reference in sorted(references)]
    seen_versions = set()
    seen_presets = set()
    while waiting:
        home, reference = waiting.pop()
        with suppress(NpuprofError):  # the reader reports it
            target = open_reference(home, reference)
            version = f"{target.source} {target.commit} {target.shown}"
            name = strip_revision(reference.rpartition(":")[2])
            if (version, name) in seen_presets:
                continue
            if version not in seen_versions:
                yield target
            seen_versions.add(version)
            seen_presets.add((version, name))
            waiting += [
                (target, parent)
                for parent in target.profile(name).extends
                if is_own_name(parent) or "@" in parent
            ]


def open_reference(home: SourceStore, reference: str) -> SourceStore:
    """Return the store of a reference, seen from a source's store. Raises NpuprofError."""
    if is_own_reference(reference):
        return home.find_version(reference, is_own=True)
    return home if is_own_name(reference) else Lookups().find_source_store(home, reference)


def sync_source(name: str, locked: LockedSource) -> tuple[SourceStore, bool]:
    """Make the locked commits available on this machine.

    Return the store, and whether anything was missing. Raises NpuprofError.
    """
    commits = list_locked_commits(locked)
    # asked before the fetch, which makes all of them known
    missing = not all(_is_known(locked, commit) for commit in commits)
    if lost := fetching.fetch_locked(locked.url, commits, _list_tags(locked), name, locked.rev):
        raise NpuprofError([build_lost_finding(name, locked.url, commit) for commit in lost])
    store = open_locked(name, locked)
    repository = store.revision.repository
    # the seals of the lock cover its commits only, not the digest
    if compute_kept_digest(repository, locked.url, locked.path, locked.commit) != locked.digest:
        raise NpuprofError(build_digest_finding(name, locked))
    with suppress(NpuprofError):  # reported when a version is requested
        load_released_tags(locked, lambda: repository)
    return store, missing


def _is_known(locked: LockedSource, commit: str) -> bool:
    try:
        return is_verified(open_mirror(locked.name, locked.url, locked.path).git, commit)
    except NpuprofError as error:
        # never fetched or damaged: the sync that follows repairs or explains both
        if error.findings[0].code not in ("NP043", "NP054"):
            raise
        return False
