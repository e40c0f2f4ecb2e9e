"""What is said to the remote of a source: which refs it has, and what a mirror lacks of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from urllib.parse import quote

from npuprof.model import NpuprofError
from npuprof.store.sources.failures import build_failure, build_fetch_error
from npuprof.store.sources.holding import HeldMirror
from npuprof.store.sources.mirror import LOCKED, find_mirror_folder
from npuprof.store.sources.mirrorgit import MirrorGit
from npuprof.store.sources.mirrorrefs import HEADS, TAGS, RemoteRefs, list_refs, put_refs, write_refs
from npuprof.store.sources.transport import LEAST_SPEED, HangingError, Line, Talk
from npuprof.store.sources.urls import hide_credentials

#: Names the refs that are wanted among those of a remote; None: all of them.
Selector = Callable[[RemoteRefs], set[str] | None]

#: Seconds after which a remote that gives no sign of life is given up, unless ``$NPUPROF_TIMEOUT`` says otherwise.
TIMEOUT = 60.0
_SHOWN = 5  # refs that a message names
#: What git says of an id that the remote does not have.
_GONE = re.compile(r"not our ref|no such remote ref|couldn't find remote ref")
#: And of one that the remote gives to nobody who asks by it.
_CLOSED = re.compile(r"unadvertised object|want \S+ not valid")
#: And of an object that its own check refuses.
_REFUSED = re.compile(r"fsck error|object fails fsck|error in object")


class Talker:
    """Talks to the remote of a source, and tells of it by its name."""

    def __init__(self, url: str, name: str, progress: bool | None) -> None:
        import sys

        self.url = url
        self.told = name_source(url, name)
        self._timeout = read_timeout(self.told)
        self._is_shown = sys.stderr.isatty() if progress is None else progress

    def list_remote(self, held: HeldMirror) -> RemoteRefs:
        """Return the refs of the remote. Raises NpuprofError."""
        talk = self._talk(self._open_line(held).list_refs)
        if talk.code:
            raise self._build_failure(talk, "the list of its branches and tags")
        remote = RemoteRefs.parse(talk.answer)
        if any(len(oid) == 64 for oid in remote.refs.values()) and held.is_new:
            held.use_long_ids()
        return remote

    def fetch_refs(self, held: HeldMirror, select: Selector | None) -> tuple[RemoteRefs, set[str]]:
        """Fetch what the remote has that the mirror has not; return its refs, and the names of those that are here now.

        The mirror's own do not change. Raises NpuprofError.
        """
        git = held.open_git()
        known = list_refs(git)
        for attempt in range(3):
            remote = self.list_remote(held)
            if not remote.refs and any(name.startswith((HEADS, TAGS)) for name in known):
                why = "It lists no branch and no tag now, and the mirror knows some."  # as a web page that stands where it was
                raise build_fetch_error(self.told, why, "git ls-remote with the address shows what it lists")
            chosen = select(remote) if select else None
            names = set(remote.refs) if chosen is None else chosen | list_changed(known, remote)
            wanted = {remote.refs[name] for name in names}.difference(known.values())
            talk = self._fetch(held, sorted(wanted))
            if not talk.code:
                if chosen is not None:
                    commits = [remote.find_target(name) for name in chosen]
                    names |= self.fetch_version_tags(held, remote, commits).keys()
                return remote, names
            if not _GONE.search(talk.said) or attempt == 2:
                break  # else something was moved or deleted between the two
        raise self._build_failure(talk, _format_names(chosen))

    def fetch_commit(self, held: HeldMirror, commit: str) -> bool:
        """Fetch a commit by its id, or what leads to it where that is not given away; return whether it is there. Raises NpuprofError."""
        if len(commit) == 64 and held.is_new:
            held.use_long_ids()
        git, asked = held.open_git(), f"the commit {commit[:12]}"
        talk = self._fetch(held, [commit])
        if talk.code and _CLOSED.search(talk.said):
            remote = self.list_remote(held)
            known = set(list_refs(git).values())
            tips = {oid for name, oid in remote.refs.items() if remote.find_target(name) == commit} or set(remote.refs.values())
            talk = self._fetch(held, sorted(tips - known))
            asked = f"{asked}, by its branches and tags as it gives no commit by its id"
        if talk.code and not _GONE.search(talk.said):
            raise self._build_failure(talk, asked)
        return not talk.code and holds_whole(git, commit)

    def fetch_version_tags(self, held: HeldMirror, remote: RemoteRefs, commits: Iterable[str], named: Iterable[str] = ()) -> dict[str, str]:
        """Fetch the tags of versions that commits lead to, and those that are named, as far as git lets them pass; return them."""
        listed = "".join(f"{commit}\n" for commit in commits).encode()
        git = held.open_git()
        reached = set(git.run_command("rev-list", "--ignore-missing", "--stdin", stdin=listed).decode().split())
        known = list_refs(git)
        tags = {name: oid for name, oid in remote.refs.items() if name not in known and name.startswith(TAGS)}
        return self._fetch_apart(held, {
            name: oid for name, oid in tags.items() if name in named or (remote.is_version(name) and remote.find_target(name) in reached)
        })  # fmt: skip

    def _fetch_apart(self, held: HeldMirror, refs: dict[str, str]) -> dict[str, str]:
        """Fetch refs, without those that git's check refuses or that are gone meanwhile; return them. Raises NpuprofError."""
        talk = self._fetch(held, sorted(set(refs.values())))
        if not talk.code:
            return refs
        if not _REFUSED.search(talk.said) and not _GONE.search(talk.said):
            raise self._build_failure(talk, "the tags of its versions")
        names = sorted(refs)
        halves = (names[: len(names) // 2], names[len(names) // 2 :]) if len(names) > 1 else ()
        return {name: oid for half in halves for name, oid in self._fetch_apart(held, {name: refs[name] for name in half}).items()}

    def rescue(self, held: HeldMirror) -> None:
        """Take over what is whole in a mirror that is to be replaced: all its refs, else those of its locked commits that are."""
        if not held.old:
            return
        git = held.open_git()
        with suppress(NpuprofError, HangingError):
            refs = list_refs(MirrorGit(held.old, self.told))
            if any(len(oid) == 64 for oid in refs.values()):
                held.use_long_ids()
            line = self._open_line(held, held.old)
            if refs and not line.fetch(sorted(set(refs.values()))).code:
                put_refs(git, {}, refs)
                return
            for name, oid in refs.items():
                if name.startswith(LOCKED) and not line.fetch([oid]).code:
                    write_refs(git, [f"update {name} {oid}"])

    def _fetch(self, held: HeldMirror, wanted: list[str]) -> Talk:
        return self._talk(partial(self._open_line(held).fetch, wanted)) if wanted else Talk(0, b"", "")

    def _open_line(self, held: HeldMirror, url: str = "") -> Line:
        return Line(held.folder, _write_address(url or self.url), self._timeout, self._is_shown, held.hold)

    def _talk(self, ask: Callable[[], Talk]) -> Talk:
        try:
            return ask()
        except HangingError as error:
            why = f"It gave no sign of life for {self._timeout:g} seconds, and was given up."
            if error.is_slow:
                why = f"It sent less than {LEAST_SPEED} bytes a second for {self._timeout:g} seconds, and was given up."
            raise build_fetch_error(self.told, why, "try again later; NPUPROF_TIMEOUT says for how many seconds to wait") from None

    def _build_failure(self, talk: Talk, asked: str) -> NpuprofError:
        return build_failure(self.told, talk.said, find_mirror_folder(self.url), asked)


def name_source(url: str, name: str = "") -> str:
    """Return a source as messages name it: by its name, if it has one, and its address without what logs anybody in."""
    return f"the source {name!r} ({hide_credentials(url)})" if name else hide_credentials(url)


def read_timeout(told: str) -> float:
    """Return for how many seconds a remote may give no sign of life. Raises NpuprofError, which names what is ``told``."""
    given = os.environ.get("NPUPROF_TIMEOUT", "")
    if not given:
        return TIMEOUT
    with suppress(ValueError):
        if 0 < (found := float(given)) < 1e6:
            return found
    raise build_fetch_error(told, f"NPUPROF_TIMEOUT={given} is no number of seconds.", "write one above 0, or unset it")


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
    found = git.read_objects([commit])[0]
    if found is None and f"{LOCKED}{commit}" not in list_refs(git):
        return False
    if found is not None and found.type != "commit":
        return False
    if found is None or not are_whole(git, [commit]):
        raise NpuprofError([git.explain_absence([commit])])
    return True
