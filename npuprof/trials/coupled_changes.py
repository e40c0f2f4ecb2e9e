"""Couples changes that rules tie together, so that they form one unit.

They are found by running the checks. A change that causes an error needs the smallest set of others
that removes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

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
        """Record the changes that a change needs, and those that need it."""
        # from the old end, with this change alone: its errors show what it needs
        for needed in self._find_partners(0, suspect):
            self._note(suspect, needed)
        # from the new end, without this change: the errors show what needs it
        for dependents in self._find_partners(self._difference.every, self.close(suspect)):
            self._note(dependents, suspect)

    def _note(self, dependents: int, needed: int) -> None:
        """Record a dependency; those of an element of a long list apply to the whole setting."""
        for index in list_bits(dependents):
            # elements of one list depend alike: testing each would take as many checks as it has
            # elements
            if self._owners[index].bit_count() > _MOST_SINGLE and not self._owners[index] & needed:
                dependents |= self._owners[index]
        for index in list_bits(needed):
            self._needed_by[index] = self._needed_by.get(index, 0) | dependents & ~(1 << index)

    def close(self, mask: int) -> int:
        """Return some changes with their direct and indirect dependents."""
        closure, waiting = mask, list_bits(mask)
        while waiting:
            new = self._needed_by.get(waiting.pop(), 0) & ~closure
            closure |= new
            waiting += list_bits(new)
        return closure

    def _find_partners(self, base: int, chosen: int) -> list[int]:
        """Return the smallest sets of other changes that fix what an end's change breaks.

        There is one set per error. ``base`` is the end, as a mask of its changes; ``chosen`` are
        the changes that are applied to it or taken from it.
        """
        partners = []
        combinations = self._combinations
        errors = combinations.find_new_errors(base ^ chosen)
        faults = set(map(identify_finding, errors))
        for error in errors:
            other_faults = faults - {identify_finding(error)}

            def check(mask: int, other_faults: Set[object] = other_faults) -> str:
                remaining = combinations.find_new_errors(base ^ (chosen | mask))
                is_fixed = set(map(identify_finding, remaining)) <= other_faults
                return BAD if is_fixed else GOOD  # a different error is no fix

            others = [part for part in self._list_parts() if not part & chosen]
            # if all others together fix nothing, no set of them does
            if others and check(join_masks(others)) == BAD:
                partners.append(find_cause(others, check).units)
        return partners

    def _list_parts(self) -> list[int]:
        """Return the parts to test: changes, and settings with many changes as a whole."""
        parts = [
            1 << index if own.bit_count() <= _MOST_SINGLE else own
            for index, own in enumerate(self._owners)
        ]
        return list(dict.fromkeys(parts))

    def collect_units(self) -> tuple[list[int], dict[int, int]]:
        """Return the units of mutually dependent changes, and the dependents of each."""
        closed = {index: self.close(1 << index) for index in self._needed_by}
        remaining = self._difference.every
        dropped_with = {}
        for index in range(len(self._owners)):
            if not remaining >> index & 1:
                continue
            unit = 1 << index
            for partner in list_bits(closed.get(index, 0) & remaining):
                if closed.get(partner, 0) >> index & 1:  # each needs the other
                    unit |= 1 << partner
            dropped_with[unit] = join_masks([closed.get(bit, 1 << bit) for bit in list_bits(unit)])
            remaining &= ~unit
        return list(dropped_with), dropped_with


def _list_suspects(difference: Difference) -> list[int]:
    """Return the changes that may break a rule alone.

    Of a long list they are its ends, and elements moved to another list.
    """
    suspects = []
    for own in difference.settings.values():
        indexes = list_bits(own)
        shown = {}
        for index in indexes:
            change = difference.changes[index]
            shown[index] = repr(change.before if change.kind == "removed" else change.after)
        counts = Counter(shown.values())
        ends = (min(indexes), max(indexes))
        for index in indexes:
            is_moved = counts[shown[index]] > 1
            if len(indexes) <= _MOST_SINGLE or is_moved or index in ends:
                suspects.append(1 << index)
    return suspects
