"""Which paths are evidence: by their names, or by what stands at their beginning."""

from __future__ import annotations

import os
import re

from npuprof.model import NpuprofError
from npuprof.runs.evidence.lines import has_head, parse_line

_PLOG = re.compile(r"plog-\d+_\d+\.log(?:\.gz)?")
#: How the names of logs and dumps end.
SUFFIXES = (".log", ".pbtxt", ".err", ".out", ".log.gz", ".err.gz", ".out.gz")
#: How many lines of the beginning are looked at.
_MOST_LINES = 200
#: How many files of a folder are looked into, and how many bytes of each.
_MOST_FILES, _HEAD = 20, 1 << 16
_FOLDERS = (("debug", "plog"), ("run", "plog"), ("plog",), ("extra-info", "graph"))


def is_evidence(path: str, head: bytes | None) -> bool:
    """Return whether a path is that of logs or graph dumps; ``head`` is how a file begins, None for a folder."""
    if head is None:
        return any(os.path.isdir(os.path.join(path, *parts)) for parts in _FOLDERS) or _holds_evidence(path)
    return path.endswith(SUFFIXES) or any(parse_line(line) for line in head.splitlines()[:_MOST_LINES])


def is_log(head: bytes) -> bool:
    """Return whether what has no name begins as a log does: of whoever, for others may have written before an adapter."""
    lines = [line for line in head.splitlines()[:_MOST_LINES] if line.strip()]
    first = lines[0] if lines else b""
    return has_head(first) or any(parse_line(line) for line in lines)


def _holds_evidence(folder: str) -> bool:
    """Return whether files in a folder are evidence: some by their names, others by how one of the first begins."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return False
    if any(_PLOG.fullmatch(name) or name.endswith(".pbtxt") for name in names):
        return True
    logs = [os.path.join(folder, name) for name in names if name.endswith(SUFFIXES)]
    return any(_begins_as_log(path) for path in logs[:_MOST_FILES])


def _begins_as_log(path: str) -> bool:
    from npuprof.runs.evidence.places import open_source

    try:
        with open_source(path) as (stream, _):
            head = stream.read(_HEAD)
    except (OSError, NpuprofError):
        return False
    return any(parse_line(line) for line in head.splitlines()[:_MOST_LINES])
