"""Distributes the lines of one log to parsers, and their content to processes."""

from __future__ import annotations

import os
import re

from npuprof.runs.evidence import MOST_MAPS, Process, Text
from npuprof.runs.evidence.adapter_log import AdapterLog
from npuprof.runs.evidence.engine_log import EngineLog
from npuprof.runs.evidence.line_splitting import ENDING, SAYING
from npuprof.runs.evidence.lines import (
    UNKNOWN,
    Line,
    ReadVariable,
    decode_text,
    has_head,
    is_remnant,
    parse_line,
    parse_variable,
    show_writer,
    strip_colours,
)
from npuprof.runs.evidence.option_blocks import Tail
from npuprof.runs.evidence.tf2_log import Tf2Log
from npuprof.runs.unknown_variables import LINE
from npuprof.system import count_common, group_pairs


class Processes:
    """The processes by machine, launcher label, and number, and variables unknown to vLLM."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, int | None], Process] = {}
        self.unknown: dict[str, None] = {}

    def get(self, machine: str, before: str, pid: int | None) -> Process:
        """Return the process with a number, on one machine and with one label before its lines.

        The label is needed because each container counts its processes from 1.
        """
        return self.found.setdefault(
            (machine, before, pid), Process(machine, pid, show_writer(before))
        )

    def find_dumped(self, machine: str, pid: int | None) -> Process:
        """Return the process of a dump.

        It is the one with its number and a log, in the nearest folder if there are several.
        """
        folders = machine.split(os.sep)
        by_distance = group_pairs(
            (count_common(process.place.split(os.sep), folders), process)
            for process in self.found.values()
            if process.pid == pid is not None and (process.epochs or process.pending)
        )
        nearest = by_distance[max(by_distance)] if by_distance else []  # most folders in common
        return nearest[0] if len(nearest) == 1 else self.get(machine, "", pid)


class LogReader:
    """The parsers for the lines of one log."""

    def __init__(self, machine: str, processes: Processes) -> None:
        self._machine = machine
        self._processes = processes
        self._tail = Tail()
        self._adapter = AdapterLog(self._tail)
        self._engine = EngineLog(self._tail)
        self._tf2: dict[str, Tf2Log] = {}
        self._met: dict[Process, None] = {}
        self._is_truncated = False
        self.wants: re.Pattern[bytes] | None = SAYING

    def take(self, raw: bytes, ended: bool) -> None:
        """Parse a line; without a head, it may continue the previous text."""
        plain = strip_colours(raw)
        found = LINE.search(decode_text(plain)) if UNKNOWN in plain else None
        if found and len(self._processes.unknown) < MOST_MAPS:
            self._processes.unknown[found[1]] = None
        variable = parse_variable(plain, ended)
        if variable is not None:
            self._tail.clear()
            self._take_variable(variable)
            return
        line = parse_line(plain)
        if not self._is_truncated:
            is_damaged = line.glued if line is not None else is_remnant(plain)
            self._is_truncated = is_damaged or b"\0" in plain
        if line is None and self._tail.is_open and not has_head(plain):
            self._tail.go_on()
        self._tail.clear()
        if line is not None:
            self._take_parsed(line._replace(ended=ended))
        self.wants = None if self._tail.is_open else ENDING if self._adapter.is_open else SAYING

    def _take_variable(self, variable: ReadVariable) -> None:
        """Record the text of a variable once, with the line's facts about the process."""
        process = self._processes.get(self._machine, variable.before, variable.pid)
        self._met.setdefault(process)
        process.rank = process.rank or variable.rank
        texts = process.variables.setdefault(variable.name, [])
        text = Text(variable.text, variable.cut)
        if text not in texts and len(texts) < MOST_MAPS:
            texts.append(text)

    def _take_parsed(self, line: Line) -> None:
        if line.writer == "tf2":
            log = self._tf2.setdefault(line.before, Tf2Log(self._tail, show_writer(line.before)))
            log.take(self._machine, line)
            return
        process = self._processes.get(self._machine, line.before, line.pid)
        self._met.setdefault(process)
        (self._engine if line.writer == "engine" else self._adapter).take(process, line)

    def finish(self) -> list[Process]:
        """Close everything at the end of the stream. Return the processes of TensorFlow 2."""
        self._tail.go_on()
        self._adapter.finish()
        self._engine.finish()
        for log in self._tf2.values():
            log.finish()
        of_tf2 = [process for log in self._tf2.values() for process in log.found]
        if (
            self._is_truncated
            or self._adapter.is_truncated
            or any(log.is_truncated for log in self._tf2.values())
        ):
            for process in (*self._met, *of_tf2):
                process.is_truncated = True
        return of_tf2
