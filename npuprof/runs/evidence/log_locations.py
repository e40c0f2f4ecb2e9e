"""The location of logs: files, folders, standard input.

Which of them share a machine, and their order.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Protocol, cast

from npuprof.model import NpuprofError, Place, Record, build_error
from npuprof.runs.evidence.lines import UNKNOWN, parse_line
from npuprof.system.files import (
    HAND_OVER,
    describe_os_error,
    is_handed_over,
    name_special_file,
    pop_peeked,
)

#: The suffixes of files to read in a folder: logs, captured standard error, graph dumps.
_SUFFIXES = (".log", ".txt", ".out", ".err", ".pbtxt", "")
#: The folders that plog and the adapter create below the folder of a machine or run.
_OWN_FOLDERS = frozenset(("plog", "debug", "run", "log", "graph", "extra-info"))
#: The suffix and the first bytes of compressed files; either is sufficient.
_PACKED, _MAGIC = ".gz", b"\x1f\x8b"
_PLOG = re.compile(r"plog-\d+_(\d+)\.log(?:\.gz)?")
_OF_PROCESS = re.compile(r"(\d+)_\d+")


class Source(Record):
    """One file.

    ``machine`` is the folder that the processes of one machine share; ``pid`` is the process of its
    folder, ``stamp`` the time in the name of a plog.
    """

    path: str
    machine: str
    pid: int | None
    stamp: str
    is_dump: bool


def find_sources(paths: Sequence[str]) -> list[Source]:
    """Return the files at paths; those of a process in the order of writing.

    Raises NpuprofError.
    """
    sources = []
    for path in paths:
        if path != "-" and os.path.isdir(path):
            inside = [_describe(file) for file in _walk(path)]
            if not inside:
                what = f"{path} has no log and no graph dump in it"
                hint = (
                    "name the folder that plog writes to, such as "
                    "~/ascend/log, or the file that standard error went to"
                )
                raise build_error("NP003", what, "", hint, where=Place(path))
            sources += inside
        else:
            sources.append(_describe(path))
    order = {source: number for number, source in enumerate(dict.fromkeys(sources))}
    return sorted(
        order,
        key=lambda source: (
            # dumps last: each is assigned to a process whose log was read before
            source.is_dump,
            # only names of plog contain a time: other files keep their order
            source.machine if source.stamp else "",
            source.stamp,
            order[source],
        ),
    )


def _raise_unreadable(error: OSError) -> None:
    """Raise NpuprofError for an unreadable folder: its content could change the result."""
    why = describe_os_error(error, error.filename)
    raise build_read_error(error.filename, why, "check its permissions, or name the files to read")


def _walk(folder: str) -> Iterator[str]:
    for above, folders, files in os.walk(folder, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            suffix = os.path.splitext(name.removesuffix(_PACKED))[1]
            if name.startswith(".") or suffix not in _SUFFIXES:
                continue
            # without a suffix inside, a compressed file may be anything
            if suffix or not name.endswith(_PACKED):
                yield os.path.join(above, name)


def _describe(path: str) -> Source:
    folder, name = os.path.split(path)
    match = _PLOG.fullmatch(name)
    is_dump = name.endswith(".pbtxt")
    pid = None
    if not match and not is_dump:
        return Source(path, path, None, "", False)
    parts = os.path.abspath(folder).split(os.sep)
    if is_dump and (of_process := _OF_PROCESS.fullmatch(parts[-1])):
        pid = int(of_process[1])
        parts.pop()
    while parts and parts[-1] in _OWN_FOLDERS:
        parts.pop()
    return Source(path, os.sep.join(parts) or os.sep, pid, match[1] if match else "", is_dump)


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``; empty at the end."""


class _Rejoined:
    """A pipe whose first bytes were already read."""

    def __init__(self, ahead: bytes, file: Readable) -> None:
        self._ahead, self._file = ahead, file

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        return piece or self._file.read(size)


class _Unpacked:
    """Decompressed content; a cut or corrupt file ends there."""

    def __init__(self, file: Readable) -> None:

        self._file = gzip.GzipFile(fileobj=cast("IO[bytes]", file))  # only its read method is used

    def read(self, size: int, /) -> bytes:
        """Return the next bytes. Raises OSError for an unknown compression."""
        pieces, remaining = [], size
        with suppress(EOFError, zlib.error):
            while remaining > 0 and (piece := self._file.read1(remaining)):
                pieces.append(piece)
                remaining -= len(piece)
        return b"".join(pieces)


def _rejoin(ahead: bytes, file: IO[bytes]) -> Readable:
    """Return a reader from the start of a file whose first bytes may have been read already.

    Compressed content is decompressed.
    """
    peek = getattr(file, "peek", None)
    first = ahead or (peek(len(_MAGIC)) if peek is not None else b"")
    rejoined = _Rejoined(ahead, file) if ahead else file
    return _Unpacked(rejoined) if first.startswith(_MAGIC) else rejoined


@contextmanager
def open_source(path: str) -> Iterator[tuple[Readable, int | None]]:
    """Yield a reader of a file, and its size when opened: it may grow faster than it is read.

    Raises NpuprofError.
    """
    if path == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise build_read_error(path, "it is closed")
        yield _rejoin(pop_peeked(path), sys.stdin.buffer), None
        return
    try:
        handed = is_handed_over(path)
        mode = os.stat(path).st_mode
        if not handed and (name := name_special_file(mode)):
            raise build_read_error(path, f"it is {name}, not a file", HAND_OVER)
        with open(path, "rb") as file:
            source = _rejoin(pop_peeked(path) if handed else b"", file)
            sized = stat.S_ISREG(mode) and not isinstance(source, _Unpacked)
            yield source, os.fstat(file.fileno()).st_size if sized else None
    except (OSError, ValueError) as error:
        raise build_read_error(path, describe_os_error(error, path)) from None


def build_read_error(
    path: str,
    why: str,
    hint: str = "name a log, a folder of logs, a graph dump, or - for standard input",
) -> NpuprofError:
    """Return the error for a file that cannot be read."""
    name = "standard input" if path == "-" else path
    return build_error(
        "NP003", f"cannot read {name}: {why}", "", hint, where=None if path == "-" else Place(path)
    )


#: The suffixes of logs and dumps.
SUFFIXES = (".log", ".pbtxt", ".err", ".out", ".log.gz", ".err.gz", ".out.gz")
#: The start of a log line of any program.
_ANY_HEAD = re.compile(rb"\[\w+\] ?\w+\(\d+,|.{0,60}\d{4}-\d\d-\d\d[ T-]\d\d:\d\d:\d\d\.\d")
#: The number of first lines to inspect.
_MOST_LINES = 200
#: The number of files to inspect in a folder, and the number of bytes of each.
_MOST_FILES, _HEAD = 20, 1 << 16
_FOLDERS = (("debug", "plog"), ("run", "plog"), ("plog",), ("extra-info", "graph"))


def is_evidence(path: str, head: bytes | None) -> bool:
    """Return whether a path contains logs or graph dumps.

    ``head`` are the first bytes of a file, None for a folder.
    """
    if head is None:
        folders = [os.path.join(path, *parts) for parts in _FOLDERS]
        return any(map(os.path.isdir, folders)) or _contains_evidence(path)
    return path.endswith(SUFFIXES) or _has_lines(head)


def _has_lines(head: bytes) -> bool:
    """Return whether an adapter, the engine or vLLM wrote one of the first lines."""
    return any(UNKNOWN in line or parse_line(line) for line in head.splitlines()[:_MOST_LINES])


def is_log(head: bytes) -> bool:
    """Return whether unnamed content begins like a log of any program.

    Other programs may write before an adapter.
    """
    first = next((line for line in head.splitlines()[:_MOST_LINES] if line.strip()), b"")
    return _ANY_HEAD.match(first) is not None or _has_lines(head)


def _contains_evidence(folder: str) -> bool:
    """Return whether a folder contains logs, by file names or by the first bytes of some files."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return False
    if any(_PLOG.fullmatch(name) or name.endswith(".pbtxt") for name in names):
        return True
    logs = [os.path.join(folder, name) for name in names if name.endswith(SUFFIXES)]
    return any(_begins_as_log(path) for path in logs[:_MOST_FILES])


def _begins_as_log(path: str) -> bool:
    with suppress(OSError, NpuprofError), open_source(path) as (stream, _):
        return _has_lines(stream.read(_HEAD))
    return False
