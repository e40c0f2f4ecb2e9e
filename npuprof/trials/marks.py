"""Processes that a trial has started, wherever they have gone: found by a mark in their environment, which what they start inherits."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

#: How long processes have to end that were asked to, in seconds.
GRACE = 2.0
#: How often it is looked at what the system does not tell of by itself, in seconds.
GLANCE = 0.02
#: By this variable processes are marked.
MARK = "_NPUPROF_TRIAL"
#: So often within a glance it is looked whether a process gets an environment; the bit of those of the kernel, which never do.
_LOOKS = 20
_OF_KERNEL = 0x200000
#: Processes that have none.
_BARE: set[int] = set()


def find_marked(mark: str, whole: bool = True) -> list[int]:
    """Return the processes of this user whose mark this is, or begins so; none where the system does not show environments."""
    wanted = f"\0{MARK}={mark}".encode() + (b"\0" if whole else b"")
    found = []
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for name in names:
        with suppress(OSError):
            if wanted in b"\0" + (_read_environment(name) or _read_late_environment(int(name))):
                found.append(int(name))
    return [pid for pid in found if pid != os.getpid()]


def _read_environment(name: str) -> bytes:
    with open(f"/proc/{name}/environ", "rb") as file:
        return file.read()


def _read_late_environment(pid: int) -> bytes:
    """Return the environment of a process that showed none: while another program is loaded into it, there is none for a moment."""
    for _ in range(_LOOKS if pid not in _BARE else 0):
        told = read_stat(str(pid))
        if told[0] in ("Z", "X"):
            return b""
        if int(told[6]) & _OF_KERNEL:
            break
        if held := _read_environment(str(pid)):
            return held
        time.sleep(GLANCE / _LOOKS)
    _BARE.add(pid)
    return b""


def read_stat(name: str) -> list[str]:
    """Return what the system tells of a process, from its state on. Raises OSError where it is no more."""
    with open(f"/proc/{name}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2].decode().split()


def end_marked(mark: str) -> int:
    """End the processes whose marks begin so: what a killed npuprof has left behind. Return how many there were."""
    found = find_marked(mark, whole=False)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in find_marked(mark, whole=False):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        until = time.monotonic() + GRACE
        while find_marked(mark, whole=False) and time.monotonic() < until:
            time.sleep(GLANCE)
    return len(found)
