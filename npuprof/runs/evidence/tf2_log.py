"""What the adapter for TensorFlow 2 writes to standard error: one block when a process opens its device, and warnings."""

from __future__ import annotations

import re

from npuprof.catalog.wire import Generation, list_tf2_standing_keys, load_generations, load_wires
from npuprof.runs.evidence import Process, Text
from npuprof.runs.evidence.blocks import Block, Tail, make_text
from npuprof.runs.evidence.lines import Line

_PAIR = re.compile(r"  ([\w.]+):(.*)", re.ASCII | re.DOTALL)
_KEY = re.compile(r"  [\w.]*", re.ASCII)
_GRAPH = re.compile(r"Add ge graph \S+ with options:")
_WARNING = "Unrecognized graph engine option "
_WARNED = re.compile(rf"{_WARNING}([\w.]+):(.*)", re.ASCII | re.DOTALL)
#: What ends a block.
_SUCCEED = "Start graph engine succeed"
#: How many different texts of one attribute are kept: more than one cannot be told apart.
_MOST_TEXTS = 4


class Tf2Log:
    """The lines of the adapter in one stream. They name no process: each title begins one."""

    def __init__(self, tail: Tail, label: str = "") -> None:
        self._label = label
        self._block: Block | None = None
        self._process: Process | None = None
        self._titles = {generation.init for generation in load_generations() if generation.tf2}
        self._tail = tail
        self.found: list[Process] = []
        self.warned: dict[str, list[Text]] = {}
        only = [wire.tf2 for wire in load_wires().values() if "session" in wire.tf2 and "global" not in wire.tf2]
        self._before = {names["leaf"] for names in only}
        self._always = {names["leaf"] for names in only if "unset" in names}
        self._ahead = self._mixed = False
        self._last = ""
        self._torn = False  # the last block ended before its end: the rest of it may still come
        self.spoilt = False  # whether a line is cut before its text, or stands in no block
        self._begun = 0  # how many blocks have a title and no end

    @property
    def is_open(self) -> bool:
        """Whether a block may go on."""
        return self._block is not None or self._torn

    def take(self, place: str, line: Line, ended: bool) -> None:
        """Take a line; ``found`` holds the processes that there are so far."""
        pair = _PAIR.fullmatch(line.text)
        title = line.text.rstrip()
        if self._block is not None:
            if pair is not None:
                if not self._block.takes(pair[1]):
                    self._block.mixed = True  # the blocks of two processes on one screen
                self._block.add(pair[1], make_text(pair[2], 0, ended and not line.glued))
                self._tail.set(self._block.values, pair[1])
                return
            self.spoilt = self.spoilt or _KEY.fullmatch(line.text) is not None
            mixing = title in self._titles and self._block.stage == "init"
            self._block.mixed = self._block.mixed or mixing
            self._close(whole=ended and title == _SUCCEED if self._block.stage == "init" else True)
            self._torn = self._begun > (1 if title == _SUCCEED else 0)
            if mixing:
                self._start(place).epoch.doubtful = True
                self._block = Block("init", "")
                self._block.mixed = True
                self._begun += 1
                return
        elif pair is not None and self._begun:
            for process in self.found:  # what belongs to a block that another process seemed to end
                process.epoch.doubtful = True
        self.spoilt = self.spoilt or pair is not None
        if title in self._titles:
            self._start(place)
            self._block = Block("init", "")
            self._block.mixed = self._begun > 0  # one before it has not ended: the rest of it may still come
            self._begun += 1
        elif title == _SUCCEED:
            self._begun = max(self._begun - 1, 0)
            self._torn = self._torn and self._begun > 0
        elif _GRAPH.fullmatch(title):
            if self._process is None:
                self._start(place)
            self._block = Block("graph", "")
        elif match := _WARNED.fullmatch(line.text):
            self._warn(place, match[1], make_text(match[2], 0, ended and not line.glued))
        elif line.level == "W":
            self.spoilt = self.spoilt or line.text.startswith(_WARNING[: len(line.text)])  # it ends before its text

    def _warn(self, place: str, leaf: str, text: Text) -> None:
        """Keep a warning: of what only sessions have it comes before the block of its process, of what they do not have after it."""
        before = leaf in self._before
        if before and self._process is not None and not self._ahead:
            self._ahead, self.warned = True, {}  # the next process begins
            self._mixed, self._last = False, ""
        if before:
            if leaf in self.warned or leaf <= self._last:
                self._mixed = True
            self._last = leaf
        elif self._ahead and self.found:
            self._mixed = True
        known = self.warned.setdefault(leaf, [])
        if text not in known and len(known) < _MOST_TEXTS:
            known.append(text)
        if not self.found:
            self._start(place)
            self._process = None

    def finish(self) -> None:
        """End what is open: there is nothing more to read."""
        self._torn = False
        if self._block is not None:
            self._close(whole=False)
        if self._ahead and self._process is not None and self.found:  # somebody warned whose block is not there
            self._process = None
            process = Process(self.found[0].place, None, self._label)
            process.tf2, process.warned, process.number = True, self.warned, len(self.found) + 1
            self.found.append(process)
            self._ahead = False

    def _start(self, place: str) -> Process:
        """Begin a process, or the one that only warned so far."""
        if len(self.found) == 1 and self._process is None:
            process = self.found[0]
        else:
            process = Process(place, None, self._label)
            process.tf2 = True
            if self.found and not self._ahead:
                self.warned = {}
            process.number = len(self.found) + 1
            self.found.append(process)
        process.warned = self.warned
        process.warnings_mixed = self._mixed or (
            bool(self.found[1:]) and not all(len(self.warned.get(leaf, ())) == 1 for leaf in self._always)
        )
        self._ahead = False
        self._process = process
        return process

    def _close(self, whole: bool) -> None:
        block, process = self._block, self._process
        self._block = None
        if block is None or process is None or not block.values:
            return
        if block.stage == "init":
            generation = _find_generation(block.values, whole)
            process.generation = generation.name if generation is not None else ""
            # No line is lost on standard error; but what passes through other programs loses some, and nothing else would show it.
            whole = whole and generation is not None and list_tf2_standing_keys(generation.name).keys() <= block.values.keys()
            process.start_epoch().doubtful = block.mixed
            process.informed = True
        process.epoch.add(block.stage, block.close(whole))
        process.rank = process.rank or block.values.get("ge.exec.rankId", Text("")).text
        process.device = process.device or block.values.get("ge.exec.deviceId", Text("")).text


def _find_generation(values: dict[str, Text], whole: bool) -> Generation | None:
    """Return the generation: one that has a single map puts the options of sessions into the block as well.

    None where too little of the block is there to tell: it ends before it comes to those that are always in such a map.
    """
    apart = {wire.tf2["session"] for wire in load_wires().values() if "session" in wire.tf2 and "global" not in wire.tf2}
    double, single = (next(one for one in load_generations() if one.tf2 and one.maps == maps) for maps in (2, 1))
    if apart & values.keys():
        return single
    passed = [key for key, alone in list_tf2_standing_keys(single.name).items() if alone and key < max(values)]
    return double if whole or len(passed) > 1 else None
