"""Starts trials as process groups that write to a file.

Groups that exceed their time or are interrupted are ended.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from npuprof.model import Record
from npuprof.system.processes import DEVNULL, hold_signals, start_user_command

#: The time for a group to end after a signal, in seconds.
GRACE = 2.0
#: The polling interval of processes, in seconds.
_POLL_INTERVAL = 0.01


class Ended(Record):
    """How a command ended: its exit code, or its fatal signal; ``hung`` if it exceeded its time."""

    exit: int | None
    signal: int | None
    seconds: float
    hung: bool


class _Running(Record):
    process: subprocess.Popen[bytes]
    began: float
    deadline: float


class Pool:
    """Commands that run concurrently, by key."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(
        self,
        key: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: int,
        timeout: float | None = None,
    ) -> None:
        """Start a command as a process group that writes to an open file.

        Raises OSError if that fails.
        """
        began = time.monotonic()
        with hold_signals():
            process = start_user_command(
                command,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(environment),
                # a trial may start further processes, which must end with it
                start_new_session=True,
            )
            self._running[key] = _Running(process, began, began + (timeout or math.inf))

    def wait(self, patience: float = 1.0) -> Iterator[tuple[str, Ended]]:
        """Yield the ended commands, each with how it ended.

        They come as soon as there are any or the time is over.
        """
        until = time.monotonic() + patience
        done: list[str] = []
        while self._running and not done and time.monotonic() < until:
            now = time.monotonic()
            done = [
                key
                for key, running in self._running.items()
                if running.process.poll() is not None or now > running.deadline
            ]
            if not done:
                time.sleep(_POLL_INTERVAL)
        for key in done:
            running = self._running[key]
            seconds, is_hung = time.monotonic() - running.began, running.process.poll() is None
            # also after a regular end: a process in the background would disturb the next trial
            _end_groups([running.process])
            del self._running[key]
            code = running.process.wait()
            yield (
                key,
                Ended(None if code < 0 else code, -code if code < 0 else None, seconds, is_hung),
            )

    def stop(self) -> None:
        """End all commands with their process groups."""
        _end_groups([running.process for running in self._running.values()])
        self._running.clear()


def _end_groups(leaders: Sequence[subprocess.Popen[bytes]]) -> None:
    """End remaining process groups; processes that survive SIGKILL are ignored."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + GRACE
        alive = [leader for leader in leaders if _signal_group(leader, number)]
        while alive and time.monotonic() < until:
            time.sleep(_POLL_INTERVAL)
            alive = [
                leader for leader in alive if leader.poll() is None or _signal_group(leader, 0)
            ]


def _signal_group(leader: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to a process group; return whether it existed."""
    try:
        os.killpg(leader.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
