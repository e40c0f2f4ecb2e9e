"""Couples changes that rules tie together, so that they form one unit.

They are found by running the checks. A change that causes an error needs the smallest set of others
that removes it.
"""

from __future__ import annotations

from collections import Counter

from npuprof.checks import identify_finding
from npuprof.trials.combinations import Combinations, Difference
from npuprof.trials.search import BAD, GOOD, find_cause, join_masks, list_bits

#: Of settings with more changes, only some are tested individually: those of elements moved to
#: another list.
_MOST_SINGLE = 8


def tie_changes(combinations: Combinations) -> tuple[list[int], dict[int, int]]:
    """Return the units as masks of changes, in the order of their first changes.

    And for each the changes removed with it.

    Changes that need one another are one unit. A change that needs another, but not vice versa, is
    removed with that one.
    """
    needs = _Needs(combinations)
    for suspect in _list_suspects(combinations.difference):
        needs.find_needs(suspect)
    return needs.collect_units()


class _Needs:
    """Dependencies between changes, so that no combination breaks a rule that both ends satisfy."""

    def __init__(self, combinations: Combinations) -> None:
        self._combinations = combinations
        self._difference = combinations.difference
        self._needed_by: dict[int, int] = {}  # by index: the mask of the changes that need it
        self._owners = [
            self._difference.settings[change.setting] for change in self._difference.changes
        ]

    def find_needs(self, suspect: int) -> None:
        """Find what a change needs when applied alone, and what needs it when all
        others are applied.
        """
        every = self._difference.every
        for partner in self._find_partners(0, suspect):
            self._note(suspect, partner)
        dropped = self.close(suspect)
        for partner in self._find_partners(every, dropped):
            self._note(partner, suspect)

    def _note(self, dependents: int, needed: int) -> None:
        """Record a dependency; those of an element of a long list apply to the whole setting."""
        for place in list_bits(dependents):
            if self._owners[place].bit_count() > _MOST_SINGLE and not self._owners[place] & needed:
                dependents |= self._owners[place]
        for place in list_bits(needed):
            self._needed_by[place] = self._needed_by.get(place, 0) | dependents & ~(1 << place)

    def close(self, mask: int) -> int:
        """Return some changes with their direct and indirect dependents."""
        closure, waiting = mask, list_bits(mask)
        while waiting:
            new = self._needed_by.get(waiting.pop(), 0) & ~closure
            closure |= new
            waiting += list_bits(new)
        return closure

    def _find_partners(self, base: int, chosen: int) -> list[int]:
        """Return the smallest sets of other changes, one per error, that fix what an end's change
        breaks.
        """
        partners = []
        combinations = self._combinations
        errors = combinations.find_new_errors(base ^ chosen)
        marks = set(map(identify_finding, errors))
        for error in errors:
            others_left = marks - {identify_finding(error)}

            def ask(mask: int, others_left: set[tuple[str, str, str]] = others_left) -> str:
                remaining = set(
                    map(identify_finding, combinations.find_new_errors(base ^ (chosen | mask)))
                )
                return BAD if remaining <= others_left else GOOD  # a different error is no fix

            others = [part for part in self._list_parts() if not part & chosen]
            if others and ask(join_masks(others)) == BAD:
                partners.append(find_cause(others, ask).units)
        return partners

    def _list_parts(self) -> list[int]:
        """Return the parts to test: changes, and settings with many changes as a whole."""
        parts = [
            1 << place if own.bit_count() <= _MOST_SINGLE else own
            for place, own in enumerate(self._owners)
        ]
        return list(dict.fromkeys(parts))

    def collect_units(self) -> tuple[list[int], dict[int, int]]:
        """Return the units of mutually dependent changes, and the dependents of each."""
        closed = {place: self.close(1 << place) for place in self._needed_by}
        remaining, units = self._difference.every, []
        for place in range(len(self._owners)):
            if remaining >> place & 1:
                mates = [
                    partner
                    for partner in list_bits(closed.get(place, 0) & remaining)
                    if closed.get(partner, 0) >> place & 1
                ]
                unit = join_masks([1 << place, *(1 << mate for mate in mates)])
                units.append(unit)
                remaining &= ~unit
        drops = {
            unit: join_masks([closed.get(place, 1 << place) for place in list_bits(unit)])
            for unit in units
        }
        return units, drops


def _list_suspects(difference: Difference) -> list[int]:
    """Return the changes that may break a rule alone: of a long list its ends, and elements moved
    to another list.
    """
    suspects = []
    for own in difference.settings.values():
        changes = {place: difference.changes[place] for place in list_bits(own)}
        shown = {
            place: repr(change.before if change.kind == "removed" else change.after)
            for place, change in changes.items()
        }
        counts = Counter(shown.values())
        is_short = len(changes) <= _MOST_SINGLE
        suspects += [
            1 << place
            for place in changes
            if is_short or counts[shown[place]] > 1 or place in (min(changes), max(changes))
        ]
    return suspects
