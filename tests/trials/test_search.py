"""The search for causes: what it finds of planted ones, how many trials it asks for, and that the same answers give the same questions."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.trials.search import BAD, GOOD, UNKNOWN, Cause, find_cause

Truth = Callable[[int], str]


def bits(*places: int) -> int:
    return sum(1 << place for place in places)


def search(count: int, truth: Truth) -> tuple[Cause, list[int]]:
    """Return what is found among so many units, and the trials that were asked for, the ends first."""
    asked = [0, (1 << count) - 1]

    def ask(units: int) -> str:
        assert units not in asked
        asked.append(units)
        return truth(units)

    return find_cause([1 << place for place in range(count)], ask), asked


def together(*causes: int) -> Truth:
    return lambda units: BAD if any(units & cause == cause for cause in causes) else GOOD


A, B, C, D = (1 << place for place in (1, 6, 11, 13))


@pytest.mark.parametrize("causes", [[A], [A | B], [A | B | C], [A, B], [A, B, C], [A | B, A | C], [A | B, C | D], [bits(*range(14))]])
def test_a_smallest_cause_is_found(causes: list[int]) -> None:
    cause, _ = search(14, together(*causes))
    assert cause.units in causes
    assert not cause.undecided


@given(st.data())
def test_no_placing_of_needed_units_takes_more_trials_than_are_promised(data: st.DataObject) -> None:
    count = data.draw(st.integers(4, 96))
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count // 4))
    cause, asked = search(count, together(bits(*needed)))
    assert cause.units == bits(*needed)
    assert len(asked) <= 2 * len(needed) * math.log2(count / len(needed)) + 2 * len(needed) + 4


def test_one_needed_unit_is_found_by_halving() -> None:
    for place in range(64):
        cause, asked = search(64, together(1 << place))
        assert cause.units == 1 << place
        assert len(asked) <= 2 + 6 + 1 + 1  # the ends, halving, the unit alone, and all without it


@given(st.data())
def test_a_cause_is_bad_and_without_any_member_good_whatever_the_truth_is(data: st.DataObject) -> None:
    """Also where a combination is good although a part of it is bad."""
    count = data.draw(st.integers(1, 7))
    every = (1 << count) - 1
    bad = data.draw(st.sets(st.integers(1, every)))

    def truth(units: int) -> str:
        return BAD if units in bad or units == every else GOOD

    cause, _ = search(count, truth)
    assert truth(cause.units) == BAD
    for place in range(count):
        if cause.units >> place & 1:
            assert truth(cause.units & ~(1 << place)) == GOOD
    assert not cause.undecided


@given(st.data())
def test_what_cannot_be_told_is_never_said_to_matter(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 12))
    every = (1 << count) - 1
    needed = bits(*data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3)))
    odd = data.draw(st.sets(st.integers(1, every - 1), max_size=40))

    def truth(units: int) -> str:
        return UNKNOWN if units in odd else together(needed)(units)

    cause, _ = search(count, truth)
    assert truth(cause.units) == BAD
    assert not cause.units & ~cause.undecided & ~needed
    for place in range(count):
        if cause.undecided >> place & 1:
            assert truth(cause.units & ~(1 << place)) == UNKNOWN


def test_units_that_can_only_go_together_are_taken_away_together() -> None:
    """One without the other cannot be told: as with settings that no rule ties, and the command refuses singly."""
    pair = bits(3, 9)

    def truth(units: int) -> str:
        return UNKNOWN if (units & pair) not in (0, pair) else together(bits(5))(units)

    cause, _ = search(14, truth)
    assert cause.units == bits(5)


def test_what_cannot_stand_without_a_unit_goes_with_it() -> None:
    def truth(units: int) -> str:
        assert not units & bits(2) or units & bits(7)  # 2 needs 7
        return together(bits(2, 7))(units)

    units = [1 << place for place in range(10)]
    cause = find_cause(units, lambda mask: UNKNOWN if mask & bits(2) and not mask & bits(7) else truth(mask), {bits(7): bits(2, 7)})
    assert (cause.units, cause.undecided) == (bits(2, 7), 0)


@given(st.data())
def test_with_units_that_need_others_the_cause_is_what_is_needed_with_what_that_needs(data: st.DataObject) -> None:
    count = data.draw(st.integers(4, 24))
    places = st.integers(0, count - 1)
    edges = data.draw(st.lists(st.tuples(places, places), max_size=6))
    needs = {place: 1 << place for place in range(count)}
    for _ in range(count):
        for place, other in edges:
            needs[place] |= needs[other]
    units = list(dict.fromkeys(sum(1 << b for b in range(count) if needs[a] >> b & 1 and needs[b] >> a & 1) for a in range(count)))
    drops = {unit: unit | sum(1 << a for a in range(count) if needs[a] & unit and not unit >> a & 1) for unit in units}
    wanted = bits(*data.draw(st.sets(places, min_size=1, max_size=3)))
    run = set()

    def ask(mask: int) -> str:
        if any(mask >> place & 1 and mask & needs[place] != needs[place] for place in range(count)):
            return UNKNOWN  # the checks do not allow it
        run.add(mask)
        return together(wanted)(mask)

    cause = find_cause(units, ask, drops)
    smallest = 0
    for place in range(count):
        smallest |= needs[place] if wanted >> place & 1 else 0
    assert (cause.units, cause.undecided) == (smallest, 0)
    k = sum(bool(unit & smallest) for unit in units)
    if 4 * k <= len(units):
        assert len(run) + 2 <= 2 * k * math.log2(len(units) / k) + 2 * k + 4
