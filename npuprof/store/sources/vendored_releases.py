"""Vendored releases: released parents as files in a store, for use without git history.

A wheel, an image or an export has no history.

The folder ``.released`` of a store contains a folder for each pinned reference to a released
version, named as the reference is written: ``.released/base/training@1.2.0/``. It contains the
preset and its ancestors as released, its own ``.released`` for their pinned references, and the
file ``.release`` with its identity::

    base/training 1.2.0 COMMIT
    Preset-Digest: HEX
    Digest-Form: 2
"""

from __future__ import annotations

import os
import re

from npuprof import document
from npuprof.catalog import build_finding
from npuprof.document.profile import Profile
from npuprof.model import TYPE_CHECKING, Finding, NpuprofError, Origin, Place, Record, build_error
from npuprof.resolve.digests import COMPARED_FORMS
from npuprof.store import BUILTIN, RELEASED, is_profile_name
from npuprof.store.base import CachedStore, PinTarget
from npuprof.store.folder import Folder
from npuprof.store.problems import build_missing_finding, place_error, place_finding
from npuprof.store.sources.vendored import VendoredCopy
from npuprof.store.versions import parse_version_request, parse_version_text
from npuprof.system import decode_safely

if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.document.profile import ProfileSource
    from npuprof.store.gitstore.revisions import Revision

#: The file with the identity of a vendored release.
RECORD = ".release"

#: The hint that repairs a folder of vendored releases.
ADVICE = "recreate it in a clone that has the release: npuprof source vendor ."

_RECORD = (
    r"(?P<name>\S+) (?P<version>\S+) (?P<commit>[0-9a-f]{40}|[0-9a-f]{64})\n"
    r"Preset-Digest: (?P<digest>[0-9a-f]{64})\n"
    r"Digest-Form: (?P<form>[1-9]\d{0,5})\n*"
)


class KeptRecord(Record):
    """The identity of a vendored release: preset, version, commit, and preset digest."""

    name: str
    version: str
    commit: str
    digest: str
    form: int

    def __str__(self) -> str:
        return (
            f"{self.name} {self.version} {self.commit}\nPreset-Digest: {self.digest}\n"
            f"Digest-Form: {self.form}\n"
        )


class KeptRelease(CachedStore):
    """A vendored release, read from files: the target of a pinned reference, and its ancestors.

    ``folder`` is the folder of the release, at ``revision`` if there is one; ``shown`` is the path
    to cite.
    """

    has_pins = True

    def __init__(
        self, folder: str, shown: str, record: KeptRecord, revision: Revision | None = None
    ) -> None:
        super().__init__()
        self.record = record
        self.commit_in_pins = record.commit[:7]
        self.root = folder
        self.label = shown
        #: whether its digest was verified, or cannot be computed here
        self.is_proved = record.form not in COMPARED_FORMS
        self._copy = VendoredCopy(folder, revision)
        self._revision = revision
        self._nested: dict[str, KeptRelease | None] = {}

    def may_have_parent(self, name: str) -> bool:
        """Return whether there is such a file."""
        return self._copy.read_text(name) is not None

    def _find_pinned(self, reference: str, requested: Origin | None) -> PinTarget | None:
        release = self.find_nested(reference)
        return PinTarget(release, release.record.name, release.record.commit) if release else None

    def find_nested(self, reference: str) -> KeptRelease | None:
        """Return the target of a reference of its own presets, None if it was not vendored.

        Raises NpuprofError.
        """
        if reference not in self._nested:
            nested = _open_release(reference, self.root, self.label, self._revision)
            if nested is not None:
                nested.is_proved = True  # the digest of the outermost release covers all its layers
            self._nested[reference] = nested
        return self._nested[reference]

    def read_profile_text(self, name: str, requested: Origin | None = None) -> bytes:
        """Return the text of a preset. Raises NpuprofError if there is none."""
        text = self._copy.read_text(name)
        if text is None:
            raise NpuprofError(build_missing_finding("NP023", name, self.label, ADVICE, requested))
        return text

    def build_edited_error(self, requested: Origin | None) -> NpuprofError:
        """Return the error for a vendored release that differs from the released one."""
        what = (
            f"{self.label} is not {self.record.name} {self.record.version} as it was released: "
            "its preset digest is another"
        )
        why = "It was edited, or merged wrongly; a released version never changes."
        return _build_error(what, why, requested)

    def _list_files(self) -> Iterable[str]:
        return self._copy.names()

    def may_have_policy(self) -> bool:
        """Return False: a policy covers the store that has the release."""
        return False

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        read = document.parse_document(
            name, self.cite_file(f"{name}.toml"), self.read_profile_text(name, requested)
        )
        return Profile(read, key=f"{name}@{self.record.commit}", home=self, form=self.record.form)


def open_kept_release(home: ProfileSource, reference: str) -> KeptRelease | None:
    """Return a store's vendored release for a reference, None if there is none.

    Raises NpuprofError (NP049) for an unreadable one.
    """
    if isinstance(home, Folder):
        shown = home.root if home.label == BUILTIN else home.label  # a path that can be opened
        return _open_release(reference, home.root, shown, None) if home.keeps_releases else None
    from npuprof.store.gitstore.revisions import Revision

    if not isinstance(home, Revision):
        return None
    store = home.repository.prefix.rstrip("/")
    return _open_release(reference, store, home.cite_path(store), home)


def find_nested_release(home: KeptRelease, reference: str, requested: Origin | None) -> KeptRelease:
    """Return the release that a preset of a vendored one extends.

    Raises NpuprofError (NP049) if it was not vendored with it.
    """
    release = home.find_nested(reference)
    if release is None:
        what = (
            f"{home.label} was kept without {reference}, which "
            f"{requested.profile if requested else 'a preset in it'} extends"
        )
        raise _build_error(what, "", requested)
    return release


def advise_keeping(finding: Finding, reference: str, requested: Origin) -> Finding:
    """Return the finding for a missing history, at the reference that needs it.

    The hint names the alternative.
    """
    hint = finding.hint
    if may_be_kept(reference):
        # only a version can be vendored: a branch would have another target tomorrow
        hint += f"; or keep {reference} as files, in a clone that has it: npuprof source vendor ."
    return place_finding(finding._replace(hint=hint), requested)


def _build_error(what: str, why: str, requested: Origin | None = None) -> NpuprofError:
    return place_error(build_error("NP049", what, why, ADVICE), requested)


def may_be_kept(reference: str) -> bool:
    """Return whether a reference can be vendored: a version of a preset of the same store."""
    name, _, version = reference.partition("@")
    return is_profile_name(name) and parse_version_request(version) is not None


def _open_release(
    reference: str, store: str, shown: str, revision: Revision | None
) -> KeptRelease | None:
    if not may_be_kept(reference):
        return None
    below = f"{RELEASED}/{reference}"
    folder, cited = (f"{store}/{below}" if store else below), f"{shown}/{below}"
    if revision is None:
        if not os.path.lexists(folder):
            return None
        # a link may also lead out through a folder above the release
        if not os.path.realpath(folder).startswith(os.path.realpath(store) + os.sep):
            why = "Vendored files are in every clone, and nothing else is read."
            raise _build_error(f"{cited} leads out of the store", why)
    raw = VendoredCopy(folder, revision).read_unproven(RECORD)
    # a tree has no empty folders, so that there is no release
    if raw is None and revision is not None:
        return None
    record = _parse_record(raw or b"")
    name, _, version = reference.partition("@")
    if record is None or record.name != name or not _accepts(version, record.version):
        what = f"{cited}/{RECORD} does not say which release of {name} was kept for {reference}"
        raise _build_error(what, "It was edited, or merged wrongly.")
    return KeptRelease(folder, cited, record, revision)


def _parse_record(raw: bytes) -> KeptRecord | None:
    match = re.fullmatch(_RECORD, decode_safely(raw).replace("\r\n", "\n"), re.ASCII)
    if match is None:
        return None
    return KeptRecord(
        match["name"], match["version"], match["commit"], match["digest"], int(match["form"])
    )


def _accepts(requested: str, version: str) -> bool:
    """Return whether the text after an @ selects a version."""
    request, number = parse_version_request(requested), parse_version_text(version)
    return request is not None and number is not None and request.accepts(number)


def list_kept_references(home: Folder) -> list[str]:
    """Return the references with vendored releases, by folder, sorted, without following links."""
    top = os.path.join(home.root, RELEASED)
    references: list[str] = []
    if os.path.islink(top):
        return references
    for folder, below, _ in os.walk(top):
        reference = os.path.relpath(folder, top)
        if "@" in os.path.basename(folder) and may_be_kept(reference):
            references.append(reference)
            below.clear()  # its own vendored releases belong to it
        below[:] = [name for name in below if not name.startswith(".")]
    return sorted(references)


def build_idle_finding(home: Folder, reference: str) -> Finding:
    """Return the finding for a vendored release that no preset extends."""
    what = (
        f"the release {reference} is kept in {home.cite_file(RELEASED)}, and no preset extends it"
    )
    why = "It looks as if something meant it, and is carried into every wheel, image and export."
    where = Place(home.cite_file(f"{RELEASED}/{reference}/{RECORD}"))
    return build_finding("NP710", what, why, "take it away: npuprof source vendor .", where=where)
