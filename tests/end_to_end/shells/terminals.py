"""A shell on a real terminal, to which a test types and of which it waits for what it shows."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from contextlib import suppress

import pytest

from support.waiting import PATIENCE


class Terminal:
    """A shell with job control on a terminal."""

    def __init__(self) -> None:
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "$ "
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.seen = ""

    def send(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def expect(self, text: str, wait: float = PATIENCE) -> str:
        end = time.monotonic() + wait
        while text not in self.seen:
            ready, _, _ = select.select([self.handle], [], [], max(end - time.monotonic(), 0))
            if not ready:
                pytest.fail(f"no {text!r} in {self.seen!r}")
            with suppress(OSError):
                self.seen += os.read(self.handle, 4096).decode()
        before, _, self.seen = self.seen.partition(text)
        return before

    def suspend(self) -> None:
        """Stop the command that runs, and go on with it."""
        time.sleep(0.5)  # a shell that is stopped while it makes a process waits for that, and tells nobody
        self.send("\x1a")
        self.expect("Stopped")
        self.send("jobs; fg\n")

    def close(self) -> None:
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.handle)
