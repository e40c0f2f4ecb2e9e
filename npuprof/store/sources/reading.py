"""Presets of sources, read: what a reference with a colon names, seen from the store that refers to it."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress
from functools import partial

from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store import Folder, ReadOnceStore, find_project_folder
from npuprof.store.sources import lock as locks
from npuprof.store.sources import project as projects
from npuprof.store.sources.beside import list_project_paths, read_file_beside, read_project
from npuprof.store.sources.lock import Lock, LockedSource
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.opening import Sources, find_sources_of, parse_sources
from npuprof.store.sources.project import Project
from npuprof.store.sources.stores import SourceStore
from npuprof.store.sources.vendored import CopyPlace, VendoredCopy, find_copy_folder
from npuprof.store.sources.wording import place_finding
from npuprof.store.versions import parse_version_request, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import ProfileSource
    from npuprof.store.repository import Repository


def find_edited_copies(home: ProfileSource) -> list[Finding]:
    """Return what was edited that is nobody's to edit: the lock of a store, and the copies of sources that npuprof.toml names there."""
    found: list[Finding] = []
    sources = find_sources(home)
    for name, source in sources.project.sources.items():
        if claims := sources.find_typed_claims(name):
            found += claims
        elif source.vendor and name in sources.lock.sources and sources.open_copy is not None:
            found += find_copy_faults(sources, name)
    return found


def find_copy_faults(sources: Sources, name: str) -> list[Finding]:
    """Return why the copy of a source in this repository is not what the lock says; nothing where it is."""
    try:
        return sources.open_source(name).find_edits()
    except NpuprofError as error:
        return list(error.findings)


def find_source_store(home: ProfileSource, reference: str, asked: Origin | None = None) -> SourceStore:
    """Return the store that ``SOURCE:NAME[@VERSION]`` is read from, seen from another.

    Raises NpuprofError, among others (NP044) where a preset of the store ``asked`` for what can mean another version tomorrow, and
    the lock does not say which it is.
    """
    sources = find_sources(home)
    source, _, name = reference.partition(":")
    text = name.partition("@")[2].strip("\"'")
    is_range = parse_version_request(text) is not None and parse_version_text(text) is None
    is_open = is_range and name not in sources.open_source(source, asked).locked.versions
    if is_open and asked is not None and not sources.label and isinstance(home, ReadOnceStore) and asked.profile in home.names():
        what = f"npuprof.lock is out of date: it does not say which version {reference} is"
        why = "Another clone, or a later day, may have another one."
        raise NpuprofError([place_finding(Finding("NP044", what, why, f"write it down: npuprof source update {source}"), asked)])
    return find_source_store_among(sources, reference, asked)


def find_source_store_among(sources: Sources, reference: str, asked: Origin | None = None) -> SourceStore:
    """Return the store that a reference is read from, of some sources. Raises NpuprofError."""
    source, _, name = reference.partition(":")
    store = sources.open_source(source, asked)
    return store.find_version(name, asked) if "@" in name else store


def find_sources(home: ProfileSource) -> Sources:
    """Return the sources that a store refers to, read once. Raises NpuprofError where npuprof.toml or the lock cannot be understood."""
    if isinstance(home, SourceStore):
        return find_sources_of(home)
    known = getattr(home, "sources", None)
    if not isinstance(known, Sources):
        known = _read_sources(home)
        home.sources = known  # type: ignore[attr-defined]
    return known


def _read_sources(home: ProfileSource) -> Sources:
    if isinstance(home, Folder):
        if not home.in_work_tree:
            return Sources(Project(), Lock())
        path = os.path.join(find_project_folder(home), locks.FILE)
        locked = read_file_beside(path)
        lock = locks.parse_lock(os.path.relpath(path), locked) if locked is not None else Lock()
        base = os.path.dirname(path)
        return Sources(read_project(home), lock, open_copy=lambda folder: VendoredCopy(find_copy_folder(base, folder)))
    from npuprof.store.revision import Revision

    if not isinstance(home, Revision):
        return Sources(Project(), Lock())
    return read_sources_at(home.repository, home.commit, home.repository.prefix, home.shown)


def read_sources_at(repository: Repository, commit: str, prefix: str, shown: str | None) -> Sources:
    """Return the sources that a store refers to at a commit, or in a tree; ``shown`` is the revision to cite. Raises NpuprofError."""
    paths = dict(zip((projects.FILE, locks.FILE), list_project_paths(prefix), strict=True))
    found = repository.git.read_objects([f"{commit}:{path}" for path in paths.values()])
    raw = {name: one.content if one is not None and one.type == "blob" else None for name, one in zip(paths, found, strict=True)}
    from npuprof.store.revision import Revision

    sources = parse_sources(paths, raw, shown)
    sources.which = f"--rev {shown[:12]}" if shown else ""
    place = posixpath.dirname(prefix.rstrip("/"))
    sources.open_copy = lambda folder: VendoredCopy(posixpath.join(place, folder), Revision(repository, commit))
    sources.find_later_copy = partial(_find_copy_at_head, repository, commit, prefix)
    return sources


def _find_copy_at_head(repository: Repository, commit: str, prefix: str, locked: LockedSource) -> CopyPlace | None:
    """Return the copy that the last commit holds of a source as it was locked before; None where there is none, or the mirror is here.

    A repository that has taken in its source tells its history without it.
    """
    head = repository.git.read_objects(["HEAD"])[0]
    if os.path.isdir(find_mirror_folder(locked.url)) or head is None or head.oid == commit:
        return None
    with suppress(NpuprofError):
        later = read_sources_at(repository, head.oid, prefix, head.oid)
        for name, source in later.project.sources.items():
            known = later.lock.sources.get(name)
            if source.vendor and known and (known.url, known.path, known.commit) == (locked.url, locked.path, locked.commit):
                place = later.find_copy(name, known)
                pins = {pin.commit for pin in locked.versions.values()}
                if place is not None and all(place.find_version(pin).open().read_commit() == pin for pin in pins):
                    return place
    return None
