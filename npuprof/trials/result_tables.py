"""The results of a sweep: as a table, CSV or JSON fields."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from npuprof.model import Fields, Record
from npuprof.report.findings import build_finding_dict
from npuprof.report.tables import Table
from npuprof.report.text import escape_controls, format_count
from npuprof.system import join_lines
from npuprof.trials.journal import Result
from npuprof.trials.sweeping import Axis, Combination, count_combinations, describe_end

SCHEMA = "npuprof.sweep/1"


class Sweep(Record):
    """A sweep: its axes, the combinations with results, and the metrics."""

    name: str
    axes: tuple[Axis, ...]
    combinations: tuple[tuple[Combination, Result | None], ...]
    metrics: tuple[str, ...]

    @property
    def rows(self) -> list[tuple[Combination, Result | None]]:
        """The allowed combinations."""
        return [row for row in self.combinations if row[0].is_allowed]

    @property
    def left_out(self) -> int:
        """The number of unwanted combinations."""
        return count_combinations(self.axes) - len(self.combinations)

    @property
    def refused(self) -> list[Combination]:
        """The combinations that the checks exclude."""
        return [combination for combination, _ in self.combinations if not combination.is_allowed]


def build_table(sweep: Sweep) -> Table:
    """Return the runs as a table, followed by the excluded combinations with their rules."""
    rows = list_rows(sweep)
    # the first row is the header, which says nothing alone
    return Table(
        rows if len(rows) > 1 else [], after=format_refused(sweep), wrapping=len(sweep.axes)
    )


def list_rows(sweep: Sweep) -> list[list[str]]:
    """Return the column names, and a row for each allowed combination."""
    rows = [[*(axis.name for axis in sweep.axes), "exit", "seconds", *sweep.metrics]]
    for combination, result in sweep.rows:
        ending = (
            [describe_end(result), f"{result.seconds:.3f}"]
            if result is not None
            else ["not run", "-"]
        )
        metrics = result.metrics if result is not None else {}
        values = [f"{metrics[name]:.6g}" if name in metrics else "-" for name in sweep.metrics]
        rows.append([*(choice.shown for choice in combination.choices), *ending, *values])
    return rows


def format_refused(sweep: Sweep) -> str:
    """Return the excluded combinations, each with its rule."""
    lines = []
    if sweep.refused:
        separator = "\n" if sweep.rows else ""  # a blank line after the table
        lines.append(f"{separator}{format_count(len(sweep.refused), 'combination')} not allowed:")
    for combination in sweep.refused:
        reasons = "; ".join(f"{error.code} {error.message}" for error in combination.errors)
        lines.append(f"  {describe_choices(sweep, combination)}: {escape_controls(reasons)}")
    if sweep.left_out:
        lines.append(f"{format_count(sweep.left_out, 'combination')} excluded by --where")
    return join_lines(lines)


def describe_choices(sweep: Sweep, combination: Combination) -> str:
    """Return a combination on one line."""
    pairs = zip(sweep.axes, combination.choices, strict=True)
    return escape_controls(", ".join(f"{axis.name}={choice.shown}" for axis, choice in pairs))


def format_csv(sweep: Sweep) -> str:
    """Return one line per combination; excluded ones have their codes in place of an exit code."""
    text = io.StringIO()
    # the csv module ends lines with "\r\n" by default
    writer = csv.writer(text, lineterminator="\n")
    axes = [axis.name for axis in sweep.axes]
    writer.writerow([*axes, "exit", "seconds", *sweep.metrics, "digest", "refused"])
    for combination, result in sweep.combinations:
        shown = [choice.shown for choice in combination.choices]
        digest = combination.config.digest if combination.config else ""
        values = [result.metrics.get(name) if result else None for name in sweep.metrics]
        ended = [describe_end(result), f"{result.seconds:.3f}"] if result else ["", ""]
        codes = " ".join(dict.fromkeys(error.code for error in combination.errors))
        writer.writerow([*shown, *ended, *values, digest, codes])
    return text.getvalue()


def build_fields(sweep: Sweep, command: Sequence[str]) -> Fields:
    """Return the sweep as the fields of its JSON form."""
    return {
        "schema": SCHEMA,
        "preset": sweep.name,
        "command": list(command),
        "axes": [
            {"name": axis.name, "values": [choice.shown for choice in axis.choices]}
            for axis in sweep.axes
        ],
        "metrics": list(sweep.metrics),
        "left_out": sweep.left_out,
        "combinations": [
            _build_combination_fields(sweep, combination, result)
            for combination, result in sweep.combinations
        ],
    }


def _build_combination_fields(
    sweep: Sweep, combination: Combination, result: Result | None
) -> Fields:
    pairs = zip(sweep.axes, combination.choices, strict=True)
    return {
        "values": {axis.name: choice.shown for axis, choice in pairs},
        "digest": combination.config.digest if combination.config else None,
        "allowed": combination.is_allowed,
        "same_as": combination.same_as,
        "run": result._asdict() if result else None,
        "findings": [build_finding_dict(error) for error in combination.errors],
    }
