"""Goals of benchmarks, their rows, the load of the machine, and what is kept for ``speed.md``."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

from bench.workplace import Workplace

FILE = Path(__file__).with_name("measured.json")
#: The highest load of other processes at which figures are kept.
QUIET = 0.5


class UnavailableError(Exception):
    """Raised by a measuring function if something that it needs is not there."""


class Goal(NamedTuple):
    """A figure that npuprof promises: the limit is an upper one unless ``more`` is better.

    Without a limit, the figure is a comparison for information.
    """

    title: str
    limit: float | None
    measure: Callable[[Workplace], float]
    more: bool = False


class Row(NamedTuple):
    """A goal with its measured figure, or with the reason why there is none."""

    title: str
    figure: float | None
    limit: float | None
    more: bool = False
    missing: str = ""
    has_failed: bool = False

    @property
    def is_exceeded(self) -> bool:
        if self.figure is None or self.limit is None:
            return False
        return self.figure < self.limit if self.more else self.figure > self.limit

    def format(self) -> str:
        figure = f"{self.figure:10.2f}" if self.figure is not None else f"{'-':>10}"
        limit = held = ""
        if self.limit is not None:
            limit = f"at {'least' if self.more else 'most'} {self.limit:g}"
            held = "EXCEEDED" if self.is_exceeded else "holds"
        if self.missing:
            held = "FAILED" if self.has_failed else "skipped"
        missing = f": {self.missing}" if self.missing else ""
        return f"{figure}  {limit:<13}  {held:<8}  {self.title}{missing}"


class Load:
    """How many processes of others kept the machine busy, since ``start`` and before it.

    The figure is the higher one of two: the load average of the last minute before the first row,
    and the processor time of others during the rows, per second. The second is what ``/proc/stat``
    counts for the whole machine, less what the benchmark and its children took. Without that file
    it is 0.
    """

    def __init__(self) -> None:
        self.before = os.getloadavg()[0]
        self._began, self._busy, self._own = time.monotonic(), _read_busy(), _read_own()

    def read(self) -> float:
        """Return the load of others until now."""
        others = _read_busy() - self._busy - (_read_own() - self._own)
        return max(self.before, others / max(time.monotonic() - self._began, 1))


def _read_busy() -> float:
    """Return the seconds in which any processor of the machine was not idle."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0
    user, nice, system, _, _, *others = map(int, words)  # without: idle, waiting for disks
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def _read_own() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def describe_refusal(load: float) -> str:
    """Return why figures of a machine with this load are not kept, or an empty text."""
    if load <= QUIET:
        return ""
    return (
        f"speed.md is not updated: the load of other processes is {load:.1f}, above {QUIET}. "
        "Wait until the machine is quiet."
    )


def measure_goals(goals: Iterable[Goal], place: Workplace) -> list[Row]:
    """Measure goals one after the other, and print the row of each as soon as it is known."""
    rows = []
    for goal in goals:
        try:
            row = Row(goal.title, goal.measure(place), goal.limit, goal.more)
        except UnavailableError as reason:
            row = Row(goal.title, None, goal.limit, goal.more, str(reason))
        except Exception as fault:  # the other rows are measured all the same
            row = Row(goal.title, None, goal.limit, goal.more, shorten(str(fault), 200), True)
        print(row.format(), flush=True)
        rows.append(row)
    return rows


def describe_machine(load: float) -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, "
        f"Python {platform.python_version()}, load {load:.1f}"
    )


def keep_rows(rows: Sequence[Row], load: float, file: Path = FILE) -> None:
    """Write the rows of ``bench_all``, and on what machine they were measured, to ``file``."""
    kept = {
        "day": datetime.now(UTC).date().isoformat(),
        "machine": describe_machine(load),
        "rows": [
            [row.title, row.figure and round(row.figure, 2), row.limit, row.more, row.missing]
            for row in rows
        ],
    }
    text = json.dumps({"all": kept}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")
