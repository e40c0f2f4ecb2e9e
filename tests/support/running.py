"""The command as tests run it in their own process."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


class Run(Protocol):
    """``run("show", "leaf", stdin=b"")``."""

    def __call__(self, *words: str | Path, stdin: bytes = b"") -> Result: ...
