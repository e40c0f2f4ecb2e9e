"""The engine's own log of its options: the final values, after everything that the adapter adds."""

from __future__ import annotations

import re

from npuprof.runs.evidence import Epoch, Map, Process, Text, Values
from npuprof.runs.evidence.blocks import Tail
from npuprof.runs.evidence.lines import Line
from npuprof.system import lazy_pattern

_OPTION = lazy_pattern(r"GE(?:Session)? ?option: (\S+), value: (.*)", re.DOTALL)
_OF_GRAPH = lazy_pattern(r", innerSession:\d+, graphid: \d+\.$")
_MORE_THAN_ONCE = "GEInitialize is called more than once"
_RANK = "ge.exec.rankId"
_DEVICE = "ge.exec.deviceId"


class _Series:
    __slots__ = ("epoch", "last", "stage", "values")

    def __init__(self, stage: str, epoch: Epoch | None) -> None:
        self.stage = stage
        self.epoch = epoch
        self.values: Values = {}
        self.last = b""


class EngineLog:
    """The engine's lines in one stream: a series of keys in byte order is one map."""

    def __init__(self, tail: Tail) -> None:
        self._series: dict[tuple[Process, str], _Series] = {}  # by process and thread
        self._tail = tail

    def take(self, process: Process, line: Line) -> None:
        """Parse a line and record it in its process."""
        if _MORE_THAN_ONCE in line.text:
            self._close(process, line.thread)
            process.settle().late = "the engine was running already"
            return
        match = _OPTION.fullmatch(line.text)
        if match is None:
            if "GEInit" in line.text:  # a new series
                self._close(process, line.thread)
            return
        text = match[2]
        plain = _strip_ending(text)
        stage = "graph" if _OF_GRAPH.search(text) else _find_stage(line.origin, line.text)
        if not stage:
            return
        key = match[1].encode("utf-8", "surrogateescape")
        series = self._series.get((process, line.thread))
        if series is None or series.stage != stage or key <= series.last:
            self._close(process, line.thread)
            series = _Series(stage, None if stage == "init" else self._find_epoch(process))
            if stage == "session" and series.epoch is not None:
                series.epoch.joined = series.epoch.joined or bool(series.epoch.late)
            self._series[process, line.thread] = series
        series.last = key
        series.values[match[1]] = Text(plain, plain == text or line.is_cut)
        if plain == text:
            self._tail.set(series.values, match[1])
        process.informed = True

    def finish(self) -> None:
        """Close all series at the end of the stream."""
        for process, thread in list(self._series):
            self._close(process, thread)

    def _close(self, process: Process, thread: str) -> None:
        series = self._series.pop((process, thread), None)
        if series is None:
            return
        for key, field in ((_RANK, "rank"), (_DEVICE, "device")):
            if key in series.values and not getattr(process, field):
                setattr(process, field, series.values[key].text)
        texts = Map(series.values, engine=True)
        if series.stage == "init":
            last = process.epochs[-1] if process.epochs else None
            if last is None or any(block.engine for block in last.maps.get("init", ())):
                process.start_epoch()
        process.settle()
        (series.epoch or process.epoch).add(series.stage, texts)

    def _find_epoch(self, process: Process) -> Epoch | None:
        """Return the epoch of a session or graph, whichever thread started it; None if no engine runs."""
        for (owner, thread), series in list(self._series.items()):
            if owner is process and series.stage == "init":
                self._close(process, thread)
        return process.epochs[-1] if process.epochs else None


def _find_stage(function: str, text: str) -> str:
    if "Session" in function or text.startswith(("GESession", "GE Session")):
        return "session"
    return "init" if "Init" in function else ""


def _strip_ending(text: str) -> str:
    """Return a text without the engine's suffix; unchanged if it has none."""
    of_graph = _OF_GRAPH.search(text)
    return text[: of_graph.start()] if of_graph is not None else text.removesuffix(".")
