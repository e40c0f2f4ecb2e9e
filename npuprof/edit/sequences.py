"""Where two sequences differ, runs in time that grows no faster than they do."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

#: Longer pieces, by the product of their lengths, are too much for difflib: it takes up to the cube of a length.
_MAX_PAIRS = 200 * 200


def find_differing_runs(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where two sequences differ, in order: start and end of a run in the first, and of what it became."""
    runs = []
    old = new = 0
    for first, second, size in [*_find_shared_runs(before, after), (len(before), len(after), 0)]:
        if first > old or second > new:
            runs.append((old, first, new, second))
        old, new = first + size, second + size
    return runs


def _find_shared_runs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the runs two sequences share: of long ones their ends, and what lies around elements that both have once."""
    if len(before) * len(after) <= _MAX_PAIRS:
        yield from _match_pieces(before, after, 0, 0)
        return
    shorter = min(len(before), len(after))
    head = next((size for size in range(shorter) if before[size] != after[size]), shorter)
    tail = next((size for size in range(shorter - head) if before[~size] != after[~size]), shorter - head)
    yield 0, 0, head
    ends = len(before) - tail, len(after) - tail
    anchors = _find_anchors(before[head : ends[0]], after[head : ends[1]])
    pieces = [(head - 1, head - 1), *((head + first, head + second) for first, second in anchors), ends]
    for (first, second), (last, stop) in pairwise(pieces):
        yield from _match_pieces(before[first + 1 : last], after[second + 1 : stop], first + 1, second + 1)
        yield last, stop, 1 if (last, stop) != ends else tail


def _match_pieces(before: Sequence[str], after: Sequence[str], first: int, second: int) -> Iterator[tuple[int, int, int]]:
    """Yield the runs two pieces share, from where they begin in the whole; none of pieces that are too long."""
    if len(before) * len(after) <= _MAX_PAIRS:
        from difflib import SequenceMatcher

        for block in SequenceMatcher(None, before, after, False).get_matching_blocks():
            yield first + block.a, second + block.b, block.size


def _find_anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of elements that both sequences have once: the longest row of them that is in order in both."""
    counts, others = Counter(before), Counter(after)
    places = {mark: place for place, mark in enumerate(after) if others[mark] == 1}
    shared = [(place, places[mark]) for place, mark in enumerate(before) if counts[mark] == 1 and mark in places]
    ends: list[int] = []  # the lowest place in the second that a row of each length can end at
    rows: list[int] = []  # which of the shared places ends that row
    before_it: list[int] = []
    for number, (_, place) in enumerate(shared):
        size = bisect_left(ends, place)
        ends[size : size + 1], rows[size : size + 1] = [place], [number]
        before_it.append(rows[size - 1] if size else -1)
    anchors = []
    number = rows[-1] if rows else -1
    while number >= 0:
        anchors.append(shared[number])
        number = before_it[number]
    return anchors[::-1]
