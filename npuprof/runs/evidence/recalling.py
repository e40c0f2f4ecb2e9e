"""Lines that say again what was read before: a process that adds a graph writes its block each time, and nothing but the times differ.

What is kept of them is a number, without the digits of times: whether bytes say the same is one operation on numbers then, however many
lines they are. A ``Run`` are the lines behind one that opened a block, with what they add to it. A period is all from such a line to the
next of its kind; where what is known of the process was the same before and after one, it is after any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npuprof.runs.evidence import Values
from npuprof.runs.evidence.lines import find_time

#: How many openings are remembered, and of each how many ways to go on; fewer lines than the least are read as soon as compared.
_MOST_OPENINGS, _MOST_RUNS, _LEAST = 256, 4, 3
#: The longest period.
_LONGEST = 1 << 16
_GRAPH = re.compile(rb", (?:innerSession:(\d+), graphid|graph_id): (\d+)\.?$", re.ASCII)

Key = tuple[object, ...]


class Opened(NamedTuple):
    """A block that a line has begun: whose it is and what it is called, and its values so far."""

    key: Key
    values: Values


class _Same:
    """Lines as bytes that are compared without the digits of times and the numbers of graphs; where there is one, no newline can be."""

    __slots__ = ("_mask", "_number", "size")

    def __init__(self, lines: Sequence[bytes]) -> None:
        raw, mask = bytearray(), bytearray()
        for line in lines:
            start = len(raw)
            raw += line + b"\n"
            mask += b"\xff" * (len(line) + 1)
            spans = [find_time(line)]
            if (match := _GRAPH.search(line)) is not None:
                spans += [match.span(number) for number in (1, 2) if match[number]]
            for first, end in filter(None, spans):
                mask[start + first : start + end] = b"\xf0" * (end - first)
        self.size = len(raw)
        self._mask = int.from_bytes(mask, "little")  # which is the faster way
        self._number = int.from_bytes(raw, "little") & self._mask

    def is_like(self, lines: Sequence[bytes]) -> bool:
        """Return whether these are the lines."""
        return self.fits(b"".join([*(line + b"\n" for line in lines)]), 0) and self.size == sum(map(len, lines)) + len(lines)

    def fits(self, data: bytes, place: int) -> bool:
        """Return whether the bytes from a place on are these lines, at any time."""
        part = data[place : place + self.size]
        return len(part) == self.size and int.from_bytes(part, "little") & self._mask == self._number


class Run(NamedTuple):
    """Lines behind an opening one: ``values`` are what they add to the block, of which ``lost`` says whether lines of it are missing.

    ``tail`` is the length of the last line.
    """

    lines: _Same
    values: Values
    tail: int
    lost: bool


class Runs:
    """The runs that were read of a stream of logs, and the one that is being read."""

    def __init__(self) -> None:
        self._known: dict[Key, list[Run]] = {}
        self._opened: Opened | None = None
        self._lines: list[bytes] = []
        self._before = 0
        self._tail = 0
        self._lost = False

    def find(self, opened: Opened, data: bytes, place: int) -> Run | None:
        """Return the run that goes on from a place, None where there is none that is known."""
        runs = self._known.get(opened.key, [])
        for number, run in enumerate(runs):
            if run.lines.fits(data, place):
                if number:
                    runs.insert(0, runs.pop(number))
                return run
        return None

    def begin(self, opened: Opened) -> None:
        """Begin to keep what follows the line that has opened a block."""
        self._opened, self._lines, self._before = opened, [], len(opened.values)

    def follow(self, raw: bytes, tail: int, lost: bool) -> None:
        """Take the next line: keep it where it has added a value to the block, else the run has ended before it."""
        opened = self._opened
        if opened is None:
            return
        if len(opened.values) == self._before + len(self._lines) + 1:
            self._lines.append(raw)
            self._tail, self._lost = tail, lost
            return
        self._opened = None
        if len(self._lines) < _LEAST or any(run.lines.is_like(self._lines) for run in self._known.get(opened.key, ())):
            return
        if len(self._known) >= _MOST_OPENINGS:
            self._known.clear()
        values = dict(list(opened.values.items())[self._before :])
        runs = self._known.setdefault(opened.key, [])
        runs.insert(0, Run(_Same(self._lines), values, self._tail, self._lost))
        del runs[_MOST_RUNS:]

    def forget(self) -> None:
        """Keep nothing of what is being read: a line of it goes on in another, or is cut."""
        self._opened = None


class _Mark(NamedTuple):
    """Where a period may have begun, what was known there, and the period that went on from there before."""

    data: bytes
    place: int
    state: object
    same: _Same | None
    misses: int
    wait: int


class Periods:
    """For each kind of line that opens a block the period that it began last."""

    def __init__(self) -> None:
        self._marks: dict[Key, _Mark] = {}

    def skip(self, key: Key, data: bytes, place: int, describe: Callable[[], object]) -> int:
        """Return the place after all periods that begin at one, which is behind a line that has opened a block.

        ``describe`` tells all that is known of the process and of its open blocks.
        """
        mark = self._marks.get(key)
        if mark is not None and mark.wait:
            self._marks[key] = mark._replace(wait=mark.wait - 1)
            return place
        state = describe()
        same = _find_period(mark, data, place) if mark is not None and mark.state == state else None
        end = place
        while same is not None and same.fits(data, end):
            end += same.size
        if len(self._marks) >= _MOST_OPENINGS:
            self._marks.clear()
        misses = 0 if mark is None or end > place else min(mark.misses + 1, 8)
        wait = (1 << misses) // 8  # what never is the same twice is compared less and less often
        self._marks[key] = _Mark(data, end, state, same if end > place else None, misses, wait)
        return end


def _find_period(mark: _Mark, data: bytes, place: int) -> _Same | None:
    """Return the lines that may be said again from a place on: those that were, or those since the mark."""
    if mark.same is not None and mark.same.fits(data, place):
        return mark.same
    size = place - mark.place
    if data is not mark.data or not 0 < size <= _LONGEST or data[place + size - 1 : place + size] != b"\n":
        return None
    period = data[mark.place : place]
    return _Same(period.split(b"\n")[:-1]) if period.count(b"\n") == data.count(b"\n", place, place + size) else None
