"""Changes that rules tie together: one cannot be made without the other, so that they are one unit.

They are found by asking the checks. A change that brings an error about needs the fewest others that take the error away again.
"""

from __future__ import annotations

from collections import Counter

from npuprof.checks import identify_finding
from npuprof.trials.combinations import Combinations, Difference
from npuprof.trials.search import BAD, GOOD, find_cause, join_masks, list_bits

#: Of a setting with more changes than these only some are asked for singly: those of an element that went from one list to another.
_MOST_SINGLE = 8


def tie_changes(combinations: Combinations) -> tuple[list[int], dict[int, int]]:
    """Return the units as masks of changes, in the order of their first changes; and for each what goes with it where it is taken away.

    Changes that need one another are one unit. One that needs another, which can be made without it, goes with that.
    """
    needs = _Needs(combinations)
    for suspect in _list_suspects(combinations.difference):
        needs.find_needs(suspect)
    return needs.collect_units()


class _Needs:
    """Which changes need which others, so that no rule is broken that both ends keep."""

    def __init__(self, combinations: Combinations) -> None:
        self._combinations = combinations
        self._difference = combinations.difference
        self._needed_by: dict[int, int] = {}  # by place: the mask of the changes that need it
        self._owners = [self._difference.settings[change.setting] for change in self._difference.changes]

    def find_needs(self, suspect: int) -> None:
        """Find what a change needs that is made alone, and what needs it where all others are made."""
        every = self._difference.every
        for partner in self._find_partners(0, suspect):
            self._note(suspect, partner)
        dropped = self.close(suspect)
        for partner in self._find_partners(every, dropped):
            self._note(partner, suspect)

    def _note(self, dependents: int, needed: int) -> None:
        """Keep that some changes need others; what an element of a long list needs, all of its setting do."""
        for place in list_bits(dependents):
            if self._owners[place].bit_count() > _MOST_SINGLE and not self._owners[place] & needed:
                dependents |= self._owners[place]
        for place in list_bits(needed):
            self._needed_by[place] = self._needed_by.get(place, 0) | dependents & ~(1 << place)

    def close(self, mask: int) -> int:
        """Return some changes with all that need them, or need what needs them."""
        closure, waiting = mask, list_bits(mask)
        while waiting:
            new = self._needed_by.get(waiting.pop(), 0) & ~closure
            closure |= new
            waiting += list_bits(new)
        return closure

    def _find_partners(self, base: int, chosen: int) -> list[int]:
        """Return the fewest other changes, one set for each error, that cure what a change of an end to the other breaks."""
        partners: list[int] = []
        combinations = self._combinations
        errors = combinations.find_new_errors(base ^ chosen)
        marks = set(map(identify_finding, errors))
        for error in errors:
            others_left = marks - {identify_finding(error)}

            def ask(mask: int, others_left: set[tuple[str, str, str]] = others_left) -> str:
                remaining = set(map(identify_finding, combinations.find_new_errors(base ^ (chosen | mask))))
                return BAD if remaining <= others_left else GOOD  # another error in its place is no cure

            others = [part for part in self._list_parts() if not part & chosen]
            if others and ask(join_masks(others)) == BAD:
                partners.append(find_cause(others, ask).units)
        return partners

    def _list_parts(self) -> list[int]:
        """Return what is asked for as one: changes, and settings with many of them as a whole."""
        parts = [1 << place if own.bit_count() <= _MOST_SINGLE else own for place, own in enumerate(self._owners)]
        return list(dict.fromkeys(parts))

    def collect_units(self) -> tuple[list[int], dict[int, int]]:
        """Return changes that need one another as one, and what goes with each."""
        closed = {place: self.close(1 << place) for place in self._needed_by}
        remaining, units = self._difference.every, []
        for place in range(len(self._owners)):
            if remaining >> place & 1:
                mates = [partner for partner in list_bits(closed.get(place, 0) & remaining) if closed.get(partner, 0) >> place & 1]
                unit = join_masks([1 << place, *(1 << mate for mate in mates)])
                units.append(unit)
                remaining &= ~unit
        drops = {unit: join_masks([closed.get(place, 1 << place) for place in list_bits(unit)]) for unit in units}
        return units, drops


def _list_suspects(difference: Difference) -> list[int]:
    """Return the changes that may break a rule by themselves: of a long list the ends, and what went to another list."""
    suspects: list[int] = []
    for own in difference.settings.values():
        changes = {place: difference.changes[place] for place in list_bits(own)}
        shown = {place: repr(change.before if change.kind == "removed" else change.after) for place, change in changes.items()}
        counts = Counter(shown.values())
        is_short = len(changes) <= _MOST_SINGLE
        suspects += [1 << place for place in changes if is_short or counts[shown[place]] > 1 or place in (min(changes), max(changes))]
    return suspects
