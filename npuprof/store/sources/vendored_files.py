"""Collects the files of vendored releases: released versions that presets of a store extend."""

from __future__ import annotations

from npuprof.document.profile import Profile, ProfileSource
from npuprof.model import Finding, Origin, raise_any
from npuprof.report.isolating import collect_errors
from npuprof.store import RELEASED, is_source_reference, strip_revision
from npuprof.store.folder import Folder
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.sources.lookups import Lookups
from npuprof.store.sources.vendored_releases import RECORD, KeptRecord, KeptRelease, may_be_kept


class KeptFiles:
    """The files of the folder of vendored releases, by path.

    ``references`` maps the vendored references to their targets. ``passed_over`` are references
    that are not released versions: a branch may move.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.references: dict[str, str] = {}
        self.passed_over: dict[str, None] = {}
        self._problems: list[Finding] = []
        self._lookups = Lookups()

    def add_store(self, home: Folder) -> None:
        """Add all released versions that presets of a store extend.

        Raises NpuprofError for an unresolvable reference.
        """
        for name in home.names():
            with collect_errors(self._problems):
                for reference, requested in home.profile(name).iterate_references():
                    is_known = reference in self.references
                    if "@" in reference and not is_source_reference(reference) and not is_known:
                        self._add_release(home, reference, requested, "")
        raise_any(self._problems)

    def _add_release(
        self, home: ProfileSource, reference: str, requested: Origin | None, parent_folder: str
    ) -> None:
        with collect_errors(self._problems):
            pinned = self._lookups.load_profile_at_revision(home, reference, requested)
            # a branch would be another preset tomorrow, and is reported instead
            if not pinned.version or not may_be_kept(reference):
                self.passed_over[reference] = None
                return
            name, folder = strip_revision(reference), f"{parent_folder}{reference}/"
            digest = self._lookups.digest_pinned_profile(pinned.profile)
            record = KeptRecord(name, pinned.version, pinned.commit, digest, pinned.profile.form)
            self.files[f"{folder}{RECORD}"] = str(record).encode()
            if not parent_folder:
                self.references[reference] = pinned.version
            self._add_preset(pinned.profile, folder)

    def _add_preset(self, profile: Profile, folder: str) -> None:
        path = f"{folder}{profile.name}.toml"
        if path in self.files:
            return
        home = profile.home
        assert isinstance(home, (Revision, KeptRelease)), (
            "a released version is read from a commit, or from where it is kept"
        )
        self.files[path] = home.read_profile_text(profile.name)
        for reference, requested in profile.iterate_references():
            if is_source_reference(reference):
                what = (
                    f"{profile.name} extends {reference}, a preset of another repository, so that "
                    "its release cannot be kept"
                )
                why = (
                    "A copy of a source is one folder for all: npuprof source vendor NAME makes it."
                )
                hint = (
                    f"extend {reference} where the release is extended, or release {profile.name} "
                    "without it"
                )
                self._problems.append(Finding("NP940", what, why, hint, requested))
            elif "@" in reference:
                self._add_release(home, reference, requested, f"{folder}{RELEASED}/")
            else:
                self._add_preset(home.profile(reference, requested), folder)
