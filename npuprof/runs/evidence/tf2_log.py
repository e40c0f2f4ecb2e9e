"""Standard error of the adapter for TensorFlow 2.

It has one block when a process opens its device, and warnings.
"""

from __future__ import annotations

import re

from npuprof.catalog.wire import Generation, list_tf2_standing_keys, load_generations, load_wires
from npuprof.runs.evidence import Process, Text
from npuprof.runs.evidence.lines import Line
from npuprof.runs.evidence.option_blocks import Block, Tail

_PAIR = re.compile(r"  (?P<key>[\w.]+):(?P<text>.*)", re.ASCII | re.DOTALL)
_KEY = re.compile(r"  [\w.]*", re.ASCII)
_GRAPH = re.compile(r"Add ge graph \S+ with options:")
_WARNING = "Unrecognized graph engine option "
_WARNED = re.compile(rf"{_WARNING}(?P<leaf>[\w.]+):(?P<text>.*)", re.ASCII | re.DOTALL)
#: The end of a block.
_SUCCEED = "Start graph engine succeed"
#: The maximum number of different texts kept per attribute: several are undecided anyway.
_MOST_TEXTS = 4


class Tf2Log:
    """The adapter's lines in one stream. They name no process: each title starts one."""

    def __init__(self, tail: Tail, label: str = "") -> None:
        self._label = label
        self._block: Block | None = None
        self._process: Process | None = None
        self._titles = {generation.init for generation in load_generations() if generation.tf2}
        self._tail = tail
        self._warned: dict[str, list[Text]] = {}
        #: whether blocks of several processes are mixed, or lines of one are out of order
        self._mixed = False
        self.found: list[Process] = []
        self.is_truncated = False  # whether a line is cut before its text, or is outside a block

    def take(self, place: str, line: Line) -> None:
        """Parse a line; ``found`` are the processes so far."""
        pair = _PAIR.fullmatch(line.text)
        title = line.text.rstrip()
        if pair is not None and self._block is not None:
            key = pair["key"]
            self._mixed |= not self._block.takes(key)
            self._block.add(key, Text(pair["text"], line.glued or not line.ended))
            self._tail.set(self._block.values, key)
            return
        self.is_truncated |= pair is not None or (
            self._block is not None and _KEY.fullmatch(line.text) is not None
        )
        self._mixed |= pair is not None and bool(self.found)
        if self._block is not None:
            is_init = self._block.stage == "init"
            self._mixed |= is_init and title in self._titles
            self._close(whole=not is_init or (line.ended and title == _SUCCEED))
        if title in self._titles:
            self._start(place)
            self._block = Block("init")
        elif _GRAPH.fullmatch(title):
            if self._process is None:
                self._start(place)
            self._block = Block("graph")
        elif match := _WARNED.fullmatch(line.text):
            self._warn(place, match["leaf"], Text(match["text"], line.glued or not line.ended))
        elif line.level == "W":  # it may end before its text
            self.is_truncated |= line.text.startswith(_WARNING[: len(line.text)])

    def _warn(self, place: str, leaf: str, text: Text) -> None:
        """Record a warning, which may come before the block of its process."""
        known = self._warned.setdefault(leaf, [])
        if text not in known and len(known) < _MOST_TEXTS:
            known.append(text)
        if not self.found:
            self._start(place)
            self._process = None

    def finish(self) -> None:
        """Close everything at the end of the stream.

        With several processes, the source of a warning is unknown.
        """
        if self._block is not None:
            self._close(whole=False)
        for process in self.found:
            process.warned, process.warnings_mixed = self._warned, len(self.found) > 1
            if self._mixed:
                process.epoch.doubtful = True

    def _start(self, place: str) -> None:
        """Start a process, or the block of a process that has only warned so far."""
        if len(self.found) == 1 and self._process is None:
            self._process = self.found[0]
            return
        self._process = Process(place, None, self._label)
        self._process.tf2, self._process.number = True, len(self.found) + 1
        self.found.append(self._process)

    def _close(self, whole: bool) -> None:
        block, process = self._block, self._process
        self._block = None
        if block is None or process is None or not block.values:
            return
        if block.stage == "init":
            generation = process.generation = _find_generation(block.values, whole)
            # Standard error loses no lines, but programs in between may, without a trace.
            whole = (
                whole
                and generation is not None
                and list_tf2_standing_keys(generation.name).keys() <= block.values.keys()
            )
            process.start_epoch()
            process.informed = True
        process.epoch.add(block.stage, block.close(whole))
        process.identify(block.values)


def _find_generation(values: dict[str, Text], is_whole: bool) -> Generation | None:
    """Return the generation: with a single map, session options are in the block too.

    None if the block ends before the keys that such a map always has.
    """
    by_maps = {row.maps: row for row in load_generations() if row.tf2}
    for wire in load_wires().values():
        if "global" not in wire.tf2 and wire.tf2.get("session") in values:
            return by_maps[1]
    last_key = max(values)
    passed = [
        key
        for key, only_sessions in list_tf2_standing_keys(by_maps[1].name).items()
        if only_sessions and key < last_key
    ]
    return by_maps[2] if is_whole or len(passed) > 1 else None
