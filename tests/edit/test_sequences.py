"""Two sequences compared: what the differing runs turn the one into, and how much work that is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.edit import sequences
from npuprof.edit.sequences import find_differing_runs

few = st.lists(st.sampled_from("abc"), max_size=30)
many = st.lists(st.integers(0, 60).map(str), max_size=60)


def apply_runs(
    before: list[str], after: list[str], runs: list[tuple[int, int, int, int]]
) -> list[str]:
    """Return the first with what differs taken from the second."""
    made = list(before)
    for first, last, start, end in reversed(runs):
        made[first:last] = after[start:end]
    return made


@pytest.mark.parametrize("most", [0, 25])
@given(before=few | many, after=few | many)
def test_the_runs_are_what_differs_however_long_the_sequences_are(
    most: int, before: list[str], after: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_MAX_PAIRS", most)
        runs = find_differing_runs(before, after)
    assert apply_runs(before, after, runs) == after
    assert all(first < last or start < end for first, last, start, end in runs)
    assert all(left[1] < right[0] or left[3] < right[2] for left, right in pairwise(runs))


def test_a_sequence_differs_only_where_it_does() -> None:
    before = [f"e{place}" for place in range(300)]
    after = [*before[:100], "new", *before[100:150], *before[151:200], "other", *before[201:]]
    assert find_differing_runs(before, after) == [
        (100, 100, 100, 101),
        (150, 151, 151, 151),
        (200, 201, 200, 201),
    ]
    assert find_differing_runs(before, ["x", *before[1:-1], "y"]) == [(0, 300, 0, 300)]
