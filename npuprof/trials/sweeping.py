"""Every allowed combination of some values, run: what each gave, why the others are not run, and which is best."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product

from npuprof.model import Finding, NpuprofError, Record, Step
from npuprof.resolve.config import Config
from npuprof.store import one_time
from npuprof.system import lazy_pattern
from npuprof.system.tree import Tree
from npuprof.trials.combinations import list_errors
from npuprof.trials.journal import Journal, Result
from npuprof.trials.judging import build_result, name_signal
from npuprof.trials.metrics import MetricReader, read_metrics
from npuprof.trials.processes import Ended
from npuprof.trials.running import Runner

#: More combinations are refused before anything is resolved: nobody waits for them.
MOST_COMBINATIONS = 100_000
#: What ``kubectl logs --prefix`` puts before a line, and what the line begins with that says how a pod ended.
_PREFIX = lazy_pattern(r"\[pod/[^\]\s]+\] ")
_POD_END = '{"npuprof_trial": '
#: What the values of ``--vary`` are made of: texts in quotes, and each character that may part values or hold them together.
_TOKEN = lazy_pattern(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'[^']*'|[\[\](){},"']""",
    re.DOTALL,
)
#: What closes a bracket.
_CLOSED_BY = {"[": "]", "{": "}", "(": ")"}
#: What is known of a run beside its metrics, and may be asked for like one.
TIME = "time"


#: Takes the names of presets that are laid over, and steps.
Resolve = Callable[[Sequence[str], Sequence[Step]], Config]


class Choice(Record):
    """One value of an axis: as it is shown, and what it lays over the preset: steps, or another preset."""

    shown: str
    steps: tuple[Step, ...] = ()
    mixin: str = ""


class Axis(Record):
    """What is varied: a key, or the presets laid over; and its values."""

    name: str
    choices: tuple[Choice, ...]


class Combination(Record):
    """One value of each axis: the config, or what the checks say against it. ``same_as`` is the one before with its digest."""

    choices: tuple[Choice, ...]
    config: Config | None
    errors: tuple[Finding, ...] = ()
    same_as: int | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether it can be run."""
        return self.config is not None and not self.errors


def list_configs(combinations: Sequence[Combination]) -> list[Config]:
    """Return the configs that are run: those that are allowed, each digest once."""
    return [
        combination.config
        for combination in combinations
        if combination.config is not None and combination.is_allowed and combination.same_as is None
    ]


def split_values(text: str, key: str = "KEY") -> list[str]:
    """Return the values in ``A,B``: commas in quotes, brackets and braces are part of a value.

    Raises NpuprofError for a comma next to a quote or bracket without its other one: it is not known whether it separates two values.
    """
    values, start, closing, is_balanced = [], 0, list[str](), True
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
        what, why = f"a quote or bracket in the values of {key} has no other one: {text}", "It is not known where a value ends."
        hint = f"write the other one, or put the value in quotes, as in --vary '{key}=\"it's\",b'"
        raise NpuprofError([Finding("NP902", what, why, hint, where=one_time.place_argument("vary"))])
    return [*values, text[start:].strip()]


def build_axes(vary: Sequence[str], mixins: Sequence[str]) -> Iterator[Axis]:
    """Yield the axes that ``--vary`` and ``--with`` name. Raises NpuprofError."""
    if not vary and not mixins:
        raise NpuprofError([Finding("NP914", "nothing is varied", "", "say --vary KEY=V1,V2, or --with A,B")])
    seen: set[str] = set()
    for text in vary:
        key, _, values = text.partition("=")
        if key.strip() in seen:
            raise NpuprofError([Finding("NP902", f"{key.strip()} is varied twice", "", "name all its values in one --vary")])
        seen.add(key.strip())
        parts = list(dict.fromkeys(split_values(values, key.strip())))
        if "" in parts:
            hint = f'write --vary {key or "KEY"}=V1,V2; an empty text is ""'
            raise NpuprofError([Finding("NP902", f"--vary {text!r} has a value that is empty", "", hint)])
        yield Axis(
            key.strip(), tuple(Choice(part, tuple(one_time.parse_assignments([f"{key}={part}"], argument="vary"))) for part in parts)
        )
    for number, text in enumerate(mixins, 1):
        parts = [part.strip() for part in text.split(",")]
        if "" in parts:
            raise NpuprofError([Finding("NP902", f"--with {text!r} has a preset without a name", "", "write it as in --with A,B")])
        yield Axis("with" if len(mixins) == 1 else f"with {number}", tuple(Choice(part, (), part) for part in dict.fromkeys(parts)))


def combine_axes(
    axes: Sequence[Axis], resolve: Resolve, fit: Callable[[Config], None], is_wanted: Callable[[Config], bool]
) -> list[Combination]:
    """Return the combinations that are wanted, in the order of the axes, the last varying fastest. Raises NpuprofError for too many.

    ``resolve`` and ``fit`` raise NpuprofError for a combination that cannot be run.
    """
    if (count := count_combinations(axes)) > MOST_COMBINATIONS:
        what = f"{count:,} combinations are more than {MOST_COMBINATIONS:,}"
        raise NpuprofError([Finding("NP902", what, "Each would be resolved, checked and run.", "vary fewer keys, or name fewer values")])
    combinations: list[Combination] = []
    digests: dict[str, int] = {}
    for choices in product(*(axis.choices for axis in axes)):
        config: Config | None = None
        errors: tuple[Finding, ...] = ()
        try:
            config = resolve([choice.mixin for choice in choices if choice.mixin], [step for choice in choices for step in choice.steps])
            if not is_wanted(config):
                continue
            fit(config)
        except NpuprofError as error:
            errors = list_errors(error)
        first = digests.setdefault(config.digest, len(combinations)) if config is not None and not errors else len(combinations)
        combinations.append(Combination(choices, config, errors, first if first < len(combinations) else None))
    return combinations


def count_combinations(axes: Sequence[Axis]) -> int:
    """Return how many combinations there are, with those that are not wanted."""
    return math.prod(len(axis.choices) for axis in axes)


def run_combinations(combinations: Sequence[Combination], runner: Runner, tell: Callable[[str], None]) -> bool:
    """Run what is not known yet; return whether all is known now. Raises NpuprofError."""
    wanted = list_configs(combinations)

    def find_wanted() -> list[Config]:
        return [config for config in wanted if config.digest not in runner.journal.results]

    def watch() -> None:
        done = len(wanted) - len(find_wanted())
        tell(f"{done} of {len(wanted)} combinations run, {runner.running} under way")

    return runner.drive(find_wanted, watch)


def describe_end(result: Result) -> str:
    """Return how a run ended, in a word."""
    return "hang" if result.hung else name_signal(result.signal) if result.signal is not None else str(result.exit)


def find_value(result: Result, name: str) -> float | None:
    """Return a metric of a run, or its time."""
    return result.metrics.get(name, result.seconds if name == TIME else None)


class Goal(Record):
    """A metric and which way is better."""

    name: str
    greatest: bool

    def rank(self, value: float) -> float:
        """Return a number that is smaller where the value is better; what is no number is worst."""
        return math.inf if math.isnan(value) else -value if self.greatest else value


def parse_goal(text: str, names: Sequence[str]) -> Goal:
    """Return what ``min:loss``, ``max:speed`` or a bare name says: the greatest, of ``time`` the least. Raises NpuprofError."""
    way, colon, name = text.partition(":")
    if not colon:
        way, name = "min" if text == TIME else "max", text
    if way not in ("min", "max") or name not in (*names, TIME):
        known = ", ".join((*names, TIME))
        raise NpuprofError(
            [Finding("NP902", f"{text!r} is no metric of this sweep", f"There are {known}.", "write it as in min:loss, or speed")]
        )
    return Goal(name, way == "max")


def find_best(rows: Iterable[tuple[Combination, Result | None]], goal: Goal) -> tuple[Config, Combination, float] | None:
    """Return the combination that is best, of those whose run was fine, with its value; None where none has the metric."""
    best = None
    for combination, result in rows:
        value = find_value(result, goal.name) if result is not None and result.exit == 0 else None
        if value is None or math.isnan(value) or combination.config is None:
            continue
        if best is None or goal.rank(value) < goal.rank(best[2]):
            best = combination.config, combination, value
    return best


def find_result(combination: Combination, journal: Journal) -> Result | None:
    """Return the run of a combination: those of one digest share it."""
    results = journal.results.get(combination.config.digest) if combination.config is not None and combination.is_allowed else None
    return results[-1] if results else None


def _read_end(code: int, seconds: float, timeout: float | None) -> Ended:
    """Return how a command ended that ``timeout`` may have ended: with 124, or 137 where it had to be killed."""
    number = code - 128 if 128 < code < 128 + 65 else None
    hung = timeout is not None and code in (124, 137) and seconds > timeout - 1
    return Ended(None if number else code, number, seconds, hung)


def take_results(journal: Journal, metrics: dict[str, str], timeout: float | None = None) -> int:
    """Take over what jobs of a scheduler have left in the folder of results; return how many there were."""
    taken = 0
    for digest, code, seconds in _list_ends(journal.tree):
        if digest in journal.results:
            continue
        log = os.path.join(journal.folder, "results", f"{digest}.log")
        numbers = read_metrics(journal.tree, f"results/{digest}.log", metrics)
        result = build_result(digest, _read_end(code, seconds, timeout), numbers, log)
        if result.exit not in (126, 127):
            journal.add(result)
            taken += 1
    return taken


def take_logs(journal: Journal, metrics: dict[str, str], text: str, wanted: Sequence[str], timeout: float | None = None) -> int:
    """Take over what the pods of an Indexed Job have printed; return how many results of ``wanted`` there were.

    The last line of each pod says which combination it was, and how it ended; what stands before it is its output. With the names of
    pods before the lines (``--prefix``) they may stand in any order.
    """
    readers: dict[str, MetricReader] = {}
    taken = 0
    for line in text.splitlines():
        pod, line = _split_prefix(line)
        output, ending = _read_pod_line(line)
        reader = readers.setdefault(pod, MetricReader(metrics))
        if output or ending is None:
            reader.add(f"{output}\n".encode())
        if ending is None:
            continue
        digest, code, seconds = ending
        if digest in wanted and digest not in journal.results and code not in (126, 127):
            journal.add(build_result(digest, _read_end(code, seconds, timeout), reader.found, ""))
            taken += 1
        del readers[pod]
    return taken


def _split_prefix(line: str) -> tuple[str, str]:
    """Return what ``kubectl logs --prefix`` has put before a line, and the line."""
    match = _PREFIX.match(line)
    return (match[0], line[match.end() :]) if match else ("", line)


def _read_pod_line(line: str) -> tuple[str, tuple[str, int, float] | None]:
    """Return what is output in a line, and what it says of the end of a pod."""
    output, mark, _ = line.partition(_POD_END)
    if not mark:
        return line, None
    try:
        fields = json.loads(line[len(output) :])
        return output, (str(fields["npuprof_trial"]), int(fields["exit"]), float(fields["seconds"]))
    except (ValueError, LookupError, TypeError):
        return line, None


def _list_ends(tree: Tree) -> Iterator[tuple[str, int, float]]:
    """Yield how each job ended that left a result: the digest, the exit code, the seconds."""
    for name in tree.list_names("results"):
        digest, dot, kind = name.rpartition(".")
        if dot and kind == "end":
            with suppress(OSError, ValueError), tree.open_reader(f"results/{name}") as file:
                code, began, ended = file.read(200).decode("ascii").split()
                yield digest, int(code), max(float(ended) - float(began), 0.0)
