"""Judges runs by exit code, signal, time or a metric.

Exit codes mean what they mean to ``git bisect run``; the two ends calibrate the metric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from npuprof.model import NpuprofError, Record, build_error, build_usage_error
from npuprof.system.processes import name_signal
from npuprof.trials.journal import Result
from npuprof.trials.process_groups import Ended
from npuprof.trials.search import BAD, GOOD, UNKNOWN

#: The exit code of an undecided run, as for ``git bisect run``.
UNAVAILABLE = 125
#: The relative rounding error of binary numbers at an edge.
_ROUNDING = 1e-9


class Effect(Record):
    """The bad values of a metric: that of the bad end, within a tolerance, and those beyond it."""

    good: float
    bad: float
    tolerance: float

    def judge(self, value: float) -> str:
        """Return whether a value counts as the bad end's."""
        if math.isnan(self.bad) or math.isnan(value):
            return BAD if math.isnan(value) else GOOD
        if math.isinf(self.bad):
            return BAD if value == self.bad else GOOD
        edge = self.tolerance + _ROUNDING * max(
            abs(self.bad), abs(value)
        )  # the edge itself is inside, in spite of rounding
        return BAD if (value - self.bad) * (1 if self.bad > self.good else -1) >= -edge else GOOD


class Judgement(Record):
    """How runs are judged.

    It is the meaning of a hang and a signal, the number of runs per combination, and the metric, if
    any.
    """

    hang: str
    signal: str
    repeat: int
    metric: str
    effect: Effect | None = None

    def judge_run(self, result: Result) -> str:
        """Return the verdict of one run. Raises NpuprofError if further runs are pointless."""
        if result.hung:
            return self.hang
        code = result.exit
        # 126 and 127 are the shell's codes for a command that cannot be started
        require_command(result)
        # a crash may have other causes than the settings, so that the user decides
        if code is None or code >= 128:  # shells report signals as such codes
            if self.signal != BAD:
                raise _build_stop(result, "use --signal bad if you are looking for that")
            return BAD
        if code == UNAVAILABLE:
            return UNKNOWN
        if self.effect is not None:
            value = result.metrics.get(self.metric)
            return UNKNOWN if code or value is None else self.effect.judge(value)
        return BAD if code else GOOD

    def judge_runs(self, results: Sequence[Result]) -> str | None:
        """Return the majority verdict of a combination's ``repeat`` runs.

        UNKNOWN without a majority, None if runs are missing.
        """
        verdicts = [self.judge_run(result) for result in results]
        for verdict in (GOOD, BAD):
            if 2 * verdicts.count(verdict) > self.repeat:
                return verdict
        return None if self.count_missing(results) else UNKNOWN

    def count_missing(self, results: Sequence[Result]) -> int:
        """Return the number of runs that decide a combination if they end alike.

        0 if it is decided, or no runs are left.
        """
        verdicts = [self.judge_run(result) for result in results]
        # runs beyond the majority would change nothing
        needed = self.repeat // 2 + 1 - max(verdicts.count(GOOD), verdicts.count(BAD))
        return needed if 0 < needed <= self.repeat - len(results) else 0


def find_median_value(results: Sequence[Result], metric: str) -> float | None:
    """Return the median of a metric's values, None if no run has one."""
    values = sorted(
        (value for result in results if (value := result.metrics.get(metric)) is not None),
        # NaN last: it would leave the order of the others undefined
        key=lambda value: (value != value, value),
    )
    return values[len(values) // 2] if values else None


def require_command(result: Result) -> None:
    """Raise NpuprofError for a run whose command does not exist."""
    if result.exit in (126, 127) and not result.hung:
        raise _build_stop(
            result, "check that the command, and those that it calls, are there and can be executed"
        )


def _build_stop(result: Result, hint: str) -> NpuprofError:
    why = "That may have nothing to do with the settings."
    return build_error(
        "NP952",
        f"the command ended with {describe_run(result)}",
        why,
        f"{hint}; its output is in {result.log}",
    )


def build_result(
    digest: str, ended: Ended, metrics: dict[str, float], log: str, device: str = ""
) -> Result:
    """Return the result of a run in the journal's form."""
    return Result(
        digest, ended.exit, ended.signal, round(ended.seconds, 3), ended.hung, metrics, log, device
    )


def parse_tolerance(text: str, of: float) -> float:
    """Return a tolerance, given as a number or in percent of a value. Raises NpuprofError."""
    try:
        share = float(text.removesuffix("%"))
        if not 0 <= share < math.inf:
            raise ValueError
    except ValueError:
        raise build_usage_error(
            f"--tolerance {text!r} is not a tolerance", "write 1%, or a number like 0.05"
        ) from None
    if not text.endswith("%"):
        return share
    return abs(of) * share / 100 if math.isfinite(of) else 0.0


def compile_pattern(text: str) -> str:
    """Return the pattern of a metric. Raises NpuprofError if it is invalid."""
    try:
        re.compile(text)
    except re.error as error:
        hint = "write it as in 'loss=([0-9.]+)'; the first group is the number"
        raise build_usage_error(f"{text!r} is not a pattern: {error}", hint) from None
    return text


#: The name of an end, and its runs.
End = tuple[str, Sequence[Result]]


def measure_ends(
    judgement: Judgement, tolerance: str, good: End, bad: End
) -> tuple[Judgement, tuple[str, ...]]:
    """Return the judgement calibrated by the ends, and notes.

    Raises NpuprofError if the ends do not differ.
    """
    notes = []
    if judgement.metric:
        judgement = judgement._replace(effect=_measure_effect(judgement, tolerance, good, bad))
    for (name, results), expected in ((good, GOOD), (bad, BAD)):
        answer = judgement.judge_runs(results)
        if answer != expected:
            what = f"{name}, which should be {expected}, is {answer or UNKNOWN}"
            hint = (
                "check its output and the exit codes that count as bad (125 and a timeout are "
                "unknown); or swap the presets"
            )
            raise build_error("NP954", what, _describe_runs(judgement, results), hint)
        if wrong := [
            result for result in results if judgement.judge_run(result) not in (expected, UNKNOWN)
        ]:
            opposite = BAD if expected == GOOD else GOOD
            notes.append(
                f"{name} was {opposite} in {len(wrong)} of {len(results)} runs: the command is "
                "flaky, and the majority decides"
            )
    return judgement, tuple(notes)


def _measure_effect(judgement: Judgement, tolerance: str, good: End, bad: End) -> Effect:
    """Return the bad values of a metric.

    First those within the tolerance of BAD's value, then those beyond it.
    """
    values = []
    for name, results in (good, bad):
        value = find_median_value(
            [result for result in results if not result.exit], judgement.metric
        )
        if value is None:
            what = f"{name} printed no value of the metric"
            hint = (
                f"make sure that {judgement.metric!r} matches a "
                "number in its output, and that it exits with 0"
            )
            raise build_error("NP954", what, _describe_runs(judgement, results), hint)
        values.append(value)
    good_value, bad_value = values
    effect = Effect(good_value, bad_value, parse_tolerance(tolerance, bad_value))
    if effect.judge(good_value) == BAD:
        what = f"the metric is {good_value:g} for {good[0]} and {bad_value:g} for {bad[0]}"
        why = f"They differ by no more than the tolerance of {tolerance}."
        raise build_error("NP954", what, why, "say a smaller --tolerance, or measure longer")
    return effect


def _describe_runs(judgement: Judgement, results: Sequence[Result]) -> str:
    endings = list(dict.fromkeys(map(describe_run, results)))
    counts = filter(None, [describe_counts(judgement, results)])
    return f"It ended with {', '.join([*endings, *counts])}; its output is in {results[-1].log}."


def describe_counts(judgement: Judgement, results: Sequence[Result]) -> str:
    """Return the number of runs per verdict; empty if each combination is run once."""
    if judgement.repeat < 2:
        return ""
    verdicts = [judgement.judge_run(result) for result in results]
    shares = [
        f"{verdict} in {count}"
        for verdict in (GOOD, BAD, UNKNOWN)
        if (count := verdicts.count(verdict))
    ]
    return f"{', '.join(shares)} of {len(results)} runs"


def describe_run(result: Result) -> str:
    """Return how a run ended, as text."""
    if result.hung:
        return f"a hang, ended after {result.seconds:g} s"
    if result.signal is not None:
        return name_signal(result.signal)
    values = ", ".join(f"{value:g}" for value in result.metrics.values())
    where = f" on device {result.device}" if result.exit == UNAVAILABLE and result.device else ""
    return f"exit code {result.exit}{where}" + (f" and the value {values}" if values else "")
