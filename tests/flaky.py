"""Bisects of planted causes whose runs say the wrong thing now and then, without a process: what was answered, and what was stated."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

from npuprof.model import NpuprofError
from npuprof.trials.bisecting import Bisection, count_flaky_runs
from npuprof.trials.journal import Result
from npuprof.trials.judging import Judgement
from npuprof.trials.running import OutOfRunsError


class Trials:
    """A runner whose runs are bad with one chance where the planted settings are all there, and with another where they are not."""

    def __init__(self, chance: random.Random, planted: int, good: float, bad: float, most: int) -> None:
        self.left = most
        self.results: dict[str, list[Result]] = {}
        self.journal = SimpleNamespace(results=self.results)
        self.running = 0
        self.ends = ""
        self._judge = lambda mask: chance.random() < (bad if mask & planted == planted else good)

    def list_counted(self, digest: str) -> list[Result]:
        return self.results.get(digest, [])

    def drive(self, find_wanted: Any, watch: Any = None) -> None:
        while wanted := find_wanted(1):
            if not self.left:
                raise OutOfRunsError
            self.left -= 1
            one = wanted[0]
            self.results.setdefault(one.digest, []).append(Result(one.digest, int(self._judge(int(one.digest))), ends=self.ends))


def bisect_flaky(
    chance: random.Random, good: float, bad: float, repeat: int, size: int = 16, needed: int = 1
) -> tuple[bool, float, int] | None:
    """Return whether the answer was right, what was stated of it, and how many runs were made; None where there was none."""
    planted = sum(1 << place for place in chance.sample(range(size), needed))
    difference = SimpleNamespace(
        every=(1 << size) - 1, changes=range(size), before=SimpleNamespace(name="good"), after=SimpleNamespace(name="bad")
    )
    combinations = SimpleNamespace(
        difference=difference, compute_digest=str, find_config=lambda mask: mask, find_new_errors=lambda mask: ()
    )
    trials = Trials(chance, planted, good, bad, count_flaky_runs(size, repeat))
    found = Bisection(cast("Any", combinations), [1 << place for place in range(size)], {}, cast("Any", trials), Judgement(repeat=repeat))
    try:
        found.try_ends("1%", lambda text: None)
    except NpuprofError:
        return None
    found.search(lambda text: None)
    if found.outcome is None:
        return None
    right = [cause.units for cause in found.outcome.causes] == [planted] and not found.outcome.causes[0].undecided
    stated = found.compute_odds()
    assert stated is not None
    return right, stated, sum(map(len, trials.results.values()))
