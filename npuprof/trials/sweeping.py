"""Runs every allowed combination of values: results, reasons for excluded ones, and the best."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product

from npuprof.model import Finding, NpuprofError, Record, Step, build_error, build_usage_error
from npuprof.resolve.config import Config
from npuprof.store import assignment_arguments
from npuprof.system.processes import name_signal
from npuprof.system.tree import Tree
from npuprof.trials.combinations import list_errors
from npuprof.trials.journal import Journal, Result
from npuprof.trials.metrics import MetricReader, read_metrics
from npuprof.trials.outcomes import build_result
from npuprof.trials.process_groups import Ended
from npuprof.trials.running import Runner

#: The maximum number of combinations, tested before anything is resolved.
MOST_COMBINATIONS = 100_000
#: The line prefix of ``kubectl logs --prefix``, and the start of the line that reports how a pod
#: ended.
_PREFIX = re.compile(r"\[pod/[^\]\s]+\] ")
_POD_END = '{"npuprof_trial": '
#: Tokens of ``--vary`` values: quoted strings, and separator and bracket characters.
_TOKEN = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'[^']*'|[\[\](){},"']""",
    re.DOTALL,
)
#: Closing brackets.
_CLOSED_BY = {"[": "]", "{": "}", "(": ")"}
#: The duration of a run, which can be used like a metric.
TIME = "time"


#: Resolves presets to compose, and steps.
Resolve = Callable[[Sequence[str], Sequence[Step]], Config]


class Choice(Record):
    """One value of an axis: its display form, and the steps or preset that it adds."""

    shown: str
    steps: tuple[Step, ...]
    mixin: str = ""


class Axis(Record):
    """An axis: a key, or presets to compose; and its values."""

    name: str
    choices: tuple[Choice, ...]


class Combination(Record):
    """A value for each axis: the config, or the findings that exclude it.

    ``same_as`` is an earlier one with the same digest.
    """

    choices: tuple[Choice, ...]
    config: Config | None
    errors: tuple[Finding, ...]
    same_as: int | None

    @property
    def is_allowed(self) -> bool:
        """Whether it can be run."""
        return self.config is not None and not self.errors


def list_configs(combinations: Sequence[Combination]) -> list[Config]:
    """Return the configs to run: allowed ones, each digest once."""
    return [
        combination.config
        for combination in combinations
        if combination.config is not None and combination.is_allowed and combination.same_as is None
    ]


def split_values(text: str, key: str = "KEY") -> list[str]:
    """Return the values in ``A,B``: commas in quotes, brackets and braces belong to a value.

    Raises NpuprofError for a comma next to an unmatched quote or bracket, which is ambiguous.
    """
    values = []
    closing = []  # the closing brackets that are still missing, the innermost last
    start = 0
    is_balanced = True
    for match in _TOKEN.finditer(text):
        part = match[0]
        if part in _CLOSED_BY:
            closing.append(_CLOSED_BY[part])
        elif closing and part == closing[-1]:
            closing.pop()
        elif part in ("]", "}", ")", '"', "'"):
            is_balanced = False
        elif part == "," and not closing:
            values.append(text[start : match.start()].strip())
            start = match.end()
    if "," in text and (closing or not is_balanced):
        what = f"a quote or bracket in the values of {key} has no other one: {text}"
        why = "It is not known where a value ends."
        hint = f"write the other one, or put the value in quotes, as in --vary '{key}=\"it's\",b'"
        location = assignment_arguments.place_argument("vary")
        raise build_error("NP902", what, why, hint, where=location)
    return [*values, text[start:].strip()]


def build_axes(vary: Sequence[str], mixins: Sequence[str]) -> Iterator[Axis]:
    """Yield the axes of ``--vary`` and ``--with``. Raises NpuprofError."""
    if not vary and not mixins:
        raise build_error("NP914", "nothing is varied", "", "say --vary KEY=V1,V2, or --with A,B")
    seen = set()
    for text in vary:
        key, _, values = text.partition("=")
        name = key.strip()
        if name in seen:
            raise build_usage_error(f"{name} is varied twice", "name all its values in one --vary")
        seen.add(name)
        parts = list(dict.fromkeys(split_values(values, name)))
        if "" in parts:
            hint = f'write --vary {key or "KEY"}=V1,V2; an empty text is ""'
            raise build_usage_error(f"--vary {text!r} has a value that is empty", hint)
        choices = []
        for part in parts:
            steps = assignment_arguments.parse_assignments([f"{key}={part}"], argument="vary")
            choices.append(Choice(part, tuple(steps)))
        yield Axis(name, tuple(choices))
    for number, text in enumerate(mixins, 1):
        parts = [part.strip() for part in text.split(",")]
        if "" in parts:
            raise build_usage_error(
                f"--with {text!r} has a preset without a name", "write it as in --with A,B"
            )
        yield Axis(
            "with" if len(mixins) == 1 else f"with {number}",
            tuple(Choice(part, (), part) for part in dict.fromkeys(parts)),
        )


def combine_axes(
    axes: Sequence[Axis],
    resolve: Resolve,
    fit: Callable[[Config], None],
    is_selected: Callable[[Config], bool],
) -> list[Combination]:
    """Return the selected combinations, in the order of the axes, the last varying fastest.

    Raises NpuprofError for too many.

    ``resolve`` and ``fit`` raise NpuprofError for a combination that cannot be run.
    """
    # counted first: the product itself may not fit into memory
    if (count := count_combinations(axes)) > MOST_COMBINATIONS:
        what = f"{count:,} combinations are more than {MOST_COMBINATIONS:,}"
        raise build_usage_error(
            what,
            "vary fewer keys, or name fewer values",
            "Each would be resolved, checked and run.",
        )
    combinations: list[Combination] = []
    digests: dict[str, int] = {}
    for choices in product(*(axis.choices for axis in axes)):
        config: Config | None = None
        errors: tuple[Finding, ...] = ()
        try:
            config = resolve(
                [choice.mixin for choice in choices if choice.mixin],
                [step for choice in choices for step in choice.steps],
            )
            if not is_selected(config):
                continue
            fit(config)
        except NpuprofError as error:
            errors = list_errors(error)
        same_as = None
        if config is not None and not errors:
            same_as = digests.get(config.digest)
            if same_as is None:
                digests[config.digest] = len(combinations)
        combinations.append(Combination(choices, config, errors, same_as))
    return combinations


def count_combinations(axes: Sequence[Axis]) -> int:
    """Return the number of combinations, including those that are not selected."""
    return math.prod(len(axis.choices) for axis in axes)


def run_combinations(
    combinations: Sequence[Combination], runner: Runner, tell: Callable[[str], None]
) -> bool:
    """Run combinations without results; return whether all have results now.

    Raises NpuprofError.
    """
    configs = list_configs(combinations)

    def list_pending() -> list[Config]:
        return [config for config in configs if config.digest not in runner.journal.results]

    def watch() -> None:
        done = len(configs) - len(list_pending())
        tell(f"{done} of {len(configs)} combinations run, {runner.running} under way")

    return runner.drive(list_pending, watch)


def describe_end(result: Result) -> str:
    """Return how a run ended, in a word."""
    if result.hung:
        return "hang"
    return name_signal(result.signal) if result.signal is not None else str(result.exit)


def find_value(result: Result, name: str) -> float | None:
    """Return a metric of a run, or its duration."""
    return result.metrics.get(name, result.seconds if name == TIME else None)


class Goal(Record):
    """A metric and its better direction."""

    name: str
    greatest: bool


def parse_goal(text: str, names: Sequence[str]) -> Goal:
    """Return the goal of ``min:loss``, ``max:speed`` or a bare name.

    For a bare name it is the maximum, for ``time`` the minimum. Raises NpuprofError.
    """
    way, colon, name = text.partition(":")
    if not colon:
        way, name = "min" if text == TIME else "max", text
    if way not in ("min", "max") or name not in (*names, TIME):
        known = ", ".join((*names, TIME))
        raise build_usage_error(
            f"{text!r} is not a metric of this sweep",
            f"define it: --metric '{name or 'loss'}=PATTERN'; or write min:{TIME}",
            f"The metrics are {known}.",
        )
    return Goal(name, way == "max")


class Best(Record):
    """The combination with the best value of a metric."""

    config: Config
    combination: Combination
    value: float


def find_best(rows: Iterable[tuple[Combination, Result | None]], goal: Goal) -> Best | None:
    """Return the best combination with a successful run, with its value.

    None if none has the metric. The first one counts if values are equal.
    """
    best = None
    for combination, result in rows:
        # a failed run may have printed a good number before it failed
        if combination.config is None or result is None or result.exit != 0:
            continue
        value = find_value(result, goal.name)
        # a NaN compares false with everything, so that it would stay the best
        if value is None or math.isnan(value):
            continue
        if best is None or (value > best.value if goal.greatest else value < best.value):
            best = Best(combination.config, combination, value)
    return best


def find_result(combination: Combination, journal: Journal) -> Result | None:
    """Return the run of a combination: those with equal digests share it."""
    if combination.config is None or not combination.is_allowed:
        return None
    results = journal.results.get(combination.config.digest)
    return results[-1] if results else None


class JobEnd(Record):
    """How the job of a combination ended."""

    digest: str
    code: int
    seconds: float


def _import_result(
    journal: Journal, end: JobEnd, timeout: float | None, metrics: dict[str, float], log: str
) -> bool:
    """Import the result of a scheduler's job; return whether it counts.

    ``timeout`` may have ended it with 124, or 137 if it was killed.
    """
    code = end.code
    if code in (126, 127):  # the command was not found, or cannot be executed
        return False
    number = code - 128 if 128 < code < 128 + 65 else None  # of the signal, as shells report it
    # the command itself may exit with 124, but hardly after exactly that time
    hung = timeout is not None and code in (124, 137) and end.seconds > timeout - 1
    ended = Ended(None if number else code, number, end.seconds, hung)
    journal.add(build_result(end.digest, ended, metrics, log))
    return True


def import_results(journal: Journal, metrics: dict[str, str], timeout: float | None) -> int:
    """Import the results of scheduler jobs from the results folder; return their number."""
    imported = 0
    for end in _list_ends(journal.tree):
        if end.digest not in journal.results:
            log = f"results/{end.digest}.log"
            values = read_metrics(journal.tree, log, metrics)
            path = os.path.join(journal.folder, log)
            imported += _import_result(journal, end, timeout, values, path)
    return imported


def import_pod_logs(
    journal: Journal,
    metrics: dict[str, str],
    text: str,
    digests: Sequence[str],
    timeout: float | None,
) -> int:
    """Import the output of an Indexed Job's pods; return the number of results for ``digests``.

    The last line of each pod identifies its combination and how it ended; the preceding lines are
    its output. With pod names before lines (``--prefix``), lines may be in any order.
    """
    readers: dict[str, MetricReader] = {}
    imported = 0
    for line in text.splitlines():
        match = _PREFIX.match(line)
        pod = match[0] if match else ""
        output, ending = _read_pod_line(line.removeprefix(pod))
        reader = readers.setdefault(pod, MetricReader(metrics))
        # the last output may lack its line end, and then stands before the mark
        if output or ending is None:
            reader.add(f"{output}\n".encode())
        if ending is None:
            continue
        if ending.digest in digests and ending.digest not in journal.results:
            imported += _import_result(journal, ending, timeout, reader.found, "")
        del readers[pod]
    return imported


def _read_pod_line(line: str) -> tuple[str, JobEnd | None]:
    """Return the output in a line, and a pod's end, if the line reports one."""
    output, mark, _ = line.partition(_POD_END)
    if not mark:
        return line, None
    try:
        fields = json.loads(line[len(output) :])
        return output, JobEnd(
            str(fields["npuprof_trial"]), int(fields["exit"]), float(fields["seconds"])
        )
    except (ValueError, LookupError, TypeError):
        return line, None


def _list_ends(tree: Tree) -> Iterator[JobEnd]:
    """Yield how each job with a result ended."""
    for name in tree.list_names("results"):
        digest, dot, kind = name.rpartition(".")
        if dot and kind == "end":
            with suppress(OSError, ValueError), tree.open_reader(f"results/{name}") as file:
                code, began, ended = file.read(200).decode("ascii").split()
                yield JobEnd(digest, int(code), max(float(ended) - float(began), 0.0))
