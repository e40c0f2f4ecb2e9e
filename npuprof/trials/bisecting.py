"""Bisects the differing settings of a good and a bad config.

First the ends run, then the search, run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from npuprof.model import Finding
from npuprof.resolve.config import Config
from npuprof.trials.combinations import Combinations
from npuprof.trials.journal import Result
from npuprof.trials.outcomes import UNAVAILABLE, Judgement, measure_ends
from npuprof.trials.running import Runner
from npuprof.trials.search import BAD, UNKNOWN, Cause, Pending, find_cause

#: Shows progress.
Tell = Callable[[str], None]


class Bisection:
    """A good and a bad config, their differences as units, and the results of combinations.

    ``requested`` is the digest of each requested combination, ``barred`` the check findings that
    exclude others.
    """

    def __init__(
        self,
        combinations: Combinations,
        units: Sequence[int],
        drops: dict[int, int],
        runner: Runner,
        judgement: Judgement,
    ) -> None:
        self.combinations = combinations
        self.difference = combinations.difference
        self.units = units
        self.judgement = judgement
        self.cause: Cause | None = None
        self.requested = {
            0: self.difference.before.digest,
            self.difference.every: self.difference.after.digest,
        }
        self.barred: dict[int, tuple[Finding, ...]] = {}
        self.in_question = self.difference.every  #: the changes that are not ruled out
        self._drops = drops
        self._runner = runner
        self.notes: tuple[str, ...] = ()

    # -- known results ----------------------------------------------------------------------------

    def find_digest(self, mask: int) -> str:
        """Return the digest of a combination."""
        return self.requested.get(mask) or self.combinations.compute_digest(mask)

    def list_results(self, mask: int) -> list[Result]:
        """Return the runs that decide a combination, at most ``repeat``.

        Undecided runs are replaced by others.
        """
        counted = self._runner.journal.results.get(self.find_digest(mask), [])
        return sorted(counted, key=lambda result: result.exit == UNAVAILABLE)[
            : self.judgement.repeat
        ]

    def find_verdict(self, mask: int) -> str | None:
        """Return whether a combination is good, bad, or undecided; None if it must be run first.

        Raises NpuprofError.
        """
        if mask not in self.barred and mask not in self.requested:
            errors = self.combinations.find_new_errors(mask)
            if errors:
                self.barred[mask] = errors
            else:
                self.requested[mask] = self.find_digest(mask)
        if mask in self.barred:
            return UNKNOWN
        return self.judgement.judge_runs(self.list_results(mask))

    def find_dropped(self, unit: int) -> int:
        """Return the changes removed with a unit: itself, and those that depend on it."""
        return self._drops.get(unit, unit)

    def count_runs(self) -> int:
        """Return the number of runs of requested combinations, including earlier ones."""
        return sum(
            len(self._runner.journal.results.get(digest, ()))
            for digest in set(self.requested.values())
        )

    def _list_missing(self, mask: int, every: bool = False) -> list[Config]:
        """Return a config for each run that decides a combination if all end alike.

        Up to ``repeat`` if ``every`` run is needed.
        """
        config = self.combinations.find_config(mask)
        assert config is not None
        results = self.list_results(mask)
        missing = (
            self.judgement.repeat - len(results) if every else self.judgement.count_missing(results)
        )
        return [config] * missing

    def find(self, tolerance: str, tell: Tell) -> None:
        """Run the ends, then find the cause; ``cause`` stays None if no more runs are allowed.

        Raises NpuprofError if the good end is not good or the bad one not bad, so that nothing can
        be found.
        """
        if self._runner.drive(self._list_pending_ends, lambda: tell("the two ends")):
            good = self.difference.before.name, self.list_results(0)
            bad = self.difference.after.name, self.list_results(self.difference.every)
            self.judgement, self.notes = measure_ends(self.judgement, tolerance, good, bad)
            self._runner.drive(self._list_pending, lambda: tell(self._describe_progress()))

    def _list_pending_ends(self) -> list[Config]:
        is_measured = bool(
            self.judgement.metric
        )  # metric values of the ends are compared: all runs count
        # a good end that is bad needs no run of the other one
        if not is_measured and self.judgement.judge_runs(self.list_results(0)) == BAD:
            return []
        return [
            config
            for mask in (0, self.difference.every)
            for config in self._list_missing(mask, is_measured)
        ]

    def _list_pending(self) -> list[Config]:
        try:
            watch = partial(setattr, self, "in_question")
            self.cause = find_cause(self.units, self._answer, self._drops, watch)
        except Pending as pending:
            return self._list_missing(pending.units)
        return []

    def _answer(self, units: int) -> str:
        """Return the verdict of a combination. Raises Pending if it must be run first."""
        verdict = self.find_verdict(units)
        if verdict is None:
            raise Pending(units)
        return verdict

    def _describe_progress(self) -> str:
        total = len(self.difference.changes)
        ruled_out = total - self.in_question.bit_count()
        return (
            f"run {self.count_runs() + self._runner.running}: "
            f"{ruled_out} of {total} changes ruled out"
        )
