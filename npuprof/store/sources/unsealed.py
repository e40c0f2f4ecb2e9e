"""Entries of a lock without seals: compared with what the mirror has, as npuprof cannot know its own hand in them.

An older npuprof wrote none, and somebody with an editor may have taken them out, to write what is not so.
"""

from __future__ import annotations

from npuprof.resolve.digests import load_sha256
from npuprof.store.sources.lock import LockedSource, LockedVersion, format_lock
from npuprof.store.sources.mirror import TextCache, open_mirror, require_commit
from npuprof.store.sources.released import find_named_commit, find_released_version, load_released_tags
from npuprof.store.versions import parse_version_request, parse_version_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.repository import Repository

#: Says, beside the texts of a commit, that an entry was compared; no preset can be called so.
_KEPT = ".compared"


def find_unborne_claim(name: str, locked: LockedSource) -> str:
    """Return what an entry without seals says that the mirror of its source does not bear out; an empty text where it bears out all.

    Raises NpuprofError where the mirror is not here.
    """
    cache = TextCache(locked.url, locked.path, locked.commit)
    mark = f"{_KEPT}.{load_sha256()(format_lock({locked.name: locked}).encode(errors='surrogateescape')).hexdigest()[:16]}"
    if cache.read_text(mark) is not None:
        return ""
    mirror = open_mirror(name, locked.url, locked.path)
    require_commit(mirror, name, locked.commit)
    found = _find_claim(mirror, locked)
    if not found:
        cache.keep_text(mark, b"")
    return found


def list_unseen_tags(locked: LockedSource, mirror: Repository) -> set[str]:
    """Return the tags that an entry without seals names and a mirror lacks. Raises NpuprofError."""
    tags = sorted(_list_tags(locked))
    found = mirror.git.read_objects([f"refs/tags/{tag}" for tag in tags])
    return {tag for tag, one in zip(tags, found, strict=True) if one is None}


def _list_tags(locked: LockedSource) -> dict[str, str]:
    """Return the tags of versions that an entry names, each with the commit that it says."""
    found = {locked.tag: locked.commit} if locked.tag else {}
    pins = locked.versions.items()
    return found | {f"{reference.partition('@')[0]}/v{pin.version}": pin.commit for reference, pin in pins if pin.version != "-"}


def _find_claim(mirror: Repository, locked: LockedSource) -> str:
    tags = _list_tags(locked)
    named = dict(zip(tags, mirror.git.read_objects([f"refs/tags/{tag}^{{commit}}" for tag in tags]), strict=True))
    there = {tag: one.oid for tag, one in named.items() if one is not None}
    if locked.tag and there.get(locked.tag) != locked.commit:
        return f"{locked.tag} is {locked.commit[:12]}"
    for reference, pin in locked.versions.items():
        if not _is_borne(mirror, locked, reference, pin, there):
            return f"{reference} is {pin.version if pin.version != '-' else 'no version'}, at {pin.commit[:12]}"
    return ""


def _is_borne(mirror: Repository, locked: LockedSource, reference: str, pin: LockedVersion, tags: dict[str, str]) -> bool:
    """Return whether the mirror bears out what a lock says of a reference; of a branch nobody can know where it was."""
    name, _, wanted = reference.partition("@")
    wanted = wanted.strip("\"'")
    if pin.version == "-":
        tag = mirror.git.read_objects([f"refs/tags/{wanted.removeprefix('refs/tags/')}^{{commit}}"])[0]
        return pin.commit in (tag.oid if tag is not None else "", find_named_commit(mirror, locked.commit, wanted))
    request, number = parse_version_request(wanted), parse_version_text(pin.version)
    if tags.get(f"{name}/v{pin.version}") != pin.commit or number is None:
        return False
    if request is None:
        return wanted.removeprefix("refs/").removeprefix("tags/") == f"{name}/v{pin.version}"
    if request.is_range and locked.releases:
        best = find_released_version(load_released_tags(locked, lambda: mirror), name, wanted)
        return best is not None and (best.version, best.commit) == (pin.version, pin.commit)
    return request.accepts(number)
