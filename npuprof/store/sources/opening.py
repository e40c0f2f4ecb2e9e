"""The sources of a store: declared in npuprof.toml, locked, and opened."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from npuprof.document.profile import ProfileSource
from npuprof.model import Finding, NpuprofError, Origin, build_error, did_you_mean, raise_any
from npuprof.store import FILE, LOCK_FILE
from npuprof.store import project as projects
from npuprof.store.folder import Folder, find_project_folder
from npuprof.store.gitstore.revisions import Revision, StoreRepository
from npuprof.store.layout import list_project_paths
from npuprof.store.problems import place_error
from npuprof.store.project import Project, Source, read_file_beside
from npuprof.store.sources import lock as locks
from npuprof.store.sources.lock import Lock, LockedSource
from npuprof.store.sources.manifest import MANIFEST, Proof
from npuprof.store.sources.mirror import find_mirror_folder
from npuprof.store.sources.stores import SourceStore
from npuprof.store.sources.vendored import CopyPlace, VendoredCopy, find_copy_folder

#: Opens a vendored store in this repository, given its folder.
CopyOpener = Callable[[str], VendoredCopy]


def find_copy_faults(sources: Sources, name: str) -> list[Finding]:
    """Return how the vendored copy of a source differs from the lock; empty if it does not."""
    try:
        return sources.open_source(name).find_edits()
    except NpuprofError as error:
        return list(error.findings)


def read_sources(home: ProfileSource) -> Sources:
    """Return the sources of a store. Raises NpuprofError if npuprof.toml or the lock is invalid."""
    if isinstance(home, SourceStore):
        home.require_fit()
        sources = parse_sources(
            home.read_file, home.cite_beside, None, f"{home.source}/", home.copy
        )
        sources.which = home.which
        return sources
    if isinstance(home, Revision):
        return read_sources_at(home.repository, home.commit, home.repository.prefix, home.shown)
    if not isinstance(home, Folder) or not home.in_work_tree:
        return Sources(Project(), Lock())
    base = find_project_folder(home)
    path = os.path.join(base, LOCK_FILE)
    locked = read_file_beside(path)
    lock = locks.parse_lock(os.path.relpath(path), locked) if locked is not None else Lock()
    return Sources(
        home.project, lock, open_copy=lambda folder: VendoredCopy(find_copy_folder(base, folder))
    )


def read_sources_at(
    repository: StoreRepository, commit: str, prefix: str, shown: str | None
) -> Sources:
    """Return the sources of a store at a commit or tree; ``shown`` is the revision to cite.

    Raises NpuprofError.
    """
    paths = dict(zip((FILE, LOCK_FILE), list_project_paths(prefix), strict=True))
    texts = repository.git.read_files([f"{commit}:{path}" for path in paths.values()])
    files = dict(zip(paths, texts, strict=True))
    sources = parse_sources(files.__getitem__, paths.__getitem__, shown)
    sources.which = f"--rev {shown[:12]}" if shown else ""
    base = posixpath.dirname(prefix.rstrip("/"))
    sources.open_copy = lambda folder: VendoredCopy(
        posixpath.join(base, folder), Revision(repository, commit)
    )
    sources.find_later_copy = partial(_find_copy_at_head, repository, commit, prefix)
    return sources


def _find_copy_at_head(
    repository: StoreRepository, commit: str, prefix: str, locked: LockedSource
) -> CopyPlace | None:
    """Return HEAD's vendored copy of a source that was locked before.

    None if there is none, or the mirror exists. A repository that vendors its source can show its
    history without the mirror.
    """
    head = repository.git.read_object("HEAD")
    # the mirror has the commit itself, and HEAD's own copy is opened directly
    if os.path.isdir(find_mirror_folder(locked.url)) or head is None or head.oid == commit:
        return None
    with suppress(NpuprofError):
        later = read_sources_at(repository, head.oid, prefix, head.oid)
        for name, source in later.project.sources.items():
            known = later.lock.sources.get(name)
            if not source.vendor or known is None:
                continue
            if (known.url, known.path, known.commit) != (locked.url, locked.path, locked.commit):
                continue
            copy = later.find_copy(name, known)
            if copy is not None and _has_versions(copy, locked):
                return copy
    return None


def _has_versions(copy: CopyPlace, locked: LockedSource) -> bool:
    """Return whether a vendored copy contains the referenced versions of a lock entry."""
    commits = {pin.commit for pin in locked.versions.values()}
    return all(copy._replace(version=commit).open().read_commit() == commit for commit in commits)


class Sources:
    """The sources of a store: declared, locked, and opened ones."""

    def __init__(
        self,
        project: Project,
        lock: Lock,
        label: str = "",
        open_copy: CopyOpener | None = None,
        copy: CopyPlace | None = None,
    ) -> None:
        self.project = project
        self.lock = lock
        self.open_copy = open_copy
        #: the place of the referring store, if it is vendored itself: its sources came with it
        self.copy = copy
        self.label = label  #: the prefix of a source's own sources, ``team/``
        #: finds a copy that was vendored later
        self.find_later_copy: Callable[[LockedSource], CopyPlace | None] | None = None
        #: the argument of ``source sync`` for this lock, ``--rev abc1234``; empty for the current
        self.which = ""
        self._opened: dict[str, SourceStore] = {}

    def open_source(self, name: str, requested: Origin | None = None) -> SourceStore:
        """Return the store of a source at its locked commit.

        Raises NpuprofError if it is unknown, or not locked as requested.
        """
        if name not in self._opened:
            locked = self.require_lock(name, requested)
            store = SourceStore(locked, f"{self.label}{name}", copy=self.find_copy(name, locked))
            store.which = self.which
            store.proved_by = self.lock.find_origin(name, "digest")
            self._opened[name] = store
        return self._opened[name]

    def list_locked(self) -> list[SourceStore]:
        """Return the stores of all locked sources. Raises NpuprofError."""
        return [
            self.open_source(name) for name in self.project.sources if name in self.lock.sources
        ]

    def find_copy(self, name: str, locked: LockedSource) -> CopyPlace | None:
        """Return the place of a source's vendored copy, None if its mirror is used."""
        if self.copy is not None:
            # a copy is complete: the network and mirrors are not used for a part of it
            return self.copy.find_nested(locked)
        folder, open_copy = self.project.sources[name].vendor, self.open_copy
        if open_copy is None or not folder:
            return self.find_later_copy(locked) if self.find_later_copy is not None else None
        proof = Proof(
            f"{self.label}{name}",
            folder,
            locked.copy,
            lambda: open_copy(folder).read_unproven(MANIFEST),
        )
        return CopyPlace(open_copy, folder, proof)

    def require_lock(self, name: str, requested: Origin | None = None) -> LockedSource:
        """Return the lock entry of a source.

        Raises NpuprofError if it is unknown, or not locked as requested.
        """
        declared = self.project.sources.get(name)
        if declared is None:
            raise place_error(self._build_unknown_error(name), requested)
        locked = self.lock.sources.get(name)
        if locked is None:
            what = f"npuprof.lock does not say at which commit the source {name!r} is"
            raise build_error(
                "NP044", what, "", f"write it down: npuprof source update {name}", requested
            )
        # the lock is compared, not updated: the same preset must not change without a command
        for part, was, now in (
            ("url", locked.url, declared.url),
            ("path", locked.path, declared.path),
            ("rev", locked.rev, declared.rev),
        ):
            if was != now:
                what = (
                    f"npuprof.lock is out of date: the {part} of the source {name!r} is {now!r} in "
                    "npuprof.toml"
                )
                why = f"The lock was made for {was!r}."
                origin = self.project.find_source_origin(name)
                raise build_error("NP044", what, why, f"npuprof source update {name}", origin)
        raise_any(self.find_unsealed(name))
        return locked

    def _build_unknown_error(self, name: str) -> NpuprofError:
        why = "npuprof.toml says where the presets of other repositories come from."
        known = list(self.project.sources)
        if known:
            hint = did_you_mean(name, known, f"known are {', '.join(known)}")
        else:
            hint = (
                f"npuprof source add {name} GIT-URL adds one; a version of a preset is written "
                f"{name}@VERSION"
            )
        return build_error("NP042", f"there is no source {name!r}", why, hint)

    def find_unsealed(self, name: str) -> list[Finding]:
        """Return findings for parts of a source's lock entry that npuprof did not write."""
        locked = self.lock.sources.get(name)
        if locked is None or locked.is_sealed:
            return []
        source = f"{self.label}{name}"
        lock = f"the lock of {self.label.rstrip('/')}" if self.label else "npuprof.lock"
        what = f"{lock} has no fitting seals for the source {source!r}"
        why = (
            "It was edited by hand or merged wrongly; npuprof trusts only the checksums that it "
            "wrote, as versions never change."
        )
        hint = (
            f"restore the lock, or lock it again: npuprof source update {source.partition('/')[0]}"
        )
        return [Finding("NP044", what, why, hint, self.lock.find_origin(name, "commit"))]


def open_locked(name: str, locked: LockedSource) -> SourceStore:
    """Return the locked store of a source, or of a source's own source (``team/core``).

    Raises NpuprofError.
    """
    above, slash, _ = name.rpartition("/")
    source = Source(locked.name, locked.url, locked.path, locked.rev)
    project = Project(sources={locked.name: source})
    lock = Lock(sources={locked.name: locked})
    return Sources(project, lock, f"{above}{slash}").open_source(locked.name)


def parse_sources(
    read: Callable[[str], bytes | None],
    cite: Callable[[str], str],
    revision: str | None,
    label: str = "",
    copy: CopyPlace | None = None,
) -> Sources:
    """Return npuprof.toml and npuprof.lock parsed, as ``read`` and cited by name.

    Raises NpuprofError.
    """
    project, lock = Project(), Lock()
    if (text := read(FILE)) is not None:
        project = projects.parse_project(cite(FILE), text, revision)
    if (text := read(LOCK_FILE)) is not None:
        lock = locks.parse_lock(cite(LOCK_FILE), text, revision)
    return Sources(project, lock, label, copy=copy)
