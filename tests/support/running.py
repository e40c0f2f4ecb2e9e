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

    def __call__(self, *words: str | Path, stdin: bytes = b"") -> Result: ...


class Store(Protocol):
    """``store({"leaf": "[options]\\n"})`` writes presets; it returns their folder."""

    def __call__(self, presets: Mapping[str, str | bytes]) -> Path: ...


def expect(result: Result, code: int, *said: str) -> str:
    """Return the output of a command, blanks as one, after checking its code and texts."""
    told = " ".join(f"{result.out}\n{result.err}".split())
    missing = [words for words in said if " ".join(words.split()) not in told]
    assert (result.code, missing) == (code, []), told
    return told
