"""Mirrors of sources in the user's cache, and what is fetched into them. Nothing else of npuprof touches the network.

A mirror is a bare repository. What a remote has now is fetched without a ref that leads to it, and only then becomes what the
mirror knows: its heads and tags. What a lock names is kept under ``refs/npuprof/locked``. A mirror that is damaged is made anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from npuprof.model import Finding, NpuprofError, Record
from npuprof.store.sources.failures import build_failure, build_fetch_error
from npuprof.store.sources.mirror import LOCKED, find_mirror_folder
from npuprof.store.sources.mirrorgit import (
    HEADS,
    TAGS,
    HeldMirror,
    MirrorGit,
    RemoteRefs,
    find_obstacles,
    hold_mirror,
    is_full_id,
    is_mirror,
    list_refs,
    put_refs,
    read_moved,
    select_below,
    shorten_ids,
    write_refs,
)
from npuprof.store.sources.transport import LEAST_SPEED, HangingError, Line, Talk
from npuprof.store.sources.urls import find_url_fault, hide_credentials
from npuprof.store.versions import YANKED
from npuprof.system.patterns import lazy_pattern

Answer = TypeVar("Answer")

#: What it may say where the mirror is at fault, and not the remote.
_SUSPECT = lazy_pattern(
    r"corrupt|bad object|missing|unable to (?:read|find|load)|not a git repository|loose object|object file|inflate|packed-refs|"
    r"did not send all necessary|could not (?:read|parse)|bad (?:ref|tree|config)|packfile|index file|broken|is not valid|revision"
)

#: Names the refs that are wanted among those of a remote; None: all of them.
Selector = Callable[[RemoteRefs], set[str] | None]

#: Seconds after which a remote that gives no sign of life is given up, unless ``$NPUPROF_TIMEOUT`` says otherwise.
TIMEOUT = 60.0

_SHOWN = 5  # refs that a message names

#: What git says of an id that the remote does not have.
_GONE = lazy_pattern(r"not our ref|no such remote ref|couldn't find remote ref")

#: And of one that the remote gives to nobody who asks by it.
_CLOSED = lazy_pattern(r"unadvertised object|want \S+ not valid")

#: And of an object that its own check refuses.
_REFUSED = lazy_pattern(r"fsck error|object fails fsck|error in object")


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


def fetch_source(url: str, accept_moved: bool = False, name: str = "", select: Selector | None = None, remake: bool = False) -> Fetched:
    """Bring the mirror of a source up to date, and make it where there is none; return what the remote has.

    Fetched are all refs, or those that ``select`` names and the tags of versions that they lead to. A tag that is another
    object now than the mirror knew stays as it was known, unless ``accept_moved``. Progress is shown on a terminal. With
    ``remake`` the mirror is made anew. Raises NpuprofError; the mirror is as it was then.
    """
    _require_url(url)
    talker = Talker(url, name)

    def fetch_refs(mirror: HeldMirror) -> Fetched:
        remote, names = talker.fetch_refs(mirror, select)
        return _take_over(mirror.open_git(), remote, names, accept_moved)

    return _work_in_mirror(talker, fetch_refs, remake)


def fetch_locked(url: str, commits: Iterable[str], tags: Iterable[str] = (), name: str = "") -> list[str]:
    """Have commits, by their full ids, in the mirror of a source, whole, and keep them; return those that the remote has no longer.

    Fetched are the commits that are not there, with the ``tags`` that a lock names and those of the versions that they lead
    to, and nothing else unless the remote gives no commit to who asks by its id. The network is touched only for what is not
    there yet. Raises NpuprofError; the mirror is as it was then.
    """
    _require_url(url)
    wanted = [commit for commit in dict.fromkeys(commits) if is_full_id(commit)]
    lost = [commit for commit in commits if not is_full_id(commit)]
    talker = Talker(url, name)
    mirror = find_mirror_folder(url)
    if not wanted or (is_mirror(mirror) and _are_kept(MirrorGit(mirror, talker.label), wanted)):
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


def keep_commits(url: str, commits: Iterable[str]) -> None:
    """Keep commits of a mirror for ever, whatever its remote does. Raises NpuprofError where one is not there."""
    label = name_source(url)
    known = list_refs(MirrorGit(find_mirror_folder(url), label))
    missing = [commit for commit in dict.fromkeys(commits) if f"{LOCKED}{commit}" not in known]
    if missing:
        with hold_mirror(url, label) as mirror:
            write_refs(mirror.open_git(), [f"update {LOCKED}{commit} {commit}" for commit in missing])


def build_moved_finding(url: str, moved: tuple[tuple[str, str, str], ...]) -> Finding:
    """Return that tags of a source are not what they were."""
    pairs = [(tag, *shorten_ids(before, now)) for tag, before, now in moved[:5]]
    moves = "; ".join(
        f"{tag} was {before}, and is {now} now" if before != now else f"{tag} is at {now}, as before, and records another release now"
        for tag, before, now in pairs
    )
    more = f"; and {len(moved) - 5} more" if len(moved) > 5 else ""
    what = f"{'a tag' if len(moved) == 1 else f'{len(moved)} tags'} of {hide_credentials(url)} moved: {moves}{more}"
    return Finding("NP046", what, "A tag names a version, and a version never changes.", "ask who keeps the source whether that was meant")


def _require_url(url: str) -> None:
    if fault := find_url_fault(url):
        what = f"{hide_credentials(url)!r} is no source: {fault}" if url else f"an empty address is no source: {fault}"
        raise NpuprofError([Finding("NP048", what, "", "ssh://git@host/presets.git, https://host/presets.git, /srv/presets.git")])


# Mirrors that are damaged
def _work_in_mirror(talker: Talker, deed: Callable[[HeldMirror], Answer], remake: bool = False) -> Answer:
    """Do something in a mirror; where that is damaged, in one that is made anew from what can be kept of it. Raises NpuprofError."""
    if not remake:
        try:
            with hold_mirror(talker.url, talker.label) as mirror:
                return deed(mirror)
        except NpuprofError as error:
            if not _is_damaged(talker, error):
                raise
    with hold_mirror(talker.url, talker.label, remake=True) as mirror:
        talker.rescue(mirror)
        return deed(mirror)


def _is_damaged(talker: Talker, error: NpuprofError) -> bool:
    """Return whether an error is one of the mirror: it says so, or could be, and the mirror is not whole."""
    finding = error.findings[0]
    if finding.code != "NP045" or not _SUSPECT.search(finding.why):
        return finding.code == "NP054"
    mirror = find_mirror_folder(talker.url)
    words = ("rev-list", "--objects", "--all", "--quiet")
    return is_mirror(mirror) and MirrorGit(mirror, talker.label).try_command(*words).code != 0


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
    unmoved = {f"{TAGS}{name}" for name, _, _ in moved} if not accept_moved else set()
    written = {name: remote.refs[name] for name in names - unmoved if name != "HEAD" and known.get(name) != remote.refs[name]}
    put_refs(git, written, gone)
    return Fetched(tags, heads, remote.refs.get("HEAD", ""), moved, tuple(set(changed).difference(tag for tag, _, _ in moved)))


def _list_unyanked(known: Iterable[str], tags: Iterable[str]) -> set[str]:
    """Return the tags that say of a version that it was yanked, which a mirror knows and its remote has taken back."""
    return {name for name in known if name.endswith(YANKED)}.difference(tags)


def _put_tags(git: MirrorGit, remote: RemoteRefs, tags: dict[str, str]) -> None:
    """Let the mirror know tags beside those that it knows, without the yanks that were taken back. Raises NpuprofError."""
    known = list_refs(git)
    known_tags = {name: oid for name, oid in known.items() if name.startswith(TAGS)}
    gone = {*find_obstacles(known_tags, tags), *_list_unyanked(known_tags, remote.refs)}
    put_refs(git, {name: oid for name, oid in tags.items() if name not in known}, gone)


class Talker:
    """Talks to the remote of a source, and tells of it by its name."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.label = name_source(url, name)
        self._timeout = read_timeout(self.label)
        self._is_shown = sys.stderr.isatty()

    def list_remote(self, mirror: HeldMirror) -> RemoteRefs:
        """Return the refs of the remote. Raises NpuprofError."""
        talk = self._talk(self._open_line(mirror).list_refs)
        if talk.code:
            raise self._build_failure(talk, "the list of its branches and tags")
        remote = RemoteRefs.parse(talk.answer)
        if any(len(oid) == 64 for oid in remote.refs.values()) and mirror.is_new:
            mirror.use_long_ids()
        return remote

    def fetch_refs(self, mirror: HeldMirror, select: Selector | None) -> tuple[RemoteRefs, set[str]]:
        """Fetch what the remote has that the mirror has not; return its refs, and the names of those that are here now.

        The mirror's own do not change. Raises NpuprofError.
        """
        git = mirror.open_git()
        known = list_refs(git)
        for attempt in range(3):
            remote = self.list_remote(mirror)
            if not remote.refs and any(name.startswith((HEADS, TAGS)) for name in known):
                why = "It lists no branch and no tag now, and the mirror knows some."  # as a web page that stands where it was
                raise build_fetch_error(self.label, why, "git ls-remote with the address shows what it lists")
            chosen = select(remote) if select else None
            names = set(remote.refs) if chosen is None else chosen | list_changed(known, remote)
            wanted = {remote.refs[name] for name in names}.difference(known.values())
            talk = self._fetch(mirror, sorted(wanted))
            if not talk.code:
                if chosen is not None:
                    commits = [remote.find_target(name) for name in chosen]
                    names |= self.fetch_version_tags(mirror, remote, commits).keys()
                return remote, names
            if not _GONE.search(talk.messages) or attempt == 2:
                break  # else something was moved or deleted between the two
        raise self._build_failure(talk, _format_names(chosen))

    def fetch_commit(self, mirror: HeldMirror, commit: str) -> bool:
        """Fetch a commit by its id, or what leads to it where that is not given away; return whether it is there. Raises NpuprofError."""
        if len(commit) == 64 and mirror.is_new:
            mirror.use_long_ids()
        git, wanted = mirror.open_git(), f"the commit {commit[:12]}"
        talk = self._fetch(mirror, [commit])
        if talk.code and _CLOSED.search(talk.messages):
            remote = self.list_remote(mirror)
            known = set(list_refs(git).values())
            tips = {oid for name, oid in remote.refs.items() if remote.find_target(name) == commit} or set(remote.refs.values())
            talk = self._fetch(mirror, sorted(tips - known))
            wanted = f"{wanted}, by its branches and tags as it gives no commit by its id"
        if talk.code and not _GONE.search(talk.messages):
            raise self._build_failure(talk, wanted)
        return not talk.code and holds_whole(git, commit)

    def fetch_version_tags(
        self, mirror: HeldMirror, remote: RemoteRefs, commits: Iterable[str], named: Iterable[str] = ()
    ) -> dict[str, str]:
        """Fetch the tags of versions that commits lead to, and those that are named, as far as git lets them pass; return them."""
        listed = "".join(f"{commit}\n" for commit in commits).encode()
        git = mirror.open_git()
        reached = set(git.run_command("rev-list", "--ignore-missing", "--stdin", stdin=listed).decode().split())
        known = list_refs(git)
        tags = {name: oid for name, oid in remote.refs.items() if name not in known and name.startswith(TAGS)}
        return self._fetch_apart(mirror, {
            name: oid for name, oid in tags.items() if name in named or (remote.is_version(name) and remote.find_target(name) in reached)
        })  # fmt: skip

    def _fetch_apart(self, mirror: HeldMirror, refs: dict[str, str]) -> dict[str, str]:
        """Fetch refs, without those that git's check refuses or that are gone meanwhile; return them. Raises NpuprofError."""
        talk = self._fetch(mirror, sorted(set(refs.values())))
        if not talk.code:
            return refs
        if not _REFUSED.search(talk.messages) and not _GONE.search(talk.messages):
            raise self._build_failure(talk, "the tags of its versions")
        names = sorted(refs)
        halves = (names[: len(names) // 2], names[len(names) // 2 :]) if len(names) > 1 else ()
        return {name: oid for half in halves for name, oid in self._fetch_apart(mirror, {name: refs[name] for name in half}).items()}

    def rescue(self, mirror: HeldMirror) -> None:
        """Take over what is whole in a mirror that is to be replaced: all its refs, else those of its locked commits that are."""
        if not mirror.old:
            return
        git = mirror.open_git()
        with suppress(NpuprofError, HangingError):
            refs = list_refs(MirrorGit(mirror.old, self.label))
            if any(len(oid) == 64 for oid in refs.values()):
                mirror.use_long_ids()
            line = self._open_line(mirror, mirror.old)
            if refs and not line.fetch(sorted(set(refs.values()))).code:
                put_refs(git, refs)
                return
            for name, oid in refs.items():
                if name.startswith(LOCKED) and not line.fetch([oid]).code:
                    write_refs(git, [f"update {name} {oid}"])

    def _fetch(self, mirror: HeldMirror, wanted: list[str]) -> Talk:
        return self._talk(partial(self._open_line(mirror).fetch, wanted)) if wanted else Talk(0, b"", "")

    def _open_line(self, mirror: HeldMirror, url: str = "") -> Line:
        return Line(mirror.folder, _write_address(url or self.url), self._timeout, self._is_shown, mirror.hold)

    def _talk(self, ask: Callable[[], Talk]) -> Talk:
        try:
            return ask()
        except HangingError as error:
            how = f"sent less than {LEAST_SPEED} bytes a second" if error.is_slow else "gave no sign of life"
            why = f"It {how} for {self._timeout:g} seconds, and was given up."
            raise build_fetch_error(self.label, why, "try again later; NPUPROF_TIMEOUT says for how many seconds to wait") from None

    def _build_failure(self, talk: Talk, wanted: str) -> NpuprofError:
        return build_failure(self.label, talk.messages, find_mirror_folder(self.url), wanted)


def name_source(url: str, name: str = "") -> str:
    """Return a source as messages name it: by its name, if it has one, and its address without what logs anybody in."""
    return f"the source {name!r} ({hide_credentials(url)})" if name else hide_credentials(url)


def read_timeout(label: str) -> float:
    """Return for how many seconds a remote may give no sign of life. Raises NpuprofError, which names what is ``label``."""
    text = os.environ.get("NPUPROF_TIMEOUT", "")
    if not text:
        return TIMEOUT
    with suppress(ValueError):
        if 0 < (seconds := float(text)) < 1e6:
            return seconds
    raise build_fetch_error(label, f"NPUPROF_TIMEOUT={text} is no number of seconds.", "write one above 0, or unset it")


def _write_address(url: str) -> str:
    """Return an address as git is given it: of a path, in the form that no option and no bundle of that name can be meant by."""
    return url if not url.startswith("/") else "file://" + quote(url)


def _format_names(refs: set[str] | None) -> str:
    """Return which refs were asked for, in words."""
    if refs is None:
        return "all its branches and tags"
    names = sorted(name.removeprefix("refs/") for name in refs)
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def list_changed(known: dict[str, str], remote: RemoteRefs) -> set[str]:
    """Return the tags that a mirror knows as something else."""
    return {name for name, oid in remote.refs.items() if name.startswith(TAGS) and known.get(name, oid) != oid}


def are_whole(git: MirrorGit, commits: list[str]) -> bool:
    """Return whether all that belongs to commits is in a mirror."""
    listed = "".join(f"{commit}\n" for commit in commits).encode()
    return git.try_command("rev-list", "--objects", "--quiet", "--stdin", stdin=listed).code == 0


def holds_whole(git: MirrorGit, commit: str) -> bool:
    """Return whether a commit is in a mirror. Raises NpuprofError (NP054) where not all that belongs to it is there."""
    named = git.read_objects([commit])[0]
    if named is None and f"{LOCKED}{commit}" not in list_refs(git):
        return False
    if named is not None and named.type != "commit":
        return False
    if named is None or not are_whole(git, [commit]):
        raise NpuprofError([git.explain_absence([commit])])
    return True
