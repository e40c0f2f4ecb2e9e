"""Changes that rules tie together: one cannot be made without the other, so that they are one unit.

They are found by asking the checks. A change that brings an error about needs the fewest others that take the error
away again; the settings that the broken rule reads are asked for first, then all.
"""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import written_condition
from npuprof.checks import identify_finding
from npuprof.checks.rules import list_rule_reads
from npuprof.document import keys
from npuprof.model import Finding
from npuprof.trials.combinations import Combinations
from npuprof.trials.search import BAD, GOOD, find_cause, join_masks, list_bits

#: Of a setting with more changes than these only some are asked for singly: those of an element that went from one list to another.
_MOST_SINGLE = 8


def tie_changes(combinations: Combinations) -> tuple[list[int], dict[int, int]]:
    """Return the units as masks of changes, in the order of their first changes; and for each what goes with it where it is taken away.

    Changes that need one another are one unit. One that needs another, which can be made without it, goes with that.
    """
    needs = _Needs(combinations)
    for suspect in _list_suspects(combinations):
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

            others = [unit for unit in self._list_parts() if not unit & chosen]
            read = _find_read_changes(combinations, error)
            likely = [part for part in others if part & read]
            candidates = likely if likely and ask(join_masks(likely)) == BAD else others
            if candidates and ask(join_masks(candidates)) == BAD:
                partners.append(find_cause(candidates, ask).units)
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


def _list_suspects(combinations: Combinations) -> list[int]:
    """Return the changes that may break a rule by themselves: those of settings that anything is known of."""
    difference = combinations.difference
    policy = difference.after.policy
    read = {key for rule in (policy.rules if policy else ()) for key in written_condition.list_team_reads(rule)}
    suspects: list[int] = []
    for key, own in difference.settings.items():
        if key not in read and catalog.find_record(*keys.split_section_and_name(key)) is None:
            continue
        places = [place for place in range(len(difference.changes)) if own >> place & 1]
        if len(places) > _MOST_SINGLE:
            by_value: dict[str, list[int]] = {}
            for place in places:
                change = difference.changes[place]
                by_value.setdefault(repr(change.before if change.kind == "removed" else change.after), []).append(place)
            first = [place for place in places if not difference.changes[place].element][:_MOST_SINGLE]
            moved = [place for same in by_value.values() if len(same) > 1 for place in same]
            places = sorted({*first, *moved, places[0], places[-1]})
        suspects += [1 << place for place in places]
    return suspects


def _find_read_changes(combinations: Combinations, error: Finding) -> int:
    """Return the changes of settings that a broken rule reads, as far as it says which."""
    difference = combinations.difference
    parsed = keys.parse_key_path(error.key)
    read = {parsed[0]} if parsed else set()
    read |= {key for rule in catalog.load_rules() if rule.code == error.code for key in rule.reads}
    policy = difference.after.policy
    for rule in policy.rules if policy else ():
        if rule.code == error.code:
            read |= set(written_condition.list_team_reads(rule))
    read |= {key for some in list_rule_reads() if error.code.startswith("NP38") and error.key in some for key in some}
    return join_masks([own for key, own in difference.settings.items() if key in read])
