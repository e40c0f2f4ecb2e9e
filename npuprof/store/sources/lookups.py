"""What a preset refers to, seen from its store: parents, released versions, sources, and policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from npuprof.document.profile import REQUESTED, Profile, Yank
from npuprof.model import (
    TYPE_CHECKING,
    Axes,
    Finding,
    NpuprofError,
    Origin,
    Place,
    Record,
    build_error,
)
from npuprof.resolve.digests import COMPARED_FORMS, compute_preset_digest
from npuprof.resolve.lineages import Lineages
from npuprof.store import RELEASED, is_source_reference, read_revision, strip_revision
from npuprof.store.base import CachedStore, ComposedParts
from npuprof.store.enclosing_repository import has_release_tags
from npuprof.store.folder import Folder
from npuprof.store.problems import place_error
from npuprof.store.sources.vendored_releases import (
    KeptRelease,
    advise_keeping,
    build_idle_finding,
    find_nested_release,
    list_kept_references,
    may_be_kept,
    open_kept_release,
)
from npuprof.store.versions import parse_version_request, parse_version_text

if TYPE_CHECKING:
    from npuprof.document.policy import Policy
    from npuprof.document.profile import ProfileSource
    from npuprof.store.gitstore.revisions import Pin, Revision
    from npuprof.store.project import Project
    from npuprof.store.sources.opening import Sources
    from npuprof.store.sources.stores import SourceStore
    from npuprof.store.versions import Version


class PinnedProfile(Record):
    """A profile at a revision, its label ``bert@1.2.0`` or ``bert@abc1234``, and its yank, if any.

    ``version`` and ``commit`` are the target of the reference; the version is empty if it is not
    one. ``outdated`` describes a different vendored release for the reference; an empty string if
    there is none.
    """

    profile: Profile
    label: str
    version: str
    commit: str
    yanked: Yank | None = None
    outdated: str = ""


class Lookups:
    """Looks up what presets refer to, and caches sources, policies and vendored releases by store.

    A workspace owns one.
    """

    def __init__(self) -> None:
        self._sources: dict[ProfileSource, Sources] = {}
        self._policies: dict[ProfileSource, Policy | None] = {}
        self._kept: dict[tuple[ProfileSource, str], KeptRelease | None] = {}
        self._changed: dict[tuple[str, str], bool] = {}

    def find_parent(self, reference: str, referrer: Profile | None, index: int) -> Profile:
        """Return the profile of another one's reference, seen from that one's store or revision.

        Raises NpuprofError.
        """
        assert referrer is not None, "a parent is a preset that another extends"
        assert referrer.home is not None, "it was read from a store"
        return self.find_parent_from(referrer.home, reference, referrer, index)

    def find_parent_from(
        self, home: ProfileSource, reference: str, referrer: Profile | None, index: int
    ) -> Profile:
        """Return the profile of a reference, looked up in a store, its history or its sources.

        Raises NpuprofError.
        """
        requested = referrer.origin("profile", "extends", index) if referrer else None
        # a store made of parts looks names up in each of them
        if home.parts or not ("@" in reference or is_source_reference(reference)):
            return home.profile(reference, requested)
        if is_source_reference(reference):
            return self.find_source_profile(home, reference, requested, referrer)
        if (own := home.find_own_parent(reference, requested)) is not None:
            return own
        pin = self.load_profile_at_revision(home, reference, requested)
        if pin.yanked and referrer is not None:
            referrer.yanked[reference] = pin.yanked
        if pin.outdated and referrer is not None:
            referrer.outdated[reference] = pin.outdated
        return pin.profile

    def find_source_profile(
        self,
        home: ProfileSource,
        reference: str,
        requested: Origin | None = None,
        referrer: Profile | None = None,
    ) -> Profile:
        """Return the profile of ``SOURCE:NAME[@VERSION]``, seen from a store.

        Raises NpuprofError.
        """
        store = self.find_source_store(home, reference, requested)
        name = strip_revision(reference.partition(":")[2])
        # a cached text was compared with its tag when it was cached
        if not store.has_text(name) and store.released:
            self.require_unchanged(store.revision, store.released, requested)
        profile = store.profile(name, requested)
        if store.yanked:
            yank = Yank(store.yanked, store.advise_yanked(reference))
            if referrer is not None:
                referrer.yanked[reference] = yank
            else:
                profile.yanked[REQUESTED] = yank
        return profile

    def find_source_store(
        self, home: ProfileSource, reference: str, requested: Origin | None = None
    ) -> SourceStore:
        """Return the store of ``SOURCE:NAME[@VERSION]``, seen from another.

        Raises NpuprofError, also (NP044) if a preset of the store ``requested`` a version range
        that the lock does not record.
        """
        source, _, name = reference.partition(":")
        store = self.open_source(home, source, requested)
        if "@" not in name:
            return store
        text = read_revision(name)
        is_range = parse_version_request(text) is not None and parse_version_text(text) is None
        is_unlocked = is_range and name not in store.locked.versions
        if (
            is_unlocked
            and not self.find_sources(home).label
            and requested is not None
            and isinstance(home, CachedStore)
            and requested.profile in home.names()
        ):
            what = f"npuprof.lock is out of date: it does not say which version {reference} is"
            why = "Another clone, or a later day, may have another one."
            hint = f"write it down: npuprof source update {source}"
            raise place_error(build_error("NP044", what, why, hint), requested)
        return store.find_version(name, requested)

    def open_source(
        self, home: ProfileSource, name: str, requested: Origin | None = None
    ) -> SourceStore:
        """Return the store of a source, or of a source's own source (``team/core``), as locked.

        Raises NpuprofError.
        """
        sources = self.find_sources(home)
        *above, last = name.split("/")
        for part in above:
            # by the lock of the source above, which its owners released, not by this repository's
            sources = self.find_sources(sources.open_source(part, requested))
        return sources.open_source(last, requested)

    def find_sources(self, home: ProfileSource) -> Sources:
        """Return the sources of a store, cached.

        Raises NpuprofError if npuprof.toml or the lock is invalid.
        """
        if home not in self._sources:
            from npuprof.store.sources.opening import read_sources

            self._sources[home] = read_sources(home)
        return self._sources[home]

    def use_sources(self, home: ProfileSource, sources: Sources) -> None:
        """Use these sources for a store instead of its own."""
        self._sources[home] = sources

    def find_edited_copies(self, home: ProfileSource) -> list[Finding]:
        """Return manual edits of generated files: the lock of a store, and its vendored copies."""
        faults = []
        sources = self.find_sources(home)
        from npuprof.store.sources.opening import find_copy_faults

        for name, source in sources.project.sources.items():
            if unsealed := sources.find_unsealed(name):
                faults += unsealed
            elif source.vendor and name in sources.lock.sources and sources.open_copy is not None:
                faults += find_copy_faults(sources, name)
        return faults

    def find_policy(self, profile: Profile) -> Policy | None:
        """Return the team policy for a preset, from the tree that it was read from.

        None if there is none. Raises NpuprofError.
        """
        home = profile.home
        if home is None:
            return None
        if not home.parts:
            own = self.load_policy(home)
            return own.select(home.find_plain_name(profile.name)) if own else None
        joined: Policy | None = None
        for part in home.parts.values():
            if policy := self.find_policy(part):
                joined = joined.join(policy) if joined else policy
        return joined

    def load_policy(self, home: ProfileSource) -> Policy | None:
        """Return the policy of a store's tree, cached; None if there is none.

        Own rules replace those with the same code. Raises NpuprofError if npuprof.toml is invalid,
        or a source with applicable rules is missing.
        """
        if home not in self._policies:
            self._policies[home] = self._read_policy(home) if home.may_have_policy() else None
        return self._policies[home]

    def use_policy(self, home: ProfileSource, policy: Policy) -> None:
        """Use this policy for a store, as its own cannot be read completely."""
        self._policies[home] = policy

    def _read_policy(self, home: ProfileSource) -> Policy | None:
        from npuprof.document.policy import Policy

        project = self.find_project(home)
        rules = project.rules
        # a rule with the same code in this repository is the team's own decision
        own = {rule.code for rule in rules}
        for name, source in project.sources.items():
            policy = self.load_policy(self.open_source(home, name)) if source.rules else None
            for rule in policy.rules if policy else ():
                if rule.code not in own and rule not in rules:
                    rules = (*rules, rule)
        has_policy = rules or project.ignores or project.variables
        return Policy(rules, project.ignores, project.variables) if has_policy else None

    def find_project(self, home: ProfileSource) -> Project:
        """Return a store's own npuprof.toml. Raises NpuprofError if it is invalid."""
        return home.project if isinstance(home, Folder) else self.find_sources(home).project

    def find_axes(self, profile: Profile) -> Axes | None:
        """Return the axes declared in the tree that a profile was read from.

        None for a run and a vendored release, which come without npuprof.toml. Raises NpuprofError.
        """
        home = profile.home
        if isinstance(home, (KeptRelease, ComposedParts)):
            return None
        if home is None or (isinstance(home, Folder) and not home.project_file):
            return {}
        return self.find_project(home).axes

    def load_profile_at_revision(
        self, home: ProfileSource, reference: str, requested: Origin | None = None
    ) -> PinnedProfile:
        """Return the profile of ``NAME@REV`` in a store.

        If git does not know it, a vendored release is used. Raises NpuprofError, also if a released
        version differs from its tag.
        """
        if isinstance(home, KeptRelease):
            release = find_nested_release(home, reference, requested)
            return self._pin_kept_release(release, requested)
        has_history = not isinstance(home, Folder) or (
            home.in_work_tree and not home.is_shipped and has_release_tags(home.root)
        )
        kept = self.find_kept_release(home, reference) if not has_history else None
        if kept is not None:
            return self._pin_kept_release(kept, requested)
        try:
            pinned = self._load_profile_from_git(home, reference, requested)
        except NpuprofError as error:
            code = error.findings[0].code
            kept = self.find_kept_release(home, reference)
            if kept is not None and code != "NP028":  # a faulty tag is reported
                return self._pin_kept_release(kept, requested)
            if kept is None and requested is not None and code in ("NP020", "NP021"):
                raise NpuprofError(  # there is no git, or no repository
                    [advise_keeping(finding, reference, requested) for finding in error.findings]
                ) from None
            raise
        if isinstance(home, Folder) and home.keeps_releases:
            with suppress(NpuprofError):  # the store's check reports it; git has the release
                kept = self.find_kept_release(home, reference)
                return pinned._replace(outdated=_describe_other_release(kept, pinned))
        return pinned

    def _pin_kept_release(self, release: KeptRelease, requested: Origin | None) -> PinnedProfile:
        record = release.record
        profile = self.prove_kept_release(release, requested)
        return PinnedProfile(
            profile, f"{record.name}@{record.version}", record.version, record.commit
        )

    def _load_profile_from_git(
        self, home: ProfileSource, reference: str, requested: Origin | None
    ) -> PinnedProfile:
        pin = self.find_pin(home, reference, requested)
        profile = pin.home.profile(pin.name, requested)
        if pin.released:
            self.require_unchanged(pin.home, pin.released, requested)
        yanked = _find_yank(pin, read_revision(reference))
        return PinnedProfile(profile, pin.label, pin.version, pin.commit, yanked)

    def find_pin(self, home: ProfileSource, reference: str, requested: Origin | None) -> Pin:
        """Return the target of ``NAME@REV`` in the history of a store. Raises NpuprofError."""
        from npuprof.store.gitstore.revisions import Revision

        if isinstance(home, Revision):
            return home.pin_parent(reference, requested)
        if not isinstance(home, Folder):
            what = f"{home.label} has no revisions"
            raise build_error(
                "NP021", what, "Revisions are those of a git repository.", "omit the revision"
            )
        return home.repository.find_pin(reference, requested)

    def prove_kept_release(self, release: KeptRelease, requested: Origin | None = None) -> Profile:
        """Return the preset of a vendored release.

        Raises NpuprofError (NP049) if it differs from the released one.
        """
        profile = release.profile(release.record.name, requested)
        if not release.is_proved:
            if self.digest_pinned_profile(profile) != release.record.digest:
                raise release.build_edited_error(requested)
            release.is_proved = True
        return profile

    def require_unchanged(
        self, home: Revision, version: Version, requested: Origin | None = None
    ) -> None:
        """Raise NpuprofError (NP028) if a version's preset digest differs from its tag.

        Do nothing if that is unknown here.
        """
        record = version.record
        if not record.preset_digest or record.form not in COMPARED_FORMS:
            return
        key = home.repository.folder, version.tag
        if key not in self._changed:
            self._changed[key] = False  # for presets that refer to themselves
            with suppress(NpuprofError):  # reported when it is resolved
                digest = self.digest_pinned_profile(home.profile(version.name))
                self._changed[key] = digest != record.preset_digest
        if self._changed[key]:
            what = (
                f"{version.name} {version.number_text} is not the released preset: its preset "
                "digest differs from its tag"
            )
            why = "The tag was moved or written by hand, or its commit was replaced."
            from npuprof.store.gitstore.revisions import advise_refetch

            raise place_error(build_error("NP028", what, why, advise_refetch(version)), requested)

    def digest_pinned_profile(self, profile: Profile) -> str:
        """Return the preset digest of a profile at a revision or in a vendored release.

        Raises NpuprofError.
        """
        return compute_preset_digest(Lineages(self).find_lineage(profile))

    def find_kept_release(self, home: ProfileSource, reference: str) -> KeptRelease | None:
        """Return a store's vendored release for a reference, cached; None if there is none.

        Raises NpuprofError (NP049).
        """
        if (home, reference) not in self._kept:
            self._kept[home, reference] = open_kept_release(home, reference)
        return self._kept[home, reference]

    def find_kept_faults(self, home: Folder) -> Iterator[Finding]:
        """Yield the faults of vendored releases: unused, unreadable, and different ones."""
        pinned: set[str] = set()
        for name in home.names():
            with suppress(NpuprofError):  # reported with the preset
                pinned.update(home.profile(name).extends)
        for reference in list_kept_references(home):
            if reference not in pinned:
                yield build_idle_finding(home, reference)
        for reference in sorted(filter(may_be_kept, pinned)):
            try:
                release = self.find_kept_release(home, reference)
                if release is not None:
                    self.prove_kept_release(release)
            except NpuprofError as error:
                folder = Place(home.cite_file(f"{RELEASED}/{reference}"))
                for finding in error.findings:
                    has_location = finding.where or finding.origin
                    yield finding if has_location else finding._replace(where=folder)


def _describe_other_release(release: KeptRelease | None, pinned: PinnedProfile) -> str:
    """Return the vendored release that differs from git's.

    An empty string if it is equal, or none is needed.
    """
    if release is None:
        return "nothing" if pinned.version else ""
    record = release.record
    if pinned.commit == record.commit and pinned.version == record.version:
        return ""
    return f"{record.version} at {record.commit[:7]}"


def _find_yank(pin: Pin, revision: str) -> Yank | None:
    """Return the yank of a referenced version, of the preset or the whole store.

    None if there is none.
    """
    tags = pin.home.repository
    reason = newest = ""
    if pin.version:
        reason = tags.find_yank(f"{pin.name}/v{pin.version}")
        newest = tags.find_newest_kept(pin.name) if reason else ""
    elif revision.startswith("v"):  # the tag of the whole store
        reason = tags.find_yank(revision)
        number = tags.find_newest_kept("") if reason else ""
        newest = f"v{number}" if number else ""
    if not reason:
        return None
    hint = f'release {pin.name} again, or write "{pin.name}" without a version'
    if newest:
        hint = f'write "{pin.name}@{newest}" in its place'
    return Yank(reason, hint)
