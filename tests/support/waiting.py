"""Waiting for what another process does, and no longer than a machine under load takes for it."""

from __future__ import annotations

import inspect
import os
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

#: How long a test waits for anything, in seconds.
PATIENCE = 60


def wait_for(test: Callable[[], object], pause: float = 0.02) -> None:
    """Return when a test is true; fail with its source where it never is."""
    ends = time.monotonic() + PATIENCE
    while not test():
        if time.monotonic() > ends:
            pytest.fail(f"not after {PATIENCE} s: {inspect.getsource(test).strip()}")
        time.sleep(pause)


def skip_hangs(monkeypatch: pytest.MonkeyPatch, hangs: Path) -> None:
    """Let 1,000 seconds pass for the trials of this process with each byte of a file.

    A command that adds one before it hangs reaches any shorter timeout at once, and no other
    command does.
    """

    def read_clock() -> float:
        return time.monotonic() + 1000 * (hangs.stat().st_size if hangs.exists() else 0)

    clock = SimpleNamespace(monotonic=read_clock, sleep=time.sleep)
    monkeypatch.setattr("npuprof.trials.process_groups.time", clock)


def read_line(process: subprocess.Popen[str], wait: float = PATIENCE) -> str:
    """Return the next line that a process writes, without its end.

    What there is of it where nothing comes for a while.

    It is read a byte at a time: a line that waits in a buffer here is one that `select` does not
    see.
    """
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n") and select.select([process.stdout], [], [], wait)[0]:
        piece = os.read(process.stdout.fileno(), 1)
        if not piece:
            break
        line += piece
    return line.decode().removesuffix("\n")


def read_until(terminal: int, text: bytes) -> bytes:
    """Return what a terminal shows up to a text and a little further.

    Fails where it is closed before.
    """
    shown = b""
    while text not in shown:
        piece = b""
        with suppress(OSError):  # the other end of a terminal is closed
            piece = os.read(terminal, 4096)
        if not piece:
            pytest.fail(f"no {text!r} in {shown!r}")
        shown += piece
    return shown
