"""Stores at other revisions: the only module that reads presets from git.

Imported only for a revision, a version or a history.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from functools import cached_property

from npuprof import document
from npuprof.document.profile import FORM, Profile
from npuprof.model import TYPE_CHECKING, Finding, NpuprofError, Origin, Place, Record, build_error
from npuprof.store import is_profile_name
from npuprof.store.base import CachedStore, PinTarget
from npuprof.store.gitstore.repository import CLASH, Repository, TreeFile, shorten_commit
from npuprof.store.layout import Layout
from npuprof.store.problems import build_clash_finding, build_missing_finding
from npuprof.system import decode_safely

if TYPE_CHECKING:
    from typing import Self

    from npuprof.store.gitstore.objects import Git
    from npuprof.store.versions import Version

#: The most cached revisions of a walk through a history.
_REVISIONS = 200
_MAX_LINKS = 8  # links may form a cycle


class StoreRepository(Repository):
    """The repository around a store, which opens the store at its commits, each once."""

    _revisions: dict[str, Revision]

    def __init__(self, folder: str, bare: str = "", git: Git | None = None) -> None:
        super().__init__(folder, bare, git)
        self.forget_revisions()

    def forget_revisions(self) -> None:
        """Drop the cached revisions."""
        self._revisions = {}

    def make_room(self) -> None:
        """Drop the cached revisions if there are many.

        For walks through a long history, between commits.
        """
        if len(self._revisions) > _REVISIONS:
            self.forget_revisions()

    def _copy(self) -> Self:
        copied = super()._copy()
        copied.forget_revisions()
        return copied

    def load_revision(self, commit: str) -> Revision:
        """Return the store at a commit (full id).

        If the store's folder did not exist then, the folder from which it later came is used.
        """
        if commit not in self._revisions:
            revision = Revision(self, commit)
            head = None if revision.has_store else self.git.read_object("HEAD")
            if head and head.oid != commit:
                from npuprof.store.gitstore.commits import find_former_folder

                former = find_former_folder(self, commit, head.oid)
                if former is not None:
                    revision = Revision(self.with_store_prefix(former), commit)
            self._revisions[commit] = revision
        return self._revisions[commit]

    def load_release(self, version: Version) -> Revision:
        """Return the store at a released version, with the records of its tag.

        Raises NpuprofError.
        """
        return self.load_view(self.resolve_commit(version.commit), version)

    def load_named_revision(self, revision: str) -> Revision:
        """Return the store at a user's revision; for a release tag, with the tag's records.

        Raises NpuprofError.
        """
        commit = self.resolve_commit(revision)
        version = self.find_version_of_tag(revision)
        return self.load_view(commit, version) if version else self.load_revision(commit)

    def load_view(self, commit: str, release: Version, view: str = "") -> Revision:
        """Return the store at a commit as seen by a version in a release's tag.

        Without a view, by the release itself.
        """
        if release.faults and not view:
            raise NpuprofError(build_unfit_finding(release))
        plain = self.load_revision(commit)
        # without recorded parents, a release looks the same from everywhere
        if not release.record.parents and release.record.known_form >= FORM:
            return plain
        key = f"{release.tag} {view} {commit}"
        if key not in self._revisions:
            self._revisions[key] = Revision(plain.repository, commit, plain.files, release, view)
            self._revisions[key].adopt_texts(plain)
        return self._revisions[key]

    def find_pin(
        self,
        reference: str,
        requested: Origin | None = None,
        release: Version | None = None,
        view: str = "",
        seen_from: str = "",
    ) -> Pin:
        """Return the target of ``NAME@REV``: as a release records it in a view, else the current.

        Ranges select from the tags reachable from ``seen_from``; if empty, from HEAD. Raises
        NpuprofError.
        """
        name, _, revision = reference.partition("@")
        recorded = release.record.find_parent(view, reference) if release else None
        if release and recorded:
            if self.git.read_object(recorded.commit) is None:
                raise NpuprofError(
                    _build_lost_parent_finding(release, reference, recorded.commit, requested)
                )
            label = f"{name}@{recorded.version or shorten_commit(recorded.commit)}"
            home = self.load_view(recorded.commit, release, recorded.own_view)
            return Pin(name, recorded.version, recorded.commit, home, label)
        resolved = self.resolve_revision(name, revision, requested, seen_from)
        commit, version = resolved.commit, resolved.version
        label = f"{name}@{resolved.label}"
        if version is None:
            return Pin(name, "", commit, self.load_revision(commit), label)
        return Pin(
            name, version.number_text, commit, self.load_view(commit, version), label, version
        )


def build_unfit_finding(version: Version) -> Finding:
    """Return the finding for a tag that cannot be the release of its name."""
    what = f"the tag {version.tag_name} is malformed: {'; '.join(version.faults)}"
    why = "The tag records the contents of a release; npuprof does not guess them."
    return Finding("NP028", what, why, advise_refetch(version))


def advise_refetch(version: Version) -> str:
    """Return how to refetch a release tag in its original form."""
    commit = shorten_commit(version.commit)
    return (
        "fetch the tag again: git fetch --force origin tag "
        f"{version.tag_name}; the current state is {version.name}@{commit}"
    )


def _build_lost_parent_finding(
    release: Version, reference: str, commit: str, requested: Origin | None
) -> Finding:
    what = (
        f"{release.name} {release.number_text} was made with {reference} at "
        f"{shorten_commit(commit)}, which this repository lacks"
    )
    why = "Its tag records the commit, which cannot be replaced."
    hint = f"fetch it: git fetch origin {commit}"
    return Finding("NP022", what, why, hint, requested, "profile.extends" if requested else "")


class Pin(Record):
    """The target of a reference with an @: a preset at a commit, and the store there.

    ``version`` is empty if the revision is not a version. ``released`` is the version that was
    looked up, None if a release's record was used.
    """

    name: str
    version: str
    commit: str
    home: Revision
    label: str
    released: Version | None = None


class Revision(CachedStore):
    """A store at a commit (or tree, by id). Only the object database is read, each file once.

    For a ``release``, parents with an @ resolve as recorded in its tag. ``view`` selects one of the
    versions recorded in the tag.
    """

    has_pins = True

    def __init__(
        self,
        repository: StoreRepository,
        commit: str,
        files: dict[str, TreeFile] | None = None,
        release: Version | None = None,
        view: str = "",
    ) -> None:
        super().__init__()
        self.release = release
        self.view = view
        self._found: dict[str, Pin] = {}
        self.repository = repository
        self.root = repository.folder
        self.commit = commit
        self.commit_in_pins = shorten_commit(commit)
        self.seen_from = commit  #: the commit whose tags ranges select from; empty for HEAD
        self.shown: str | None = commit  #: the revision to cite with each file
        self.label = (
            f"{repository.prefix.rstrip('/') or 'the repository'} at {shorten_commit(commit)}"
        )
        if files is not None:
            self.files = files
        self._contents: dict[str, bytes] = {}

    @cached_property
    def files(self) -> dict[str, TreeFile]:
        """The files of the presets by name."""
        return self.repository.list_profile_files(self.commit)

    def _list_files(self) -> Iterable[str]:
        return self.files

    def pin_parent(self, reference: str, requested: Origin | None) -> Pin:
        """Return the target of a reference with an @, seen from here; cached.

        Raises NpuprofError.
        """
        if reference not in self._found:
            self._found[reference] = self.repository.find_pin(
                reference, requested, self.release, self.view, self.seen_from
            )
        return self._found[reference]

    def may_have_parent(self, name: str) -> bool:
        """Return whether there is such a file."""
        return name in self.files

    def _find_pinned(self, reference: str, requested: Origin | None) -> PinTarget:
        pin = self.pin_parent(reference, requested)
        return PinTarget(pin.home, pin.name, pin.commit)

    @property
    def layout(self) -> Layout:
        """The layout of presets, from ``npuprof.toml`` there."""
        return self.repository.find_layout(self.commit)

    @property
    def has_store(self) -> bool:
        """Whether the store's folder contains any preset."""
        return any(not file.outside for file in self.files.values())

    def source_path(self, name: str) -> str:
        """Return a preset's path relative to the repository."""
        if self.is_outside(name):
            return self.layout.path_of(name, True)
        return Layout(self.repository.prefix).path_of(name)  # needs no npuprof.toml

    def is_outside(self, name: str) -> bool:
        """Return whether a preset is outside the store's folder, by npuprof.toml of the commit."""
        return name in self.files and self.files[name].outside

    def cite_file(self, path: str) -> str:
        """Return the path to cite, with the revision, for a preset's name with ``.toml``."""
        return self.cite_path(self.source_path(path.removesuffix(".toml")))

    def cite_path(self, full: str) -> str:
        """Return the path to cite for a path relative to the repository, with the revision."""
        return f"{shorten_commit(self.shown)}:{full}" if self.shown else full

    def load_texts(self, names: Iterable[str]) -> None:
        """Load the texts of profiles together. Raises NpuprofError if the repository lacks any."""
        oids = {self.files[name].oid for name in names if name in self.files}
        unread = sorted(oids - self._contents.keys())
        self._contents.update(self.repository.git.read_contents(unread))

    def adopt_texts(self, revision: Revision) -> None:
        """Share the texts that another revision of the repository has loaded."""
        self._contents.update(revision._contents)

    def read_profile_text(self, name: str) -> bytes:
        """Return the text of an existing profile; of a link, that of its target.

        Raises NpuprofError.
        """
        return self._read_content(self.trace_links(name)[-1])

    def trace_links(self, name: str) -> list[str]:
        """Return the name of a file and of its links' targets, in order. Raises NpuprofError."""
        names = [name]
        while self.files[names[-1]].is_link:
            link = decode_safely(self._read_content(names[-1]))
            target = posixpath.normpath(posixpath.join(posixpath.dirname(names[-1]), link))
            following = target.removesuffix(".toml")
            names.append(following)
            is_followed = (
                target.endswith(".toml")
                and following in self.files
                and not self.is_outside(following)
                and not self.is_outside(name)
            )
            if not is_followed or len(names) > _MAX_LINKS:
                path = self.cite_file(f"{name}.toml")
                what = f"{path} is a link to {target}, which is not followed"
                why = (
                    "A link is followed to other presets in the store's folder, and to nothing "
                    "else."
                )
                raise build_error(
                    "NP005", what, why, "put the file itself there", where=Place(path)
                )
        return names

    def _read_content(self, name: str) -> bytes:
        oid = self.files[name].oid
        if oid not in self._contents:
            self.load_texts([name])
        return self._contents[oid]

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        if name not in self.files or not is_profile_name(name):
            raise NpuprofError(self._build_missing_finding(name, requested))
        if self.files[name].mode == CLASH:
            paths = (
                self.cite_path(self.layout.path_of(name)),
                self.cite_path(self.layout.path_of(name, True)),
            )
            raise NpuprofError(build_clash_finding(name, paths, requested))
        raw = self.read_profile_text(name)
        try:
            read = document.parse_document(name, self.source_path(name), raw, self.shown)
        except NpuprofError as error:
            raise NpuprofError(
                [_place_finding_at_revision(finding, self.shown) for finding in error.findings]
            ) from None
        form = self.release.record.known_form if self.release else FORM
        return Profile(read, key=f"{name}@{self.commit}", home=self, form=form)

    def _build_missing_finding(self, name: str, requested: Origin | None) -> Finding:
        if requested is None and not self.files:
            return Finding(
                "NP023", f"there are no presets in {self.label}", "", "name a later revision"
            )
        hint = self._suggest_name(name, f"npuprof list lists presets, npuprof log {name} commits")
        return build_missing_finding("NP023", name, self.label, hint, requested)


class ProposedRevision(Revision):
    """A store in an uncommitted tree: its files are cited without a revision.

    ``staged`` is set if the tree is that of the index.
    """

    def __init__(self, repository: StoreRepository, tree: str, staged: bool = False) -> None:
        super().__init__(repository, tree)
        self._staged = staged
        self.seen_from = ""
        self.label = f"{repository.prefix.rstrip('/') or 'the repository'} as it would be committed"
        self.shown = None

    def _build_missing_finding(self, name: str, requested: Origin | None) -> Finding:
        finding = super()._build_missing_finding(name, requested)
        path = self.layout.path_of(name)
        if self._staged and os.path.isfile(os.path.join(self.repository.top, path)):
            return finding._replace(hint=f"git add {path}: it is there, and not staged")
        return finding


def _place_finding_at_revision(finding: Finding, commit: str | None) -> Finding:
    """Return a finding of a document with its revision, if it has one."""
    if commit is None:
        return finding
    assert finding.where is not None, "a document is at fault somewhere"
    return finding._replace(
        where=finding.where._replace(file=f"{shorten_commit(commit)}:{finding.where.file}")
    )
