"""Lines that go on with a block: those that have the head of the line before are taken all at once where the same texts were taken before.

What a run of such lines adds to a block follows from its texts and from what the block was before, whichever process writes it and when.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from npuprof.runs.evidence import Values
from npuprof.runs.evidence.lines import find_head, is_time, keep_latest

#: How many runs are remembered, and how long one is at most, in bytes; so long may a line of it be, which is never one that was cut.
_MOST_RUNS, _LONGEST, _LONGEST_LINE = 512, 1 << 16, 1000
#: How many lines are gathered at first.
_FIRST = 256
#: What a line may have that is not of its text.
_RARE = (b"\r", b"\0", b"\x1b")

State = tuple[Any, ...]


class Growing(Protocol):
    """What lines add values to, one after the other: a block of options, a series."""

    values: Values

    @property
    def state(self) -> State:
        """All that tells which lines it takes next, and what becomes of it then."""

    def extend(self, run: Run) -> None:
        """Take what was taken once in the same state."""


class Run(NamedTuple):
    """What lines add to a block, and its ``state`` behind them.

    ``longest`` are the texts of the longest lines, or of all that may be; they were ``seen`` behind heads of these sizes, with
    how long the longest line was then.
    """

    values: Values
    state: State
    longest: tuple[bytes, ...]
    seen: dict[tuple[int, int], int]


class Lines(NamedTuple):
    """Lines with one head, ``size`` is how long it is, and all end with ``ending``; ``places`` are where they begin, and where they end."""

    size: int
    ending: bytes
    texts: list[bytes]
    places: list[int]


class Runs:
    """The runs that were read of a stream of logs, by what they went on with and their texts."""

    def __init__(self) -> None:
        self._known: dict[tuple[State, bytes], Run] = {}
        self._counts: dict[State, int] = {}  # how many lines were of a run behind which others with its head were not
        self._most = _FIRST  # how many are gathered where nothing is known: what is gathered for nothing stays in proportion

    def gather(self, state: State, data: bytes, place: int, last: bytes, size: int, ending: bytes) -> Lines | None:
        """Return the whole lines from a place on that have the head of the ``last`` one, at any time; None where there are none.

        ``size`` is how long that head is, ``ending`` the end of each line. They are no more than what went on with a block in this state.
        """
        found = find_head(last)
        if found is None or found[1] > size:
            return None
        start, stop = found
        head, more = last[:start], last[stop:size]
        least, left, bound = size + len(ending), self._counts.get(state, self._most), place + _LONGEST
        places = [place]
        while left and data.startswith(head, place) and data.startswith(more, place + stop):
            left -= 1
            end = data.find(b"\n", place + size) + 1
            if not least < end - place <= _LONGEST_LINE or end > bound:
                break
            if ending and not data.startswith(ending, end - 1 - len(ending)):
                break
            places.append(end)
            place = end
        if len(places) == 1 or not is_time(b"".join([data[at + start : at + stop] for at in places[:-1]])):
            return None
        behind = 1 + len(ending)
        texts = [data[at + size : end - behind] for at, end in pairwise(places)]
        return Lines(size, ending, texts, places)

    def find(self, state: State, lines: Lines) -> Run | None:
        """Return what such lines added to a block in such a state, None where there were none."""
        return self._known.get((state, b"\n".join(lines.texts)))

    def keep(self, before: State, lines: Lines, values: Values, after: State) -> None:
        """Keep what lines have added to a block, a value each: the first of those given, if not all."""
        count = len(values)
        if count < len(lines.texts):
            keep_latest(self._counts, before, count, _MOST_RUNS)
            self._most = 2 * count + 1
        else:
            self._most = max(self._most, 4 * count)
        texts = lines.texts[:count]
        joined = b"\n".join(texts)
        if count and not any(byte in joined for byte in _RARE):
            size = max(map(len, texts)) if joined.isascii() else 0
            longest = tuple(text for text in texts if len(text) >= size)
            keep_latest(self._known, (before, joined), Run(values, after, longest, {}), _MOST_RUNS)
