"""Fetches sources into mirrors in the user's cache. Nothing else in npuprof uses the network.

A mirror is a bare repository. Objects of a remote are fetched without refs first; then the mirror's heads and tags are
updated. Locked commits have refs below ``refs/npuprof/locked``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from urllib.parse import quote

from npuprof.model import Finding, NpuprofError, Record
from npuprof.store.sources.failures import build_failure, build_fetch_error
from npuprof.store.sources.mirror import LOCKED, find_mirror_folder
from npuprof.store.sources.mirrorgit import (
    HEADS,
    TAGS,
    MirrorGit,
    RemoteRefs,
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
from npuprof.store.versions import is_version_tag
from npuprof.system import lazy_pattern

#: Seconds without data before a remote is given up, unless ``$NPUPROF_TIMEOUT`` is set.
TIMEOUT = 60.0

#: git's messages about an id that the remote lacks.
_GONE = lazy_pattern(r"not our ref|no such remote ref|couldn't find remote ref")

#: git's messages about a remote that does not serve objects by id.
_CLOSED = lazy_pattern(r"unadvertised object|want \S+ not valid")


class Fetched(Record):
    """The refs of a remote: its tags and heads by name, each with its object id, and the commit of its HEAD.

    ``moved`` are version tags that the mirror knew differently: name, old commit, new commit. These are equal if a tag was
    recreated at its commit; for tags of other objects, they are object ids.
    """

    tags: dict[str, str]
    heads: dict[str, str]
    head: str
    moved: tuple[tuple[str, str, str], ...]


def fetch_source(url: str, accept_moved: bool = False, name: str = "") -> Fetched:
    """Update the mirror of a source, creating it if necessary; return the remote's refs.

    A version tag whose object changed keeps its known value, unless ``accept_moved``; refs missing on the remote are
    deleted. Progress is shown on a terminal. Raises NpuprofError, leaving the refs of the mirror unchanged.
    """
    _require_url(url)
    talker = Talker(url, name)
    with hold_mirror(url, talker.label) as git:
        known, remote = list_refs(git), talker.list_remote(git)
        shared = {ref: oid for ref, oid in known.items() if ref.startswith((HEADS, TAGS))}
        if shared and not remote.refs:
            why = "It lists no branch and no tag now, and the mirror knows some."  # like a web page in place of the repository
            raise build_fetch_error(talker.label, why, "git ls-remote with the URL lists its refs")
        talker.fetch(git, set(remote.refs.values()).difference(known.values()), "all its branches and tags")
        tags, known_tags = select_below(remote.refs, TAGS), select_below(known, TAGS)
        changed = [tag for tag in sorted(tags) if known_tags.get(tag, tags[tag]) != tags[tag] and is_version_tag(tag)]
        moved = read_moved(git, changed, known_tags, tags)
        unmoved = set() if accept_moved else {f"{TAGS}{tag}" for tag in changed}
        written = {ref: oid for ref, oid in remote.refs.items() if ref not in unmoved and ref != "HEAD" and known.get(ref) != oid}
        put_refs(git, written, set(shared).difference(remote.refs))
        return Fetched(tags, select_below(remote.refs, HEADS), remote.refs.get("HEAD", ""), moved)


def fetch_locked(url: str, commits: Iterable[str], tags: Iterable[str] = (), name: str = "") -> list[str]:
    """Make commits, by full id, available in the mirror of a source, and keep them; return those that the remote lacks.

    Fetches missing commits with their locked ``tags`` and their own version tags, and nothing else unless the remote serves
    no commits by id. The network is used only for missing objects. Raises NpuprofError.
    """
    _require_url(url)
    wanted = [commit for commit in dict.fromkeys(commits) if is_full_id(commit)]
    lost = [commit for commit in commits if not is_full_id(commit)]
    talker = Talker(url, name)
    mirror = find_mirror_folder(url)
    if not wanted or (is_mirror(mirror) and _are_kept(MirrorGit(mirror, talker.label), wanted)):
        return lost
    with hold_mirror(url, talker.label) as git:
        absent = [commit for commit in wanted if not holds_whole(git, commit)]
        gone = [commit for commit in absent if not talker.fetch_commit(git, commit)]
        if len(gone) < len(absent):
            talker.fetch_version_tags(git, [commit for commit in absent if commit not in gone], {f"{TAGS}{tag}" for tag in tags})
        _keep(git, [commit for commit in wanted if commit not in gone])
        return [*lost, *gone]


def keep_commits(url: str, commits: Iterable[str]) -> None:
    """Keep commits of a mirror permanently. Raises NpuprofError if one is missing."""
    with hold_mirror(url, name_source(url)) as git:
        _keep(git, commits)


def _keep(git: MirrorGit, commits: Iterable[str]) -> None:
    write_refs(git, [f"update {LOCKED}{commit} {commit}" for commit in dict.fromkeys(commits)])


def build_moved_finding(url: str, moved: tuple[str, str, str]) -> Finding:
    """Return the finding for a moved tag of a source."""
    tag, (before, now) = moved[0], shorten_ids(*moved[1:])
    what = f"a tag of {hide_credentials(url)} moved: {tag} was {before}, and is {now} now"
    if before == now:
        what = f"a tag of {hide_credentials(url)} was recreated: {tag} is at {now}, as before, and may record another release"
    hint = "ask its owners whether that was meant; to take it as it is now say --moved"
    return Finding("NP046", what, "A tag names a version, and a version never changes.", hint)


def _require_url(url: str) -> None:
    if fault := find_url_fault(url):
        what = f"{hide_credentials(url)!r} is not a source: {fault}"
        raise NpuprofError([Finding("NP048", what, "", "ssh://git@host/presets.git, https://host/presets.git, /srv/presets.git")])


def _are_kept(git: MirrorGit, commits: list[str]) -> bool:
    """Return whether commits are kept in a mirror and complete. Raises NpuprofError."""
    refs, listed = list_refs(git), "".join(f"{commit}\n" for commit in commits).encode()
    is_kept = all(f"{LOCKED}{commit}" in refs for commit in commits)
    return is_kept and git.try_command("rev-list", "--objects", "--quiet", "--stdin", stdin=listed).code == 0


class Talker:
    """Communicates with the remote of a source; messages name the source."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.label = name_source(url, name)
        self._timeout = read_timeout(self.label)
        self._is_shown = sys.stderr.isatty()

    def list_remote(self, git: MirrorGit) -> RemoteRefs:
        """Return the refs of the remote. Raises NpuprofError."""
        talk = self._talk(self._open_line(git).list_refs)
        if talk.code:
            raise self._build_failure(talk, "the list of its branches and tags")
        remote = RemoteRefs.parse(talk.answer)
        self._fit_ids(git, remote.refs.values())
        return remote

    def _fit_ids(self, git: MirrorGit, oids: Iterable[str]) -> None:
        if any(len(oid) == 64 for oid in oids) and not list_refs(git):
            git.make(has_long_ids=True)

    def fetch(self, git: MirrorGit, oids: Iterable[str], wanted: str) -> None:
        """Fetch objects; ``wanted`` describes them. No ref is written. Raises NpuprofError."""
        talk = self._fetch(git, oids)
        if talk.code:
            raise self._build_failure(talk, wanted)

    def fetch_commit(self, git: MirrorGit, commit: str) -> bool:
        """Fetch a commit by id, else everything; return whether it exists now. Raises NpuprofError."""
        self._fit_ids(git, [commit])
        talk = self._fetch(git, [commit])
        if talk.code and _CLOSED.search(talk.messages):
            wanted = f"the commit {commit[:12]}, by its branches and tags as it gives no commit by its id"
            self.fetch(git, self.list_remote(git).refs.values(), wanted)
        elif talk.code and not _GONE.search(talk.messages):
            raise self._build_failure(talk, f"the commit {commit[:12]}")
        return holds_whole(git, commit)

    def fetch_version_tags(self, git: MirrorGit, commits: Iterable[str], named: set[str]) -> None:
        """Fetch the tags of versions in the history of commits, and named ones. Raises NpuprofError."""
        listed = "".join(f"{commit}\n" for commit in commits).encode()
        reached = set(git.run_command("rev-list", "--stdin", stdin=listed).decode().split())
        known, remote = list_refs(git), self.list_remote(git)
        new = {name: oid for name, oid in remote.refs.items() if name not in known and name.startswith(TAGS)}
        tags = {
            name: oid for name, oid in new.items() if name in named or (remote.is_version(name) and remote.find_target(name) in reached)
        }
        self.fetch(git, tags.values(), "the tags of its versions")
        put_refs(git, tags)

    def _fetch(self, git: MirrorGit, oids: Iterable[str]) -> Talk:
        wanted = sorted(set(oids))
        return self._talk(partial(self._open_line(git).fetch, wanted)) if wanted else Talk(0, b"", "")

    def _open_line(self, git: MirrorGit) -> Line:
        return Line(git.bare, _write_address(self.url), self._timeout, self._is_shown)

    def _talk(self, ask: Callable[[], Talk]) -> Talk:
        try:
            return ask()
        except HangingError:
            why = f"It sent less than {LEAST_SPEED} bytes a second for {self._timeout:g} seconds, and was given up."
            raise build_fetch_error(self.label, why, "try again later; NPUPROF_TIMEOUT says for how many seconds to wait") from None

    def _build_failure(self, talk: Talk, wanted: str) -> NpuprofError:
        return build_failure(self.label, talk.messages, find_mirror_folder(self.url), wanted)


def name_source(url: str, name: str = "") -> str:
    """Return a source for messages: its name, if any, and its URL without credentials."""
    return f"the source {name!r} ({hide_credentials(url)})" if name else hide_credentials(url)


def read_timeout(label: str) -> float:
    """Return the timeout for a silent remote in seconds. Raises NpuprofError, which names ``label``."""
    text = os.environ.get("NPUPROF_TIMEOUT", "")
    with suppress(ValueError):
        if 0 < (seconds := float(text or TIMEOUT)) < 1e6:
            return seconds
    raise build_fetch_error(label, f"NPUPROF_TIMEOUT={text} is not a number of seconds.", "write one above 0, or unset it")


def _write_address(url: str) -> str:
    """Return a URL as an argument for git; a path in a form that cannot be an option or bundle."""
    return url if not url.startswith("/") else "file://" + quote(url)


def holds_whole(git: MirrorGit, commit: str) -> bool:
    """Return whether a commit is in a mirror. Raises NpuprofError (NP054) if it is incomplete."""
    named = git.read_objects([commit])[0]
    if named is None and f"{LOCKED}{commit}" not in list_refs(git):
        return False
    if named is not None and named.type != "commit":
        return False
    if named is None or git.try_command("rev-list", "--objects", "--quiet", commit).code:
        raise NpuprofError([git.explain_absence([commit])])
    return True
