"""Which processes are of a command: the one that was started and all that come of it, as they are seen while it runs."""

from __future__ import annotations

import os
import time

#: How long between two looks, in seconds: at first, and when a command has run for a while.
_LEAST, _MOST = 0.05, 1.0
#: A look costs at most this part of the time.
_SHARE = 20


class Family:
    """The numbers of the processes of a command. What lives between two looks only is not seen; none is taken for one that is not.

    Where the system does not tell its processes, only the command itself is known.
    """

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self._born: dict[int, str] = {}
        self._began = 0.0

    def look(self, child: int) -> float:
        """Look for what has come of a child; return for how many seconds the next look can wait."""
        now = time.monotonic()
        self._began = self._began or now
        self.pids.add(child)
        parents: dict[int, list[int]] = {}
        born: dict[int, str] = {}
        for pid, parent, start in _list_processes():
            parents.setdefault(parent, []).append(pid)
            born[pid] = start
        if child in born:
            self._born.setdefault(child, born[child])
        waiting = [pid for pid, start in self._born.items() if born.get(pid) == start]  # a number may be another process's by now
        while waiting:
            for pid in parents.get(waiting.pop(), ()):
                if pid not in self._born or self._born[pid] != born[pid]:
                    self._born[pid] = born[pid]
                    self.pids.add(pid)
                    waiting.append(pid)
        return max(_LEAST, _SHARE * (time.monotonic() - now), min(_MOST, (now - self._began) / 10))


def _list_processes() -> list[tuple[int, int, str]]:
    """Return number, parent and start of the processes that the system tells of."""
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()  # the name of a program may have blanks and brackets
            found.append((int(name), int(fields[1]), fields[19].decode()))
        except (OSError, ValueError, IndexError):  # it has ended meanwhile
            continue
    return found
