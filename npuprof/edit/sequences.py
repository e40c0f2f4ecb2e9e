"""Differences of two sequences in linear time."""

from __future__ import annotations

from collections.abc import Sequence

#: The maximum product of lengths passed to difflib, which takes up to cubic time.
_MAX_PAIRS = 200 * 200


def find_differing_runs(
    before: Sequence[str], after: Sequence[str]
) -> list[tuple[int, int, int, int]]:
    """Return the differing runs of two sequences, in order: start and end in the first, and in the
    second.

    In long sequences, everything between the first and the last difference is one run.
    """
    shorter = min(len(before), len(after))
    head = next((size for size in range(shorter) if before[size] != after[size]), shorter)
    tail = next(
        (size for size in range(shorter - head) if before[~size] != after[~size]), shorter - head
    )
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) > _MAX_PAIRS:
        return [(head, len(before) - tail, head, len(after) - tail)]
    from difflib import SequenceMatcher

    codes = SequenceMatcher(None, old, new, False).get_opcodes()
    return [
        (head + first, head + last, head + start, head + end)
        for tag, first, last, start, end in codes
        if tag != "equal"
    ]
