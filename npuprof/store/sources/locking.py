"""Locks a source: selects the commit of its ``rev``, and the commits of referenced versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from npuprof.document import parse_document
from npuprof.document.keys import format_toml_value
from npuprof.document.profile import Profile
from npuprof.model import NpuprofError, Origin, build_error
from npuprof.report.text import count_rest
from npuprof.store.gitstore.revisions import Revision, StoreRepository
from npuprof.store.problems import place_error
from npuprof.store.project import Source
from npuprof.store.sources.fetching import Fetched
from npuprof.store.sources.lock import LockedSource, LockedVersion
from npuprof.store.sources.mirror import build_later_error, name_source_in_error
from npuprof.store.sources.mirrorgit import HEADS, TAGS, is_verified, open_mirror
from npuprof.store.sources.released import (
    cache_released_tags,
    find_named_commit,
    list_released_tags,
    seal_released_tags,
)
from npuprof.store.sources.storedigest import compute_kept_digest
from npuprof.store.versions import (
    YANKED,
    VersionRange,
    VersionText,
    parse_version_range,
    parse_version_text,
)

#: The maximum number of versions in a message.
_SHOWN = 8


def lock_source(
    source: Source,
    fetched: Fetched,
    references: Iterable[str],
    origin: Origin | None,
    known: LockedSource | None,
    find_origin: Callable[[str], Origin | None],
) -> LockedSource:
    """Return the new lock entry of a source.

    ``known`` is the previous entry, ``find_origin`` returns the origin of a reference. Raises
    NpuprofError if nothing satisfies its ``rev``, or its store is missing.
    """
    repository = open_mirror(source.name, source.url, source.path)
    tag, commit = _choose_commit(source, fetched, repository, origin)
    yanked = repository.find_yank(tag) if tag else ""
    digest = compute_kept_digest(repository, source.url, source.path, commit)
    if not digest:
        what = (
            f"the source {source.name!r} has no store in {source.path or 'its top folder'!r} at "
            f"{tag or commit[:7]}"
        )
        hint = "name the folder of its presets with path in npuprof.toml, or with source add --path"
        raise build_error("NP047", what, "", hint, origin)
    versions = {}
    requested = set(references)
    from_presets = list_versioned_references(repository.load_revision(commit))
    for reference in sorted(requested.union(filter(is_own_reference, from_presets))):
        # a reference of the source's own presets; if both have it, the stricter check applies
        is_own = reference not in requested
        try:
            versions[reference] = _pin_version(
                source, fetched, repository, commit, reference, is_own
            )
        except NpuprofError as error:
            before = known.versions.get(reference) if known is not None else None
            if before is not None and _is_deleted(before, reference, fetched, repository):
                versions[reference] = before  # locked versions stay
            elif not is_own:
                raise place_error(error, find_origin(reference)) from None
            # references of the source's own presets are reported when they are read
    tags = list_released_tags(repository, commit, fetched.tags)
    locked = LockedSource(
        source.name,
        source.url,
        source.path,
        source.rev,
        commit,
        digest,
        tag,
        yanked,
        versions,
        releases=seal_released_tags(tags),
    )
    cache_released_tags(locked, tags)
    return locked


def _is_deleted(
    pin: LockedVersion, reference: str, fetched: Fetched, repository: StoreRepository
) -> bool:
    """Return whether the tag of a locked version was deleted, and the mirror has its commit."""
    tag = f"{reference.partition('@')[0]}/v{pin.version}"
    return tag not in fetched.tags and is_verified(repository.git, pin.commit)


def _choose_version(
    known: Mapping[VersionText, str], requested: VersionRange, tags: Collection[str]
) -> str:
    """Return the tag of the newest version in a range, a yanked one only if all are.

    An empty string if there is none.
    """
    accepted = [version for version in known if requested.accepts(version)]
    unyanked = [version for version in accepted if f"{known[version]}{YANKED}" not in tags]
    return known[max(unyanked or accepted)] if accepted else ""


def _choose_commit(
    source: Source, fetched: Fetched, repository: StoreRepository, origin: Origin | None
) -> tuple[str, str]:
    """Return the tag, if it is a store version, and the commit of a source's ``rev``."""
    requested = parse_version_range(source.rev)
    known = list_store_versions(fetched.tags)
    why = ""
    if requested is not None:
        if tag := _choose_version(known, requested, fetched.tags):
            return tag, repository.resolve_commit(f"{TAGS}{tag}")
        why = "A range counts the tags vX.Y.Z of the whole store; npuprof release --all makes them."
    else:
        # a tag is first, as in git; a plain name could also match the mirror's own refs
        for ref in (f"{TAGS}{source.rev}", f"{HEADS}{source.rev}", source.rev):
            name = fetched.head if ref == "HEAD" and fetched.head else ref
            if repository.has_commit(name):
                return "", repository.resolve_commit(name)
    if known:
        shown = [str(version) for version in sorted(known, reverse=True)]
        hint = f"it has the versions {count_rest(shown, _SHOWN)}"
    else:
        branches = count_rest(list(fetched.heads), _SHOWN)
        hint = "it has no commits: push one there first"
        if branches:
            hint = f"it has no versions; name a branch: {branches}"
    what = f"nothing in the source {source.name!r} is {source.rev!r}"
    raise build_error("NP047", what, why, hint, origin)


def list_store_versions(tags: Iterable[str]) -> dict[VersionText, str]:
    """Return the versions of a whole store with their tags ``vX.Y.Z``."""
    named = [tag for tag in tags if tag.startswith("v") and not tag.endswith(YANKED)]
    return {version: tag for tag in named if (version := parse_version_text(tag))}


def advise_store_release(source: Source, fetched: Fetched) -> str:
    """Return how to get a preset release that the newest allowed store release lacks."""
    known = [version for version in list_store_versions(fetched.tags) if not version.pre]
    newest = max(known, default=None)
    accepted = parse_version_range(source.rev)
    # the newest version has the preset only if the range is what excludes it
    if accepted and newest and not accepted.accepts(newest):
        return (
            f"widen rev = {format_toml_value(source.rev)} in npuprof.toml: it excludes {newest}, "
            "the newest release of the store"
        )
    # ls-remote lists the commit of HEAD, but not the name of its branch
    branch = next((name for name, oid in fetched.heads.items() if oid == fetched.head), "main")
    ways = (
        "ask its owners for npuprof release --all, or follow a branch in npuprof.toml: rev = "
        f"{format_toml_value(branch)}"
    )
    return f"a range takes only releases of the whole store: {ways}"


def suggest_range(fetched: Fetched) -> str:
    """Return the default ``rev`` for a new source.

    That is a range compatible with its newest version, else its default branch.
    """
    known = [version for version in list_store_versions(fetched.tags) if not version.pre]
    if not known:
        return "HEAD"
    major, minor, _ = max(known).number
    return f"^{major}.{minor}"


def _pin_version(
    source: Source,
    fetched: Fetched,
    repository: StoreRepository,
    commit: str,
    reference: str,
    is_own: bool,
) -> LockedVersion:
    name, _, revision = reference.partition("@")
    # a mirror has no HEAD: it is the locked commit
    is_head = revision.startswith(("HEAD", "@"))
    named = find_named_commit(repository, commit, revision) if is_head else ""
    if named:
        return LockedVersion("-", named)
    try:
        resolved = repository.resolve_revision(name, revision, at=commit)
    except NpuprofError as error:
        raise name_source_in_error(error, source.name) from None
    version = resolved.version
    if version is None:
        return LockedVersion("-", resolved.commit)
    if not is_own and not repository.is_version_reachable(name, version.text, commit):
        hint = "name a version that the locked commit has"
        if parse_version_range(source.rev):
            hint = advise_store_release(source, fetched)
        raise build_later_error(source.name, reference, resolved.label, hint)
    yanked = repository.find_yank(f"{name}/v{version.number_text}")
    return LockedVersion(version.number_text, resolved.commit, yanked)


def list_unreadable(locked: LockedSource) -> list[str]:
    """Return the unreadable presets of a source, with reasons.

    Their links leave its store or are dangling. Raises NpuprofError.
    """
    revision = open_mirror(locked.name, locked.url, locked.path).load_revision(locked.commit)
    faults = []
    for name, file in revision.files.items():
        # other files are readable in a complete mirror
        if not file.is_link:
            continue
        try:
            revision.read_profile_text(name)
        except NpuprofError as error:
            faults.append(f"{locked.name}:{name} cannot be read: {error.findings[0].message}")
    return faults


def is_own_reference(reference: str) -> bool:
    """Return whether a reference names a preset of the same store at a version or revision."""
    name, at, _ = reference.partition("@")
    return bool(at) and ":" not in name


def is_own_name(reference: str) -> bool:
    """Return whether a reference names a preset of the same store at the same commit."""
    return "@" not in reference and ":" not in reference


def list_versioned_references(revision: Revision) -> set[str]:
    """Return the references with an @ in a store's readable presets. Raises NpuprofError."""
    names = revision.names()
    revision.load_texts(names)
    references: set[str] = set()
    for name in names:
        with suppress(NpuprofError):  # reported when the preset is read
            raw = revision.read_profile_text(name)
            if b"@" in raw or b"\\u" in raw or b"\\x" in raw.lower():  # an @ may be escaped
                profile = Profile(parse_document(name, name, raw))
                references.update(parent for parent in profile.extends if "@" in parent)
    return references
