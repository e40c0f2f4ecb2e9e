"""The search for causes.

It finds planted ones, in a limited number of trials; the same answers give the same questions.
"""

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
    """Return what is found among so many units, and the requested trials.

    The ends come first.
    """
    requested = [0, (1 << count) - 1]

    def ask(units: int) -> str:
        assert units not in requested
        requested.append(units)
        return truth(units)

    return find_cause([1 << place for place in range(count)], ask), requested


def make_truth(*causes: int) -> Truth:
    return lambda units: BAD if any(units & cause == cause for cause in causes) else GOOD


A, B, C, D = (1 << place for place in (1, 6, 11, 13))


@pytest.mark.parametrize(
    "causes",
    [
        [A],
        [A | B],
        [A | B | C],
        [A, B],
        [A, B, C],
        [A | B, A | C],
        [A | B, C | D],
        [bits(*range(14))],
    ],
)
def test_a_smallest_cause_is_found(causes: list[int]) -> None:
    cause, _ = search(14, make_truth(*causes))
    assert cause.units in causes
    assert not cause.undecided


@given(st.data())
def test_no_placing_of_needed_units_takes_more_trials_than_are_promised(
    data: st.DataObject,
) -> None:
    count = data.draw(st.integers(4, 96))
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count // 4))
    cause, requested = search(count, make_truth(bits(*needed)))
    assert cause.units == bits(*needed)
    most = 2 * len(needed) * math.log2(count / len(needed)) + 2 * len(needed) + 4
    assert len(requested) <= (
        most if len(needed) > 1 else 4 + math.ceil(math.log2(count))
    )  # one is found by halving


@given(st.data())
def test_a_cause_is_bad_and_without_any_member_good_whatever_the_truth_is(
    data: st.DataObject,
) -> None:
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
        return UNKNOWN if units in odd else make_truth(needed)(units)

    cause, _ = search(count, truth)
    assert truth(cause.units) == BAD
    assert not cause.units & ~cause.undecided & ~needed
    for place in range(count):
        if cause.undecided >> place & 1:
            assert truth(cause.units & ~(1 << place)) == UNKNOWN


def test_what_cannot_stand_without_a_unit_goes_with_it() -> None:
    def truth(units: int) -> str:
        assert not units & bits(2) or units & bits(7)  # 2 needs 7
        return make_truth(bits(2, 7))(units)

    units = [1 << place for place in range(10)]
    cause = find_cause(
        units,
        lambda mask: UNKNOWN if mask & bits(2) and not mask & bits(7) else truth(mask),
        {bits(7): bits(2, 7)},
    )
    assert cause.units == bits(2, 7)
    assert cause.undecided == 0
