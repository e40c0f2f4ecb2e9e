"""The store of a source, and the versions of its presets: from the lock, else from its mirror."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, Place, build_error, raise_any
from npuprof.store import FILE, is_profile_name, read_revision, strip_revision
from npuprof.store import project as projects
from npuprof.store.base import CachedStore, PinTarget
from npuprof.store.gitstore.revisions import Pin, Revision
from npuprof.store.problems import advise_sync_of, build_missing_finding, place_error
from npuprof.store.sources.lock import LockedSource, LockedVersion, find_locked_version
from npuprof.store.sources.manifest import advise_copy
from npuprof.store.sources.mirror import (
    TextCache,
    build_later_error,
    find_mirror_folder,
    name_source_in_error,
)
from npuprof.store.sources.mirrorgit import load_mirror_revision, open_mirror
from npuprof.store.sources.released import (
    ReleasedTag,
    build_unknown_error,
    find_named_commit,
    find_newest_kept,
    find_released_version,
    load_released_tags,
)
from npuprof.store.sources.storedigest import build_digest_finding, digest_listed, load_store_digest
from npuprof.store.sources.vendored import CopyPlace, VendoredCopy
from npuprof.store.versions import YANKED, Version

#: The name of the cached preset names, next to their texts: no preset can have it.
_LISTING = ".names"


class SourceStore(CachedStore):
    """The store of a source at a commit, or at a version of one of its presets.

    Its presets are named ``SOURCE:NAME``.
    """

    is_locked = True

    def __init__(
        self,
        locked: LockedSource,
        label: str,
        copy: CopyPlace | None = None,
        home: SourceStore | None = None,
        reference: str = "",
        pin: LockedVersion | None = None,
        is_own: bool = False,
    ) -> None:
        """Create the locked store, or the one at the ``pin`` of a ``reference`` with an @.

        The reference is seen from ``home``.
        """
        super().__init__()
        self.locked = locked
        self.label = f"{label}:"
        self.source = label
        self.is_version = pin is not None  #: whether it is the target of a reference with an @
        self.has_pins = bool(locked.versions) and pin is None
        self.commit = pin.commit if pin else locked.commit
        self.yanked = pin.yanked if pin else locked.yanked  #: why it was yanked
        self.shown = pin.format_shown(strip_revision(reference)) if pin else locked.shown
        self.copy = copy  #: the place of its vendored copy, if there is one
        self._copy = self._require_copy(copy) if copy is not None else None
        #: its identity for trust, independent of its local name
        self.root = f"source:{locked.url} {locked.path}"
        self._home, self._reference, self._pin, self._is_own = home, reference, pin, is_own
        # cached apart from the store's texts, since texts of a version were verified
        cached_path = (
            f"{locked.path}@{self.shown}{' own' if is_own else ''}" if pin else locked.path
        )
        self._cache = None if self._copy else TextCache(locked.url, cached_path, self.commit)
        self._is_fit = False
        self._versions: dict[tuple[str, bool], SourceStore] = {}
        #: the argument of ``source sync`` for its lock
        self.which: str = home.which if home is not None else ""
        self.proved_by: Origin | None = None  #: the location of its digest in the lock

    def _require_copy(self, copy: CopyPlace) -> VendoredCopy:
        """Return the vendored copy of the store.

        Raises NpuprofError if it has another commit (NP044), or its file list differs (NP049).
        """
        vendored = copy.open()
        copied = vendored.read_commit()
        if copied != self.commit:
            what = (
                f"the copy of the source {self.source!r} is "
                f"{f'of the commit {copied[:7]}' if copied else 'not whole'}"
            )
            why = f"npuprof.lock names {self.commit[:7]}."
            raise build_error("NP044", what, why, advise_copy(self.source))
        if vendored.proof is not None:
            _ = vendored.proof.listed
        return vendored

    def find_edits(self) -> list[Finding]:
        """Return the files of its vendored copy that were changed, including its own sources.

        Raises NpuprofError.
        """
        assert self._copy is not None, "it is asked for where there is one"
        return self._copy.list_faults()

    @property
    def version(self) -> str:
        """Its version number, of the whole store or of one preset.

        An empty string if it is not a version.
        """
        return self.shown.rpartition("/v")[2] if self.is_version or self.locked.tag else ""

    @property
    def revision(self) -> Revision:
        """The store in the mirror. Raises NpuprofError if its commit was not fetched here."""
        return self._opened[0]

    @property
    def released(self) -> Version | None:
        """The requested version, if it has a tag.

        Raises NpuprofError if it is not on this machine.
        """
        return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Revision, Version | None]:
        try:
            return self._open()
        except NpuprofError as error:
            findings = [
                advise_sync_of(finding, self.which) if self.which else finding
                for finding in error.findings
            ]
            raise NpuprofError(findings) from None

    def _open(self) -> tuple[Revision, Version | None]:
        if self._home is None or self._pin is None:
            mirror = open_mirror(self.source, self.locked.url, self.locked.path)
            return load_mirror_revision(mirror, self.source, self.commit), None
        repository, name = self._home.revision.repository, strip_revision(self._reference)
        tag = f"refs/tags/{name}/v{self._pin.version}"
        target = repository.git.read_object(f"{tag}^{{commit}}")
        if target is None or target.oid != self.commit:
            # the lock has precedence over moved and deleted tags
            return load_mirror_revision(repository, self.source, self.commit), None
        pin = self._home.find_pin(f"{name}@{self._pin.version}")
        if (
            pin.released
            and not self._is_own
            and not repository.is_version_reachable(name, pin.released.text, self._home.commit)
        ):
            raise build_later_error(self.source, self._reference, pin.version)
        return pin.home, pin.released

    def has_text(self, name: str) -> bool:
        """Return whether the text of a preset is available without git."""
        return self._copy is not None or (
            self._cache is not None and self._cache.read_text(f"{name}.toml") is not None
        )

    def _list_files(self) -> Iterable[str]:
        self.require_fit()
        if self._copy is not None:
            return self._copy.names()
        listed = self._load_cached(
            _LISTING, lambda: "\n".join(self.revision.files).encode(errors="surrogateescape")
        )
        return listed.decode(errors="surrogateescape").split("\n") if listed else []

    def _load_cached(self, name: str, read: Callable[[], bytes]) -> bytes:
        """Return a text from the user's cache; a missing one is read and cached."""
        text = self._cache.read_text(name) if self._cache else None
        if text is None:
            text = read()
            if self._cache:
                self._cache.write_text_once(name, text)
        return text

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file below the store, with the source and the version."""
        return f"{self.source}@{self.shown}:{posixpath.join(self.locked.path, path)}"

    def require_fit(self) -> None:
        """Raise NpuprofError if the source needs another npuprof, or differs from the lock.

        The codes are NP041 and NP049. Called before anything is read.
        """
        if self._is_fit:
            return
        # before the digest: another npuprof may read the store differently
        raw = self.read_file(FILE)
        if raw is not None and b"requires" in raw:
            document = parse_document(FILE, self.cite_beside(FILE), raw)
            first = self.source.partition("/")[0]
            hint = (
                "install one of them, or name a version in rev that was made for this one, and "
                f"npuprof source update {first}"
            )
            subject = f"the source {self.source!r}"
            raise_any(projects.find_unmet_requirement(document, subject, hint))
        if not self.is_version and self.locked.digest and self._find_digest() != self.locked.digest:
            raise NpuprofError(
                build_digest_finding(self.source, self.locked)._replace(origin=self.proved_by)
            )
        self._is_fit = True

    def _find_digest(self) -> str:
        if self._copy is None:
            return load_store_digest(self.locked, lambda: self.revision)
        if self._copy.proof is None:
            return self.locked.digest
        return digest_listed(self._copy.proof.listed, self._copy.place)

    def _locate_beside(self, name: str) -> str:
        return posixpath.join(posixpath.dirname(self.locked.path), name)

    def cite_beside(self, name: str) -> str:
        """Return the path to cite for a file next to the store."""
        return f"{self.source}@{self.shown}:{self._locate_beside(name)}"

    def read_file(self, name: str) -> bytes | None:
        """Return a file next to the store that every store reads, None if there is none."""
        if self._copy is not None:
            return self._copy.read_file(name)
        blob = f"{self.commit}:{self._locate_beside(name)}"
        text = self._load_cached(
            f".{name}", lambda: self.revision.repository.git.read_files([blob])[0] or b""
        )
        return text or None

    def find_plain_name(self, name: str) -> str:
        """Return the name of a preset without that of its source."""
        return name.removeprefix(self.label)

    def find_own_parent(self, reference: str, requested: Origin | None) -> Profile:
        """Return the preset of a reference with an @ between its presets. Raises NpuprofError."""
        return self.find_version(reference, requested, is_own=True).profile(
            strip_revision(reference), requested
        )

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        raw: bytes | None = None
        if is_profile_name(name):
            self.require_fit()
            raw = (
                self._copy.read_text(name)
                if self._copy
                else self._load_cached(f"{name}.toml", lambda: self._read_text(name, requested))
            )
        if raw is None:
            raise NpuprofError(self._build_missing_finding(name, requested))
        view = f" {self.shown}" if self.is_version else ""
        read = parse_document(f"{self.source}:{name}", self.cite_file(f"{name}.toml"), raw)
        return Profile(read, key=f"{self.root} {name}#{self.commit}{view}", home=self)

    def _read_text(self, name: str, requested: Origin | None) -> bytes:
        if name not in self.revision.files:
            raise NpuprofError(self._build_missing_finding(name, requested))
        try:
            return self.revision.read_profile_text(name)
        except NpuprofError as error:  # a dangling link
            place = Place(self.cite_file(f"{name}.toml"))
            raise NpuprofError(
                [finding._replace(where=place) for finding in error.findings]
            ) from None

    def _build_missing_finding(self, name: str, requested: Origin | None) -> Finding:
        hint = self._suggest_name(
            name, f"npuprof list --store {self.source}: lists its presets, at {self.shown}"
        )
        is_own = requested is not None and requested.profile.startswith(self.label)
        if not is_own:
            name = f"{self.label}{name}"
            hint = hint.replace("did you mean '", f"did you mean '{self.label}")
            hint = hint.replace("' or '", f"' or '{self.label}")
        # in a preset, without the version: a missing parent is the same fault in the next one
        where = self.source if requested else f"{self.source} {self.shown}"
        return build_missing_finding("NP008", name, where, hint, requested)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r}, {self.shown!r})"

    def _find_pinned(self, reference: str, requested: Origin | None) -> PinTarget | None:
        """Return the lock's target, which need not be opened: keys of presets have the commit."""
        pin = self.locked.versions.get(reference)
        return PinTarget(None, reference, pin.commit) if pin is not None else None

    def find_version(
        self, reference: str, requested: Origin | None = None, is_own: bool = False
    ) -> SourceStore:
        """Return the store at the release of ``NAME@VERSION``.

        It must be reachable from the locked commit. For its own presets (``is_own``), a complete
        number may refer to a version released elsewhere, as for vendored releases. Raises
        NpuprofError.
        """
        key = reference, is_own
        if key not in self._versions:
            self._versions[key] = self._open_version(reference, requested, is_own)
        return self._versions[key]

    def _open_version(self, reference: str, requested: Origin | None, is_own: bool) -> SourceStore:
        self.require_fit()
        references = self._copy.read_references() if self._copy is not None else {}
        pin = None
        if not self.is_version:
            pin = find_locked_version(self.locked.versions, reference)
        pin = pin or find_locked_version(references, reference)
        if pin is not None:
            copy = self.copy._replace(version=pin.commit) if self.copy is not None else None
            return SourceStore(self.locked, self.source, copy, self, reference, pin, is_own)
        if self.copy is not None and not (
            is_own and os.path.isdir(find_mirror_folder(self.locked.url))
        ):
            raise place_error(self._build_uncopied_error(reference), requested)
        if is_own or self.is_version:
            pin = self._look_up_version(reference, requested)
        else:
            pin = self._find_released(reference, requested)
        return SourceStore(self.locked, self.source, None, self, reference, pin, is_own)

    def _look_up_version(self, reference: str, requested: Origin | None) -> LockedVersion:
        """Return the target in the mirror of a reference that no lock lists.

        Raises NpuprofError.
        """
        pin = self.find_pin(reference, requested)
        version = LockedVersion(pin.version or "-", pin.commit)
        if not pin.released:
            return version
        tag = version.format_shown(pin.name)
        return version._replace(yanked=self.revision.repository.find_yank(tag))

    def _find_released(self, reference: str, requested: Origin | None) -> LockedVersion:
        """Return the target at the time of locking of a reference that the lock does not list.

        Raises NpuprofError.
        """
        name, revision = strip_revision(reference), read_revision(reference)
        try:
            commit = ""
            if not _is_number(revision):
                commit = find_named_commit(self.revision.repository, self.commit, revision)
            if commit:
                return LockedVersion("-", commit)
            tags = self._released_tags
        except NpuprofError as error:
            raise place_error(error, requested) from None
        version = find_released_version(tags, name, revision)
        if version is None:
            unknown = build_unknown_error(self.source, f"{name}@{revision}", tags)
            raise place_error(unknown, requested)
        tag = f"{name}/v{version.version}"
        if not any(released.tag == f"{tag}{YANKED}" for released in tags):
            return version
        reason = self.revision.repository.find_yank(tag) or "no reason is given"
        return version._replace(yanked=reason)

    @cached_property
    def _released_tags(self) -> list[ReleasedTag]:
        return load_released_tags(self.locked, lambda: self.revision.repository)

    def _build_uncopied_error(self, reference: str) -> NpuprofError:
        """Return the error for a version missing in the vendored copy.

        An update adds it only if a preset refers to it.
        """
        what = f"the copy of the source {self.source!r} has no {reference}"
        update = (
            f'extend "{self.source}:{reference}" in a preset, and copy it: npuprof source update '
            f"{self.source.partition('/')[0]}"
        )
        return build_error("NP044", what, "It contains the versions that presets refer to.", update)

    def find_pin(self, reference: str, requested: Origin | None = None) -> Pin:
        """Return the target of a reference with an @ in the mirror, seen from here.

        Raises NpuprofError.
        """
        try:
            return self.revision.pin_parent(reference, requested)
        except NpuprofError as error:
            raise name_source_in_error(error, self.source) from None

    def advise_yanked(self, reference: str) -> str:
        """Return the hint for a reference to a yanked version, as far as known here."""
        source, _, name = strip_revision(reference).partition(":")
        update = f"npuprof source update {source.partition('/')[0]}"
        if not self.is_version:
            return f"{update}, with a rev in npuprof.toml that allows a newer version"
        newest = ""
        with suppress(NpuprofError):  # a vendored copy without its mirror
            newest = find_newest_kept(self._released_tags, name)
        return (
            f'write "{source}:{name}@{newest}" in its place, then {update}'
            if newest
            else f"put another version after the @, then {update}"
        )


def _is_number(revision: str) -> bool:
    """Return whether the text after an @ is a version number rather than a commit id.

    A number has a dot, or fewer digits than git accepts for an id.
    """
    return "." in revision or (revision.removeprefix("v").isdigit() and len(revision) < 4)
