"""Presets of sources, read: what a reference with a colon names, seen from the store that refers to it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from npuprof.document import Document, parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, Place, did_you_mean
from npuprof.report.output import read_plain_file
from npuprof.store import Folder, ReadOnceStore, build_missing_finding, find_project_folder, is_profile_name
from npuprof.store.layout import Layout
from npuprof.store.sources import lock as locks
from npuprof.store.sources import project as projects
from npuprof.store.sources.lock import Lock, LockedSource, LockedVersion, LockedVersions
from npuprof.store.sources.mirror import (
    TextCache,
    advise_sync_of,
    build_later_finding,
    find_mirror_folder,
    open_mirror,
    require_commit,
)
from npuprof.store.sources.project import Project
from npuprof.store.sources.ranges import parse_version_range
from npuprof.store.sources.storedigest import build_digest_finding, digest_listed, load_store_digest
from npuprof.store.sources.vendored import MANIFEST, CopyPlace, Proof, VendoredCopy, advise_copy, find_copy_folder
from npuprof.store.sources.wording import name_source_in_error
from npuprof.store.versions import parse_version_request, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import Policy
    from npuprof.document.profile import ProfileSource
    from npuprof.store.repository import Repository
    from npuprof.store.revision import Pin, Revision
    from npuprof.store.versions import Version

    #: Opens a copied store in this repository, by its folder.
    CopyOpener = Callable[[str], VendoredCopy]
    #: Opens the store at a version that a lock names, and returns the version as well, if its tag is there.
    VersionOpener = Callable[[], tuple[Revision, Version | None]]


#: What the names of all presets are kept as, beside their texts: no preset can be called so.
_LISTING = ".names"


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
        self.which = ""  #: which lock it is, as ``source sync`` is told: ``--rev abc1234``; an empty text for today's
        self._opened: dict[str, SourceStore] = {}

    def open_source(self, name: str, asked: Origin | None = None) -> SourceStore:
        """Return the store of a source at the commit that is locked. Raises NpuprofError where it is unknown, or not locked as asked."""
        first, slash, below = name.partition("/")
        if slash:
            return find_sources(self.open_source(first, asked)).open_source(below, asked)
        if name not in self._opened:
            locked = self.require_lock(name, asked)
            self._opened[name] = SourceStore(locked, f"{self.label}{name}", copy=self._find_copy(name, locked))
            self._opened[name].asked = self.project.find_source_origin(name, "rev")
            self._opened[name].which = self.which
            self._opened[name].proved_by = self.lock.find_origin(name, "digest")
        return self._opened[name]

    def list_locked(self) -> list[SourceStore]:
        """Return the stores of all sources that the lock names. Raises NpuprofError."""
        return [self.open_source(name) for name in self.project.sources if name in self.lock.sources]

    def _find_copy(self, name: str, locked: LockedSource) -> CopyPlace | None:
        if self.copy is not None:
            return self.copy.find_nested(locked)
        folder, open_copy = self.project.sources[name].vendor, self.open_copy
        if open_copy is None or not folder:
            return None
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
            raise NpuprofError([_place(Finding("NP042", f"there is no source {name!r}", why, hint), asked)])
        locked = self.lock.sources.get(name)
        if locked is None:
            what = f"npuprof.lock does not say at which commit the source {name!r} is"
            raise NpuprofError([Finding("NP044", what, "", f"write it down: npuprof source update {name}", asked)])
        if (locked.url, locked.path, locked.rev) != (wanted.url, wanted.path, wanted.rev):
            part = next(part for part in ("url", "path", "rev") if getattr(locked, part) != getattr(wanted, part))
            what = f"npuprof.lock is out of date: the {part} of the source {name!r} is {getattr(wanted, part)!r} in npuprof.toml"
            why = f"The lock was made for {getattr(locked, part)!r}."
            origin = self.project.find_source_origin(
                name, *((part,) if self.project.document and part in _said(self.project, name) else ())
            )
            raise NpuprofError([Finding("NP044", what, why, f"npuprof source update {name}", origin)])
        if locked.doubt:
            raise NpuprofError([self._build_doubt_finding(name, locked)])
        return locked

    def _build_doubt_finding(self, name: str, locked: LockedSource) -> Finding:
        """Return that the lock names another commit for a version than was locked."""
        above = self.label.rstrip("/")
        lock, hint = "npuprof.lock", f"restore npuprof.lock (git checkout npuprof.lock), or lock it anew: npuprof source update {name}"
        if above:
            lock = f"the lock of {above}"
            hint = f"it is locked where {above} is kept; once mended there: npuprof source update {above.partition('/')[0]}"
        what = f"{lock} was changed: it says that of the source {self.label + name!r} {locked.doubt}, and that is not what was locked"
        why = "It was edited by hand, or merged wrongly; what a version is never changes."
        return Finding("NP044", what, why, hint, self.lock.find_origin(name, "seal"))


def _said(project: Project, name: str) -> Iterable[str]:
    assert project.document is not None, "the source stands in it"
    found: dict[str, object] = project.document.data["sources"][name]
    return found


def _place(finding: Finding, asked: Origin | None) -> Finding:
    if asked is None:
        return finding
    return finding._replace(origin=asked, key="profile.extends", profiles=(asked.profile,))


class SourceStore(ReadOnceStore):
    """The store of a source at a commit. Its presets are called ``SOURCE:NAME``; a preset's own version is such a store as well."""

    def __init__(
        self,
        locked: LockedSource,
        label: str,
        revision: Revision | None = None,
        shown: str = "",
        released: Version | None = None,
        copy: CopyPlace | None = None,
        commit: str = "",
        yanked: str = "",
        find_version: VersionOpener | None = None,
        is_own: bool = False,
    ) -> None:
        super().__init__()
        self.yanked = yanked or ("" if revision or commit else locked.yanked)  #: why nobody should use it any more
        self._released = released
        self._find_version = find_version
        self.locked = locked
        self.label = f"{label}:"
        self.source = label
        self.commit = revision.commit if revision else commit or locked.commit
        self.copy = copy  #: where its copy in this repository lies, if there is one
        self._copy = self._require_copy(copy) if copy is not None else None
        self.shown = shown or locked.shown
        self.root = f"source:{locked.url} {locked.path}"  #: what it is trusted by, whatever it is called here
        self.is_version = revision is not None or bool(commit)  #: whether it is what a reference with an @ names
        self._revision = revision
        place = locked.path  # what is kept of a version was compared with it, and found to be one that may be meant
        place = place if find_version is None else f"{place}@{self.shown}{' own' if is_own else ''}"
        self._cache = None if revision is not None or self._copy else TextCache(locked.url, place, self.commit)
        self._locked_versions = LockedVersions(locked.versions)
        self._versions: dict[tuple[str, bool], SourceStore] = {}
        self._is_fit = False
        self._keyed: set[str] = set()
        self.asked: Origin | None = None  #: where npuprof.toml says which versions of it are wanted
        self.which = ""  #: which lock names it, as ``source sync`` is told
        self.proved_by: Origin | None = None  #: where the lock says what its digest is

    def _require_copy(self, copy: CopyPlace) -> VendoredCopy:
        """Return the copy of the store in this repository.

        Raises NpuprofError where it is of another commit (NP044), or its list of files is not what was copied (NP049).
        """
        found = copy.open()
        copied = found.read_commit()
        if copied != self.commit:
            what = f"the copy of the source {self.source!r} is {f'of the commit {copied[:7]}' if copied else 'not whole'}"
            why = f"npuprof.lock names {self.commit[:7]}."
            raise NpuprofError([Finding("NP044", what, why, advise_copy(self.source))])
        if found.proof is not None:
            found.proof.load_lines()
        return found

    def find_edits(self) -> list[Finding]:
        """Return which files of its copy in this repository are not what was copied, its own sources too. Raises NpuprofError."""
        assert self._copy is not None, "it is asked for where there is one"
        return self._copy.list_faults()

    @property
    def is_copied(self) -> bool:
        """Whether it is read from a copy in this repository."""
        return self._copy is not None

    @property
    def version(self) -> str:
        """The number of the version that it is, of the whole store or of one preset; an empty text where it is none."""
        return self.shown.rpartition("/v")[2] if self.is_version or self.locked.tag else ""

    @property
    def identity(self) -> str:
        """What the keys of all versions of its presets begin with."""
        return self.root

    @property
    def revision(self) -> Revision:
        """The store in the mirror. Raises NpuprofError where its commit was not fetched here."""
        try:
            return self._open_revision()
        except NpuprofError as error:
            if not self.which:
                raise
            raise NpuprofError([advise_sync_of(finding, self.which) for finding in error.findings]) from None

    def _open_revision(self) -> Revision:
        if self._revision is None and self._find_version is not None:
            self._revision, self._released = self._find_version()
        if self._revision is None:
            from npuprof.store.revisions import load_repository_revision

            repository = open_mirror(self.source, self.locked.url, self.locked.path)
            require_commit(repository, self.source, self.commit)
            self._revision = load_repository_revision(repository, self.commit)
        return self._revision

    @property
    def released(self) -> Version | None:
        """The version that it was looked up for, if it has a tag. Raises NpuprofError where it is not on this machine."""
        if self._find_version is not None:
            assert self.revision is not None, "with it comes the version"
        return self._released

    def has_text(self, name: str) -> bool:
        """Return whether the text of a preset is at hand, so that no git is needed."""
        return self._copy is not None or (self._cache is not None and self._cache.read_text(f"{name}.toml") is not None)

    def _list_files(self) -> Iterable[str]:
        self.refuse_unfit()
        if self._copy is not None:
            return self._copy.names()
        kept = self._cache.read_text(_LISTING) if self._cache else None
        if kept is not None:
            return kept.decode(errors="surrogateescape").split("\n") if kept else []
        names = list(self.revision.files)
        if self._cache:
            self._cache.keep_text(_LISTING, "\n".join(names).encode(errors="surrogateescape"))
        return names

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file below the store, with the source and the version."""
        return f"{self.source}@{self.shown}:{posixpath.join(self.locked.path, path)}"

    def refuse_unfit(self) -> None:
        """Raise NpuprofError where the repository of the source needs another npuprof (NP041), or its store is not what was locked (NP049).

        It is asked for before anything is read.
        """
        if self._is_fit:
            return
        raw = self.read_file(projects.FILE)
        if raw is not None and b"requires" in raw:
            document = parse_document(projects.FILE, self.cite_beside(projects.FILE), raw)
            first = self.source.partition("/")[0]
            hint = f"install one of them, or name a version in rev that was made for this one, and npuprof source update {first}"
            if unmet := _find_unmet_requirement(document, f"the source {self.source!r}", hint):
                raise NpuprofError([unmet])
        if not self.is_version and self.locked.digest and self._find_digest() != self.locked.digest:
            raise NpuprofError([build_digest_finding(self.source, self.locked)._replace(origin=self.proved_by)])
        self._is_fit = True

    def _find_digest(self) -> str:
        if self._copy is None:
            return load_store_digest(self.locked, lambda: self.revision)
        return digest_listed(self._copy.proof.load_lines(), self._copy.place) if self._copy.proof else self.locked.digest

    def cite_beside(self, name: str) -> str:
        """Return the path to cite for a file beside the store."""
        return f"{self.source}@{self.shown}:{posixpath.join(posixpath.dirname(self.locked.path), name)}"

    def read_file(self, name: str) -> bytes | None:
        """Return a file beside the store, None where there is none: it is one of those that every store reads."""
        if self._copy is not None:
            return self._copy.read_file(name)
        kept = self._cache.read_text(f".{name}") if self._cache else None
        if kept is None:
            place = posixpath.join(posixpath.dirname(self.locked.path), name)
            found = self.revision.repository.git.read_objects([f"{self.commit}:{place}"])[0]
            kept = found.content if found is not None and found.type == "blob" else b""
            if self._cache:
                self._cache.keep_text(f".{name}", kept)
        return kept or None

    def find_policy(self, name: str) -> Policy | None:
        """Return what the repository of the source says of the findings of one of its presets. Raises NpuprofError."""
        return super().find_policy(name.removeprefix(self.label))

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        if not is_profile_name(name):
            raise NpuprofError([self._build_missing_finding(name, asked)])
        self.refuse_unfit()
        raw = self._cache.read_text(f"{name}.toml") if self._cache else None
        if self._copy is not None:
            raw = self._copy.read_text(name)
            if raw is None:
                raise NpuprofError([self._build_missing_finding(name, asked)])
        if raw is None:
            if name not in self.revision.files:
                raise NpuprofError([self._build_missing_finding(name, asked)])
            raw = self._read_text(name)
            if self._cache:
                self._cache.keep_text(f"{name}.toml", raw)
        read = parse_document(f"{self.source}:{name}", self.cite_file(f"{name}.toml"), raw)
        return Profile(read, key=f"{self.identity} {name}#{self.commit}{self._view}", home=self)

    def _read_text(self, name: str) -> bytes:
        try:
            return self.revision.read_profile_text(name)
        except NpuprofError as error:  # a link that leads nowhere
            place = Place(self.cite_file(f"{name}.toml"))
            raise NpuprofError([finding._replace(where=place) for finding in error.findings]) from None

    @property
    def _view(self) -> str:
        return f" {self.shown}" if self.is_version else ""

    def profile(self, name: str, asked: Origin | None = None) -> Profile:
        """Return one profile. What the lock says of its own ancestors with an @ is part of its key: another lock may say otherwise.

        Raises NpuprofError.
        """
        found = super().profile(name, asked)
        if self.locked.versions and not self.is_version and name not in self._keyed:
            self._keyed.add(name)
            if pins := self._find_pins(found):
                found.key = f"{found.key}[{' '.join(sorted(pins))}]"
        return found

    def _find_pins(self, profile: Profile) -> set[str]:
        """Return what the lock says of the references with an @ that a profile and its ancestors in this store make."""
        found: set[str] = set()
        seen, waiting = {profile.name}, [profile]
        while waiting:
            for reference in waiting.pop().extends:
                if reference in self.locked.versions:
                    found.add(f"{reference}={self.locked.versions[reference].commit}")
                elif is_profile_name(reference) and reference not in seen:
                    seen.add(reference)
                    with suppress(NpuprofError):  # told where it is resolved
                        waiting.append(super().profile(reference))
        return found

    def find_version(self, reference: str, asked: Origin | None = None, is_own: bool = False) -> SourceStore:
        """Return the store as it was where ``NAME@VERSION`` was released, as far as that can be reached from the locked commit.

        For its own presets (``is_own``) a whole number may mean what was released elsewhere, as where they are kept. Raises NpuprofError.
        """
        key = reference, is_own
        if key not in self._versions:
            self._versions[key] = self._open_version(reference, asked, is_own)
            self._versions[key].which = self.which
        return self._versions[key]

    def _open_version(self, reference: str, asked: Origin | None, is_own: bool) -> SourceStore:
        self.refuse_unfit()
        name, _, wanted = reference.partition("@")
        pinned = None if self.is_version else self._locked_versions.find(reference)
        copied: dict[str, LockedVersion] = {}
        if pinned is None and self._copy is not None:
            pinned = LockedVersions(copied := self._copy.read_references()).find(reference)
        yanked = pinned.yanked if pinned else ""
        if self.copy is not None and pinned is not None:
            shown = f"{name}/v{pinned.version}" if pinned.version != "-" else pinned.commit[:7]
            copy = self.copy.find_version(pinned.commit)
            return SourceStore(self.locked, self.source, shown=shown, copy=copy, commit=pinned.commit, yanked=yanked)
        if self.copy is not None and not os.path.isdir(find_mirror_folder(self.locked.url)):
            raise NpuprofError([_place(self._build_uncopied_finding(reference, {**self.locked.versions, **copied}, asked), asked)])
        if pinned is not None:
            shown = f"{name}/v{pinned.version}" if pinned.version != "-" else pinned.commit[:7]
            return SourceStore(
                self.locked, self.source, shown=shown, commit=pinned.commit, yanked=yanked,
                find_version=partial(self._open_pinned, reference, pinned, asked, is_own), is_own=is_own,
            )  # fmt: skip
        pin = self._find_pin(reference, wanted, asked, is_own)
        shown = f"{pin.name}/v{pin.version}" if pin.version else pin.commit[:7]
        if pin.released and not pinned:  # the lock says nothing of it
            yanked = self.revision.repository.find_yank(shown)
        return SourceStore(self.locked, self.source, pin.home, shown, pin.released, yanked=yanked)

    def _build_uncopied_finding(self, reference: str, there: dict[str, LockedVersion], asked: Origin | None) -> Finding:
        """Return that a version is not in the copy; without a preset that refers to it no update brings it."""
        name, first = reference.partition("@")[0], self.source.partition("/")[0]
        update = f"copy it: npuprof source update {first}"
        if asked is None:
            has = sorted({pin.version for other, pin in there.items() if other.partition("@")[0] == name and pin.version != "-"})
            update = f'refer to it in a preset, extends = ["{self.source}:{reference}"], and {update}'
            update = f"of {name} it has {', '.join(has)}; {update}" if has else update
        what = f"the copy of the source {self.source!r} has no {reference}"
        return Finding("NP044", what, "It holds the versions that presets refer to.", update)

    def _open_pinned(self, reference: str, pinned: LockedVersion, asked: Origin | None, is_own: bool) -> tuple[Revision, Version | None]:
        """Return the store at a version that the lock names, and the version, if its tag is there. Raises NpuprofError."""
        from npuprof.store.revisions import load_repository_revision

        name, _, wanted = reference.partition("@")
        if not self._has_tag(name, pinned):  # the lock knows better than tags that were moved or deleted
            require_commit(self.revision.repository, self.source, pinned.commit)
            return load_repository_revision(self.revision.repository, pinned.commit), None
        pin = self._find_pin(reference, pinned.version if pinned.version != "-" else wanted, asked, is_own)
        return pin.home, pin.released

    def _find_pin(self, reference: str, wanted: str, asked: Origin | None, is_own: bool) -> Pin:
        from npuprof.store import revisions

        name = reference.partition("@")[0]
        try:
            pin = revisions.find_pin(self.revision, f"{name}@{wanted}", asked)
        except NpuprofError as error:
            raise name_source_in_error(error, self.source, name) from None
        if pin.released and not is_own and not self.revision.repository.is_version_reachable(name, pin.released.text, self.commit):
            raise NpuprofError([build_later_finding(self.source, reference, pin.version, asked)])
        return pin

    def list_versions(self) -> list[SourceStore]:
        """Return the stores at the versions that its lock holds, each commit once. Raises NpuprofError."""
        found = {pin.commit: reference for reference, pin in self.locked.versions.items()} if not self.is_version else {}
        return [self.find_version(reference) for reference in found.values()]

    def advise_yanked(self, reference: str) -> str:
        """Return what to do about a reference to a version that was yanked, as far as that is known here."""
        source, _, name = reference.partition("@")[0].partition(":")
        update = f"npuprof source update {source}"
        if "/" in self.source:
            return f"it is named where {self.source.rpartition('/')[0]} is kept; once mended there: npuprof source update"
        newest = ""
        with suppress(NpuprofError):  # it is a copy, and the mirror is not here
            tags = open_mirror(self.source, self.locked.url, self.locked.path)
            newest = tags.find_newest_kept(name, self.locked.commit) if self.is_version else tags.find_newest_kept("")
        if self.is_version:
            newer = f'write "{source}:{name}@{newest}" in its place' if newest else "put another version behind the @"
            return f"{newer}, then {update}"
        number, wanted = parse_version_text(newest), parse_version_range(self.locked.rev)
        if number is None or (wanted is not None and wanted.accepts(number)):
            return f"{update} takes {newest or 'a newer version, once there is one'}"
        return f'write rev = "^{number.number[0]}.{number.number[1]}" in {self.asked or "npuprof.toml"}, then {update}'

    def _has_tag(self, name: str, pinned: LockedVersion) -> bool:
        """Return whether the tag of a version names the commit that was locked."""
        found = self.revision.repository.git.read_objects([f"refs/tags/{name}/v{pinned.version}^{{commit}}"])[0]
        return found is not None and found.oid == pinned.commit

    def _build_missing_finding(self, name: str, asked: Origin | None) -> Finding:
        if not name and asked is None:
            what = f"the name of a preset is missing behind {self.source}:"
            return Finding("NP008", what, "", f"npuprof list --store {self.source}: shows what is there, at {self.shown}")
        hint = self._suggest_name(name, f"npuprof list --store {self.source}: shows what is there, at {self.shown}")
        is_own = asked is not None and asked.profile.startswith(self.label)
        if is_own and asked is not None and self._was_outside(name):
            what = f"{asked.profile} extends {name!r}, which lies outside the store of {self.source}"
            why = "Of a source the store is shared, and none of the files outside of it that its npuprof.toml names."
            hint = f"move {name}.toml into the store, or extend none of what extends it"
            return Finding("NP101", what, why, hint, asked, "profile.extends", (asked.profile,))
        if not is_own:
            hint = hint.replace("did you mean '", f"did you mean '{self.label}").replace("' or '", f"' or '{self.label}")
        where = self.source if asked else f"{self.source} {self.shown}"  # what a preset lacks is the same fault in the next version
        return build_missing_finding("NP008", name if is_own else f"{self.label}{name}", where, hint, asked)

    def _was_outside(self, name: str) -> bool:
        """Return whether a preset is one outside the store where the source is kept."""
        with suppress(NpuprofError):
            globs = find_sources(self).project.presets
            return Layout(f"{self.locked.path}/" if self.locked.path else "", globs).takes(name)
        return False

    def __repr__(self) -> str:
        return f"SourceStore({self.source!r}, {self.shown!r})"


def find_edited_copies(home: ProfileSource) -> list[Finding]:
    """Return what is wrong with the copies of sources in the repository of a store: those that npuprof.toml names there."""
    found: list[Finding] = []
    sources = find_sources(home)
    for name, source in sources.project.sources.items():
        if source.vendor and name in sources.lock.sources and sources.open_copy is not None:
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
        raise NpuprofError([_place(Finding("NP044", what, why, f"write it down: npuprof source update {source}"), asked)])
    return find_source_store_among(sources, reference, asked)


def find_source_store_among(sources: Sources, reference: str, asked: Origin | None = None) -> SourceStore:
    """Return the store that a reference is read from, of some sources. Raises NpuprofError."""
    source, _, name = reference.partition(":")
    store = sources.open_source(source, asked)
    return store.find_version(name, asked) if "@" in name else store


def find_sources(home: ProfileSource) -> Sources:
    """Return the sources that a store refers to, read once. Raises NpuprofError where npuprof.toml or the lock cannot be understood."""
    known = getattr(home, "sources", None)
    if not isinstance(known, Sources):
        known = _read_sources(home)
        home.sources = known  # type: ignore[attr-defined]
    return known


def _read_sources(home: ProfileSource) -> Sources:
    if isinstance(home, SourceStore):
        home.refuse_unfit()
        cited = {name: home.cite_beside(name) for name in (projects.FILE, locks.FILE)}
        nested = _parse_sources(cited, {name: home.read_file(name) for name in cited}, None, f"{home.source}/", home.copy)
        nested.which = home.which
        return nested
    if isinstance(home, Folder):
        if not home.in_work_tree:
            return Sources(Project(), Lock())
        path = os.path.join(find_project_folder(home), locks.FILE)
        locked = _read_file(path)
        lock = locks.parse_lock(os.path.relpath(path), locked) if locked is not None else Lock()
        base = os.path.dirname(path)
        return Sources(read_project(home), lock, open_copy=lambda folder: VendoredCopy(find_copy_folder(base, folder)))
    from npuprof.store.revision import Revision

    if not isinstance(home, Revision):
        return Sources(Project(), Lock())
    found = read_sources_at(home.repository, home.commit, home.repository.prefix, home.shown)
    place = posixpath.dirname(home.repository.prefix.rstrip("/"))
    found.open_copy = lambda folder: VendoredCopy(posixpath.join(place, folder), home)
    return found


def refuse_unmet_requirement(home: Folder) -> None:
    """Raise NpuprofError (NP041) where ``requires`` in npuprof.toml does not mean this npuprof, NP040 where the file is not understood."""
    document, fault = None, None
    try:
        document = read_project(home).document
    except NpuprofError as error:  # what is wrong may be what a later npuprof understands
        fault = error
        with suppress(NpuprofError):
            document = parse_document(projects.FILE, os.path.relpath(home.project_file), _read_file(home.project_file) or b"")
    if document is not None and (unmet := _find_unmet_requirement(document, "this repository", "install one of them, or widen requires")):
        raise NpuprofError([unmet])
    if fault is not None:
        raise fault


def refuse_unmet_requirement_at(sources: Sources) -> None:
    """Raise NpuprofError (NP041) where ``requires``, as it is read with the sources, does not mean this npuprof."""
    document = sources.project.document
    if document is not None and (unmet := _find_unmet_requirement(document, "this repository", "install one of them, or widen requires")):
        raise NpuprofError([unmet])


def _find_unmet_requirement(document: Document, who: str, hint: str) -> Finding | None:
    """Return that npuprof.toml needs another npuprof, None where it needs none."""
    from npuprof.model import __version__

    said = document.data.get("requires")
    wanted, here = parse_version_range(said) if isinstance(said, str) else None, parse_version_text(__version__)
    if wanted is None or here is None or wanted.accepts(here):
        return None
    what = f"{who} needs npuprof {said}, and this is {__version__}"
    why = "Its presets were written for that one; another may read them otherwise."
    return Finding("NP041", what, why, hint, Origin(document, ("requires",)), "requires")


def read_project(home: Folder) -> Project:
    """Return what npuprof.toml beside a store in a folder says, read once. Raises NpuprofError where it cannot be understood."""
    if not isinstance(home.project, Project):
        path = os.path.join(find_project_folder(home), projects.FILE)
        raw = _read_file(path)
        home.project = projects.parse_project(os.path.relpath(path), raw) if raw is not None else Project()
    return home.project


def list_project_paths(prefix: str) -> tuple[str, str]:
    """Return the paths of npuprof.toml and npuprof.lock from the top of a repository whose store is in the folder ``prefix``."""
    place = posixpath.dirname(prefix.rstrip("/"))
    return posixpath.join(place, projects.FILE), posixpath.join(place, locks.FILE)


def read_sources_at(repository: Repository, commit: str, prefix: str, shown: str | None) -> Sources:
    """Return the sources that a store refers to at a commit, or in a tree; ``shown`` is the revision to cite. Raises NpuprofError."""
    paths = dict(zip((projects.FILE, locks.FILE), list_project_paths(prefix), strict=True))
    found = repository.git.read_objects([f"{commit}:{path}" for path in paths.values()])
    raw = {name: one.content if one is not None and one.type == "blob" else None for name, one in zip(paths, found, strict=True)}
    sources = _parse_sources(paths, raw, shown)
    sources.which = f"--rev {shown[:12]}" if shown else ""
    return sources


def _parse_sources(
    cited: dict[str, str], raw: dict[str, bytes | None], revision: str | None, label: str = "", copy: CopyPlace | None = None
) -> Sources:
    told, locked = raw[projects.FILE], raw[locks.FILE]
    project = projects.parse_project(cited[projects.FILE], told, revision) if told is not None else Project()
    lock = locks.parse_lock(cited[locks.FILE], locked, revision) if locked is not None else Lock()
    return Sources(project, lock, label, copy=copy)


def _read_file(path: str) -> bytes | None:
    try:
        return read_plain_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        from npuprof.report.output import describe_os_error

        what = f"cannot read {os.path.relpath(path)}: {describe_os_error(error, path)}"
        raise NpuprofError([Finding("NP040", what, "", "mend or remove it")]) from None
