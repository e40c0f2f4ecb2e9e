"""Two sequences compared: what the differing runs turn the one into, and how much work that is."""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from growth import measure_growth
from hypothesis import given
from hypothesis import strategies as st

from npuprof.edit import sequences
from npuprof.edit.sequences import find_differing_runs

few = st.lists(st.sampled_from("abc"), max_size=30)
many = st.lists(st.integers(0, 60).map(str), max_size=60)


def replaced(before: list[str], after: list[str], runs: list[tuple[int, int, int, int]]) -> list[str]:
    """Return the first with what differs taken from the second."""
    made = list(before)
    for first, last, start, end in reversed(runs):
        made[first:last] = after[start:end]
    return made


@given(few | many, few | many)
def test_short_sequences_are_compared_as_difflib_does(before: list[str], after: list[str]) -> None:
    codes = SequenceMatcher(None, before, after, False).get_opcodes()
    assert find_differing_runs(before, after) == [tuple(rest) for tag, *rest in codes if tag != "equal"]


@pytest.mark.parametrize("most", [0, 4, 25])
@given(before=few | many, after=few | many)
def test_the_runs_are_what_differs_however_long_the_sequences_are(most: int, before: list[str], after: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_MAX_PAIRS", most)
        runs = find_differing_runs(before, after)
    assert replaced(before, after, runs) == after
    assert all(first < last or start < end for first, last, start, end in runs)
    assert all(left[1] < right[0] or left[3] < right[2] for left, right in pairwise(runs))


def test_a_long_sequence_differs_only_where_it_does() -> None:
    before = [f"e{place}" for place in range(1000)]
    after = [*before[:100], "new", *before[100:500], *before[501:900], "other", *before[901:], "last"]
    assert find_differing_runs(before, after) == [
        (100, 100, 100, 101),
        (500, 501, 501, 501),
        (900, 901, 900, 901),
        (1000, 1000, 1000, 1001),
    ]


@pytest.mark.parametrize("every", [2, 3, 10])
def test_the_work_grows_no_faster_than_the_sequences(every: int) -> None:
    def compare(size: int) -> Callable[[], object]:
        before = [f"e{place}" for place in range(size)]
        after = [f"n{place}" if place % every == 0 else f"e{place}" for place in range(size)]
        return lambda: find_differing_runs(before, after)

    assert measure_growth(compare, 1000) < 1.3


@given(st.permutations(range(12)), st.sets(st.integers(0, 11), max_size=3))
def test_of_elements_that_occur_once_most_are_kept(order: list[int], gone: set[int]) -> None:
    before, after = [str(item) for item in range(12) if item not in gone], [str(item) for item in order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_MAX_PAIRS", 0)
        runs = find_differing_runs(before, after)
    most: list[int] = []  # the longest row in order that ends at each element
    for place, item in enumerate(order):
        most.append(0 if item in gone else 1 + max((most[i] for i in range(place) if order[i] < item), default=0))
    assert len(after) - sum(stop - start for _, _, start, stop in runs) == max(most)
