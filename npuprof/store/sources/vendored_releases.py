"""Vendored releases: released parents as files in a store, for use without git history (a wheel, an
image, an export).

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
from npuprof.model import Finding, NpuprofError, Origin, Place, Record, build_error
from npuprof.resolve.digests import FORM
from npuprof.store import BUILTIN, RELEASED, is_profile_name
from npuprof.store.base import CachedStore
from npuprof.store.folder import Folder
from npuprof.store.problems import build_missing_finding, place_error, place_finding
from npuprof.store.sources.vendored import VendoredCopy
from npuprof.store.versions import parse_version_request, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from npuprof.document.profile import ProfileSource
    from npuprof.store.gitstore.revisions import Revision

#: The file with the identity of a vendored release.
RECORD = ".release"

#: The hint that repairs a folder of vendored releases.
ADVICE = "recreate it in a clone that has the release: npuprof source vendor ."

_RECORD = (
    r"(\S+) (\S+) ([0-9a-f]{40}|[0-9a-f]{64})\nPreset-Digest: "
    r"([0-9a-f]{64})\nDigest-Form: ([1-9]\d{0,5})\n*"
)


class KeptRecord(Record):
    """The identity of a vendored release: preset, version number, commit, preset digest and digest
    form.
    """

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
        self.is_proved = (
            record.form != FORM
        )  #: whether its digest was verified, or is not known here
        self._copy = VendoredCopy(folder, revision)
        self._revision = revision
        self._nested: dict[str, KeptRelease | None] = {}

    def may_have_parent(self, name: str) -> bool:
        """Return whether there is such a file."""
        return self._copy.read_text(name) is not None

    def _find_pinned(
        self, reference: str, requested: Origin | None
    ) -> tuple[KeptRelease, str, str] | None:
        there = self.find_nested(reference)
        return (there, there.record.name, there.record.commit) if there is not None else None

    def find_nested(self, reference: str) -> KeptRelease | None:
        """Return the target of a reference of its own presets, None if it was not vendored.

        Raises NpuprofError.
        """
        if reference not in self._nested:
            self._nested[reference] = nested = _open_release(
                reference, self.root, self.label, self._revision
            )
            if nested is not None:
                nested.is_proved = True  # the digest of the outermost release covers all its layers
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
        return _build_error(
            what, "It was edited, or merged wrongly; a released version never changes.", requested
        )

    def _list_files(self) -> Iterable[str]:
        return self._copy.names()

    def may_have_policy(self) -> bool:
        """Return False: a policy covers the store that has the release."""
        return False

    def _read_profile(self, name: str, requested: Origin | None) -> Profile:
        read = document.parse_document(
            name, self.cite_file(f"{name}.toml"), self.read_profile_text(name, requested)
        )
        return Profile(read, key=f"{name}@{self.record.commit}", home=self)


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
    """Return the finding for a missing history at the reference that needs it, with the
    alternative.
    """
    hint = (
        f"{finding.hint}; or keep {reference} as files, "
        "in a clone that has it: npuprof source vendor ."
    )
    hint = hint if may_be_kept(reference) else finding.hint
    return place_finding(finding._replace(hint=hint), requested)


def _build_error(what: str, why: str, requested: Origin | None = None) -> NpuprofError:
    return place_error(build_error("NP049", what, why, ADVICE), requested)


def may_be_kept(reference: str) -> bool:
    """Return whether a reference can be vendored: a version number of the same store's preset, not
    a branch.
    """
    name, _, version = reference.partition("@")
    return is_profile_name(name) and parse_version_request(version) is not None


def _open_release(
    reference: str, store: str, shown: str, revision: Revision | None
) -> KeptRelease | None:
    if not may_be_kept(reference):
        return None
    place = f"{RELEASED}/{reference}"
    folder, cited = (f"{store}/{place}" if store else place), f"{shown}/{place}"
    if revision is None and not os.path.lexists(folder):
        return None
    raw = VendoredCopy(folder, revision).read_unproven(RECORD)
    if revision is None and not os.path.realpath(folder).startswith(
        os.path.realpath(store) + os.sep
    ):
        raise _build_error(
            f"{cited} leads out of the store",
            "Vendored files are in every clone, and nothing else is read.",
        )
    if raw is None and revision is not None:
        return None
    match = re.fullmatch(
        _RECORD, (raw or b"").decode(errors="replace").replace("\r\n", "\n"), re.ASCII
    )
    name, _, wanted = reference.partition("@")
    request, number = parse_version_request(wanted), parse_version_text(match[2]) if match else None
    if (
        match is None
        or match[1] != name
        or request is None
        or number is None
        or not request.accepts(number)
    ):
        what = f"{cited}/{RECORD} does not say which release of {name} was kept for {reference}"
        raise _build_error(what, "It was edited, or merged wrongly.")
    return KeptRelease(
        folder, cited, KeptRecord(match[1], match[2], match[3], match[4], int(match[5])), revision
    )


def list_kept_references(home: Folder) -> list[str]:
    """Return the references with vendored releases, by folder, sorted, without following links."""
    top = os.path.join(home.root, RELEASED)
    references: list[str] = []
    if os.path.islink(top):
        return references
    for folder, below, _ in os.walk(top):
        place = os.path.relpath(folder, top)
        if "@" in os.path.basename(folder) and may_be_kept(place):
            references.append(place)
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
