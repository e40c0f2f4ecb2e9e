"""Lines that say again what was read before: a process that adds a graph writes its block each time, and nothing but the times differ.

What is kept of them is a number, without the digits of times: whether bytes say the same is one operation on numbers then, however many
lines they are. A ``Run`` are the lines behind one that opened a block, with what they add to it. A period is all from such a line to the
next of its kind; where what is known of the process was the same before and after one, it is after any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from npuprof.runs.evidence import Process, Values
from npuprof.runs.evidence.lines import find_time

#: How many openings are remembered, and of each how many ways to go on; fewer lines than the least are read as soon as compared.
_MOST_OPENINGS, _MOST_RUNS, _LEAST = 256, 4, 3
#: The longest period.
_LONGEST = 1 << 16
_GRAPH = re.compile(rb", (?:innerSession:(\d+), graphid|graph_id): (\d+)\.?$", re.ASCII)

Key = tuple[object, ...]
Kept = TypeVar("Kept")


class Opened(NamedTuple):
    """A block that a line has begun: of which ``kind``, whose it is, and its values so far."""

    kind: Key
    process: Process
    thread: str
    values: Values

    @property
    def key(self) -> Key:
        """What tells the block from those of other kinds, processes and threads."""
        return self.kind, self.process, self.thread


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

    def replace(self, raw: bytes) -> _Same:
        """Return other bytes, of the same size and with times at the same places."""
        made = _Same(())
        made.size, made._mask, made._number = self.size, self._mask, int.from_bytes(raw, "little") & self._mask
        return made

    def is_like(self, lines: Sequence[bytes]) -> bool:
        """Return whether these are the lines."""
        return self.fits(b"".join([*(line + b"\n" for line in lines)]), 0) and self.size == sum(map(len, lines)) + len(lines)

    def fits(self, data: bytes, place: int) -> bool:
        """Return whether the bytes from a place on are these lines, at any time."""
        part = data[place : place + self.size]
        return len(part) == self.size and int.from_bytes(part, "little") & self._mask == self._number


class Run(NamedTuple):
    """Lines behind an opening one: ``values`` are what they add to the block, of which ``lost`` says whether lines of it are missing.

    ``size`` is how many they are, ``tail`` the length of the last one.
    """

    lines: _Same
    size: int
    values: Values
    tail: int
    lost: bool


class _Read(NamedTuple):
    """A run as it was read, and behind which line."""

    opened: Opened
    run: Run
    raw: bytes


def _list_names(opened: Opened) -> list[bytes]:
    """Return how each line of a process and thread names them."""
    names = [b"(%d," % opened.process.pid] if opened.process.pid is not None else [b""]
    return [*names, f"]{opened.thread} ".encode()] if opened.thread else names


def _put_first(known: list[Kept], one: Kept) -> None:
    known.insert(0, one)
    del known[_MOST_RUNS:]


class Runs:
    """The runs that were read of a stream of logs, and the one that is being read."""

    def __init__(self) -> None:
        self._known: dict[Key, list[Run]] = {}
        self._read: dict[Key, list[_Read]] = {}  # by kind, whoever it was of
        self._opened: Opened | None = None
        self._lines: list[bytes] = []
        self._before = 0
        self._tail = 0
        self._lost = False

    def find(self, opened: Opened, data: bytes, place: int) -> Run | None:
        """Return the run that goes on from a place, None where there is none that is known.

        A process that has not said anything yet may say what another said: then nothing but its number and its thread differ.
        """
        runs = self._known.get(opened.key)
        if runs is None:
            return next((run for run in self._move(opened) if run.lines.fits(data, place)), None)
        for number, run in enumerate(runs):
            if run.lines.fits(data, place):
                if number:
                    runs.insert(0, runs.pop(number))
                return run
        return None

    def _move(self, opened: Opened) -> Iterator[Run]:
        """Yield what others said behind such a line, in the name of who says it now."""
        for read in self._read.get(opened.kind, ()):
            raw = read.raw
            for before, after in zip(_list_names(read.opened), _list_names(opened), strict=False):
                if len(before) != len(after) or raw.count(before) != read.run.size:
                    break  # a name that is not once in each line may be part of a text
                raw = raw.replace(before, after)
            else:
                yield read.run._replace(lines=read.run.lines.replace(raw))

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
        made = Run(_Same(self._lines), len(self._lines), values, self._tail, self._lost)
        _put_first(self._known.setdefault(opened.key, []), made)
        if len(self._read) >= _MOST_OPENINGS:
            self._read.clear()
        _put_first(self._read.setdefault(opened.kind, []), _Read(opened, made, b"".join([line + b"\n" for line in self._lines])))

    def forget(self) -> None:
        """Keep nothing of what is being read: a line of it goes on in another, or is cut."""
        self._opened = None


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
        self._marks: dict[Key, _Mark] = {}
        self._data = b""
        self._piece = 0  # the number of what is being read: it itself is not kept for the sake of a mark

    def skip(self, key: Key, data: bytes, place: int, describe: Callable[[], object]) -> int:
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
        if len(self._marks) >= _MOST_OPENINGS:
            self._marks.clear()
        misses = 0 if mark is None or end > place else min(mark.misses + 1, 8)
        wait = (1 << misses) // 8  # what never is the same twice is compared less and less often
        self._marks[key] = _Mark(self._piece, end, state, same if end > place else None, misses, wait)
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
