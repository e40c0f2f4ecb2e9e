"""Which paths are evidence: by their names, or by what stands at their beginning."""

from __future__ import annotations

import os
import re

from npuprof.runs.evidence.lines import has_head, parse_line

_PLOG = re.compile(r"plog-\d+_\d+\.log(?:\.gz)?")
#: How the names of logs and dumps end.
SUFFIXES = (".log", ".pbtxt", ".err", ".out", ".log.gz", ".err.gz", ".out.gz")
#: How many lines of the beginning are looked at.
_MOST_LINES = 200
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
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(_PLOG.fullmatch(name) or name.endswith(".pbtxt") for name in names)
