"""What the runs of the good and the bad end show: that the one is good and the other bad, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.model import Finding, NpuprofError
from npuprof.trials.journal import Result
from npuprof.trials.judging import UNTOLD, Effect, Judgement, find_median_value, name_signal, parse_tolerance
from npuprof.trials.search import BAD, GOOD, UNKNOWN

#: The name of an end, and its runs.
End = tuple[str, Sequence[Result]]


def measure_ends(judgement: Judgement, tolerance: str, good: End, bad: End) -> tuple[Judgement, tuple[str, ...]]:
    """Return how combinations are judged by what the ends gave, and remarks. Raises NpuprofError for ends that tell nothing."""
    remarks: list[str] = []
    if judgement.metric:
        judgement = judgement._replace(effect=_measure_effect(judgement, tolerance, good, bad))
    for (name, results), wanted in ((good, GOOD), (bad, BAD)):
        answer = judgement.judge_runs(results)
        if answer != wanted:
            raise _build_end_error(judgement, (name, results), wanted, answer or UNKNOWN, bad[0])
        if wrong := [result for result in results if judgement.judge_run(result) not in (wanted, UNKNOWN)]:
            other = BAD if wanted == GOOD else GOOD
            remarks.append(f"{name} was {other} in {len(wrong)} of {len(results)} runs: the command is flaky, and the majority decides")
    return judgement, tuple(remarks)


def _measure_effect(judgement: Judgement, tolerance: str, good: End, bad: End) -> Effect:
    """Return which values of a metric are bad: those within the tolerance of BAD's value, and those beyond it."""
    values = []
    for name, results in (good, bad):
        value = find_median_value([result for result in results if not result.exit], judgement.metric)
        if value is None:
            what = f"{name} told no value of the metric"
            hint = f"see that {judgement.metric!r} finds a number in what it prints, and that it ends with 0"
            raise NpuprofError([Finding("NP954", what, _describe_runs(results), hint)])
        values.append(value)
    effect = Effect(values[0], values[1], parse_tolerance(tolerance, values[1]))
    if effect.judge(values[0]) == BAD:
        what = f"the metric is {values[0]:g} for {good[0]} and {values[1]:g} for {bad[0]}"
        why = f"They differ by no more than the tolerance of {tolerance}."
        raise NpuprofError([Finding("NP954", what, why, "say a smaller --tolerance, or measure longer")])
    return effect


def _build_end_error(judgement: Judgement, end: End, wanted: str, answer: str, bad: str) -> NpuprofError:
    """Return that an end is not what it should be; ``bad`` is the other one, which is not run if the good end is bad."""
    name, results = end
    how = "could not be told" if answer == UNKNOWN else "is bad" if wanted == GOOD else "is good as well"
    hint = "look at what it printed, or at what the command takes for bad"
    hint += f"; if the ends are swapped: npuprof bisect {bad} {name}" if wanted == GOOD else ""
    if answer == UNKNOWN:
        hint = f"{UNTOLD} means that a run cannot be judged, as does a hang unless --hang says otherwise"
        if {GOOD, BAD} <= set(map(judgement.judge_run, results)):
            how = f"has no majority: {describe_counts(judgement, results)}"
            hint = "say an odd or greater --repeat, a greater --tolerance, or a command whose good and bad runs differ more"
    return NpuprofError([Finding("NP954", f"{name}, which should be {wanted}, {how}", _describe_runs(results), hint)])


def _describe_runs(results: Sequence[Result]) -> str:
    said = [describe_run(result) for result in results]
    logs = [result.log for result in results if result.log]
    return f"It ended with {', '.join(dict.fromkeys(said))}" + (f"; its output is in {logs[-1]}" if logs else "") + "."


def describe_counts(judgement: Judgement, results: Sequence[Result]) -> str:
    """Return how many of several runs had which verdict; an empty text if each combination is run once."""
    if judgement.repeat < 2:
        return ""
    verdicts = [judgement.judge_run(result) for result in results]
    shares = [f"{verdict} in {count}" for verdict in (GOOD, BAD, UNKNOWN) if (count := verdicts.count(verdict))]
    return f"{', '.join(shares)} of {len(results)} runs"


def describe_run(result: Result) -> str:
    """Return how a run ended, in words."""
    if result.hung:
        return f"a hang, ended after {result.seconds:g} s"
    if result.signal is not None:
        return name_signal(result.signal)
    values = ", ".join(f"{value:g}" for value in result.metrics.values())
    where = f" on device {result.device}" if result.exit == UNTOLD and result.device else ""
    return f"exit code {result.exit}{where}" + (f" and the value {values}" if values else "")
