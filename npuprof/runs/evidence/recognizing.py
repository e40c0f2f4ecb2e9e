"""Which paths are evidence: by their names, or by what stands at their beginning."""

from __future__ import annotations

import os
import re

from npuprof.runs.evidence.lines import parse_line

_PLOG = re.compile(r"plog-\d+_\d+\.log")
#: How the names of logs and dumps end.
SUFFIXES = (".log", ".pbtxt", ".err", ".out")
_FOLDERS = (("debug", "plog"), ("run", "plog"), ("plog",), ("extra-info", "graph"))


def is_evidence(path: str, head: bytes | None) -> bool:
    """Return whether a path is that of logs or graph dumps; ``head`` is how a file begins, None for a folder."""
    if head is None:
        return any(os.path.isdir(os.path.join(path, *parts)) for parts in _FOLDERS) or _holds_evidence(path)
    return path.endswith(SUFFIXES) or any(parse_line(line) for line in head.splitlines()[:200])


def _holds_evidence(folder: str) -> bool:
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(_PLOG.fullmatch(name) or name.endswith(".pbtxt") for name in names)
