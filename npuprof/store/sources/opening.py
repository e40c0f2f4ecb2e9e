"""The sources that a store may take presets from, opened as they are locked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from npuprof.model import Finding, NpuprofError, Origin, did_you_mean
from npuprof.store.sources import lock as locks
from npuprof.store.sources import project as projects
from npuprof.store.sources.lock import Lock, LockedSource
from npuprof.store.sources.project import Project
from npuprof.store.sources.stores import SourceStore
from npuprof.store.sources.vendored import MANIFEST, CopyPlace, Proof, VendoredCopy
from npuprof.store.sources.wording import place_finding

#: Opens a copied store in this repository, by its folder.
CopyOpener = Callable[[str], VendoredCopy]


class Sources:
    """The sources that a store may take presets from: what is asked for, what is locked, and what has been opened of them."""

    def __init__(
        self, project: Project, lock: Lock, label: str = "", open_copy: CopyOpener | None = None, copy: CopyPlace | None = None
    ) -> None:
        self.project = project
        self.lock = lock
        self.open_copy = open_copy
        self.copy = copy  #: where the store that refers to them lies, if it is a copy itself: theirs came with it
        self.label = label  #: what stands before the names of sources of a source, ``team/``
        self.find_later_copy: Callable[[LockedSource], CopyPlace | None] | None = None  #: finds one that came into the repository later
        self.which = ""  #: which lock it is, as ``source sync`` is told: ``--rev abc1234``; an empty text for today's
        self._opened: dict[str, SourceStore] = {}

    def open_source(self, name: str, asked: Origin | None = None) -> SourceStore:
        """Return the store of a source at the commit that is locked. Raises NpuprofError where it is unknown, or not locked as asked."""
        first, slash, below = name.partition("/")
        if slash:
            return find_sources_of(self.open_source(first, asked)).open_source(below, asked)
        if name not in self._opened:
            locked = self.require_lock(name, asked)
            self._opened[name] = SourceStore(locked, f"{self.label}{name}", copy=self.find_copy(name, locked))
            self._opened[name].asked = self.project.find_source_origin(name, "rev")
            self._opened[name].which = self.which
            self._opened[name].proved_by = self.lock.find_origin(name, "digest")
        return self._opened[name]

    def list_locked(self) -> list[SourceStore]:
        """Return the stores of all sources that the lock names. Raises NpuprofError."""
        return [self.open_source(name) for name in self.project.sources if name in self.lock.sources]

    def find_copy(self, name: str, locked: LockedSource) -> CopyPlace | None:
        """Return where the copy of a source is read from, None where it is read from its mirror."""
        if self.copy is not None:
            return self.copy.find_nested(locked)
        folder, open_copy = self.project.sources[name].vendor, self.open_copy
        if open_copy is None or not folder:
            return self.find_later_copy(locked) if self.find_later_copy is not None else None
        proof = Proof(f"{self.label}{name}", folder, locked.copy, lambda: open_copy(folder).read_unproven(MANIFEST))
        return CopyPlace(open_copy, folder, proof=proof)

    def require_lock(self, name: str, asked: Origin | None = None) -> LockedSource:
        """Return what a source is locked to. Raises NpuprofError where it is unknown, or not locked as asked for."""
        wanted = self.project.sources.get(name)
        if wanted is None:
            known = list(self.project.sources)
            hint = (
                did_you_mean(name, known, f"known are {', '.join(known)}") if known else f"npuprof source add {name} GIT-URL makes it one"
            )
            why = "npuprof.toml says where the presets of other repositories come from."
            raise NpuprofError([place_finding(Finding("NP042", f"there is no source {name!r}", why, hint), asked)])
        locked = self.lock.sources.get(name)
        if locked is None:
            what = f"npuprof.lock does not say at which commit the source {name!r} is"
            raise NpuprofError([Finding("NP044", what, "", f"write it down: npuprof source update {name}", asked)])
        if (locked.url, locked.path, locked.rev) != (wanted.url, wanted.path, wanted.rev):
            part = next(part for part in ("url", "path", "rev") if getattr(locked, part) != getattr(wanted, part))
            what = f"npuprof.lock is out of date: the {part} of the source {name!r} is {getattr(wanted, part)!r} in npuprof.toml"
            why = f"The lock was made for {getattr(locked, part)!r}."
            origin = self.project.find_source_origin(
                name, *((part,) if self.project.document and part in _list_said(self.project, name) else ())
            )
            raise NpuprofError([Finding("NP044", what, why, f"npuprof source update {name}", origin)])
        if locked.doubt:
            raise NpuprofError([self._build_doubt_finding(name, locked)])
        return locked

    def find_typed_claims(self, name: str) -> list[Finding]:
        """Return what the lock says of a source that npuprof did not write; nothing if it is not locked."""
        locked = self.lock.sources.get(name)
        return [self._build_doubt_finding(name, locked)] if locked is not None and locked.doubt else []

    def _build_doubt_finding(self, name: str, locked: LockedSource) -> Finding:
        """Return that the lock names another commit for a version than was locked, or has no seals to tell by."""
        above = self.label.rstrip("/")
        lock, hint = "npuprof.lock", f"restore npuprof.lock (git checkout npuprof.lock), or lock it anew: npuprof source update {name}"
        if above:
            lock = f"the lock of {above}"
            hint = f"it is locked where {above} is kept; once mended there: npuprof source update {above.partition('/')[0]}"
        what = f"{lock} was changed: it says that of the source {self.label + name!r} {locked.doubt}, and that is not what was locked"
        why = "It was edited by hand, or merged wrongly; what a version is never changes."
        if locked.is_unsealed:
            what = f"{lock} has no seals for the source {self.label + name!r}"
            why = "npuprof seals what it locks, and trusts no other entry."
            hint = f"lock it again: npuprof source update {name}"
            if above:
                hint = f"lock it again where {above} is kept, then here: npuprof source update {above.partition('/')[0]}"
        return Finding("NP044", what, why, hint, self.lock.find_origin(name, "commit" if locked.is_unsealed else "seal"))


def _list_said(project: Project, name: str) -> Iterable[str]:
    assert project.document is not None, "the source stands in it"
    found: dict[str, object] = project.document.data["sources"][name]
    return found


def find_sources_of(store: SourceStore) -> Sources:
    """Return the sources that the store of a source refers to, read once. Raises NpuprofError where its two files are not understood."""
    known = getattr(store, "sources", None)
    if not isinstance(known, Sources):
        store.refuse_unfit()
        cited = {name: store.cite_beside(name) for name in (projects.FILE, locks.FILE)}
        known = parse_sources(cited, {name: store.read_file(name) for name in cited}, None, f"{store.source}/", store.copy)
        known.which = store.which
        store.sources = known  # type: ignore[attr-defined]
    return known


def parse_sources(
    cited: dict[str, str], raw: dict[str, bytes | None], revision: str | None, label: str = "", copy: CopyPlace | None = None
) -> Sources:
    """Return what the texts of npuprof.toml and npuprof.lock say, by their names; ``cited`` are the paths to name. Raises NpuprofError."""
    told, locked = raw[projects.FILE], raw[locks.FILE]
    project = projects.parse_project(cited[projects.FILE], told, revision) if told is not None else Project()
    lock = locks.parse_lock(cited[locks.FILE], locked, revision) if locked is not None else Lock()
    return Sources(project, lock, label, copy=copy)
