"""The commits that touched a store, newest first, each with the files it changed against each of its parents."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from npuprof.history.repository import Entry, Repository

_AUTHOR = re.compile(rb"^author (.*?) <(.*?)> (\d+) ([+-]\d{4})$", re.MULTILINE)
_CODED = re.compile(rb"^encoding (\S+)$", re.MULTILINE)
_GIT = (
    "-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "diff.renameLimit=4000",
    "log", "--topo-order", "--full-history", "--parents", "-z", "--raw", "-M", "--diff-merges=off", "--no-abbrev", "--no-decorate",
    "--no-notes", "--no-mailmap", "--no-color", "--no-ext-diff", "--no-relative", "--format=%x01%H %P",
)  # fmt: skip


class FileChange(NamedTuple):
    """One file of one commit against one parent: its name and entry before and after, None where it was not there.

    The two names differ where the file was renamed.
    """

    was: str | None
    old: Entry | None
    now: str | None
    new: Entry | None


class Commit:
    """One commit: ``changes`` has the files that differ from each parent, in the order of ``parents``.

    Parents may be the nearest ancestors that touched the store; a commit without any has its changes below ``""``.
    """

    __slots__ = ("_repository", "_said", "changes", "id", "parents")

    def __init__(self, repository: Repository, oid: str, parents: tuple[str, ...], changes: dict[str, list[FileChange]]) -> None:
        self.id = oid
        self.parents = parents
        self.changes = changes
        self._repository = repository
        self._said: tuple[str, str, str, str] | None = None

    @property
    def author(self) -> str:
        """The name of the author."""
        return self._read()[0]

    @property
    def email(self) -> str:
        """The address of the author."""
        return self._read()[1]

    @property
    def date(self) -> str:
        """When it was written, as ``2026-01-31T12:00:00+01:00`` in the author's own zone."""
        return self._read()[2]

    @property
    def subject(self) -> str:
        """The first line of its message."""
        return self._read()[3]

    def _read(self) -> tuple[str, str, str, str]:
        """Return author, address, date and subject; read when somebody asks, for most commits nobody does."""
        if self._said is None:
            found = self._repository.git.read([self.id])[0]
            self._said = _parsed(found[2] if found else b"")
        return self._said


def load(repository: Repository, wanted: Iterable[Commit]) -> None:
    """Read author, date and subject of many commits in one go."""
    unread = [commit for commit in wanted if commit._said is None]
    for commit, found in zip(unread, repository.git.read([commit.id for commit in unread]), strict=True):
        commit._said = _parsed(found[2] if found else b"")


def _parsed(raw: bytes) -> tuple[str, str, str, str]:
    headers, _, message = raw.partition(b"\n\n")
    coded = _CODED.search(headers)
    encoding = coded[1].decode(errors="replace") if coded else "utf-8"
    try:
        text = [part.decode(encoding, errors="replace") for part in (headers, message)]
    except LookupError:
        text = [part.decode(errors="replace") for part in (headers, message)]
    subject = next((line.strip() for line in text[1].splitlines() if line.strip()), "")
    match = _AUTHOR.search(text[0].encode())
    if match is None:
        return "", "", "", subject
    author, email, stamp, zone = (part.decode() for part in match.groups())
    return author, email, _date(int(stamp), zone), subject


def commits(repository: Repository, tip: str) -> Iterator[Commit]:
    """Yield the commits behind ``tip``, at least those that touched the store, children before parents, from one git process."""
    prefix = os.fsencode(repository.prefix)
    below = () if _mostly(repository, tip) else ("--", ".")
    for record in _records(repository.git.stream(*_GIT, tip, *below)):
        head, _, files = record.partition(b"\0")
        oid, *parents = head.decode().split()
        if len(parents) > 1:
            yield Commit(repository, oid, tuple(parents), {parent: _merged(repository, parent, oid) for parent in parents})
        else:
            changed = list(_named(files[1:].split(b"\0"), prefix)) if files else []
            yield Commit(repository, oid, tuple(parents), {parents[0] if parents else "": changed})


def _mostly(repository: Repository, tip: str) -> bool:
    """Return whether the store is most of the repository: git then tells of all commits faster than of the store's."""
    try:
        with open(os.path.join(repository.top, ".git", "index"), "rb") as file:
            head = file.read(12)
    except OSError:
        return False
    return head[:4] == b"DIRC" and int.from_bytes(head[8:12], "big") <= 200 + 2 * len(repository.files(tip))


def _merged(repository: Repository, parent: str, commit: str) -> list[FileChange]:
    """Return what a merge changed against one parent, from their trees; git is asked only where something was renamed."""
    old, new = repository.files(parent), repository.files(commit)
    if old == new:
        return []
    if old.keys() - new.keys() and new.keys() - old.keys():
        raw = repository.git.run("diff-tree", "-r", "-M", "--raw", "-z", "--no-abbrev", "--no-relative", parent, commit, "--", ".")
        return list(_named(raw.split(b"\0"), os.fsencode(repository.prefix)))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [FileChange(name if name in old else None, old.get(name), name if name in new else None, new.get(name)) for name in names]


def _date(stamp: int, zone: str) -> str:
    """Return a time as ``2026-01-31T12:00:00+01:00``, in the author's own zone."""
    from datetime import UTC, datetime, timedelta

    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    try:
        local = datetime.fromtimestamp(stamp, UTC) + timedelta(minutes=minutes if zone[0] == "+" else -minutes)
    except (OverflowError, ValueError, OSError):
        return str(stamp)
    return f"{local:%Y-%m-%dT%H:%M:%S}{zone[:3]}:{zone[3:]}"


def _records(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what git says of each commit: its id and those of its parents, NUL, then raw lines and paths."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\0\1")
        for record in whole:
            yield record.lstrip(b"\1")
    if rest:
        yield rest.lstrip(b"\1").removesuffix(b"\0")


def _named(files: list[bytes], prefix: bytes) -> Iterator[FileChange]:
    place = 0
    while place + 1 < len(files):
        words = files[place][1:].decode().split(" ")
        two = words[4][0] in "RC"
        was = _name(files[place + 1], prefix)
        now = _name(files[place + 2], prefix) if two else was
        place += 3 if two else 2
        old = (words[0], words[2]) if words[0] not in ("000000", "160000") and words[4][0] != "C" and was is not None else None
        new = (words[1], words[3]) if words[1] not in ("000000", "160000") and now is not None else None
        if old or new:
            yield FileChange(was if old else None, old, now if new else None, new)


def _name(path: bytes, prefix: bytes) -> str | None:
    """Return the name of a file below the store, or None where it is not one of its TOML files."""
    if not path.startswith(prefix) or not path.endswith(b".toml"):
        return None
    name = path[len(prefix) : -5]
    return None if name.startswith(b".") or b"/." in name else os.fsdecode(name)
