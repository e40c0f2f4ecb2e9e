"""Finds the units that cause an effect: a pure search that requests trials.

Equal answers give equal requests.

A set of units is a bit mask. No units are known to be good, all of them bad; the search removes
units from a bad set. Bisection finds the first required unit; after it, blocks about as long as the
previous gaps between required units are removed. That needs few trials for one required unit and
for many: a tail without required units is removed in growing blocks, and dense units are found in
short ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from npuprof.model import TYPE_CHECKING, Record

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"

#: Blocks after the second required unit: the minimum size, and the share of the mean gap. Derived
#: from the worst placements of required units, among up to 80: no other values stay within the
#: promised number of trials.
_LEAST_BLOCK = 3
_SHARE_OF_GAP = 0.56

if TYPE_CHECKING:
    #: Returns whether a set of units is good, bad, or unknown.
    Ask = Callable[[int], str]


class Pending(Exception):  # noqa: N818 - no error: what has to be known first
    """Raised for a trial without a result: the set of units."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.units = units


class Cause(Record):
    """A smallest set of units that causes the effect.

    Without any of them it is gone, or that is ``undecided``.
    """

    units: int
    undecided: int


def find_cause(
    units: Sequence[int],
    ask: Ask,
    drops: Mapping[int, int] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Cause:
    """Return a smallest set of units, each a mask of changes removed together.

    All units are known to be bad.

    ``drops`` are the units removed with a unit, including itself: those that depend on it.
    ``watch`` gets the smallest set so far.
    """
    return _Search(ask, drops or {}, watch).find_cause(list(units))


def list_bits(mask: int) -> list[int]:
    """Return the bit positions of a mask, lowest first."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def join_masks(masks: Sequence[int]) -> int:
    """Return the union of sets of units."""
    return reduce(or_, masks, 0)


class _Search:
    """One search; ``bad`` is the smallest set so far that causes the effect."""

    def __init__(
        self, ask: Ask, drops: Mapping[int, int], watch: Callable[[int], None] | None
    ) -> None:
        self._ask = ask
        self._drops = drops
        self._watch = watch
        self._known: dict[int, str] = {}
        self._bad = 0

    def find_cause(self, units: list[int]) -> Cause:
        self._bad = join_masks(units)
        self._known = {0: GOOD, self._bad: BAD}
        self._sift(units)
        undecided = self._minimize([unit for unit in units if unit & self._bad])
        return Cause(self._bad, join_masks(undecided))

    def _take(self, units: Sequence[int]) -> str:
        """Remove units with their dependents if the rest is bad; return the verdict of the rest."""
        rest = self._bad & ~join_masks([self._drops.get(unit, unit) for unit in units])
        # each trial may take hours: no set is asked for twice
        if rest not in self._known:
            self._known[rest] = self._ask(rest)
        if self._known[rest] == BAD:
            self._bad = rest
            if self._watch is not None:
                self._watch(rest)
        return self._known[rest]

    def _sift(self, units: list[int]) -> None:
        """Remove units from the last to the first as long as the rest is bad."""
        rest, needed = units[::-1], 0
        while rest := [unit for unit in rest if unit & self._bad]:
            block = len(rest)  # often only the first unit is required
            if needed > 1:
                block = max(_LEAST_BLOCK, int(_SHARE_OF_GAP * (len(units) - len(rest)) / needed))
            has_needed, rest = self._clear(rest[:block], rest[block:])
            needed += has_needed

    def _clear(self, block: list[int], after: list[int]) -> tuple[bool, list[int]]:
        """Remove a block, or the part before its first required unit.

        Return whether it has one, and the units left to try.
        """
        if self._take(block) == BAD:
            return False, after
        while len(block) > 1:
            first, second = block[: len(block) // 2], block[len(block) // 2 :]
            if self._take(first) == BAD:
                block = second
            else:
                block, after = first, second + after
        return True, after

    def _minimize(self, units: list[int]) -> list[int]:
        """Remove units one by one until none can be: a unit may be required only with others.

        Return the undecided ones.
        """
        before = 0
        undecided = []
        while before != self._bad:
            before = self._bad
            undecided = [
                unit for unit in units if unit & self._bad and self._take([unit]) == UNKNOWN
            ]
            self._take(undecided)  # undecided units may be decidable together
        return undecided
