"""Lines that say again what was read before: a process that adds a graph writes its block each time, and nothing but the times differ.

What is kept of them is a number, without the digits of times: whether bytes say the same is one operation on numbers then, however many
lines they are. A ``Run`` are the lines behind one that opened a block, with what they add to it. A period is all from such a line to the
next of its kind; where what is known of the process was the same before and after one, it is after any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from npuprof.runs.evidence import Process
from npuprof.runs.evidence.lines import find_time, keep_latest

#: How many openings are remembered, and how long a period is at most.
_MOST_OPENINGS, _LONGEST = 256, 1 << 16
_GRAPH = re.compile(rb", (?:innerSession:(\d+), graphid|graph_id): (\d+)\.?$", re.ASCII)


class Opened(NamedTuple):
    """A block that a line has begun: of which ``kind``, and whose it is."""

    kind: tuple[object, ...]
    process: Process
    thread: str


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

    def fits(self, data: bytes, place: int) -> bool:
        """Return whether the bytes from a place on are these lines, at any time."""
        part = data[place : place + self.size]
        return len(part) == self.size and int.from_bytes(part, "little") & self._mask == self._number


class _Mark(NamedTuple):
    """Where a period may have begun, what was known there, and the period that went on from there before."""

    piece: int
    place: int
    state: object
    same: _Same | None
    misses: int
    wait: int


class Periods:
    """For each kind of line that opens a block the period that it began last."""

    def __init__(self) -> None:
        self._marks: dict[Opened, _Mark] = {}
        self._data = b""
        self._piece = 0  # the number of what is being read: it itself is not kept for the sake of a mark

    def skip(self, key: Opened, data: bytes, place: int, describe: Callable[[], object]) -> int:
        """Return the place after all periods that begin at one, which is behind a line that has opened a block.

        ``describe`` tells all that is known of the process and of its open blocks.
        """
        mark = self._marks.get(key)
        if mark is not None and mark.wait:
            self._marks[key] = mark._replace(wait=mark.wait - 1)
            return place
        if data is not self._data:
            self._data = data
            self._piece += 1
        state = describe()
        same = _find_period(mark, data, place, self._piece) if mark is not None and mark.state == state else None
        end = place
        while same is not None and same.fits(data, end):
            end += same.size
        misses = 0 if mark is None or end > place else min(mark.misses + 1, 8)
        wait = (1 << misses) // 8  # what never is the same twice is compared less and less often
        keep_latest(self._marks, key, _Mark(self._piece, end, state, same if end > place else None, misses, wait), _MOST_OPENINGS)
        return end


def _find_period(mark: _Mark, data: bytes, place: int, piece: int) -> _Same | None:
    """Return the lines that may be said again from a place on: those that were, or those since the mark."""
    if mark.same is not None and mark.same.fits(data, place):
        return mark.same
    size = place - mark.place
    if piece != mark.piece or not 0 < size <= _LONGEST or data[place + size - 1 : place + size] != b"\n":
        return None
    period = data[mark.place : place]
    return _Same(period.split(b"\n")[:-1]) if period.count(b"\n") == data.count(b"\n", place, place + size) else None
