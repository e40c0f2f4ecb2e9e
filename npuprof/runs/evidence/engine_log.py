"""The engine's own log of its options: the final values, after everything that the adapter adds."""

from __future__ import annotations

import re

from npuprof.runs.evidence import Map, Process, Text
from npuprof.runs.evidence.lines import Line
from npuprof.runs.evidence.option_blocks import Block, BlockLog

_OPTION = re.compile(r"GE(?:Session)? ?option: (?P<key>\S+), value: (?P<text>.*)", re.DOTALL)
_OF_GRAPH = re.compile(r", innerSession:\d+, graphid: \d+\.$")
_MORE_THAN_ONCE = "GEInitialize is called more than once"


class EngineLog(BlockLog):
    """The engine's lines in one stream: a series of keys in byte order is one map."""

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
        key, text = match["key"], match["text"]
        of_graph = _OF_GRAPH.search(text)
        # without the engine's suffix
        plain = text[: of_graph.start()] if of_graph else text.removesuffix(".")
        stage = "graph" if of_graph else _find_stage(line.origin, line.text)
        if not stage:
            return
        block = self._blocks.get((process, line.thread))
        if block is None or block.stage != stage or not block.takes(key):
            self._close(process, line.thread)
            block = Block(stage)
            self._open(process, line.thread, block)
        # the engine ends each text with a period: without one, it is cut, or goes on
        block.add(key, Text(plain, plain == text or line.is_cut))
        if plain == text:
            self._tail.set(block.values, key)
        process.informed = True

    def _close(self, process: Process, thread: str, whole: bool = True) -> None:
        block = self._blocks.pop((process, thread), None)
        if block is None:
            return
        process.identify(block.values)
        # the engine logs its options once for each start
        if block.stage == "init" and (
            process.last is None or any(earlier.engine for earlier in process.last.blocks("init"))
        ):
            process.start_epoch()
        process.settle()
        (block.epoch or process.epoch).add(block.stage, Map(block.values, engine=True))


def _find_stage(function: str, text: str) -> str:
    if "Session" in function or text.startswith(("GESession", "GE Session")):
        return "session"
    return "init" if "Init" in function else ""
