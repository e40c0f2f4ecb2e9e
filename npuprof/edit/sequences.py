"""Differences of two sequences in linear time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from npuprof.model import Record

#: The maximum product of lengths passed to difflib, which takes up to cubic time.
_MAX_PAIRS = 200 * 200


class Run(Record):
    """The indices of elements of an old sequence that a new one replaces, each with its end."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def has_equal_lengths(self) -> bool:
        """Whether as many elements are new as are replaced."""
        return self.old_end - self.old_start == self.new_end - self.new_start


def find_differing_runs(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Run]:
    """Return the differing runs of two sequences, in order.

    In long sequences, everything between the first and the last difference is one run.
    """
    shorter = min(len(old), len(new))
    # most edits are in one place: equal ends need no difflib
    head = next((size for size in range(shorter) if old[size] != new[size]), shorter)
    rest = shorter - head
    tail = next((size for size in range(rest) if old[~size] != new[~size]), rest)
    old_end = len(old) - tail
    new_end = len(new) - tail
    if (old_end - head) * (new_end - head) > _MAX_PAIRS:
        return [Run(head, old_end, head, new_end)]
    from difflib import SequenceMatcher

    # without autojunk, which ignores frequent elements of long sequences
    matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end], False)
    return [
        Run(head + first, head + last, head + start, head + end)
        for tag, first, last, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]
