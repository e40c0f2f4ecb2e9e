"""Two sequences compared: what the differing runs turn the one into, and how much work that is."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.edit import sequences
from npuprof.edit.sequences import Run, find_differing_runs

few = st.lists(st.sampled_from("abc"), max_size=30)
many = st.lists(st.integers(0, 60).map(str), max_size=60)


def apply_runs(before: list[str], after: list[str], runs: list[Run]) -> list[str]:
    """Return the first sequence with its differing runs replaced from the second."""
    result = list(before)
    for run in reversed(runs):
        result[run.old_start : run.old_end] = after[run.new_start : run.new_end]
    return result


@pytest.mark.parametrize("most", [0, 25])
@given(before=few | many, after=few | many)
def test_the_runs_are_what_differs_however_long_the_sequences_are(
    most: int, before: list[str], after: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_MAX_PAIRS", most)
        runs = find_differing_runs(before, after)
    assert apply_runs(before, after, runs) == after
    assert all(run.old_start < run.old_end or run.new_start < run.new_end for run in runs)
    assert all(
        run.old_end < following.old_start or run.new_end < following.new_start
        for run, following in pairwise(runs)
    )


def test_a_sequence_differs_only_where_it_does() -> None:
    before = [f"e{index}" for index in range(300)]
    after = [*before[:100], "new", *before[100:150], *before[151:200], "other", *before[201:]]
    assert find_differing_runs(before, after) == [
        Run(old_start=100, old_end=100, new_start=100, new_end=101),
        Run(old_start=150, old_end=151, new_start=151, new_end=151),
        Run(old_start=200, old_end=201, new_start=200, new_end=201),
    ]
    assert find_differing_runs(before, ["x", *before[1:-1], "y"]) == [Run(0, 300, 0, 300)]
