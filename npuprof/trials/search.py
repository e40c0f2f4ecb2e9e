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

#: Blocks after the first find: at least so many units, and this share of the mean gap so far. Found by working out the worst placing of
#: the needed units, among up to 80: with these none takes more trials than are promised.
_LEAST_BLOCK = 3
_SHARE_OF_GAP = 0.56
#: So many causes are looked for, and so many sets of units that have something of each of them.
MOST_CAUSES = 8
_MOST_CURES = 512

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Returns whether a set of units is good, bad, or unknown.
    Ask = Callable[[int], str]
    #: Is told after each step what is bad still, what of it is known to be needed, and how many units are open.
    Watch = Callable[[int, int, int], None]


class Pending(Exception):  # noqa: N818 - no error: what has to be known first
    """A trial whose result is not known yet: the set of units."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.units = units


class Cause(Record):
    """A smallest set of units that brings the effect about.

    Without any of the ``needed`` it is gone; of the ``undecided`` that could not be told.
    """

    units: int
    needed: int
    undecided: int


class Outcome(Record):
    """The causes that were found; ``cures`` are sets of units without which all others are good, ``complete`` is whether no cause is left.

    It is complete where a set of units brings the effect about whenever a part of it does.
    """

    causes: tuple[Cause, ...]
    cures: tuple[int, ...] = ()
    complete: bool = True


def find_causes(
    units: Sequence[int], ask: Ask, drops: Mapping[int, int] | None = None, watch: Watch | None = None, most: int = MOST_CAUSES
) -> Outcome:
    """Return the causes among units, each a mask of what is taken away together; all of them are known to be bad.

    ``drops`` says what goes with a unit, itself among it: others that cannot stand without it.
    """
    return _Search(ask, drops or {}, watch).find_causes(list(units), most)


def find_cause(units: Sequence[int], ask: Ask) -> int:
    """Return a smallest set of units that is bad; all of them are known to be."""
    return _Search(ask, {}, None).find_causes(list(units), 1, False).causes[0].units


def list_bits(mask: int) -> list[int]:
    """Return the places of the bits of a mask, lowest first."""
    places = []
    while mask:
        low = mask & -mask
        places.append(low.bit_length() - 1)
        mask ^= low
    return places


def join_masks(masks: Sequence[int]) -> int:
    """Return the union of sets of units."""
    union = 0
    for mask in masks:
        union |= mask
    return union


class _Search:
    """One search; ``bad`` is the smallest set so far that brings the effect about."""

    def __init__(self, ask: Ask, drops: Mapping[int, int], watch: Watch | None) -> None:
        self._ask = ask
        self._drops = drops
        self._watch = watch
        self._known: dict[int, str] = {}
        self._bad = 0

    def _judge(self, mask: int) -> str:
        verdict = self._known.get(mask)
        if verdict is None:
            verdict = self._known[mask] = self._ask(mask)
        return verdict

    def _drop(self, units: Sequence[int]) -> int:
        """Return what goes where some units are taken away."""
        return join_masks([self._drops.get(unit, unit) for unit in units])

    def find_causes(self, units: list[int], most: int, others: bool = True) -> Outcome:
        every = join_masks(units)
        self._known = {0: GOOD, every: BAD}
        causes = [self._find_cause(units, others)]
        cures: list[int] = []
        complete = others
        while others:  # what has something of every cause: without it all is good, or there is another cause
            tried = sorted(
                ((self._drop([unit for unit in units if unit & cure]), cure) for cure in _list_hitting_sets(causes, units)),
                key=lambda pair: pair[0].bit_count(),
            )
            cured: list[int] = []
            for gone, cure in tried:
                if any(smaller & gone == smaller for smaller in cured):
                    continue  # without a part of it all is good
                answer = self._judge(every & ~gone)
                if answer == BAD and len(causes) < most:
                    causes.append(self._find_cause([unit for unit in units if not unit & gone]))
                    break
                complete = complete and answer == GOOD
                if answer == GOOD:
                    cured.append(gone)
                    cures += [cure] if cure not in cures else []
            else:
                complete = complete and len(tried) < _MOST_CURES
                break
        return Outcome(tuple(causes), tuple(cures), complete)

    def _find_cause(self, units: list[int], splitting: bool = True) -> Cause:
        """Return a smallest set of units, all of which together are bad."""
        self._bad = join_masks(units)
        self._tell(0, self._sift(units))
        self._minimize([unit for unit in units if unit & self._bad])
        if splitting:
            self._split([unit for unit in units if unit & self._bad])
        sure = join_masks([unit & self._bad for unit in units if unit & self._bad and self._is_needed(unit)])
        return Cause(self._bad, sure, self._bad & ~sure)

    def _is_needed(self, unit: int) -> bool:
        """Return whether the smallest set is good without a unit, with what cannot stand without it, or without one of those."""
        part = unit & self._bad
        alone, along = self._known.get(self._bad & ~part), self._known.get(self._bad & ~(part | self._drop([unit])))
        return GOOD in (alone, along) or (alone == UNKNOWN and self._goes_with_needed(unit))

    def _goes_with_needed(self, unit: int) -> bool:
        """Return whether a unit is known to be needed by something that is needed itself."""
        gone = self._drop([unit]) & self._bad & ~unit
        return any(self._known.get(self._bad & ~dependent) == GOOD for dependent in self._drops if dependent & gone)

    def _sift(self, units: list[int]) -> list[int]:
        """Take units away from the last to the first as long as what is left is bad; return those that are needed."""
        needed: list[int] = []
        count = 0  # how many stay, whether they are needed or could not be judged
        rest = units[::-1]
        block = len(rest)
        while rest := [unit for unit in rest if unit & self._bad]:
            self._tell(len(rest), needed)
            fixed, rest = self._clear(rest[:block], rest[block:])
            if fixed:
                count += 1
                needed += [fixed[0]] if fixed[1] == GOOD else []
            if fixed and count == 1 and rest and self._judge(self._bad & ~self._drop(rest)) == BAD:  # often there is no other
                self._bad &= ~self._drop(rest)
                rest = []
            block = max(_LEAST_BLOCK, int(_SHARE_OF_GAP * (len(units) - len(rest)) / max(count, 1)))
        return needed

    def _clear(self, block: list[int], after: list[int]) -> tuple[tuple[int, str] | None, list[int]]:
        """Take a block away, or what of it stands before the first unit that has to stay; return that one with the answer, and the rest."""
        answer = self._judge(self._bad & ~self._drop(block))
        if answer == BAD:
            self._bad &= ~self._drop(block)
            return None, after
        while len(block) > 1:  # without the block it is not bad
            first, second = block[: len(block) // 2], block[len(block) // 2 :]
            verdict = self._judge(self._bad & ~self._drop(first))
            if verdict == BAD:
                self._bad &= ~self._drop(first)
                block = second
            else:
                block, after, answer = first, second + after, verdict
        return (block[0], answer), after

    def _minimize(self, units: list[int]) -> None:
        """Take units away singly until none can be: what was needed among others may not be by itself."""
        again = True
        while again:
            again = False
            untold = [unit for unit in units if unit & self._bad and not self._take(unit)]
            for unit in untold:
                if not self._goes_with_needed(unit):
                    self._take(self._drop([unit]))
            self._take(self._drop(untold))  # what cannot be judged singly may be judged together
            remaining = [unit for unit in units if unit & self._bad]
            again, units = len(remaining) < len(units), remaining

    def _take(self, gone: int) -> bool:
        """Remove units if the rest is bad; return whether that could be decided."""
        if not gone & self._bad:
            return True
        answer = self._judge(self._bad & ~gone)
        if answer == BAD:
            self._bad &= ~gone
        return answer != UNKNOWN

    def _split(self, units: list[int]) -> None:
        """Remove parts of tied units if the rest of them is bad alone."""
        for unit in units:
            for place in list_bits(unit) if unit.bit_count() > 1 else ():
                part = 1 << place
                if self._bad & unit != part and self._judge(self._bad & ~part) == BAD:
                    self._bad &= ~part

    def _tell(self, remaining: int, needed: list[int]) -> None:
        if self._watch is not None:
            self._watch(self._bad, join_masks(needed), remaining)


def _list_hitting_sets(causes: Sequence[Cause], units: Sequence[int]) -> list[int]:
    """Return the smallest sets of units that have something of every cause, few first; not more than are worth a trial."""
    sets = [0]
    for cause in causes:
        parts = [unit & cause.units for unit in units if unit & cause.units]
        grown = [mask if mask & cause.units else mask | part for mask in sets for part in parts]
        grown = sorted(set(grown), key=lambda mask: (mask.bit_count(), mask))
        sets = [mask for place, mask in enumerate(grown) if not any(smaller & mask == smaller for smaller in grown[:place])][:_MOST_CURES]
    return sets
