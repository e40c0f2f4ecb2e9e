"""The command as tests run it in their own process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


class Run(Protocol):
    """``run("show", "leaf", stdin=b"")``."""

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> Result: ...


class Store(Protocol):
    """``store({"leaf": "[options]\\n"})`` writes presets; it returns their folder."""

    def __call__(self, presets: Mapping[str, str | bytes]) -> Path: ...


def expect(result: Result, code: int, *texts: str) -> str:
    """Return the output of a command, blanks as one, after checking its code and texts."""
    output = " ".join(f"{result.out}\n{result.err}".split())
    assert result.code == code, output
    missing = [text for text in texts if " ".join(text.split()) not in output]
    assert missing == [], output
    return output
