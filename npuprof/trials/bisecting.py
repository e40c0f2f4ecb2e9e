"""Which of the differing settings make the difference between a good and a bad config: ends first, then the search, run by run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from npuprof.model import Finding, NpuprofError, Record
from npuprof.trials.configs import Combinations
from npuprof.trials.journal import Result
from npuprof.trials.judging import Effect, Judgement, find_median_value, parse_tolerance
from npuprof.trials.running import UNTOLD, OutOfRunsError, Runner, Wanted
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
        return UNKNOWN if mask in self.barred else self.judgement.judge_runs(self.list_results(mask))

    def find_dropped(self, unit: int) -> int:
        """Return what goes with a unit: itself, and what cannot stand without it."""
        return self._drops.get(unit, unit)

    def count_runs(self) -> int:
        """Return how many runs were made of what was asked for, those of earlier times among them."""
        digests = {self.find_digest(mask) for mask in (0, self.difference.every, *self.asked)}
        return sum(len(self._runner.journal.results.get(digest, ())) for digest in digests)

    def list_odds(self) -> list[str]:
        """Return how sure the answer is where a combination was run several times, a line each; nothing where each is run once."""
        results = self.list_results(self.difference.every)
        repeat = self.judgement.repeat
        if repeat < 2 or self.judgement.metric or not results:
            return []
        failed = sum(self.judgement.judge_run(result) == BAD for result in results)
        share = (failed + 1) / (len(results) + 2)  # as Laplace has it: no rate is taken for certain
        missed = (1 - share) ** repeat
        good = sum(self.find_verdict(mask) == GOOD for mask in self.asked)
        once = 1 - (1 - missed) ** good
        return [
            f"odds: the bad end was bad in {failed} of {len(results)} runs; a bad combination passes for good in {repeat} runs",
            f"  with a chance of {missed:.2g}, and one of the {good} good ones is wrong with a chance of {once:.2g}",
        ]

    def _want(self, mask: int) -> list[Wanted]:
        config = self.combinations.find_config(mask)
        assert config is not None
        known = len(self.list_results(mask))
        return [Wanted(self.find_digest(mask), attempt, config) for attempt in range(known, max(self.judgement.repeat, known + 1))]

    # -- the ends --------------------------------------------------------------------------------------------------

    def try_ends(self, tolerance: str, tell: Tell) -> None:
        """Run both ends. Raises NpuprofError where the good one is not good or the bad one not bad: nothing could be found then."""
        every = self.difference.every

        def find_wanted(room: int) -> list[Wanted]:
            wanted: list[Wanted] = []
            for mask in (0, every):
                results = self.list_results(mask)
                told = [self.judgement.judge_run(result) for result in results]
                if mask == 0 and not self.judgement.metric and BAD in told:
                    return []
                if len(results) < self.judgement.repeat:
                    wanted += self._want(mask)
            return wanted[: max(room, 1)]

        self._runner.drive(find_wanted, lambda: tell("the two ends"))
        if self.judgement.metric:
            self.judgement = self.judgement._replace(effect=self._measure_ends(tolerance))
        good, bad = (self.judgement.judge_runs(self.list_results(mask)) for mask in (0, every))
        names = self.difference.before.name, self.difference.after.name
        if good != GOOD:
            how = "is bad as well" if good == BAD else "could not be told"
            raise _build_end_error(f"{names[0]}, which should be good, {how}", self._describe_runs(0), good or UNKNOWN)
        if bad != BAD:
            how = "is good as well" if bad == GOOD else "could not be told"
            raise _build_end_error(f"{names[1]}, which should be bad, {how}", self._describe_runs(every), bad or UNKNOWN)

    def _measure_ends(self, tolerance: str) -> Effect:
        ends = []
        for mask, config in ((0, self.difference.before), (self.difference.every, self.difference.after)):
            results = self.list_results(mask)
            value = find_median_value([result for result in results if not result.exit], self.judgement.metric)
            if value is None:
                what = f"{config.name} told no value of the metric"
                hint = f"see that {self.judgement.metric!r} finds a number in what it prints, and that it ends with 0"
                raise NpuprofError([Finding("NP954", what, self._describe_runs(mask), hint)])
            ends.append(value)
        good, bad = ends
        effect = Effect(good, bad, parse_tolerance(tolerance, bad))
        if effect.judge(good) == BAD:
            what = f"the metric is {good:g} for {self.difference.before.name} and {bad:g} for {self.difference.after.name}"
            why = f"They differ by no more than the tolerance of {tolerance}."
            raise NpuprofError([Finding("NP954", what, why, "say a smaller --tolerance, or measure longer")])
        return effect

    def _describe_runs(self, mask: int) -> str:
        said = [describe_run(result) for result in self.list_results(mask)]
        logs = [result.log for result in self.list_results(mask) if result.log]
        return f"It ended with {', '.join(dict.fromkeys(said))}" + (f"; its output is in {logs[-1]}" if logs else "") + "."

    # -- the search ------------------------------------------------------------------------------------------------

    def search(self, tell: Tell) -> None:
        """Find the causes, run by run; ``outcome`` stays None where no more runs are allowed. Raises NpuprofError."""

        def find(ask: Ask) -> Outcome:
            return find_causes(self.units, ask, self._drops, self._watch)

        def find_wanted(room: int) -> list[Wanted]:
            try:
                self.outcome = replay_search(find, self.find_verdict)
                return []
            except Pending:
                state = self.state
            masks = foresee_trials(find, self.find_verdict, max(room, 1)) if room > 1 else []
            if not masks:
                try:
                    replay_search(find, self.find_verdict)
                except Pending as pending:
                    masks = [pending.units]
            self.state = state
            return [one for mask in masks for one in self._want(mask)]

        def watch() -> None:
            tell(self.describe_progress())

        try:
            self._runner.drive(find_wanted, watch)
        except OutOfRunsError:
            self.outcome = None

    def _watch(self, bad: int, needed: int, left: int) -> None:
        self.state = State(bad, needed, left)

    def describe_progress(self) -> str:
        """Return in a line what is ruled out, and how many runs are left."""
        total = len(self.difference.changes)
        out = total - self.state.bad.bit_count()
        made = self.count_runs() + self._runner.running
        needed = max(self.state.needed.bit_count(), 1)
        left = [f"{max(count_promised_runs(len(self.units), k) - made, 1)} if {k}" for k in (needed, needed + 1)]
        return f"run {made}: {out} of {total} changes ruled out; runs left, at most: {left[0]} is needed, {left[1]} are"


def count_promised_runs(units: int, needed: int) -> int:
    """Return how many runs are made at most where so many of the units are needed together; where most are, each is tried singly."""
    if 4 * needed > units:
        return min(5 * units + 4, 1 << min(units, 30))
    return int(2 * needed * math.log2(units / needed) + 2 * needed + 4)


def _build_end_error(what: str, why: str, answer: str) -> NpuprofError:
    hint = "look at what it printed, or at what the command takes for bad"
    if answer == UNKNOWN:
        hint = "125 means that a run cannot be judged, as does a hang unless --hang says otherwise"
    return NpuprofError([Finding("NP954", what, why, hint)])


def describe_run(result: Result) -> str:
    """Return how a run ended, in words."""
    if result.hung:
        return f"a hang, ended after {result.seconds:g} s"
    if result.signal is not None:
        from npuprof.trials.judging import name_signal

        return name_signal(result.signal)
    values = ", ".join(f"{value:g}" for value in result.metrics.values())
    where = f" on device {result.device}" if result.exit == UNTOLD and result.device else ""
    return f"exit code {result.exit}{where}" + (f" and the value {values}" if values else "")
