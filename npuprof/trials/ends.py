"""What the runs of the good and the bad end show: that the one is good and the other bad, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from npuprof.model import Finding, NpuprofError
from npuprof.trials.journal import Result
from npuprof.trials.judging import UNTOLD, Effect, Judgement, find_median_value, name_signal, parse_tolerance
from npuprof.trials.odds import Rates
from npuprof.trials.search import BAD, GOOD, UNKNOWN

#: The name of an end, and its runs.
End = tuple[str, Sequence[Result]]


def measure_ends(judgement: Judgement, tolerance: str, good: End, bad: End) -> tuple[Judgement, tuple[str, ...]]:
    """Return how combinations are judged by what the ends gave, and remarks. Raises NpuprofError for ends that tell nothing."""
    remarks: list[str] = []
    if judgement.metric:
        judgement = judgement._replace(effect=_measure_effect(judgement, tolerance, good, bad, remarks))
    if judgement.repeat < 2:
        for (name, results), wanted in ((good, GOOD), (bad, BAD)):
            answer = judgement.judge_runs(results)
            if answer != wanted:
                raise _build_end_error(name, results, wanted, answer or UNKNOWN)
        return judgement, ()
    counts = []
    for (name, results), wanted in ((good, GOOD), (bad, BAD)):
        told = [judgement.judge_run(result) for result in results]
        if wanted not in told:
            raise _build_end_error(name, results, wanted, BAD if BAD in told else GOOD if GOOD in told else UNKNOWN)
        counts += [told.count(BAD), len(told) - told.count(UNKNOWN)]
    rates = Rates(*counts)
    if counts[0]:
        remarks.append(
            f"{describe_rates(rates, good[0], bad[0])}: it is bad by accident as well, and a combination is not judged by one bad run"
        )
    return judgement._replace(rates=rates), tuple(remarks)


def describe_rates(rates: Rates, good: str, bad: str) -> str:
    """Return how often the ends were bad."""
    return f"{good} was bad in {rates.good_bad} of {rates.good_runs} runs, {bad} in {rates.bad_bad} of {rates.bad_runs}"


def build_alike_error(rates: Rates, good: str, bad: str) -> NpuprofError:
    """Return the error of ends whose runs are too alike to tell combinations by them."""
    why = "By these, no combination could be told from the other end in as many runs as it is given."
    hint = "say a greater --repeat, or a command that tells them apart more often"
    return NpuprofError([Finding("NP954", f"the ends are too alike: {describe_rates(rates, good, bad)}", why, hint)])


def _measure_effect(judgement: Judgement, tolerance: str, good: End, bad: End, remarks: list[str]) -> Effect:
    """Return which values are bad: as far from those of the bad end as is said, or as its own runs are apart."""
    middles, ranges = [], []
    for name, results in (good, bad):
        fine = [result for result in results if not result.exit]
        value = find_median_value(fine, judgement.metric)
        if value is None:
            what = f"{name} told no value of the metric"
            hint = f"see that {judgement.metric!r} finds a number in what it prints, and that it ends with 0"
            raise NpuprofError([Finding("NP954", what, _describe_runs(results), hint)])
        middles.append(value)
        ranges.append([held for one in fine if (held := one.metrics.get(judgement.metric)) is not None])
    effect = Effect(middles[0], middles[1], parse_tolerance(tolerance, middles[1]))
    if effect.judge(middles[0]) == BAD:
        what = f"the metric is {middles[0]:g} for {good[0]} and {middles[1]:g} for {bad[0]}"
        why = f"They differ by no more than the tolerance of {tolerance}."
        raise NpuprofError([Finding("NP954", what, why, "say a smaller --tolerance, or measure longer")])
    if judgement.repeat < 2 or not all(map(math.isfinite, (*middles, *ranges[0], *ranges[1]))):
        return effect
    way = 1 if middles[1] > middles[0] else -1
    spread = max((middles[1] - value) * way for value in ranges[1])
    if spread > effect.tolerance:
        effect = effect._replace(tolerance=min(spread, abs(middles[1] - middles[0]) / 2))
    shown = [f"{name} {min(held):g} to {max(held):g}" for (name, _), held in zip((good, bad), ranges, strict=True)]
    if max(value * way for value in ranges[0]) >= min(value * way for value in ranges[1]):
        remarks.append(f"the runs of both ends overlap: {', '.join(shown)}; measure longer, or say a greater --repeat")
    elif 2 * spread > (own := parse_tolerance(tolerance, middles[1])):
        taken = f"; {effect.tolerance:g} is taken" if effect.tolerance != own else ""
        remarks.append(f"the runs of an end differ by about the tolerance of {own:g} ({', '.join(shown)}){taken}")
    return effect


def _build_end_error(name: str, results: Sequence[Result], wanted: str, answer: str) -> NpuprofError:
    how = "could not be told" if answer == UNKNOWN else f"is {answer} as well"
    hint = "look at what it printed, or at what the command takes for bad"
    if answer == UNKNOWN:
        hint = f"{UNTOLD} means that a run cannot be judged, as does a hang unless --hang says otherwise"
    return NpuprofError([Finding("NP954", f"{name}, which should be {wanted}, {how}", _describe_runs(results), hint)])


def _describe_runs(results: Sequence[Result]) -> str:
    said = [describe_run(result) for result in results]
    logs = [result.log for result in results if result.log]
    return f"It ended with {', '.join(dict.fromkeys(said))}" + (f"; its output is in {logs[-1]}" if logs else "") + "."


def describe_run(result: Result) -> str:
    """Return how a run ended, in words."""
    if result.hung:
        return f"a hang, ended after {result.seconds:g} s"
    if result.signal is not None:
        return name_signal(result.signal)
    values = ", ".join(f"{value:g}" for value in result.metrics.values())
    where = f" on device {result.device}" if result.exit == UNTOLD and result.device else ""
    return f"exit code {result.exit}{where}" + (f" and the value {values}" if values else "")
