"""What runs of flaky commands say of combinations, and that what is stated of an answer is not better than it is."""

from __future__ import annotations

import random
import statistics

import pytest
from flaky import bisect_flaky
from lanes import more_at_night

from npuprof.trials.bisecting import count_flaky_runs
from npuprof.trials.odds import UNSURE, Rates, join_doubts


@pytest.mark.parametrize(
    ("rates", "runs", "missed"),
    [(Rates(0, 4, 4, 4), 4, 1 / 126), (Rates(0, 4, 2, 4), 4, 5 / 42), (Rates(0, 1, 1, 1), 1, 1 / 3), (Rates(0, 8, 8, 8), 0, 1.0)],
)
def test_a_rate_that_was_measured_a_few_times_is_integrated_over(rates: Rates, runs: int, missed: float) -> None:
    assert rates.compute_missed(runs) == pytest.approx(missed)


@pytest.mark.parametrize(
    ("rates", "bad", "runs", "sign"),
    [
        (Rates(0, 8, 8, 8), 0, 4, -1), (Rates(0, 8, 8, 8), 4, 4, 1), (Rates(1, 8, 8, 8), 1, 4, -1), (Rates(2, 20, 10, 20), 1, 10, -1),
        (Rates(2, 20, 10, 20), 5, 10, 1), (Rates(0, 30, 3, 30), 1, 4, 1),
    ],
)  # fmt: skip
def test_runs_are_of_the_end_that_they_are_likelier_of(rates: Rates, bad: int, runs: int, sign: int) -> None:
    assert rates.weigh(bad, runs) * sign > 0
    assert 0 < rates.compute_doubt(bad, runs) < 0.5


def test_combinations_that_were_told_say_how_sure_others_are() -> None:
    """The bad end was luckier than bad combinations are: 12 of 32 runs are far from its 6 of 8, and farther from all that is good."""
    ends = Rates(0, 8, 6, 8)
    seen = {1: (12, 32), 2: (0, 8), 4: (0, 8), 8: (0, 8), 16: (13, 32)}
    every, others = ends.learn(seen)
    assert ends.compute_doubt(12, 32) > 0.3
    assert others[1].compute_doubt(12, 32) < 0.005
    assert others[1].weigh(12, 32) > 0
    assert (every.good_runs, every.bad_runs) == (pytest.approx(32, abs=1), pytest.approx(72, abs=1))


def test_a_combination_is_not_judged_by_its_own_runs_twice() -> None:
    ends = Rates(0, 8, 6, 8)
    every, others = ends.learn({1: (12, 32)})
    assert others[1].good_bad == pytest.approx(0, abs=1e-9)
    assert others[1].bad_runs == pytest.approx(8)
    assert every.good_runs + every.bad_runs == pytest.approx(48)


def test_combinations_that_ended_alike_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each run all that was learned is worked out anew: with each combination by itself that grew with their square."""
    asked: list[tuple[int, int]] = []
    compute = Rates.compute_badness

    def count(self: Rates, bad: int, runs: int) -> float:
        asked.append((bad, runs))
        return compute(self, bad, runs)

    monkeypatch.setattr(Rates, "compute_badness", count)
    ends, seen = Rates(0, 8, 6, 8), {number: (number % 3, 4) for number in range(600)}
    every, others = ends.learn(seen)
    assert len(asked) <= 4 * 3
    singly, plain = dict.fromkeys(seen, ends), ends
    for _ in range(4):
        badness = {number: singly[number].compute_badness(*counts) for number, counts in seen.items()}
        plain = ends
        for number, counts in seen.items():
            plain = plain.share_out(*counts, badness[number])
        singly = {number: plain.share_out(*counts, badness[number], -1) for number, counts in seen.items()}
    assert list(every._asdict().values()) == pytest.approx(list(plain._asdict().values()))
    assert all(others[number].weigh(1, 4) == pytest.approx(singly[number].weigh(1, 4)) for number in seen)


def test_without_combinations_the_ends_are_all_that_is_known() -> None:
    assert Rates(0, 8, 6, 8).learn({}) == (Rates(0, 8, 6, 8), {})


def test_few_answers_leave_members_undecided_that_enough_runs_tell() -> None:
    """Judged by the ends alone, 8 of 300 answers had members of which nothing could be told, and more was stated than held."""
    chance = random.Random(4)
    rows = [row for _ in range(60) if (row := bisect_flaky(chance, 0.03, 0.5, 8))]
    assert sum(not right for right, _, _ in rows) <= 1
    assert statistics.mean(odds for _, odds, _ in rows) < 0.06  # a bound, by the ends alone


def test_doubts_of_several_verdicts_add_up() -> None:
    assert join_doubts([]) == 0
    assert join_doubts([0.1, 0.1]) == pytest.approx(0.19)


@pytest.mark.parametrize(
    ("good", "bad", "repeat", "wrong"), [(0.03, 0.9, 4, 0.03), (0.03, 1.0, 2, 0.03), (0.1, 0.9, 4, 0.04), (0.03, 0.7, 4, 0.05)]
)
def test_answers_are_wrong_no_more_often_than_is_stated(good: float, bad: float, repeat: int, wrong: float) -> None:
    """One bad run was enough once: with 3 of 100 good runs bad, half of the answers were wrong, of which one in eighty was stated."""
    chance = random.Random(17)
    rows = [row for _ in range(60) if (row := bisect_flaky(chance, good, bad, repeat))]
    share = sum(not right for right, _, _ in rows) / len(rows)
    stated = statistics.mean(odds for _, odds, _ in rows)
    assert len(rows) > 40
    assert share <= wrong
    assert share <= stated + 3 * (stated * (1 - stated) / len(rows)) ** 0.5


@pytest.mark.parametrize(("good", "bad", "repeat", "seed"), more_at_night([(0.03, 0.5, 8, 203)], [(0.0, 0.5, 4, 202), (0.05, 0.6, 6, 7)]))
def test_no_answer_is_stated_surer_than_the_ends_make_it(good: float, bad: float, repeat: int, seed: int) -> None:
    """By what was learned of other combinations 0.0065 was stated of answers of which one in a hundred was wrong."""
    chance = random.Random(seed)
    rows = [row for _ in range(60) if (row := bisect_flaky(chance, good, bad, repeat))]
    stated = [odds for _, odds, _ in rows]
    assert sum(not right for right, _, _ in rows) / len(rows) <= statistics.mean(stated)
    assert statistics.mean(stated) > 0.01


@pytest.mark.parametrize(
    ("good", "bad", "repeat", "hedged"), more_at_night([(0.03, 0.9, 4, 0.05)], [(0.0, 0.3, 4, 0.3), (0.02, 0.4, 4, 0.2)])
)
def test_answers_that_are_wrong_are_told_as_undecided(good: float, bad: float, repeat: int, hedged: float) -> None:
    """Of 1,800 answers all ten that were wrong had been stated to be so with a chance above a tenth, and 8 % of the right ones."""
    chance = random.Random(1723)
    rows = [row for _ in range(150) if (row := bisect_flaky(chance, good, bad, repeat))]
    assert sum(not right for right, odds, _ in rows if odds <= UNSURE) <= 1
    assert sum(odds > UNSURE for _, odds, _ in rows) / len(rows) < hedged


def test_a_very_flaky_search_is_bounded() -> None:
    """Without a limit this search of sixteen settings took 1,391 runs, and its answer was wrong; half of all take 135."""
    assert count_flaky_runs(16, 4) == 4 * (2 * 8 + 8 * 20)
    found = bisect_flaky(random.Random(31), 0.0, 0.25, 4)
    assert found is None or found[2] <= count_flaky_runs(16, 4)
