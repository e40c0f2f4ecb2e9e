"""The versions of a source's presets at the time of locking, to resolve ``team:base@1.2.0`` if the
lock does not list it.

The tags of a mirror are those at fetch time. The lock records the number of version tags in the
history of the locked commit, and their digest: in creation order, later tags come after them, so
every machine finds the same ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable

from npuprof.model import NpuprofError, Record, build_error
from npuprof.report.text import count_rest
from npuprof.resolve.digests import digest_bytes
from npuprof.store.gitstore.repository import Repository
from npuprof.store.sources.lock import LockedSource, LockedVersion
from npuprof.store.sources.mirror import TextCache
from npuprof.store.versions import (
    YANKED,
    VersionText,
    is_version_tag,
    parse_tag_ref,
    parse_version_request,
    parse_version_text,
)

#: The name of the cached tags, next to the texts of a commit: no preset can have it.
_KEPT = ".releases"
#: A user's commit: an id, or the locked one, followed by steps back.
_COMMIT = re.compile(r"(HEAD|@|[0-9a-f]{4,64})((?:[~^]\d*)*)")
_SHOWN = 8  # versions in a message


class ReleasedTag(Record):
    """An annotated tag of a version or yank, and its commit."""

    tag: str
    commit: str


def list_released_tags(
    repository: Repository, commit: str, known: Collection[str] | None = None
) -> list[ReleasedTag]:
    """Return the version tags in the history of a commit, oldest first; ``known`` limits them.

    Raises NpuprofError.
    """
    form = (
        "--format=%(taggerdate:unix) %(objecttype) %(*objecttype) %(*objectname) %(refname:strip=2)"
    )
    listed = os.fsdecode(
        repository.git.run_command("for-each-ref", f"--merged={commit}", form, "refs/tags/")
    )
    rows = (line.split(" ", 4) for line in listed.splitlines())
    dated = [
        (int(date or "0"), tag, oid)
        for date, kind, inner, oid, tag in rows
        if (kind, inner) == ("tag", "commit")
        and is_version_tag(tag.removesuffix(YANKED))
        and (known is None or tag in known)
    ]
    return [ReleasedTag(tag, oid) for _, tag, oid in sorted(dated)]


def list_newer_releases(repository: Repository, commit: str, tags: Collection[str]) -> list[str]:
    """Return preset releases of a source outside a commit's history, as ``base 1.1.0``: the newest
    of each preset.

    ``tags`` are those of the source. Yanked versions and pre-releases do not count. Raises
    NpuprofError.
    """
    merged = os.fsdecode(
        repository.git.run_command(
            "for-each-ref", f"--merged={commit}", "--format=%(refname:strip=2)", "refs/tags/"
        )
    )
    reached = _find_newest(merged.splitlines())
    newest = _find_newest(tag for tag in tags if f"{tag}{YANKED}" not in tags)
    return [
        f"{name} {text}"
        for name, text in sorted(newest.items())
        if name not in reached or reached[name] < text
    ]


def _find_newest(tags: Iterable[str]) -> dict[str, VersionText]:
    """Return the newest version of each preset in tags, without pre-releases."""
    refs = sorted(
        filter(None, (parse_tag_ref(f"refs/tags/{tag}", "") for tag in tags)),
        key=lambda ref: ref.sort_key,
    )
    return {ref.name: ref.text for ref in refs if not ref.text.pre}


def seal_released_tags(tags: list[ReleasedTag]) -> str:
    """Return the lock's record of tags: their number and digest."""
    in_order = sorted(
        tags, key=lambda released: released.tag
    )  # a recreated tag has another date, possibly with the same commit
    return f"{len(tags)} sha256:{digest_bytes(_format(in_order))}"


def keep_released_tags(locked: LockedSource, tags: list[ReleasedTag]) -> None:
    """Cache the tags at the time of locking, since later tags may come in between."""
    _open_cache(locked).write_text_once(_name_kept(locked), _format(tags))


def read_kept_tags(locked: LockedSource) -> list[ReleasedTag] | None:
    """Return the cached tags at the time of locking; None if there are none. Needs no git."""
    text = _open_cache(locked).read_text(_name_kept(locked))
    return (
        tags
        if text is not None and seal_released_tags(tags := _parse(text)) == locked.releases
        else None
    )


def load_released_tags(
    locked: LockedSource, open_repository: Callable[[], Repository]
) -> list[ReleasedTag]:
    """Return the tags at the time of locking, from the cache or the mirror.

    Raises NpuprofError if neither has them.
    """
    if (cached := read_kept_tags(locked)) is not None:
        return cached
    count = int(locked.releases.partition(" ")[0])
    tags = list_released_tags(open_repository(), locked.commit)[:count]
    if seal_released_tags(tags) != locked.releases:
        what = (
            f"the versions of the source {locked.name!r} at "
            "the time of locking are not available here"
        )
        why = (
            "Its version tags are not those that npuprof.lock was written with: some were moved, "
            "deleted, or made with an older date."
        )
        hint = (
            "name a commit after the @, or lock its current "
            f"state: npuprof source update {locked.name}"
        )
        raise build_error("NP044", what, why, hint)
    keep_released_tags(locked, tags)
    return tags


def find_released_version(tags: list[ReleasedTag], name: str, wanted: str) -> LockedVersion | None:
    """Return the version of a preset for the text after an @, by the tags at the time of locking.

    None if there is none.

    A range selects the newest, a yanked one only if all are. The reason of a yank is not included.
    """
    known = {released.tag: released.commit for released in tags}
    if (tag := wanted.removeprefix("refs/").removeprefix("tags/")) in known and tag.startswith(
        f"{name}/v"
    ):
        wanted = tag.rpartition("/")[2]
    request = parse_version_request(wanted)
    if request is None:
        return None
    texts = [text for text in _list_numbers(tags, name) if request.accepts(text)]
    unyanked = [text for text in texts if f"{name}/v{text}{YANKED}" not in known]
    if not texts:
        return None
    best = max(unyanked or texts)
    return LockedVersion(str(best), known[f"{name}/v{best}"])


def find_newest_kept(tags: list[ReleasedTag], name: str) -> str:
    """Return the newest version of a preset not yanked at the time of locking.

    An empty string for none.
    """
    known = {released.tag for released in tags}
    texts = [
        text
        for text in _list_numbers(tags, name)
        if not text.pre and f"{name}/v{text}{YANKED}" not in known
    ]
    return str(max(texts)) if texts else ""


def find_named_commit(repository: Repository, locked: str, wanted: str) -> str:
    """Return the commit of an id, or of HEAD, which is the locked one.

    An empty string outside the locked commit's history.
    """
    match = _COMMIT.fullmatch(wanted)
    if match is None:
        return ""
    start = locked if match[1] in ("HEAD", "@") else match[1]
    first, named = repository.git.read_objects(
        [f"{start}^{{commit}}", f"{start}^{{commit}}{match[2]}"]
    )
    is_named = (
        first is not None
        and first.oid.startswith(start)
        and repository.is_ancestor(first.oid, locked)
    )  # not a branch of that name
    return named.oid if is_named and named is not None and named.type == "commit" else ""


def build_unknown_error(source: str, reference: str, tags: list[ReleasedTag]) -> NpuprofError:
    """Return the error for a reference with an @ that a source's lock cannot resolve."""
    name, first = reference.partition("@")[0], source.partition("/")[0]
    numbers = [str(text) for text in sorted(_list_numbers(tags, name), reverse=True)]
    what = f"{source}:{reference} is neither a version nor a commit that the lock of {source} knows"
    why = "A source is read as of its locked commit; branches and later releases are not available."
    hint = f"released are {count_rest(numbers, _SHOWN)}" if numbers else "omit the @"
    return build_error(
        "NP047", what, why, f"{hint}; npuprof source update {first} locks the newer version"
    )


def _list_numbers(tags: list[ReleasedTag], name: str) -> list[VersionText]:
    pairs = (released.tag.rpartition("/v")[::2] for released in tags)
    return [
        text
        for preset, number in pairs
        if preset == name and (text := parse_version_text(number)) is not None
    ]


def _open_cache(locked: LockedSource) -> TextCache:
    return TextCache(locked.url, locked.path, locked.commit)


def _name_kept(locked: LockedSource) -> str:
    return f"{_KEPT}.{locked.releases.rpartition(':')[2][:16]}"


def _format(tags: list[ReleasedTag]) -> bytes:
    return "".join(f"{released.commit} {released.tag}\n" for released in tags).encode(
        errors="surrogateescape"
    )


def _parse(text: bytes) -> list[ReleasedTag]:
    pairs = (line.partition(" ") for line in text.decode(errors="surrogateescape").splitlines())
    return [ReleasedTag(tag, commit) for commit, _, tag in pairs]
