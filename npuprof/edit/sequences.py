"""Where two sequences differ, runs in time that grows no faster than they do."""

from __future__ import annotations

from collections.abc import Sequence

#: Longer pieces, by the product of their lengths, are too much for difflib: it takes up to the cube of a length.
_MAX_PAIRS = 200 * 200


def find_differing_runs(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where two sequences differ, in order: start and end of a run in the first, and of what it became.

    Between the first and the last difference, long sequences count as one run.
    """
    shorter = min(len(before), len(after))
    head = next((size for size in range(shorter) if before[size] != after[size]), shorter)
    tail = next((size for size in range(shorter - head) if before[~size] != after[~size]), shorter - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) > _MAX_PAIRS:
        return [(head, len(before) - tail, head, len(after) - tail)]
    from difflib import SequenceMatcher

    codes = SequenceMatcher(None, old, new, False).get_opcodes()
    return [(head + first, head + last, head + start, head + end) for tag, first, last, start, end in codes if tag != "equal"]
