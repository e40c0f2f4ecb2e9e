"""Mirrors of sources in the user's cache, and what is fetched into them. Nothing else of npuprof touches the network.

A mirror is a bare repository. What a remote has now is fetched without a ref that leads to it, and only then becomes what the
mirror knows: its heads and tags. What a lock names is kept under ``refs/npuprof/locked``. A mirror that is damaged is made anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from npuprof.model import Finding, NpuprofError, Record
from npuprof.store.sources.holding import HeldMirror, hold_mirror, is_mirror
from npuprof.store.sources.mirror import LOCKED, find_mirror_folder
from npuprof.store.sources.mirrorgit import MirrorGit
from npuprof.store.sources.mirrorrefs import (
    HEADS,
    TAGS,
    RemoteRefs,
    find_obstacles,
    is_full_id,
    list_refs,
    put_refs,
    read_moved,
    select_below,
    shorten_ids,
    write_refs,
)
from npuprof.store.sources.talking import Selector, Talker, are_whole, holds_whole, list_changed, name_source
from npuprof.store.sources.urls import find_url_fault, hide_credentials
from npuprof.store.versions import YANKED

Answer = TypeVar("Answer")
#: What it may say where the mirror is at fault, and not the remote.
_SUSPECT = re.compile(
    r"corrupt|bad object|missing|unable to (?:read|find|load)|not a git repository|loose object|object file|inflate|packed-refs|"
    r"did not send all necessary|could not (?:read|parse)|bad (?:ref|tree|config)|packfile|index file|broken|is not valid|revision"
)


class Fetched(Record):
    """What a remote has: its tags and heads by name, each with the id of its object, and the commit that it would check out.

    ``moved`` are tags that the mirror knew as something else: name, the commit then, the commit now, which are one
    where a tag records another release; where one is no commit, they are objects. ``remade`` are tags that were made anew and
    are the same versions all the same.
    """

    tags: dict[str, str]
    heads: dict[str, str]
    head: str
    moved: tuple[tuple[str, str, str], ...]
    remade: tuple[str, ...] = ()


def fetch_source(
    url: str,
    progress: bool | None = None,
    accept_moved: bool = False,
    name: str = "",
    select: Selector | None = None,
    remake: bool = False,
) -> Fetched:
    """Bring the mirror of a source up to date, and make it where there is none; return what the remote has.

    Fetched are all refs, or those that ``select`` names and the tags of versions that they lead to. A tag that is another
    object now than the mirror knew stays as it was known, unless ``accept_moved``. How far it is is told on a terminal, or
    as ``progress`` says. With ``remake`` the mirror is made anew. Raises NpuprofError; the mirror is as it was then.
    """
    _refuse_url(url)
    talker = Talker(url, name, progress)

    def fetch_refs(held: HeldMirror) -> Fetched:
        remote, names = talker.fetch_refs(held, select)
        return _take_over(held.open_git(), remote, names, accept_moved)

    return _work_in_mirror(talker, fetch_refs, remake)


def fetch_locked(url: str, commits: Iterable[str], tags: Iterable[str] = (), progress: bool | None = None, name: str = "") -> list[str]:
    """Have commits, by their full ids, in the mirror of a source, whole, and keep them; return those that the remote has no longer.

    Fetched are the commits that are not there, with the ``tags`` that a lock names and those of the versions that they lead
    to, and nothing else unless the remote gives no commit to who asks by its id. The network is touched only for what is not
    there yet. Raises NpuprofError; the mirror is as it was then.
    """
    _refuse_url(url)
    wanted = [commit for commit in dict.fromkeys(commits) if is_full_id(commit)]
    lost = [commit for commit in commits if not is_full_id(commit)]
    talker = Talker(url, name, progress)
    mirror = find_mirror_folder(url)
    if not wanted or (is_mirror(mirror) and _are_kept(MirrorGit(mirror, talker.told), wanted)):
        return lost

    def fetch_commits(held: HeldMirror) -> list[str]:
        git = held.open_git()
        absent = [commit for commit in wanted if not holds_whole(git, commit)]
        gone = [commit for commit in absent if not talker.fetch_commit(held, commit)]
        found = [commit for commit in absent if commit not in gone]
        if found:
            remote = talker.list_remote(held)
            _put_tags(git, remote, talker.fetch_version_tags(held, remote, found, {f"{TAGS}{tag}" for tag in tags}))
        write_refs(git, [f"update {LOCKED}{commit} {commit}" for commit in wanted if commit not in gone])
        return gone

    return [*lost, *_work_in_mirror(talker, fetch_commits)]


def fetch_commit(url: str, commit: str, progress: bool | None = None) -> bool:
    """Have one commit in the mirror of a source, as ``fetch_locked`` does; return whether it is there. Raises NpuprofError."""
    return not fetch_locked(url, [commit], (), progress)


def keep_commit(url: str, commit: str) -> None:
    """Keep a commit of a mirror for ever, whatever its remote does. Raises NpuprofError where it is not there."""
    keep_commits(url, [commit])


def keep_commits(url: str, commits: Iterable[str]) -> None:
    """Keep commits of a mirror for ever, whatever its remote does. Raises NpuprofError where one is not there."""
    told = name_source(url)
    known = list_refs(MirrorGit(find_mirror_folder(url), told))
    missing = [commit for commit in dict.fromkeys(commits) if f"{LOCKED}{commit}" not in known]
    if missing:
        with hold_mirror(url, told) as held:
            write_refs(held.open_git(), [f"update {LOCKED}{commit} {commit}" for commit in missing])


def build_moved_finding(url: str, moved: tuple[tuple[str, str, str], ...]) -> Finding:
    """Return that tags of a source are not what they were."""
    pairs = [(tag, *shorten_ids(before, now)) for tag, before, now in moved[:5]]
    told = "; ".join(
        f"{tag} was {before}, and is {now} now" if before != now else f"{tag} is at {now}, as before, and records another release now"
        for tag, before, now in pairs
    )
    more = f"; and {len(moved) - 5} more" if len(moved) > 5 else ""
    what = f"{'a tag' if len(moved) == 1 else f'{len(moved)} tags'} of {hide_credentials(url)} moved: {told}{more}"
    return Finding("NP046", what, "A tag names a version, and a version never changes.", "ask who keeps the source whether that was meant")


def _refuse_url(url: str) -> None:
    if fault := find_url_fault(url):
        what = f"{hide_credentials(url)!r} is no source: {fault}" if url else f"an empty address is no source: {fault}"
        raise NpuprofError([Finding("NP048", what, "", "ssh://git@host/presets.git, https://host/presets.git, /srv/presets.git")])


# Mirrors that are damaged


def _work_in_mirror(talker: Talker, deed: Callable[[HeldMirror], Answer], remake: bool = False) -> Answer:
    """Do something in a mirror; where that is damaged, in one that is made anew from what can be kept of it. Raises NpuprofError."""
    if not remake:
        try:
            with hold_mirror(talker.url, talker.told) as held:
                return deed(held)
        except NpuprofError as error:
            if not _is_damaged(talker, error):
                raise
    with hold_mirror(talker.url, talker.told, remake=True) as held:
        talker.rescue(held)
        return deed(held)


def _is_damaged(talker: Talker, error: NpuprofError) -> bool:
    """Return whether an error is one of the mirror: it says so, or could be, and the mirror is not whole."""
    finding = error.findings[0]
    if finding.code != "NP045" or not _SUSPECT.search(finding.why):
        return finding.code == "NP054"
    mirror = find_mirror_folder(talker.url)
    words = ("rev-list", "--objects", "--all", "--quiet")
    return is_mirror(mirror) and MirrorGit(mirror, talker.told).try_command(*words).code != 0


def _are_kept(git: MirrorGit, commits: list[str]) -> bool:
    """Return whether commits are kept in a mirror, and all that belongs to them is there."""
    try:
        refs = list_refs(git)
    except NpuprofError as error:
        if error.findings[0].code != "NP054":
            raise
        return False
    return all(f"{LOCKED}{commit}" in refs for commit in commits) and are_whole(git, commits)


# What becomes of what was fetched


def _take_over(git: MirrorGit, remote: RemoteRefs, names: set[str], accept_moved: bool) -> Fetched:
    """Let the mirror know what was fetched; return what the remote has. Raises NpuprofError."""
    known = list_refs(git)
    heads, tags, known_tags = select_below(remote.refs, HEADS), select_below(remote.refs, TAGS), select_below(known, TAGS)
    changed = [name.removeprefix(TAGS) for name in sorted(list_changed(known, remote))]
    moved = read_moved(git, changed, known_tags, tags) if changed else ()
    gone = [f"{HEADS}{name}" for name in select_below(known, HEADS) if name not in heads]
    gone += [f"{TAGS}{name}" for name in {*find_obstacles(known_tags, tags), *_list_unyanked(known_tags, tags)}]
    kept = {f"{TAGS}{name}" for name, _, _ in moved} if not accept_moved else set()
    written = {name: remote.refs[name] for name in names - kept if name != "HEAD" and known.get(name) != remote.refs[name]}
    put_refs(git, known, written, gone)
    return Fetched(tags, heads, remote.refs.get("HEAD", ""), moved, tuple(set(changed).difference(tag for tag, _, _ in moved)))


def _list_unyanked(known: Iterable[str], tags: Iterable[str]) -> set[str]:
    """Return the tags that say of a version that it was yanked, which a mirror knows and its remote has taken back."""
    return {name for name in known if name.endswith(YANKED)}.difference(tags)


def _put_tags(git: MirrorGit, remote: RemoteRefs, tags: dict[str, str]) -> None:
    """Let the mirror know tags beside those that it knows, without the yanks that were taken back. Raises NpuprofError."""
    known = list_refs(git)
    known_tags = {name: oid for name, oid in known.items() if name.startswith(TAGS)}
    gone = {*find_obstacles(known_tags, tags), *_list_unyanked(known_tags, remote.refs)}
    put_refs(git, known, {name: oid for name, oid in tags.items() if name not in known}, gone)
