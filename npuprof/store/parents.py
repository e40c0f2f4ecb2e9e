"""Resolves references seen from a store: to its own presets, its history, or another repository."""

from __future__ import annotations

from npuprof.document.profile import ASKED, Profile, Yank
from npuprof.model import Finding, NpuprofError, Origin, Record
from npuprof.resolve.digests import FORM, compute_preset_digest
from npuprof.resolve.lineages import Lineages
from npuprof.store import BUILTIN, is_source_reference
from npuprof.store.folder import Folder, find_extended_profile
from npuprof.store.problems import place_finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import ProfileSource
    from npuprof.store.gitstore.revisions import Pin, Revision
    from npuprof.store.kept import KeptRelease
    from npuprof.store.versions import Version


class PinnedProfile(Record):
    """A profile at a revision, its display name, ``bert@1.2.0`` or ``bert@abc1234``, and its yank, if any.

    ``version`` and ``commit`` are the target of the reference; the version is empty if it is not one. ``outdated``
    describes a different vendored release for the reference; an empty string if there is none.
    """

    profile: Profile
    label: str
    version: str
    commit: str
    yanked: Yank | None = None
    outdated: str = ""


def find_distant_profile(home: ProfileSource, reference: str, asked: Origin | None, referrer: Profile | None) -> Profile:
    """Return the profile of a reference in ``extends`` to a source or a revision, seen from a store. Raises NpuprofError."""
    if is_source_reference(reference):
        return find_source_profile(home, reference, asked, referrer)
    if find_version := getattr(home, "find_version", None):  # a source's store finds its own versions
        found: Profile = find_version(reference, asked, is_own=True).profile(reference.partition("@")[0], asked)
        return found
    pin = load_profile_at_revision(home, reference, asked)
    if pin.yanked and referrer is not None:
        referrer.yanked[reference] = pin.yanked
    if pin.outdated and referrer is not None:
        referrer.outdated[reference] = pin.outdated
    return pin.profile


def find_source_profile(home: ProfileSource, reference: str, asked: Origin | None = None, referrer: Profile | None = None) -> Profile:
    """Return the profile of ``SOURCE:NAME[@VERSION]``, seen from a store. Raises NpuprofError."""
    from npuprof.store.sources.reading import find_source_store

    store = find_source_store(home, reference, asked)
    name = reference.partition(":")[2].partition("@")[0]
    if not store.has_text(name) and store.released:
        require_unchanged(store.revision, store.released, asked)
    profile = store.profile(name, asked)
    if store.yanked:
        yank = Yank(store.yanked, store.advise_yanked(reference))
        if referrer is not None:
            referrer.yanked[reference] = yank
        else:
            profile.yanked[ASKED] = yank
    return profile


def load_profile_at_revision(home: ProfileSource, reference: str, asked: Origin | None = None) -> PinnedProfile:
    """Return the profile of ``NAME@REV`` in a store.

    If git does not know it, a vendored release is used. Raises NpuprofError, also if a released version differs from its
    tag.
    """
    from contextlib import suppress

    from npuprof.store.around import has_release_tags
    from npuprof.store.kept import KeptRelease, advise_keeping, find_kept_release, find_nested_release, keeps_releases

    if isinstance(home, KeptRelease):
        inner = find_nested_release(home, reference, asked)  # the digest of the outermost release covers all its layers
        return _build_kept(inner, inner.profile(inner.record.name, asked))
    has_history = not isinstance(home, Folder) or (home.in_work_tree and home.label != BUILTIN and has_release_tags(home.root))
    if not has_history and (release := find_kept_release(home, reference)) is not None:
        return _build_kept(release, prove_kept_release(release, asked))
    try:
        pinned = _load_profile_from_git(home, reference, asked)
    except NpuprofError as error:
        release = find_kept_release(home, reference)
        if release is None and asked is not None and error.findings[0].code in ("NP020", "NP021"):
            raise NpuprofError([advise_keeping(finding, reference, asked) for finding in error.findings]) from None
        if release is None or error.findings[0].code == "NP028":
            raise
        return _build_kept(release, prove_kept_release(release, asked))
    if keeps_releases(home):
        with suppress(NpuprofError):  # the store's check reports it; git has the release
            return pinned._replace(outdated=_describe_other_release(find_kept_release(home, reference), pinned))
    return pinned


def _describe_other_release(release: KeptRelease | None, pinned: PinnedProfile) -> str:
    """Return the vendored release that differs from git's; an empty string if it is equal, or none is needed."""
    if release is None:
        return "nothing" if pinned.version else ""
    same = (pinned.commit, pinned.version) == (release.record.commit, release.record.version)
    return "" if same else f"{release.record.version} at {release.record.commit[:7]}"


def _load_profile_from_git(home: ProfileSource, reference: str, asked: Origin | None) -> PinnedProfile:
    from npuprof.store.gitstore.revisions import Revision, find_pin

    pin = home.pin_parent(reference, asked) if isinstance(home, Revision) else find_pin(home, reference, asked)
    profile = pin.home.profile(pin.name, asked)
    if pin.released:
        require_unchanged(pin.home, pin.released, asked)
    yanked = _find_yank(pin, reference.partition("@")[2].strip("\"'"))
    return PinnedProfile(profile, pin.label, pin.version, pin.commit, yanked)


def prove_kept_release(release: KeptRelease, asked: Origin | None = None) -> Profile:
    """Return the preset of a vendored release. Raises NpuprofError (NP049) if it differs from the released one."""
    profile = release.profile(release.record.name, asked)
    if not release.is_proved and release.record.form == FORM:
        if digest_pinned_profile(profile) != release.record.digest:
            raise NpuprofError([release.build_edited_finding(asked)])
        release.is_proved = True
    return profile


def _build_kept(release: KeptRelease, profile: Profile) -> PinnedProfile:
    record = release.record
    return PinnedProfile(profile, f"{record.name}@{record.version}", record.version, record.commit)


def _find_yank(pin: Pin, revision: str) -> Yank | None:
    """Return the yank of a referenced version, of the preset or the whole store; None if there is none."""
    tags = pin.home.repository
    reason = tags.find_yank(f"{pin.name}/v{pin.version}" if pin.version else revision) if pin.version or revision.startswith("v") else ""
    if not reason:
        return None
    newest = tags.find_newest_kept(pin.name if pin.version else "")
    newest = f"v{newest}" if newest and not pin.version else newest
    hint = f'write "{pin.name}@{newest}" in its place' if newest else f'release {pin.name} again, or write "{pin.name}" without a version'
    return Yank(reason, hint)


def require_unchanged(home: Revision, version: Version, asked: Origin | None = None) -> None:
    """Raise NpuprofError (NP028) if a version's preset digest differs from its tag; do nothing if that is unknown here."""
    record = version.record
    if not record.preset_digest or record.form != FORM:
        return
    key = f"changed {version.tag}"
    if key not in home.repository.revisions:
        from contextlib import suppress

        home.repository.revisions[key] = False  # for presets that refer to themselves
        with suppress(NpuprofError):  # reported when it is resolved
            home.repository.revisions[key] = digest_pinned_profile(home.profile(version.name)) != record.preset_digest
    if home.repository.revisions[key]:
        from npuprof.store.gitstore.revisions import advise_refetch

        what = f"{version.name} {version.number_text} is not the released preset: its preset digest differs from its tag"
        why = "The tag was moved or written by hand, or its commit was replaced."
        raise NpuprofError([place_finding(Finding("NP028", what, why, advise_refetch(version)), asked)])


def digest_pinned_profile(profile: Profile) -> str:
    """Return the preset digest of a profile at a revision or in a vendored release. Raises NpuprofError."""
    return compute_preset_digest(Lineages(find_parent).find_lineage(profile))


def find_parent(reference: str, referrer: Profile | None, index: int) -> Profile:
    """Return the profile of another one's reference, seen from that one's store or revision. Raises NpuprofError."""
    assert referrer is not None, "a parent is a preset that another extends"
    assert referrer.home is not None, "it was read from a store"
    return find_extended_profile(referrer.home, reference, referrer, index)
