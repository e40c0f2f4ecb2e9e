"""Which of the differing settings make the difference between a good and a bad config: ends first, then the search, run by run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from npuprof.model import Finding, Record
from npuprof.report.text import format_count
from npuprof.trials.configs import Combinations
from npuprof.trials.ends import build_alike_error, describe_rates, measure_ends
from npuprof.trials.journal import Result
from npuprof.trials.judging import Judgement
from npuprof.trials.odds import ENDS_TIMES, MOST_TIMES, UNSURE, Rates, join_doubts
from npuprof.trials.running import OutOfRunsError, Runner, Wanted
from npuprof.trials.search import BAD, GOOD, UNKNOWN, Outcome, Pending, find_causes
from npuprof.trials.speculation import foresee_trials, replay_search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.trials.search import Ask

#: Says how far the work is.
Tell = Callable[[str], None]


class State(Record):
    """How far a search has come: what brings the effect about still, what of it is known to be needed, how many units are open."""

    bad: int
    needed: int
    open: int


class Bisection:
    """A good and a bad config, what differs between them as units, and what is known of their combinations."""

    def __init__(
        self, combinations: Combinations, units: Sequence[int], drops: dict[int, int], runner: Runner, judgement: Judgement
    ) -> None:
        self.combinations = combinations
        self.difference = combinations.difference
        self.units = units
        self.judgement = judgement
        self.outcome: Outcome | None = None
        self.asked: dict[int, str] = {}  #: the digest of each combination that was asked for
        self.barred: dict[int, tuple[Finding, ...]] = {}
        self.state = State(self.difference.every, 0, len(units))
        self._drops = drops
        self._runner = runner
        self._digests: dict[int, str] = {}
        runner.ends = "-".join(self.find_digest(mask)[:16] for mask in (0, self.difference.every))
        self._rested_on: set[int] = set()  # combinations that the answer rests on: they are looked at a second time
        self.remarks: tuple[str, ...] = ()
        self.ends: Rates | None = None  # what the ends alone show
        self._learned: dict[str, Rates] = {}  # what a combination is judged by: the ends, and all other combinations
        self._verdicts: dict[int, str | None] = {}  # of what was learned so far

    # -- what is known ---------------------------------------------------------------------------------------------

    def find_digest(self, mask: int) -> str:
        """Return the digest of a combination."""
        if mask not in self._digests:
            self._digests[mask] = self.combinations.compute_digest(mask)
        return self._digests[mask]

    def list_results(self, mask: int) -> list[Result]:
        """Return the runs of a combination."""
        return self._runner.list_counted(self.find_digest(mask))

    def find_verdict(self, mask: int) -> str | None:
        """Return whether a combination is good or bad, or cannot be told; None where it has to be run first. Raises StopTrialsError."""
        if mask not in (0, self.difference.every) and mask not in self.barred and mask not in self.asked:
            errors = self.combinations.find_new_errors(mask)
            if errors:
                self.barred[mask] = errors
            else:
                self.asked[mask] = self.find_digest(mask)
        if self.judgement.rates is not None and mask in (0, self.difference.every):
            return BAD if mask else GOOD
        if mask in self.barred:
            return UNKNOWN
        if mask not in self._verdicts:
            verdict = self._find_judgement(mask).judge_runs(self.list_results(mask), mask in self._rested_on)
            if self.ends is None:
                return verdict
            self._verdicts[mask] = verdict
        return self._verdicts[mask]

    def _find_judgement(self, mask: int) -> Judgement:
        """Return how the runs of a combination are judged."""
        rates = self._learned.get(self.find_digest(mask))
        return self.judgement._replace(rates=rates) if rates is not None else self.judgement

    def _learn(self) -> None:
        """Work out how often good and bad combinations are bad, of all that were run; nothing where each is run once."""
        if self.ends is None:
            return
        seen, ends = {}, (self.find_digest(0), self.find_digest(self.difference.every))
        for digest, results in self._runner.journal.results.items():  # whatever way led there: who resumes is told the same
            told = [self.judgement.judge_run(result) for result in results if result.ends == self._runner.ends]
            if digest not in ends and (bad_or_good := len(told) - told.count(UNKNOWN)):
                seen[digest] = told.count(BAD), bad_or_good
        every, self._learned = self.ends.learn(seen)
        self.judgement = self.judgement._replace(rates=every)
        self._verdicts.clear()

    def find_dropped(self, unit: int) -> int:
        """Return what goes with a unit: itself, and what cannot stand without it."""
        return self._drops.get(unit, unit)

    def count_runs(self) -> int:
        """Return how many runs were made of what was asked for, those of earlier times among them."""
        digests = {self.find_digest(mask) for mask in (0, self.difference.every, *self.asked)}
        return sum(len(self._runner.journal.results.get(digest, ())) for digest in digests)

    def compute_odds(self) -> float | None:
        """Return the chance, at most, that a verdict which the answer rests on is wrong; None where each combination is run once.

        What was learned of the other combinations rests on verdicts that may be wrong as well, and the answer is chosen among all that
        were looked at. So no verdict counts for surer than the runs of the ends alone make it, of which nothing was chosen.
        """
        if self.ends is None or self.outcome is None:
            return None
        return join_doubts(self._bound_doubt(mask) for mask in self._list_rested_on(self.outcome))

    @property
    def is_unsure(self) -> bool:
        """Whether the answer may be wrong with a chance that is too great to build on."""
        return (self.compute_odds() or 0.0) > UNSURE

    @property
    def is_told(self) -> bool:
        """Whether there is an answer, each of its members is known to matter, no other cause is left, and it is sure enough."""
        outcome = self.outcome
        return outcome is not None and outcome.complete and not any(cause.undecided for cause in outcome.causes) and not self.is_unsure

    def _bound_doubt(self, mask: int) -> float:
        """Return the greater of the doubts of a verdict: by all that was learned, and by the ends alone."""
        results = self.list_results(mask)
        learned = self._find_judgement(mask)
        by_ends = self.judgement._replace(rates=self.ends)
        return max(one.compute_doubt(results) for one in (learned, by_ends))

    def list_odds(self) -> list[str]:
        """Return how sure the answer is where a combination was run several times, a line each; nothing where each is run once."""
        rates, wrong, repeat = self.judgement.rates, self.compute_odds(), self.judgement.repeat
        if rates is None or self.ends is None or wrong is None:
            return []
        names = self.difference.before.name, self.difference.after.name
        unsure = f"  undecided, as that is more than {UNSURE:g}: --repeat {2 * repeat} makes it surer, and counts the runs that were made"
        return [
            f"odds: {describe_rates(self.ends, *names)}; a combination is what its runs are likelier of",
            f"  a bad one is good in all of {repeat} runs with a chance of {rates.compute_missed(repeat):.2g};"
            f" this answer is wrong with a chance of at most {wrong:.2g}",
            *([unsure] if self.is_unsure else []),
        ]

    def _list_rested_on(self, outcome: Outcome) -> set[int]:
        """Return the combinations whose verdicts show that causes are ones, that they are smallest, and that there are no others."""
        every = self.difference.every
        cured = {every & ~cure for cure in outcome.cures}
        return {
            mask
            for mask in self.asked
            if mask in cured or any(mask & cause.units == mask for cause in outcome.causes)
            if mask not in (0, every)
        }

    def _want(self, mask: int, often: int = 0) -> list[Wanted]:
        """Return the runs of a combination up to so many; as many as are asked for, or one more, where that is not said."""
        config = self.combinations.find_config(mask)
        assert config is not None
        known = len(self.list_results(mask))
        last = often or max(self.judgement.repeat, known + 1)
        return [Wanted(self.find_digest(mask), attempt, config) for attempt in range(known, last)]

    # -- the ends --------------------------------------------------------------------------------------------------

    def try_ends(self, tolerance: str, tell: Tell) -> None:
        """Run both ends. Raises NpuprofError where the good one is not good or the bad one not bad: nothing could be found then."""
        names = self.difference.before.name, self.difference.after.name
        given, repeat = self.judgement, self.judgement.repeat
        for times in ENDS_TIMES if repeat > 1 else (1,):
            self._run_ends(times * repeat, tell)
            results = self.list_results(0), self.list_results(self.difference.every)
            self.judgement, self.remarks = measure_ends(given, tolerance, (names[0], results[0]), (names[1], results[1]))
            rates = self.judgement.rates
            if rates is None or rates.can_tell(MOST_TIMES * repeat):
                self.ends = rates
                return
        assert rates is not None
        raise build_alike_error(rates, *names)

    def _run_ends(self, often: int, tell: Tell) -> None:
        def find_wanted(room: int) -> list[Wanted]:
            told = [self.judgement.judge_run(result) for result in self.list_results(0)]
            if often == 1 and not self.judgement.metric and BAD in told:
                return []
            return [one for mask in (0, self.difference.every) for one in self._want(mask, often)][: max(room, 1)]

        self._runner.drive(find_wanted, lambda: tell("the two ends"))

    # -- the search ------------------------------------------------------------------------------------------------

    def search(self, tell: Tell) -> None:
        """Find the causes, run by run; ``outcome`` stays None where no more runs are allowed. Raises NpuprofError."""

        def find(ask: Ask) -> Outcome:
            return find_causes(self.units, ask, self._drops, self._watch)

        def find_wanted(room: int) -> list[Wanted]:
            self._learn()
            try:
                self.outcome = replay_search(find, self.find_verdict)
                if self.judgement.rates is None:
                    return []
                self._rested_on |= self._list_rested_on(self.outcome)
                self._verdicts.clear()
                doubtful = [mask for mask in sorted(self._rested_on) if self.find_verdict(mask) is None]
                return [one for mask in doubtful for one in self._want(mask)]
            except Pending as pending:
                state, masks = self.state, [pending.units]
            if room > 1:
                masks = foresee_trials(find, self.find_verdict, room)
            self.state = state
            return [one for mask in masks for one in self._want(mask)]

        def watch() -> None:
            tell(self.describe_progress())

        try:
            self._runner.drive(find_wanted, watch)
        except OutOfRunsError:
            self._rested_on.clear()  # there are no runs for a second look: the odds say what that is worth
            self._learn()
            try:
                self.outcome = replay_search(find, self.find_verdict)
            except Pending:
                self.outcome = None

    def _watch(self, bad: int, needed: int, left: int) -> None:
        self.state = State(bad, needed, left)

    @property
    def limit(self) -> int | None:
        """How many runs are made at most this time; None where nothing bounds them."""
        return self._runner.setup.most

    def describe_progress(self) -> str:
        """Return in a line what is ruled out, and how many runs are left: of those that are allowed, where there is a limit."""
        total = len(self.difference.changes)
        out = total - self.state.bad.bit_count()
        if self.limit is not None:
            running = self._runner.running
            ended = f"{self._runner.made - running} of at most {format_count(self.limit, 'run')} made, {running} under way"
            return f"{ended}: {out} of {total} changes ruled out"
        made = self.count_runs() + self._runner.running
        needed = max(self.state.needed.bit_count(), 1)
        left = [f"{max(count_promised_runs(len(self.units), k) - made, 1)} if {k}" for k in (needed, needed + 1)]
        return f"run {made}: {out} of {total} changes ruled out; runs left, at most: {left[0]} is needed, {left[1]} are"


def count_flaky_runs(units: int, repeat: int) -> int:
    """Return how many runs a search of a flaky command is given where nobody says: for two that are needed together, each told late.

    Without a bound, ends that are barely told apart lead to thousands of runs, and no better an answer.
    """
    return repeat * (2 * max(ENDS_TIMES) + MOST_TIMES * count_promised_runs(units, 2))


def count_promised_runs(units: int, needed: int) -> int:
    """Return how many runs are made at most where so many of the units are needed together; where most are, each is tried singly."""
    if 4 * needed > units:
        return min(5 * units + 4, 1 << min(units, 30))
    return int(2 * needed * math.log2(units / needed) + 2 * needed + 4)
