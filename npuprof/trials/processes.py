"""Start trials as process groups that write to a file, and end a group that exceeds its time or is interrupted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from npuprof.model import Record
from npuprof.system.processes import DEVNULL, hold_signals, start_user_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

#: How long the processes of a group have to end after a signal, in seconds.
GRACE = 2.0
#: How often the processes are polled, in seconds.
_POLL_INTERVAL = 0.01


class Ended(Record):
    """How a command ended: its exit code, or the signal that ended it; ``hung`` if it was ended because of the time."""

    exit: int | None
    signal: int | None
    seconds: float
    hung: bool


class _Running:
    """A command that runs, and when its group was sent which signal."""

    def __init__(self, process: subprocess.Popen[bytes], began: float, timeout: float | None) -> None:
        self.process = process
        self.began = began
        self.deadline = began + timeout if timeout is not None else None
        self.ended: float | None = None
        self.hung = False
        self.terminated: float | None = None
        self.killed: float | None = None


class Pool:
    """Commands that run side by side, each by a key of its own."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, key: str, command: Sequence[str], environment: Mapping[str, str], log: int, timeout: float | None = None) -> None:
        """Start a command as a process group of its own that writes to an open file. Raises OSError if it cannot be started."""
        began = time.monotonic()
        with hold_signals():
            process = start_user_command(command, stdin=DEVNULL, stdout=log, stderr=log, env=dict(environment), start_new_session=True)
            self._running[key] = _Running(process, began, timeout)

    def wait(self, patience: float = 1.0) -> Iterator[tuple[str, Ended]]:
        """Yield the commands that have ended, with how, as soon as there are some or the patience is at its end."""
        until = time.monotonic() + patience
        done: list[str] = []
        while self._running and not done and time.monotonic() < until:
            done = [key for key, running in self._running.items() if _has_ended(running)]
            if not done:
                time.sleep(_POLL_INTERVAL)
        for key in done:
            running = self._running.pop(key)
            code = running.process.returncode
            assert running.ended is not None
            number = -code if code < 0 else None
            yield key, Ended(None if number else code, number, running.ended - running.began, running.hung)

    def stop(self) -> None:
        """End all commands with the processes of their groups."""
        stopped = list(self._running.values())
        self._running.clear()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for running in stopped:
                _signal_group(running, number)
            until = time.monotonic() + GRACE
            while any(running.process.poll() is None or _is_group_alive(running) for running in stopped) and time.monotonic() < until:
                time.sleep(_POLL_INTERVAL)
        for running in stopped:
            running.process.wait()


def _has_ended(running: _Running) -> bool:
    """Return whether a command and its group have ended; end the group if its time is over, or if its leader has ended."""
    now = time.monotonic()
    if running.ended is None and running.process.poll() is not None:
        running.ended = now
    if running.ended is None and running.deadline is not None and now > running.deadline:
        running.hung = True
    if running.ended is None and not running.hung:
        return False
    is_alive = running.ended is None or _is_group_alive(running)
    if is_alive and running.terminated is None:
        running.terminated = now
        _signal_group(running, signal.SIGTERM)
    elif is_alive and running.terminated is not None and now > running.terminated + GRACE:
        running.killed = running.killed or now
        _signal_group(running, signal.SIGKILL)
    is_stuck = running.killed is not None and now > running.killed + GRACE  # what SIGKILL does not end is left alone
    return running.ended is not None and (not is_alive or is_stuck)


def _is_group_alive(running: _Running) -> bool:
    try:
        os.killpg(running.process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal_group(running: _Running, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(running.process.pid, number)
