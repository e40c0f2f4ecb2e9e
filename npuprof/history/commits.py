"""The commits that touched a store, newest first, each with the files it changed against each of its parents."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from npuprof.history.repository import Entry, Repository

_HEAD = re.compile(rb"commit ([0-9a-f]{40,64})((?: [0-9a-f]{40,64})*)(?: \(from ([0-9a-f]{40,64})\))?\n")
_AUTHOR = re.compile(rb"^author (.*?) <(.*?)> (\d+) ([+-]\d{4})$", re.MULTILINE)
_GIT = (
    "-c", "log.showRoot=true", "-c", "log.showSignature=false", "-c", "diff.renameLimit=4000",
    "log", "--topo-order", "--full-history", "--parents", "-z", "--raw", "-m", "-M", "--no-abbrev", "--no-decorate", "--no-notes",
    "--no-mailmap", "--no-color", "--no-ext-diff", "--no-relative", "--encoding=UTF-8", "--pretty=raw",
)  # fmt: skip


class FileChange(NamedTuple):
    """One file of one commit against one parent: its name and entry before and after, None where it was not there.

    The two names differ where the file was renamed.
    """

    was: str | None
    old: Entry | None
    now: str | None
    new: Entry | None


class Commit(NamedTuple):
    """One commit: ``changes`` has the files that differ from each parent, in the order of ``parents``.

    Parents are the nearest ancestors that touched the store; a commit without any has its changes below ``""``.
    """

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    subject: str
    changes: dict[str, list[FileChange]]


def commits(repository: Repository, tip: str) -> Iterator[Commit]:
    """Yield the commits behind ``tip`` that touched the store, children before parents, from one git process."""
    waiting: Commit | None = None
    for head, files in _records(repository.git.stream(*_GIT, tip, "--", ".")):
        match = _HEAD.match(head)
        assert match is not None, "git writes it so"
        oid, parents = match[1].decode(), tuple(match[2].decode().split())
        if waiting is None or waiting.id != oid:
            if waiting is not None:
                yield waiting
            waiting = Commit(oid, parents, *_said(head), {parent: [] for parent in parents or ("",)})
        against = match[3].decode() if match[3] else (parents[0] if parents else "")
        waiting.changes.setdefault(against, []).extend(_named(files, repository.prefix))
    if waiting is not None:
        yield waiting


def _said(head: bytes) -> tuple[str, str, str, str]:
    headers, _, message = head.partition(b"\n\n")
    match = _AUTHOR.search(headers)
    subject = next((line.strip() for line in message.split(b"\n") if line.strip()), b"")
    if match is None:
        return "", "", "", subject.decode(errors="replace")
    author, email, stamp, zone = (part.decode(errors="replace") for part in match.groups())
    return author, email, _date(int(stamp), zone), subject.decode(errors="replace")


def _date(stamp: int, zone: str) -> str:
    """Return a time as ``2026-01-31T12:00:00+01:00``, in the author's own zone."""
    from datetime import UTC, datetime, timedelta

    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    try:
        local = datetime.fromtimestamp(stamp, UTC) + timedelta(minutes=minutes if zone[0] == "+" else -minutes)
    except (OverflowError, ValueError, OSError):
        return str(stamp)
    return f"{local:%Y-%m-%dT%H:%M:%S}{zone[:3]}:{zone[3:]}"


def _records(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, list[tuple[bytes, ...]]]]:
    """Yield each header with the raw lines below it: (modes, ids and status; path; new path)."""
    head: bytes | None = None
    files: list[tuple[bytes, ...]] = []
    tokens = _tokens(blocks)
    for token in tokens:
        meta = b""
        if token.startswith(b":"):
            meta = token
        elif token.startswith(b"commit "):
            if head is not None:
                yield head, files
            head, files = token, []
            text, found, last = token.rpartition(b"\n:")
            if found and b"\n" not in last:
                head, meta = text, b":" + last
        if meta:
            status = meta.rpartition(b" ")[2]
            paths = (next(tokens), next(tokens)) if status[:1] in b"RC" else (next(tokens),)
            files.append((meta, *paths))
    if head is not None:
        yield head, files


def _tokens(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _named(files: list[tuple[bytes, ...]], prefix: str) -> Iterator[FileChange]:
    for meta, *paths in files:
        words = meta[1:].decode().split(" ")
        old = (words[0], words[2]) if words[0] not in ("000000", "160000") else None
        new = (words[1], words[3]) if words[1] not in ("000000", "160000") else None
        was, now = _name(paths[0], prefix), _name(paths[-1], prefix)
        if words[4][0] == "C":
            was, old = None, None
        change = FileChange(was if old else None, old if was else None, now if new else None, new if now else None)
        if change.old or change.new:
            yield change


def _name(path: bytes, prefix: str) -> str | None:
    """Return the name of a file below the store, or None where it is not one of its TOML files."""
    text = os.fsdecode(path)
    if not text.startswith(prefix) or not text.endswith(".toml"):
        return None
    name = text[len(prefix) : -5]
    return None if name.startswith(".") or "/." in name else name
