"""The processes that evidence is of: told apart by where they were found, their numbers, and what a launcher calls them."""

from __future__ import annotations

import os
from itertools import takewhile

from npuprof.runs.evidence import MOST_PROCESSES, Process
from npuprof.runs.evidence.labels import find_form, show_writer


class Processes:
    """The processes by where they were found, what a launcher calls them, and their number."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, int | None], Process] = {}
        self.left_out = 0
        self.torn: set[str] = set()  # the places of files that end within a line
        self._by_number: dict[int | None, list[Process]] = {}
        self._writers: dict[tuple[str, int], str] = {}  # what the first line of a number has before it

    def get(self, place: str, before: str, pid: int | None) -> Process | None:
        """Return the process of a place that has a number, or what stands ``before`` its lines; None where there are too many."""
        label = before
        if pid is not None:
            first = self._writers.setdefault((place, pid), before)
            before = "" if before == first else _tell_apart(first, before)
        key = (place, before, pid)
        process = self.found.get(key)
        if process is None:
            if len(self.found) >= MOST_PROCESSES:
                self.left_out += 1
                return None
            process = self.found[key] = Process(place, pid, show_writer(label))
            self._by_number.setdefault(pid, []).append(process)
        return process

    def find_logged(self, place: str, pid: int | None) -> Process | None:
        """Return the process that a dump is of: the one of its number that left a log, the nearest where there are several."""
        if pid is None or (place, "", pid) in self.found:
            return None
        near: dict[int, list[Process]] = {}
        for process in self._by_number.get(pid, ()):
            if process.epochs or process.pending:
                near.setdefault(_count_common(process.place, place), []).append(process)
        nearest = near[max(near)] if near else []
        return nearest[0] if len(nearest) == 1 else None


def _tell_apart(first: str, before: str) -> str:
    """Return what tells a process from one of the same number: how the launcher of containers calls it, each of which counts from 1."""
    return before if before and find_form(before) == find_form(first) else ""


def _count_common(one: str, other: str) -> int:
    """Return how many folders two places share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.split(os.sep), other.split(os.sep), strict=False)))
