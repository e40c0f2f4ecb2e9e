"""Start trials as process groups, read their output within bounds, and end a group that exceeds its time or is interrupted."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from npuprof.model import Record
from npuprof.system.processes import DEVNULL, start_user_command
from npuprof.trials.metrics import MetricReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

#: How long the processes of a group have to end after a signal, in seconds.
GRACE = 2.0
#: How often the processes are polled, in seconds.
_POLL_INTERVAL = 0.01
#: What is kept of the output of a command: so many bytes from its beginning, and so many from its end. Metrics are read in all of it.
KEPT_OUTPUT = 1_048_576


class Ended(Record):
    """How a command ended: its exit code, or the signal that ended it; ``hung`` where it had to be ended because of the time."""

    exit: int | None
    signal: int | None
    seconds: float
    hung: bool
    output: bytes
    metrics: dict[str, float] = {}


class _Output:
    """The beginning and the end of what a command prints, and the metrics in all of it."""

    def __init__(self, metrics: Mapping[str, str]) -> None:
        self.reader = MetricReader(metrics)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._held = self._total = 0

    def add(self, piece: bytes) -> None:
        self.reader.add(piece)
        self._total += len(piece)
        room = KEPT_OUTPUT - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece:
            self._tail.append(piece)
            self._held += len(piece)
            while self._held - len(self._tail[0]) >= KEPT_OUTPUT:
                self._held -= len(self._tail.popleft())

    def get_text(self) -> bytes:
        left_out = self._total - len(self._head) - self._held
        between = f"\n[npuprof: {left_out} bytes left out]\n".encode() if left_out else b""
        return bytes(self._head) + between + b"".join(self._tail)


class _Running:
    """A command that runs."""

    def __init__(
        self, process: subprocess.Popen[bytes], pipe: int, began: float, timeout: float | None, metrics: Mapping[str, str]
    ) -> None:
        self.process = process
        self.pipe = pipe
        self.output = _Output(metrics)
        self.began = began
        self.deadline = self.began + timeout if timeout is not None else None
        self.ended: float | None = None
        self.hung = False
        self.terminated: float | None = None  # when its group was sent SIGTERM
        self.killed: float | None = None  # when its group was sent SIGKILL


class Pool:
    """Commands that run side by side, each by a key of its own."""

    def __init__(self, metrics: Mapping[str, str] | None = None) -> None:
        self._metrics = metrics or {}
        self._selector = selectors.DefaultSelector()
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def start(self, key: str, command: Sequence[str], environment: Mapping[str, str], timeout: float | None = None) -> None:
        """Start a command as a process group of its own. Raises OSError if it cannot be started."""
        reading, writing = os.pipe()
        began = time.monotonic()
        try:
            process = start_user_command(
                command, stdin=DEVNULL, stdout=writing, stderr=writing, env=dict(environment), start_new_session=True
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        self._running[key] = _Running(process, reading, began, timeout, self._metrics)
        self._selector.register(reading, selectors.EVENT_READ, key)

    def wait(self, patience: float = 1.0) -> Iterator[tuple[str, Ended]]:
        """Yield the commands that have ended, with how, once there are some or the patience is at its end."""
        until = time.monotonic() + patience
        done: list[str] = []
        while self._running and not done:
            for selected, _ in self._selector.select(_POLL_INTERVAL):
                self._read(self._running[selected.data])
            done = [key for key, one in self._running.items() if self._has_ended(one)]
            if time.monotonic() > until:
                break
        for key in done:
            one = self._running.pop(key)
            self._close(one)
            code = one.process.returncode
            assert one.ended is not None
            how = (code, None) if code >= 0 else (None, -code)
            yield key, Ended(how[0], how[1], one.ended - one.began, one.hung, one.output.get_text(), one.output.reader.finish())

    def stop(self) -> None:
        """End all commands with the processes of their groups."""
        chosen = list(self._running.values())
        self._running.clear()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for one in chosen:
                _signal_group(one, number)
            until = time.monotonic() + GRACE
            while any(one.process.poll() is None or _is_group_alive(one) for one in chosen) and time.monotonic() < until:
                time.sleep(_POLL_INTERVAL)
                for one in chosen:
                    self._read(one)
        for one in chosen:
            one.process.wait()
            self._close(one)

    def _read(self, one: _Running) -> bool:
        """Take what a command has printed; return whether there was anything."""
        if one.pipe < 0:
            return False
        try:
            piece = os.read(one.pipe, 1 << 18)
        except BlockingIOError:
            return False
        if not piece:
            self._close(one)
            return False
        one.output.add(piece)
        return True

    def _close(self, one: _Running) -> None:
        pipe, one.pipe = one.pipe, -1  # first: who is interrupted here closes no other file by its number
        if pipe >= 0:
            with suppress(KeyError, ValueError):
                self._selector.unregister(pipe)
            os.close(pipe)

    def _has_ended(self, one: _Running) -> bool:
        """Return whether a command and its group have ended; end the group if its time is over, or if its leader has ended."""
        now = time.monotonic()
        if one.ended is None and one.process.poll() is not None:
            one.ended = now
        if one.ended is None and one.deadline is not None and now > one.deadline:
            one.hung = True
        if one.ended is None and not one.hung:
            return False
        left = one.ended is None or _is_group_alive(one)
        if left and one.terminated is None:
            one.terminated = now
            _signal_group(one, signal.SIGTERM)
        elif left and one.terminated is not None and now > one.terminated + GRACE:
            one.killed = one.killed or now
            _signal_group(one, signal.SIGKILL)
        if one.ended is None or (left and (one.killed is None or now < one.killed + GRACE)):  # what SIGKILL does not end is left alone
            return False
        for _ in range(64):  # what stands in the pipe still
            if not self._read(one):
                break
        return True


def _is_group_alive(one: _Running) -> bool:
    try:
        os.killpg(one.process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    states = _list_group_states(one.process.pid)
    return states is None or any(state not in "ZX" for state in states)


def _list_group_states(group: int) -> list[str] | None:
    """Return the states of the processes of a group, None if the system does not show them. A zombie counts as ended."""
    if not os.path.exists("/proc/self/stat"):
        return None
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, _, member = file.read().rpartition(b") ")[2].decode().split()[:3]
                if int(member) == group:
                    found.append(state)
    return found


def _signal_group(one: _Running, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(one.process.pid, number)
