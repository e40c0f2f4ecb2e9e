"""What runs of a flaky command say: how much likelier they are of a bad combination than of a good one, and how sure that is.

How often a good and a bad combination end as bad is not known: it is measured at the two ends, and what the ends leave open is
integrated over (a uniform prior of either rate), so that a few runs do not count as certainty. Every combination that was told tells
more of the rates: the ends alone, run a few times, are too often luckier than what they stand for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import exp, expm1, lgamma, log1p
from typing import TypeVar

from npuprof.model import Record

#: A verdict that may be wrong with a greater chance takes more runs; one that the answer rests on takes more still.
DOUBTFUL, DOUBTFUL_OF_ANSWER = 0.05, 0.005
#: At most so many times the runs that were asked for are made of one combination; with a greater doubt it cannot be told then.
MOST_TIMES = 8
UNTELLABLE = 0.2
#: An answer that may be wrong with a greater chance is told as likely, and as undecided to programs.
UNSURE = 0.1
#: The ends are run so many times as often: every verdict rests on them. The next number is for ends that are too alike by then.
ENDS_TIMES = (2, 4, 8)
_Key = TypeVar("_Key")
#: How often rates and combinations are worked out of each other; what changes after that is less than a doubt counts for.
_PASSES = 4


class Rates(Record):
    """How many runs of each kind were judged, and how many of them were bad: those of the ends, and shares of others."""

    good_bad: float
    good_runs: float
    bad_bad: float
    bad_runs: float

    def weigh(self, bad: int, runs: int) -> float:
        """Return the logarithm of how much likelier these runs are of a bad combination than of a good one."""
        return _log_evidence(bad, runs, self.bad_bad, self.bad_runs) - _log_evidence(bad, runs, self.good_bad, self.good_runs)

    def compute_doubt(self, bad: int, runs: int) -> float:
        """Return the chance that the likelier verdict is wrong."""
        return 1 / (1 + exp(min(abs(self.weigh(bad, runs)), 700.0)))

    def compute_badness(self, bad: int, runs: int) -> float:
        """Return the chance that these runs are of a bad combination."""
        return 1 / (1 + exp(-max(min(self.weigh(bad, runs), 700.0), -700.0)))

    def share_out(self, bad: int, runs: int, badness: float, sign: int = 1) -> Rates:
        """Return the rates with runs of a combination, shared out by how likely it is a bad one; without them if the sign is -1."""
        to_good, to_bad = sign * (1 - badness), sign * badness
        counts = self.good_bad + bad * to_good, self.good_runs + runs * to_good, self.bad_bad + bad * to_bad, self.bad_runs + runs * to_bad
        return Rates(*(max(count, 0.0) for count in counts))  # what is taken away again may miss nothing by a rounding

    def learn(self, seen: Mapping[_Key, tuple[int, int]]) -> tuple[Rates, dict[_Key, Rates]]:
        """Return the rates that these and all combinations show, and for each combination those that it is judged by: of all others.

        Of each it is known how many of its runs were bad, and how many there were.
        """
        every, often = self, Counter(seen.values())  # most combinations were run as often, and ended alike: each kind is worked out once
        others = dict.fromkeys(often, self)
        for _ in range(_PASSES):
            badness = {counts: others[counts].compute_badness(*counts) for counts in often}
            every = self
            for (bad, runs), times in often.items():
                every = every.share_out(bad * times, runs * times, badness[bad, runs])
            others = {counts: every.share_out(*counts, badness[counts], -1) for counts in often}
        return every, {key: others[counts] for key, counts in seen.items()}

    def compute_missed(self, runs: int) -> float:
        """Return the chance that a bad combination is good in so many runs."""
        return exp(_log_evidence(0, runs, self.bad_bad, self.bad_runs))

    def can_tell(self, runs: int) -> bool:
        """Return whether so many runs of a combination can tell it, where they are as those of an end."""
        likely = [(bad + 1) / (seen + 2) for bad, seen in ((self.good_bad, self.good_runs), (self.bad_bad, self.bad_runs))]
        good, bad = (round(share * runs) for share in likely)
        sure = max(self.compute_doubt(good, runs), self.compute_doubt(bad, runs)) <= DOUBTFUL_OF_ANSWER
        return sure and self.weigh(good, runs) < 0 < self.weigh(bad, runs)


def join_doubts(doubts: Iterable[float]) -> float:
    """Return the chance that one of several verdicts is wrong."""
    return -expm1(sum(log1p(-doubt) for doubt in doubts))


def _log_evidence(bad: int, runs: int, seen_bad: float, seen: float) -> float:
    """Return the logarithm of the chance of runs in their order, of a rate that was seen so often."""
    before = _log_beta(seen_bad + 1, seen - seen_bad + 1)
    return _log_beta(seen_bad + bad + 1, seen - seen_bad + runs - bad + 1) - before


def _log_beta(first: float, second: float) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)
