"""The presets of a source at one commit, read: from a copy in this repository, from the user's cache, or from the mirror."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from contextlib import suppress

from npuprof.document import parse_document
from npuprof.document.profile import Profile
from npuprof.model import Finding, NpuprofError, Origin, Place
from npuprof.store import ReadOnceStore, is_profile_name
from npuprof.store.layout import Layout
from npuprof.store.problems import build_missing_finding
from npuprof.store.sources import project as projects
from npuprof.store.sources.lock import LockedSource
from npuprof.store.sources.mirror import TextCache, advise_sync_of, open_mirror, require_commit
from npuprof.store.sources.requirements import find_unmet_requirement
from npuprof.store.sources.storedigest import build_digest_finding, digest_listed, load_store_digest
from npuprof.store.sources.vendored import CopyPlace, VendoredCopy, advise_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.policy import Policy
    from npuprof.store.revision import Revision
    from npuprof.store.versions import Version

    #: Opens the store at a version that a lock names, and returns the version as well, if its tag is there.
    VersionOpener = Callable[[], tuple[Revision, Version | None]]


#: What the names of all presets are kept as, beside their texts: no preset can be called so.
_LISTING = ".names"


class SourceTexts(ReadOnceStore):
    """The store of a source at a commit, or where one of its presets was released. Its presets are called ``SOURCE:NAME``."""

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
            if unmet := find_unmet_requirement(document, f"the source {self.source!r}", hint):
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
