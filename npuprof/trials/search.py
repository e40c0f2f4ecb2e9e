"""Which of many units bring an effect about: a pure search that asks for trials, and gives the same questions for the same answers.

A set of units is a whole number, a bit for each. None of the units is known to be good, all of them to be bad; the search takes
units away from what is bad. The first unit that is needed is found by halving; after it blocks are taken away that are about as
long as the gaps between the needed ones were so far. That asks for few trials both where one unit is needed and where many are:
a tail of the units that nothing is needed of goes in growing blocks, and units that stand close are found in short ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from npuprof.model import Record

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"

#: Blocks after the second find: at least so many units, and this share of the mean gap so far. Found by working out the worst placing
#: of the needed units, among up to 80: with these none takes more trials than are promised.
_LEAST_BLOCK = 3
_SHARE_OF_GAP = 0.56

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Returns whether a set of units is good, bad, or unknown.
    Ask = Callable[[int], str]


class Pending(Exception):  # noqa: N818 - no error: what has to be known first
    """A trial whose result is not known yet: the set of units."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.units = units


class Cause(Record):
    """A smallest set of units that brings the effect about: without any of them it is gone, or that is ``undecided``."""

    units: int
    undecided: int


def find_cause(units: Sequence[int], ask: Ask, drops: Mapping[int, int] | None = None, watch: Callable[[int], None] | None = None) -> Cause:
    """Return a smallest set of units, each a mask of what is taken away together; all of them are known to be bad.

    ``drops`` says what goes with a unit, itself among it: others that cannot stand without it. ``watch`` takes the smallest set so far.
    """
    return _Search(ask, drops or {}, watch).find_cause(list(units))


def list_bits(mask: int) -> list[int]:
    """Return the places of the bits of a mask, lowest first."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def join_masks(masks: Sequence[int]) -> int:
    """Return the union of sets of units."""
    union = 0
    for mask in masks:
        union |= mask
    return union


class _Search:
    """One search; ``bad`` is the smallest set so far that brings the effect about."""

    def __init__(self, ask: Ask, drops: Mapping[int, int], watch: Callable[[int], None] | None) -> None:
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
        """Remove units, with what cannot stand without them, if the rest is bad; return what the rest is."""
        rest = self._bad & ~join_masks([self._drops.get(unit, unit) for unit in units])
        if rest not in self._known:
            self._known[rest] = self._ask(rest)
        if self._known[rest] == BAD:
            self._bad = rest
            if self._watch is not None:
                self._watch(rest)
        return self._known[rest]

    def _sift(self, units: list[int]) -> None:
        """Take units away from the last to the first as long as what is left is bad."""
        rest, needed = units[::-1], 0
        while rest := [unit for unit in rest if unit & self._bad]:
            block = len(rest)  # often no other is needed but the first that was found
            if needed > 1:
                block = max(_LEAST_BLOCK, int(_SHARE_OF_GAP * (len(units) - len(rest)) / needed))
            has_needed, rest = self._clear(rest[:block], rest[block:])
            needed += has_needed

    def _clear(self, block: list[int], after: list[int]) -> tuple[bool, list[int]]:
        """Take a block away, or what precedes its first unit that has to stay; return whether it has one, and what is left to try."""
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
        """Take units away singly until none can be: what was needed among others may not be by itself. Return the undecided ones."""
        before = 0
        undecided: list[int] = []
        while before != self._bad:
            before = self._bad
            undecided = [unit for unit in units if unit & self._bad and self._take([unit]) == UNKNOWN]
            self._take(undecided)  # what cannot be judged singly may be judged together
        return undecided
