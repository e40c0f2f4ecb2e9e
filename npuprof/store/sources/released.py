"""The versions of a source's presets at the time of locking.

They resolve ``team:base@1.2.0`` if the lock does not list it.

The tags of a mirror are those at fetch time. The lock records the number of version tags in the
history of the locked commit, and their digest: in creation order, later tags come after them, so
every machine finds the same ones.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from operator import attrgetter

from npuprof.model import NpuprofError, Record, build_error
from npuprof.report.text import count_rest
from npuprof.resolve.digests import digest_bytes
from npuprof.store import strip_revision
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
_COMMIT = re.compile(r"(?P<start>HEAD|@|[0-9a-f]{4,64})(?P<steps>(?:[~^]\d*)*)")
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
    listed = repository.git.run_command("for-each-ref", f"--merged={commit}", form, "refs/tags/")
    dated = []  # plain tuples, as they are sorted
    for line in os.fsdecode(listed).splitlines():
        date, kind, target_kind, oid, tag = line.split(" ", 4)
        # a lightweight tag has no date, and is no release
        if kind != "tag" or target_kind != "commit":
            continue
        if is_version_tag(tag.removesuffix(YANKED)) and (known is None or tag in known):
            dated.append((int(date or "0"), tag, oid))
    return [ReleasedTag(tag, oid) for _, tag, oid in sorted(dated)]


def list_newer_releases(repository: Repository, commit: str, tags: Collection[str]) -> list[str]:
    """Return the newest release of each preset outside a commit's history, as ``base 1.1.0``.

    ``tags`` are those of the source. Yanked versions and pre-releases do not count. Raises
    NpuprofError.
    """
    merged = repository.git.run_command(
        "for-each-ref", f"--merged={commit}", "--format=%(refname:strip=2)", "refs/tags/"
    )
    reached = _find_newest(os.fsdecode(merged).splitlines())
    newest = _find_newest(tag for tag in tags if f"{tag}{YANKED}" not in tags)
    return [
        f"{name} {text}"
        for name, text in sorted(newest.items())
        if name not in reached or reached[name] < text
    ]


def _find_newest(tags: Iterable[str]) -> dict[str, VersionText]:
    """Return the newest version of each preset in tags, without pre-releases."""
    newest: dict[str, VersionText] = {}
    for tag in tags:
        ref = parse_tag_ref(f"refs/tags/{tag}", "")
        if ref is None or ref.text.pre:
            continue
        if ref.name not in newest or newest[ref.name] < ref.text:
            newest[ref.name] = ref.text
    return newest


def seal_released_tags(tags: list[ReleasedTag]) -> str:
    """Return the lock's record of tags: their number and digest."""
    # by name: a recreated tag has another date, possibly with the same commit
    by_name = sorted(tags, key=attrgetter("tag"))
    return f"{len(tags)} sha256:{digest_bytes(_format(by_name))}"


def cache_released_tags(locked: LockedSource, tags: list[ReleasedTag]) -> None:
    """Cache the tags at the time of locking, since later tags may come in between."""
    _open_cache(locked).write_text_once(_name_kept(locked), _format(tags))


def read_cached_tags(locked: LockedSource) -> list[ReleasedTag] | None:
    """Return the cached tags at the time of locking; None if there are none. Needs no git."""
    text = _open_cache(locked).read_text(_name_kept(locked))
    if text is None:
        return None
    pairs = (line.partition(" ") for line in text.decode(errors="surrogateescape").splitlines())
    tags = [ReleasedTag(tag, commit) for commit, _, tag in pairs]
    return tags if seal_released_tags(tags) == locked.releases else None


def load_released_tags(
    locked: LockedSource, open_repository: Callable[[], Repository]
) -> list[ReleasedTag]:
    """Return the tags at the time of locking, from the cache or the mirror.

    Raises NpuprofError if neither has them.
    """
    cached = read_cached_tags(locked)
    if cached is not None:
        return cached
    count = int(locked.releases.partition(" ")[0])
    # oldest first: tags made after the lock come after the first ``count``
    tags = list_released_tags(open_repository(), locked.commit)[:count]
    if seal_released_tags(tags) != locked.releases:
        what = (
            f"the versions of the source {locked.name!r} at the time of locking are not available "
            "here"
        )
        why = (
            "Its version tags are not those that npuprof.lock was written with: some were moved, "
            "deleted, or made with an older date."
        )
        hint = (
            "name a commit after the @, or lock its current state: npuprof source update "
            f"{locked.name}"
        )
        raise build_error("NP044", what, why, hint)
    cache_released_tags(locked, tags)
    return tags


def find_released_version(
    tags: list[ReleasedTag], name: str, revision: str
) -> LockedVersion | None:
    """Return the version of a preset for the text after an @, by the tags at the time of locking.

    None if there is none. A range selects the newest, a yanked one only if all are. The reason of a
    yank is not included.
    """
    known = {released.tag: released.commit for released in tags}
    tag = revision.removeprefix("refs/").removeprefix("tags/")
    if tag in known and tag.startswith(f"{name}/v"):
        revision = tag.rpartition("/")[2]
    request = parse_version_request(revision)
    if request is None:
        return None
    texts = [text for text in _list_numbers(tags, name) if request.accepts(text)]
    if not texts:
        return None
    unyanked = [text for text in texts if f"{name}/v{text}{YANKED}" not in known]
    # a yanked version is better than none: existing references must resolve
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


def find_named_commit(repository: Repository, locked: str, revision: str) -> str:
    """Return the commit of an id, or of HEAD, which is the locked one.

    An empty string outside the locked commit's history.
    """
    match = _COMMIT.fullmatch(revision)
    if match is None:
        return ""
    start = locked if match["start"] in ("HEAD", "@") else match["start"]
    first, named = repository.git.read_objects(
        [f"{start}^{{commit}}", f"{start}^{{commit}}{match['steps']}"]
    )
    if first is None or not first.oid.startswith(start):  # a branch of that name
        return ""
    if named is None or named.type != "commit" or not repository.is_ancestor(first.oid, locked):
        return ""
    return named.oid


def build_unknown_error(source: str, reference: str, tags: list[ReleasedTag]) -> NpuprofError:
    """Return the error for a reference with an @ that a source's lock cannot resolve."""
    name, first = strip_revision(reference), source.partition("/")[0]
    numbers = [str(text) for text in sorted(_list_numbers(tags, name), reverse=True)]
    what = f"{source}:{reference} is neither a version nor a commit that the lock of {source} knows"
    why = "A source is read as of its locked commit; branches and later releases are not available."
    hint = f"released are {count_rest(numbers, _SHOWN)}" if numbers else "omit the @"
    return build_error(
        "NP047", what, why, f"{hint}; npuprof source update {first} locks the newer version"
    )


def _list_numbers(tags: list[ReleasedTag], name: str) -> list[VersionText]:
    numbers = []
    for released in tags:
        preset, _, number = released.tag.rpartition("/v")
        text = parse_version_text(number) if preset == name else None
        if text is not None:
            numbers.append(text)
    return numbers


def _open_cache(locked: LockedSource) -> TextCache:
    return TextCache(locked.url, locked.path, locked.commit)


def _name_kept(locked: LockedSource) -> str:
    _, _, digest = locked.releases.rpartition(":")
    return f"{_KEPT}.{digest[:16]}"


def _format(tags: list[ReleasedTag]) -> bytes:
    lines = [f"{released.commit} {released.tag}\n" for released in tags]
    return "".join(lines).encode(errors="surrogateescape")
