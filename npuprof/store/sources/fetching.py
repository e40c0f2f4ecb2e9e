"""Fetches sources into mirrors in the user's cache. Nothing else in npuprof uses the network.

A mirror is a bare repository. Objects of a remote are fetched without refs first; then the mirror's
heads and tags are updated. Locked commits have refs below ``refs/npuprof/locked``. Objects that no
ref contains are not verified, and not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from urllib.parse import quote

from npuprof.model import Finding, NpuprofError, Record, build_error, raise_any
from npuprof.store.sources.failures import build_failure, build_fetch_error
from npuprof.store.sources.mirror import LOCKED, find_mirror_folder
from npuprof.store.sources.mirrorgit import (
    HEADS,
    TAGS,
    MirrorGit,
    MovedTag,
    RemoteRefs,
    is_full_id,
    is_mirror,
    list_reached,
    list_refs,
    lock_mirror,
    put_refs,
    read_moved,
    select_below,
    shorten_ids,
    write_refs,
)
from npuprof.store.sources.transport import LEAST_SPEED, HangingError, Line, Talk
from npuprof.store.urls import find_url_fault, hide_credentials
from npuprof.store.versions import is_version_tag
from npuprof.system import join_lines

#: Seconds without data before a remote is given up, unless ``$NPUPROF_TIMEOUT`` is set.
TIMEOUT = 60.0

#: git's messages about an id that the remote lacks, or does not serve because no ref points to it.
_GONE = re.compile(
    r"not our ref|no such remote ref|couldn't find "
    r"remote ref|unadvertised object|want \S+ not valid"
)


class Fetched(Record):
    """The refs of a remote: its tags and heads by name, with object ids, and its HEAD's commit.

    ``moved`` are version tags that the mirror knew differently.
    """

    tags: dict[str, str]
    heads: dict[str, str]
    head: str
    moved: tuple[MovedTag, ...]


def fetch_source(url: str, accept_moved: bool = False, name: str = "") -> Fetched:
    """Update the mirror of a source, creating it if necessary; return the remote's refs.

    A version tag whose object changed keeps its known value, unless ``accept_moved``; refs missing
    on the remote are deleted. Progress is shown on a terminal. Raises NpuprofError, leaving the
    refs of the mirror unchanged.
    """
    _require_url(url)
    talker = Talker(url, name)
    with lock_mirror(url, talker.label) as git:
        known, remote = list_refs(git), talker.list_remote(git)
        shared = {ref for ref in known if ref.startswith((HEADS, TAGS))}
        if shared and not remote.refs:
            # like a web page in place of the repository
            why = "It lists no branch and no tag now, and the mirror knows some."
            raise build_fetch_error(talker.label, why, "git ls-remote with the URL lists its refs")
        # objects first: a ref is written only if all that it leads to has arrived
        new = set(remote.refs.values()).difference(known.values())
        talker.fetch(git, new, "all its branches and tags")
        tags, known_tags = select_below(remote.refs, TAGS), select_below(known, TAGS)
        changed = [
            tag
            for tag in sorted(tags)
            if known_tags.get(tag, tags[tag]) != tags[tag] and is_version_tag(tag)
        ]
        moved = read_moved(git, changed, known_tags, tags)
        # a moved tag keeps its old value, so that the next update reports it again
        unmoved = set() if accept_moved else {f"{TAGS}{tag}" for tag in changed}
        written = {
            ref: oid
            for ref, oid in remote.refs.items()
            if ref not in unmoved and ref != "HEAD" and known.get(ref) != oid
        }
        put_refs(git, written, shared.difference(remote.refs))
        return Fetched(tags, select_below(remote.refs, HEADS), remote.refs.get("HEAD", ""), moved)


def fetch_locked(
    url: str,
    commits: Iterable[str],
    tags: Iterable[tuple[str, str]] = (),
    name: str = "",
    rev: str = "",
) -> list[str]:
    """Make commits, by full id, available in the mirror of a source, and add permanent refs.

    Return those that the remote lacks.

    ``tags`` are the locked tags, each with its commit. A new commit must be what its tag points to.
    Without a tag, or if the remote lacks it, the history of a branch or tag must contain the
    commit; ``rev`` is searched first. Fetches the commits with their version tags, and other refs
    only for that search. Uses the network only if the refs of the mirror do not verify a commit.
    Raises NpuprofError, also (NP046) for moved tags and for commits that no branch and no tag
    contains.
    """
    _require_url(url)
    requested = [commit for commit in dict.fromkeys(commits) if is_full_id(commit)]
    lost = [commit for commit in commits if not is_full_id(commit)]
    if not requested:
        return lost
    talker = Talker(url, name)
    mirror = find_mirror_folder(url)
    # without the lock of the mirror: most syncs find everything here
    if is_mirror(mirror) and _are_pinned(MirrorGit(mirror, talker.label), requested):
        return lost
    with lock_mirror(url, talker.label) as git:
        known = list_refs(git)
        new = [
            commit
            for commit in requested
            if not has_complete_history(git, commit) or f"{LOCKED}{commit}" not in known
        ]
        claims = [(f"{TAGS}{tag}", commit) for tag, commit in tags if tag and commit in new]
        if _are_verified(git, known, new, claims):
            _pin(git, new)
            return lost
        return [*lost, *talker.fetch_commits(git, new, claims, rev)]


def pin_commits(url: str, commits: Iterable[str], name: str = "") -> None:
    """Add permanent refs for commits of a mirror.

    Raises NpuprofError (NP046) if its refs do not contain one of them.
    """
    label = name_source(url, name)
    with lock_mirror(url, label) as git:
        reached = list_reached(git, list_refs(git).values())
        if foreign := [commit for commit in commits if commit not in reached]:
            raise _build_foreign_error(label, foreign)
        _pin(git, commits)


def _pin(git: MirrorGit, commits: Iterable[str]) -> None:
    write_refs(git, [f"update {LOCKED}{commit} {commit}" for commit in dict.fromkeys(commits)])


def _are_verified(
    git: MirrorGit, known: dict[str, str], commits: Iterable[str], claims: list[tuple[str, str]]
) -> bool:
    """Return whether the refs of a mirror contain commits, and its tags point to the claimed ones.

    Raises NpuprofError.
    """
    targets = git.read_objects([f"{known.get(tag, '')}^{{commit}}" for tag, _ in claims])
    for (_, commit), target in zip(claims, targets, strict=True):
        if target is None or target.oid != commit:
            return False
    return list_reached(git, known.values()).issuperset(commits)


def _build_foreign_error(label: str, commits: Iterable[str]) -> NpuprofError:
    why = (
        "It may come from a fork or from rewritten history: servers also send commits of pull "
        "requests, which anybody can write."
    )
    hint = (
        "restore npuprof.lock, or lock another commit: npuprof source update; the owners can make "
        "it available with a tag"
    )
    what = f"no branch and no tag of {label} contains the commit"
    return NpuprofError(
        [Finding("NP046", f"{what} {commit[:12]}", why, hint) for commit in commits]
    )


def build_moved_finding(url: str, moved: MovedTag) -> Finding:
    """Return the finding for a moved tag of a source."""
    before, now = shorten_ids(moved.old, moved.new)
    what = f"a tag of {hide_credentials(url)} moved: {moved.tag} was {before}, and is {now} now"
    if before == now:
        what = (
            f"a tag of {hide_credentials(url)} was recreated: {moved.tag} is at {now}, as before, "
            "and may record another release"
        )
    hint = "ask its owners whether that was meant; to take it as it is now say --moved"
    return Finding("NP046", what, "A tag names a version, and a version never changes.", hint)


def _require_url(url: str) -> None:
    if fault := find_url_fault(url):
        what = f"{hide_credentials(url)!r} is not a source: {fault}"
        raise build_error(
            "NP048",
            what,
            "",
            "ssh://git@host/presets.git, https://host/presets.git, /srv/presets.git",
        )


def _are_pinned(git: MirrorGit, commits: list[str]) -> bool:
    """Return whether commits have permanent refs in a mirror and are complete.

    Raises NpuprofError.
    """
    refs = list_refs(git)
    # cheaper than the walk below, which fails for lost objects
    if not all(f"{LOCKED}{commit}" in refs for commit in commits):
        return False
    lines = join_lines(commits).encode()
    return git.try_command("rev-list", "--objects", "--quiet", "--stdin", stdin=lines).code == 0


class Talker:
    """Communicates with the remote of a source; messages name the source."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.label = name_source(url, name)
        self._timeout = read_timeout(self.label)

    def list_remote(self, git: MirrorGit) -> RemoteRefs:
        """Return the refs of the remote. Raises NpuprofError."""
        talk = self._talk(self._open_line(git).list_refs)
        if talk.code:
            raise self._build_failure(talk, "the list of its branches and tags")
        remote = RemoteRefs.parse(talk.answer)
        if any(len(oid) == 64 for oid in remote.refs.values()) and not list_refs(git):
            git.make(has_long_ids=True)
        return remote

    def fetch(self, git: MirrorGit, oids: Iterable[str], requested: str) -> None:
        """Fetch objects; ``requested`` describes them. No ref is written. Raises NpuprofError."""
        talk = self._fetch(git, oids)
        if talk.code:
            raise self._build_failure(talk, requested)

    def fetch_commits(
        self, git: MirrorGit, commits: list[str], claims: list[tuple[str, str]], rev: str
    ) -> list[str]:
        """Fetch and pin commits, with their version tags; return those that the remote lacks.

        ``claims`` are full names of tags, each with the commit that it must point to if the remote
        has it; ``rev`` is the ref to search first. Raises NpuprofError, also (NP046) for commits
        outside of all branches and tags.
        """
        remote = self.list_remote(git)
        problems = []
        for name, locked in claims:
            if name in remote.refs and (now := remote.find_target(name)) != locked:
                tag = name.removeprefix(TAGS)
                # before anything is fetched: a moved tag may lead to a commit of anybody
                problems.append(self._build_mismatch_finding(tag, locked, now))
        raise_any(problems)
        outside = self._fetch_history(git, remote, commits, rev)
        # a commit that the server gives out without a ref is a fork's, not a lost one
        lacking = [commit for commit in outside if not self._offers(git, commit)]
        if foreign := [commit for commit in outside if commit not in lacking]:
            raise _build_foreign_error(self.label, foreign)
        fetched = [commit for commit in commits if commit not in lacking]
        self.fetch_version_tags(git, remote, fetched, {name for name, _ in claims})
        return lacking

    def _fetch_history(
        self, git: MirrorGit, remote: RemoteRefs, commits: list[str], rev: str
    ) -> list[str]:
        """Fetch refs, the likely ones first, until they contain commits.

        Pin these, and return the others. Raises NpuprofError.
        """
        tips, targets, rest = set(list_refs(git).values()), set(commits), commits
        for is_likely in (
            lambda name: remote.find_target(name) in targets,
            lambda name: name in (rev, f"{HEADS}{rev}", f"{TAGS}{rev}"),
            lambda name: name.startswith(TAGS),
            lambda name: name == "HEAD",
            lambda name: True,
        ):
            oids = {oid for name, oid in remote.refs.items() if is_likely(name)} - tips
            self.fetch(git, oids, "the branches and tags that may contain the locked commits")
            tips |= oids
            reached = list_reached(git, tips)
            contained = [commit for commit in rest if commit in reached]
            # raises for a commit without all of its objects, which then gets no permanent ref
            _pin(git, [commit for commit in contained if has_complete_history(git, commit)])
            rest = [commit for commit in rest if commit not in reached]
            if not rest:
                break
        return rest

    def _build_mismatch_finding(self, tag: str, locked: str, now: str) -> Finding:
        before, after = shorten_ids(locked, now)
        what = f"the tag {tag} of {self.label} is at {after}, and the lock has it at {before}"
        why = "The tag was moved, or the lock was edited; a version never changes."
        hint = (
            "restore npuprof.lock; if its owners meant to move the tag, accept it with npuprof "
            "source update --moved"
        )
        return Finding("NP046", what, why, hint)

    def _offers(self, git: MirrorGit, commit: str) -> bool:
        """Return whether a remote gives out a commit by its id. Raises NpuprofError."""
        talk = self._fetch(git, [commit])
        if talk.code and not _GONE.search(talk.messages):
            raise self._build_failure(talk, f"the commit {commit[:12]}")
        return has_complete_history(git, commit)

    def fetch_version_tags(
        self, git: MirrorGit, remote: RemoteRefs, commits: Iterable[str], named: set[str]
    ) -> None:
        """Fetch the tags of versions in the history of commits, and named ones.

        Raises NpuprofError.
        """
        reached, known = list_reached(git, commits), list_refs(git)
        tags = {}
        for name, oid in remote.refs.items():
            # a known tag is not replaced: moved tags are accepted by an update only
            if name in known or not name.startswith(TAGS):
                continue
            if name in named or (remote.is_version(name) and remote.find_target(name) in reached):
                tags[name] = oid
        self.fetch(git, tags.values(), "the tags of its versions")
        put_refs(git, tags)

    def _fetch(self, git: MirrorGit, oids: Iterable[str]) -> Talk:
        # an empty list would make git fetch HEAD
        requested = sorted(set(oids))
        if not requested:
            return Talk(0, b"", "")
        return self._talk(partial(self._open_line(git).fetch, requested))

    def _open_line(self, git: MirrorGit) -> Line:
        # a path in a form that cannot be an option or a bundle
        address = f"file://{quote(self.url)}" if self.url.startswith("/") else self.url
        return Line(git.bare, address, self._timeout, progress=True)

    def _talk(self, ask: Callable[[], Talk]) -> Talk:
        try:
            return ask()
        except HangingError:
            why = (
                f"It sent less than {LEAST_SPEED} bytes a second for {self._timeout:g} seconds, "
                "and was given up."
            )
            hint = "try again later; NPUPROF_TIMEOUT says for how many seconds to wait"
            raise build_fetch_error(self.label, why, hint) from None

    def _build_failure(self, talk: Talk, requested: str) -> NpuprofError:
        return build_failure(self.label, talk.messages, find_mirror_folder(self.url), requested)


def name_source(url: str, name: str) -> str:
    """Return a source for messages: its name, if any, and its URL without credentials."""
    return f"the source {name!r} ({hide_credentials(url)})" if name else hide_credentials(url)


def read_timeout(label: str) -> float:
    """Return the timeout for a silent remote in seconds.

    Raises NpuprofError, which names ``label``.
    """
    text = os.environ.get("NPUPROF_TIMEOUT", "")
    with suppress(ValueError):
        seconds = float(text or TIMEOUT)
        if 0 < seconds < 1e6:  # neither infinite nor NaN
            return seconds
    why = f"NPUPROF_TIMEOUT={text} is not a number of seconds."
    raise build_fetch_error(label, why, "write one above 0, or unset it")


def has_complete_history(git: MirrorGit, commit: str) -> bool:
    """Return whether a commit is in a mirror. Raises NpuprofError (NP054) if it is incomplete."""
    commit_object = git.read_object(commit)
    # a pinned commit was here once: without it, the mirror is damaged
    if commit_object is None and f"{LOCKED}{commit}" not in list_refs(git):
        return False
    if commit_object is not None and commit_object.type != "commit":
        return False
    if commit_object is None or git.try_command("rev-list", "--objects", "--quiet", commit).code:
        raise NpuprofError(git.explain_absence([commit]))
    return True
