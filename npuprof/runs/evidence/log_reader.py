"""The lines of one log: every line goes to the reader of its writer, and what it says to its process."""

from __future__ import annotations

import os
from datetime import timedelta
from itertools import takewhile

from npuprof.runs.evidence import MOST_PROCESSES, Process
from npuprof.runs.evidence.adapter_log import AdapterLog
from npuprof.runs.evidence.blocks import Tail
from npuprof.runs.evidence.engine_log import EngineLog
from npuprof.runs.evidence.lines import (
    Line,
    find_form,
    has_head,
    is_remnant,
    parse_line,
    pass_strangers,
    read_time,
    show_writer,
    strip_dress,
    strip_label,
)
from npuprof.runs.evidence.tf2_log import Tf2Log


class Processes:
    """The processes by where they were found, what a launcher calls them, and their number."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, int | None], Process] = {}
        self.left_out = 0
        self.torn: set[str] = set()  # the places of files that end within a line
        self._by_number: dict[int | None, list[Process]] = {}
        self._writers: dict[tuple[str, int], str] = {}  # what the first line of a number has before it

    def get(self, place: str, before: str, pid: int | None) -> Process | None:
        """Return the process of a place by its number, or by the label ``before`` its lines; None if there are too many."""
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
        by_distance: dict[int, list[Process]] = {}
        for process in self._by_number.get(pid, ()):
            if process.epochs or process.pending:
                by_distance.setdefault(_count_common(process.place, place), []).append(process)
        nearest = by_distance[max(by_distance)] if by_distance else []
        return nearest[0] if len(nearest) == 1 else None


def _tell_apart(first: str, before: str) -> str:
    """Return the label that distinguishes processes of one number: each container counts from 1, and its launcher labels the lines."""
    return before if before and find_form(before) == find_form(first) else ""


def _count_common(place: str, other_place: str) -> int:
    """Return how many folders two places share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(place.split(os.sep), other_place.split(os.sep), strict=False)))


#: The longest time between two lines of which one begins a file and the other ends the one before it: plog goes on at once.
_PAUSE = timedelta(seconds=2)
#: After so many lines that add nothing to a block it is closed.
_FAR = 20_000


class LogReader:
    """Who takes the lines of one stream of logs: a file, or several that a process wrote one after the other."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._tail = Tail()
        self.adapter = AdapterLog(self._tail)
        self.engine = EngineLog(self._tail)
        self.tf2: dict[tuple[str, str], Tf2Log] = {}
        self.place = ""
        self.attentive = False
        self.torn = False
        self._spoilt = False
        self._met: dict[Process, None] = {}
        self._idle = 0
        self._last = b""
        self._writer = ""  # what the last line has before it
        self._between = False

    def take(self, raw: bytes, ended: bool) -> None:
        """Take a line; it goes on with the last one where it has no head."""
        if self._between:
            self._between = False
            if not _follows(self._last, raw):
                self.finish()
        plain = strip_dress(raw)
        line = parse_line(plain)
        if line is not None and line.pid is not None and raw == self._last:
            self._idle += 1
            self._attend()  # it is there twice, of the same microsecond
            return
        if line is not None:
            self._writer = line.before
        self._spoilt = self._spoilt or b"\0" in plain or (line.glued if line is not None else is_remnant(plain))
        rest = strip_label(self._writer, plain) if line is None else None
        headless = rest is not None and not has_head(rest)
        self._last = (self._last if headless else raw) if ended else b""
        if line is None:
            if headless:
                self._tail.go_on()
            else:
                self._tail.clear()
            self._idle += 1
        elif line.writer == "tf2":
            self._idle = 0
            self._tail.clear()
            log = self.tf2.setdefault((self.place, line.before), Tf2Log(self._tail, show_writer(line.before)))
            log.take(self.place, line, ended)
        else:
            self._tail.clear()
            process = self._processes.get(self.place, line.before, line.pid)
            if process is not None:
                self._take_of(self.engine if line.writer == "engine" else self.adapter, process, line, ended)
                is_within = line.writer == "adapter" and self.adapter.is_within
                self._idle = 0 if is_within else self._idle + 1  # others end no block, and are by far the most
        self._attend()

    def pass_over(self, data: bytes, place: int) -> int:
        """Return the place after lines of other writers, which only separate the lines of interest."""
        end = place if self._between else pass_strangers(data, place)
        if end > place:
            self._tail.clear()
            self._idle += data.count(b"\n", place, end)
            self._last = data[data.rfind(b"\n", 0, end - 1) + 1 : end - 1]
            self._attend()
        return end

    def _attend(self) -> None:
        """Set whether every next line is wanted; close blocks that got no line for long."""
        is_open = self.adapter.is_open or (bool(self.tf2) and any(log.is_open for log in self.tf2.values()))
        if is_open and self._idle > _FAR:  # whoever wrote it is gone
            self.adapter.finish()
            for log in self.tf2.values():
                log.finish()
            is_open = False
        self.attentive = is_open or self._tail.is_open

    def _take_of(self, log: AdapterLog | EngineLog, process: Process, line: Line, ended: bool) -> None:
        log.take(process, line, ended)
        self._met.setdefault(process)

    def finish_file(self) -> None:
        """End a file; the first line of the next one decides whether that continues it."""
        if self.torn:
            self._processes.torn.add(self.place)
        self.adapter.tear()
        self._between = self.attentive = True

    def finish(self) -> None:
        """End what is open: there is nothing more to read, or something between is lost."""
        self._tail.go_on()
        self.adapter.finish()
        self.engine.finish()
        for log in self.tf2.values():
            log.finish()

    def mark_damage(self) -> None:
        """Mark the processes as spoilt if lines of theirs are cut or garbled. Called when all lines are read."""
        if self._spoilt or self.adapter.spoilt or any(log.spoilt for log in self.tf2.values()):
            for process in (*self._met, *(process for log in self.tf2.values() for process in log.found)):
                process.spoilt = True


def _follows(last: bytes, raw: bytes) -> bool:
    """Return whether the first line of a file was written right after the last one of the file before: none between them is missing."""
    before, after = read_time(last), read_time(raw)
    return before is not None and after is not None and abs(after - before) <= _PAUSE
