"""The store of a source, and the versions of its presets: what the lock says of them, else what its mirror has."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, partial

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, Place
from npuprof.store import ReadOnceStore, is_profile_name
from npuprof.store.layout import Layout
from npuprof.store.problems import build_missing_finding, place_finding
from npuprof.store.sources import project as projects
from npuprof.store.sources.lock import LockedSource, LockedVersion, find_locked_version
from npuprof.store.sources.mirror import TextCache, advise_sync_of, build_later_finding, find_mirror_folder, name_source_in_error
from npuprof.store.sources.released import (
    ReleasedTag,
    build_unknown_finding,
    find_named_commit,
    find_newest_kept,
    find_released_version,
    load_released_tags,
)
from npuprof.store.sources.storedigest import build_digest_finding, digest_listed, load_store_digest
from npuprof.store.sources.vendored import CopyPlace, VendoredCopy, advise_copy
from npuprof.store.versions import YANKED, parse_version_range, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import Policy
    from npuprof.store.gitstore.revisions import Pin, Revision
    from npuprof.store.versions import Version

    #: Opens the store at a version that a lock names, and returns the version as well, if its tag is there.
    VersionOpener = Callable[[], tuple[Revision, Version | None]]

#: What the names of all presets are kept as, beside their texts: no preset can be called so.
_LISTING = ".names"


class SourceStore(ReadOnceStore):
    """The store of a source at a commit, or at the version of one of its presets. Its presets are called ``SOURCE:NAME``."""

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
        self._is_fit = False
        self._versions: dict[tuple[str, bool], SourceStore] = {}
        self.asked: Origin | None = None  #: where npuprof.toml says which versions of it are wanted
        self.which = ""  #: which lock names it, as ``source sync`` is told
        self.proved_by: Origin | None = None  #: where the lock says what its digest is

    def _require_copy(self, copy: CopyPlace) -> VendoredCopy:
        """Return the copy of the store in this repository.

        Raises NpuprofError where it is of another commit (NP044), or its list of files is not what was copied (NP049).
        """
        vendored = copy.open()
        copied = vendored.read_commit()
        if copied != self.commit:
            what = f"the copy of the source {self.source!r} is {f'of the commit {copied[:7]}' if copied else 'not whole'}"
            why = f"npuprof.lock names {self.commit[:7]}."
            raise NpuprofError([Finding("NP044", what, why, advise_copy(self.source))])
        if vendored.proof is not None:
            vendored.proof.load_lines()
        return vendored

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
            from npuprof.store.sources.mirrorgit import load_mirror_revision, open_mirror

            self._revision = load_mirror_revision(open_mirror(self.source, self.locked.url, self.locked.path), self.source, self.commit)
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
        self.require_fit()
        if self._copy is not None:
            return self._copy.names()
        listed = self._load_cached(_LISTING, lambda: "\n".join(self.revision.files).encode(errors="surrogateescape"))
        return listed.decode(errors="surrogateescape").split("\n") if listed else []

    def _load_cached(self, name: str, read: Callable[[], bytes]) -> bytes:
        """Return a text of the user's cache; where it is not there it is read, and kept."""
        text = self._cache.read_text(name) if self._cache else None
        if text is None:
            text = read()
            if self._cache:
                self._cache.keep_text(name, text)
        return text

    def cite_file(self, path: str) -> str:
        """Return the path to cite for a file below the store, with the source and the version."""
        return f"{self.source}@{self.shown}:{posixpath.join(self.locked.path, path)}"

    def require_fit(self) -> None:
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
            if unmet := projects.find_unmet_requirement(document, f"the source {self.source!r}", hint):
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
        place = f"{self.commit}:{posixpath.join(posixpath.dirname(self.locked.path), name)}"
        return self._load_cached(f".{name}", lambda: self.revision.repository.git.read_files([place])[0] or b"") or None

    def find_policy(self, name: str) -> Policy | None:
        """Return what the repository of the source says of the findings of one of its presets. Raises NpuprofError."""
        return super().find_policy(name.removeprefix(self.label))

    def _read_profile(self, name: str, asked: Origin | None) -> Profile:
        if not is_profile_name(name):
            raise NpuprofError([self._build_missing_finding(name, asked)])
        self.require_fit()
        raw = self._copy.read_text(name) if self._copy else self._load_cached(f"{name}.toml", lambda: self._read_text(name, asked))
        if raw is None:
            raise NpuprofError([self._build_missing_finding(name, asked)])
        view = f" {self.shown}" if self.is_version else ""
        read = parse_document(f"{self.source}:{name}", self.cite_file(f"{name}.toml"), raw)
        return Profile(read, key=f"{self.root} {name}#{self.commit}{view}", home=self)

    def _read_text(self, name: str, asked: Origin | None) -> bytes:
        if name not in self.revision.files:
            raise NpuprofError([self._build_missing_finding(name, asked)])
        try:
            return self.revision.read_profile_text(name)
        except NpuprofError as error:  # a link that leads nowhere
            place = Place(self.cite_file(f"{name}.toml"))
            raise NpuprofError([finding._replace(where=place) for finding in error.findings]) from None

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
            raw = self.read_file(projects.FILE)
            globs = projects.parse_project(self.cite_beside(projects.FILE), raw).presets if raw is not None else ()
            return Layout(f"{self.locked.path}/" if self.locked.path else "", globs).takes(name)
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r}, {self.shown!r})"

    def _find_pins(self, profile: Profile) -> set[str]:
        """Return what the lock says of the references with an @ that a profile and its ancestors in this store make."""
        pins: set[str] = set()
        if not self.locked.versions or self.is_version:
            return pins
        seen, waiting = {profile.name}, [profile]
        while waiting:
            for reference in waiting.pop().extends:
                if reference in self.locked.versions:
                    pins.add(f"{reference}={self.locked.versions[reference].commit}")
                elif is_profile_name(reference) and reference not in seen:
                    seen.add(reference)
                    with suppress(NpuprofError):  # told where it is resolved
                        waiting.append(self.load_profile(reference))
        return pins

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
        self.require_fit()
        name, _, wanted = reference.partition("@")
        pinned = None if self.is_version else find_locked_version(self.locked.versions, reference)
        copied: dict[str, LockedVersion] = {}
        if pinned is None and self._copy is not None:
            copied = self._copy.read_references()
            pinned = find_locked_version(copied, reference)
        if self.copy is not None and pinned is not None:
            return SourceStore(
                self.locked, self.source, shown=pinned.format_shown(name), copy=self.copy.find_version(pinned.commit), commit=pinned.commit,
                yanked=pinned.yanked,
            )  # fmt: skip
        if self.copy is not None and (not is_own or not os.path.isdir(find_mirror_folder(self.locked.url))):
            raise NpuprofError([place_finding(self._build_uncopied_finding(reference, {**self.locked.versions, **copied}, asked), asked)])
        if pinned is None and not is_own and not self.is_version:
            pinned = self._find_released(reference, asked)
        if pinned is not None:
            return SourceStore(
                self.locked, self.source, shown=pinned.format_shown(name), commit=pinned.commit, yanked=pinned.yanked,
                find_version=partial(self._open_pinned, reference, pinned, asked, is_own), is_own=is_own,
            )  # fmt: skip
        pin = self._find_pin(reference, wanted, asked, is_own)
        shown = LockedVersion(pin.version or "-", pin.commit).format_shown(pin.name)
        yanked = self.revision.repository.find_yank(shown) if pin.released else ""  # the lock contains nothing of it
        return SourceStore(self.locked, self.source, pin.home, shown, pin.released, yanked=yanked)

    def _find_released(self, reference: str, asked: Origin | None) -> LockedVersion:
        """Return what a reference that the lock does not spell was when the source was locked. Raises NpuprofError."""
        name, _, wanted = reference.partition("@")
        wanted = wanted.strip("\"'")
        try:
            if commit := find_named_commit(self.revision.repository, self.commit, wanted) if not _is_number(wanted) else "":
                return LockedVersion("-", commit)
            tags = self._released_tags
        except NpuprofError as error:
            raise NpuprofError([place_finding(finding, asked) for finding in error.findings]) from None
        version = find_released_version(tags, name, wanted)
        if version is None:
            raise NpuprofError([place_finding(build_unknown_finding(self.source, f"{name}@{wanted}", tags), asked)])
        tag = f"{name}/v{version.version}"
        is_yanked = any(released.tag == f"{tag}{YANKED}" for released in tags)
        return version._replace(yanked=self.revision.repository.find_yank(tag) or "no reason is given") if is_yanked else version

    @cached_property
    def _released_tags(self) -> list[ReleasedTag]:
        return load_released_tags(self.locked, lambda: self.revision.repository)

    def _build_uncopied_finding(self, reference: str, there: dict[str, LockedVersion], asked: Origin | None) -> Finding:
        """Return that a version is not in the copy; without a preset that refers to it no update brings it."""
        name, first = reference.partition("@")[0], self.source.partition("/")[0]
        update = f"copy it: npuprof source update {first}"
        if asked is None:
            has = sorted({pin.version for spelled, pin in there.items() if spelled.partition("@")[0] == name and pin.version != "-"})
            update = f'refer to it in a preset, extends = ["{self.source}:{reference}"], and {update}'
            update = f"of {name} it has {', '.join(has)}; {update}" if has else update
        what = f"the copy of the source {self.source!r} has no {reference}"
        return Finding("NP044", what, "It holds the versions that presets refer to.", update)

    def _open_pinned(self, reference: str, pinned: LockedVersion, asked: Origin | None, is_own: bool) -> tuple[Revision, Version | None]:
        """Return the store at a version that the lock names, and the version, if its tag is there. Raises NpuprofError."""
        from npuprof.store.sources.mirrorgit import load_mirror_revision

        name, _, wanted = reference.partition("@")
        if not self._has_tag(name, pinned):  # the lock knows better than tags that were moved or deleted
            return load_mirror_revision(self.revision.repository, self.source, pinned.commit), None
        pin = self._find_pin(reference, pinned.version if pinned.version != "-" else wanted, asked, is_own)
        return pin.home, pin.released

    def _find_pin(self, reference: str, wanted: str, asked: Origin | None, is_own: bool) -> Pin:
        from npuprof.store.gitstore import revisions

        name = reference.partition("@")[0]
        try:
            pin = revisions.find_pin(self.revision, f"{name}@{wanted}", asked)
        except NpuprofError as error:
            raise name_source_in_error(error, self.source, name) from None
        if pin.released and not is_own and not self.revision.repository.is_version_reachable(name, pin.released.text, self.commit):
            raise NpuprofError([build_later_finding(self.source, reference, pin.version, asked)])
        return pin

    def advise_yanked(self, reference: str) -> str:
        """Return what to do about a reference to a version that was yanked, as far as that is known here."""
        from npuprof.store.sources.mirrorgit import open_mirror

        source, _, name = reference.partition("@")[0].partition(":")
        update = f"npuprof source update {source}"
        if "/" in self.source:
            return f"it is named where {self.source.rpartition('/')[0]} is kept; once mended there: npuprof source update"
        newest = ""
        with suppress(NpuprofError):  # it is a copy, and the mirror is not here
            tags = open_mirror(self.source, self.locked.url, self.locked.path)
            released = load_released_tags(self.locked, lambda: tags) if self.is_version else []
            newest = find_newest_kept(released, name) if self.is_version else tags.find_newest_kept("")
        if self.is_version:
            newer = f'write "{source}:{name}@{newest}" in its place' if newest else "put another version behind the @"
            return f"{newer}, then {update}"
        number, wanted = parse_version_text(newest), parse_version_range(self.locked.rev)
        if number is None or (wanted is not None and wanted.accepts(number)):
            return f"{update} takes {newest or 'a newer version, once there is one'}"
        return f'write rev = "^{number.number[0]}.{number.number[1]}" in {self.asked or "npuprof.toml"}, then {update}'

    def _has_tag(self, name: str, pinned: LockedVersion) -> bool:
        """Return whether the tag of a version names the commit that was locked."""
        commit = self.revision.repository.git.read_objects([f"refs/tags/{name}/v{pinned.version}^{{commit}}"])[0]
        return commit is not None and commit.oid == pinned.commit


def _is_number(wanted: str) -> bool:
    """Return whether a text behind an @ is a number of a version, and no id of a commit: one of few digits, or with dots."""
    return "." in wanted or (wanted.removeprefix("v").isdigit() and len(wanted) < 4)
