"""What a sweep gave: as a table, CSV, JSON fields, or one HTML page with plots and the Pareto front of two metrics."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from typing import Any

from npuprof.model import Record
from npuprof.report.findings import build_finding_dict
from npuprof.report.html import escape_html, format_page
from npuprof.report.tables import Table
from npuprof.report.text import escape_controls, format_count
from npuprof.trials.journal import Result
from npuprof.trials.sweeping import TIME, Axis, Combination, Goal, count_combinations, describe_end, find_front, find_value

SCHEMA = "npuprof.sweep/1"


class Sweep(Record):
    """A sweep: what was varied, the combinations with what came of them, and the metrics that were read."""

    name: str
    axes: tuple[Axis, ...]
    combinations: tuple[tuple[Combination, Result | None], ...]
    metrics: tuple[str, ...]

    @property
    def rows(self) -> list[tuple[Combination, Result | None]]:
        """The combinations that the checks allow."""
        return [row for row in self.combinations if row[0].is_allowed]

    @property
    def left_out(self) -> int:
        """How many combinations are not wanted."""
        return count_combinations(self.axes) - len(self.combinations)

    @property
    def refused(self) -> list[Combination]:
        """The combinations that the checks do not allow."""
        return [combination for combination, _ in self.combinations if not combination.is_allowed]


def format_number(value: float | None) -> str:
    """Return a number as a table shows it, a dash for none."""
    return "-" if value is None else f"{value:.6g}"


def build_table(sweep: Sweep) -> Table:
    """Return the runs as a table, and below it what was not run, each with its rule."""
    rows = list_rows(sweep)
    return Table(rows if len(rows) > 1 else [], after=format_refused(sweep), wrapping=len(sweep.axes))


def list_rows(sweep: Sweep) -> list[list[str]]:
    """Return the names of the columns, and a row for each combination that is allowed."""
    rows = [[*(axis.name for axis in sweep.axes), "exit", "seconds", *sweep.metrics]]
    for combination, result in sweep.rows:
        ending = [describe_end(result), f"{result.seconds:.3f}"] if result is not None else ["not run", "-"]
        metrics = result.metrics if result is not None else {}
        values = [format_number(metrics.get(name)) for name in sweep.metrics]
        rows.append([*(choice.shown for choice in combination.choices), *ending, *values])
    return rows


def format_refused(sweep: Sweep) -> str:
    """Return the combinations that the checks do not allow, each with its rule."""
    lines = [f"{'' if not sweep.rows else chr(10)}{format_count(len(sweep.refused), 'combination')} not allowed:"] if sweep.refused else []
    for combination in sweep.refused:
        reasons = "; ".join(f"{error.code} {error.message}" for error in combination.errors)
        lines.append(f"  {describe_choices(sweep, combination)}: {escape_controls(reasons)}")
    if sweep.left_out:
        lines.append(f"{format_count(sweep.left_out, 'combination')} left out by --where")
    return "".join(f"{line}\n" for line in lines)


def describe_choices(sweep: Sweep, combination: Combination) -> str:
    """Return a combination in a line."""
    return escape_controls(", ".join(f"{axis.name}={choice.shown}" for axis, choice in zip(sweep.axes, combination.choices, strict=True)))


def format_csv(sweep: Sweep) -> str:
    """Return a line a combination, those that are not allowed with their codes in place of an exit code."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(axis.name for axis in sweep.axes), "exit", "seconds", *sweep.metrics, "digest", "refused"])
    for combination, result in sweep.combinations:
        shown = [choice.shown for choice in combination.choices]
        digest = combination.config.digest if combination.config else ""
        values = [result.metrics.get(name) if result else None for name in sweep.metrics]
        ended = [describe_end(result), f"{result.seconds:.3f}"] if result else ["", ""]
        writer.writerow([*shown, *ended, *values, digest, " ".join(dict.fromkeys(error.code for error in combination.errors))])
    return text.getvalue()


def build_fields(sweep: Sweep, command: Sequence[str]) -> dict[str, Any]:
    """Return the sweep as the fields of its JSON form."""
    return {
        "schema": SCHEMA,
        "preset": sweep.name,
        "command": list(command),
        "axes": [{"name": axis.name, "values": [choice.shown for choice in axis.choices]} for axis in sweep.axes],
        "metrics": list(sweep.metrics),
        "left_out": sweep.left_out,
        "combinations": [
            {
                "values": {axis.name: choice.shown for axis, choice in zip(sweep.axes, combination.choices, strict=True)},
                "digest": combination.config.digest if combination.config else None,
                "allowed": combination.is_allowed,
                "same_as": combination.same_as,
                "run": result._asdict() if result else None,
                "findings": [build_finding_dict(error) for error in combination.errors],
            }
            for combination, result in sweep.combinations
        ],
    }


_WIDTH, _HEIGHT, _LEFT, _BELOW, _GAP = 640, 340, 76, 44, 16
_TICKS = 5


def format_sweep_page(sweep: Sweep, goals: tuple[Goal, Goal]) -> str:
    """Return the page; ``goals`` are the two metrics of the front."""
    body = [f"<p>{len(sweep.rows)} combinations allowed, {len(sweep.refused)} not.</p>\n"]
    body.append(_format_front(sweep, goals))
    body += [_format_metric(sweep, name) for name in (*sweep.metrics, TIME)]
    body.append(_format_rows(sweep))
    if sweep.refused:
        rows = [
            (describe_choices(sweep, combination), "; ".join(f"{error.code} {error.message}" for error in combination.errors))
            for combination in sweep.refused
        ]
        table = Table(rows, header=("combination", "rule"))
        body.append(f"<h2>Not allowed</h2>\n{table.format_html('Combinations that break a rule')}")
    return format_page(f"Sweep of {sweep.name}", "".join(body))


def _format_front(sweep: Sweep, goals: tuple[Goal, Goal]) -> str:
    """Return the plot of two metrics with their Pareto front."""
    known = _list_points(sweep, goals[0].name, goals[1].name)
    if not known or goals[0].name == goals[1].name:
        return ""
    points = [(x, y) for _, x, y in known]
    front = find_front(points, goals)
    words = " and ".join(f"{'greatest' if goal.greatest else 'least'} {goal.name}" for goal in goals)
    title = f"<h2>{escape_html(goals[1].name)} over {escape_html(goals[0].name)}</h2>\n"
    named = "".join(f"<li>{escape_html(describe_choices(sweep, known[place][0]))}</li>\n" for place in front)
    plot = _draw_plot([(x, y, describe_choices(sweep, combination)) for combination, x, y in known], goals[0].name, goals[1].name, front)
    return f"{title}<p>On the front of {escape_html(words)}:</p>\n<ul>\n{named}</ul>\n{plot}"


def _format_metric(sweep: Sweep, name: str) -> str:
    """Return the plot of one metric over the combinations, in their order."""
    known = [
        (float(place), value, describe_choices(sweep, combination))
        for place, (combination, result) in enumerate(sweep.rows, 1)
        if result is not None and (value := find_value(result, name)) is not None and math.isfinite(value)
    ]
    return f"<h2>{escape_html(name)}</h2>\n{_draw_plot(known, 'combination', name, [])}" if known else ""


def _list_points(sweep: Sweep, first: str, second: str) -> list[tuple[Combination, float, float]]:
    points = []
    for combination, result in sweep.rows:
        if result is not None and result.exit == 0:
            x, y = find_value(result, first), find_value(result, second)
            if x is not None and y is not None and math.isfinite(x) and math.isfinite(y):
                points.append((combination, x, y))
    return points


def _draw_plot(points: Sequence[tuple[float, float, str]], across: str, up: str, front: Sequence[int]) -> str:
    """Return points as SVG, each with a title; those of a front are marked and joined."""
    place_x = _build_scale([x for x, _, _ in points], _LEFT, _WIDTH - _GAP)
    place_y = _build_scale([y for _, y, _ in points], _HEIGHT - _BELOW, _GAP)
    out = [f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape_html(f"{up} over {across}")}">\n']
    for value in _list_ticks([x for x, _, _ in points]):
        x = place_x(value)
        out.append(f'<line class="axis" x1="{x:.1f}" y1="{_GAP}" x2="{x:.1f}" y2="{_HEIGHT - _BELOW}"/>')
        out.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BELOW + 16}" text-anchor="middle">{value:.4g}</text>\n')
    for value in _list_ticks([y for _, y, _ in points]):
        y = place_y(value)
        out.append(f'<line class="axis" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _GAP}" y2="{y:.1f}"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>\n')
    out.append(f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape_html(across)}</text>\n')
    out.append(
        f'<text x="14" y="{_HEIGHT / 2:.0f}" text-anchor="middle" transform="rotate(-90 14 {_HEIGHT / 2:.0f})">{escape_html(up)}</text>\n'
    )
    if front:
        corners = " ".join(f"{place_x(points[place][0]):.1f},{place_y(points[place][1]):.1f}" for place in front)
        out.append(f'<polyline class="front" points="{corners}"/>\n')
    best = set(front)
    for place, (x, y, title) in enumerate(points):
        mark = ' class="best"' if place in best else ""
        shown = escape_html(f"{title}: {across} {x:.6g}, {up} {y:.6g}")
        out.append(f'<g{mark}><circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="4"><title>{shown}</title></circle></g>\n')
    return "".join([*out, "</svg>\n"])


def _build_scale(values: Sequence[float], first: float, last: float) -> Callable[[float], float]:
    """Return a function from values to places between two ends."""
    low, span = min(values), max(values) - min(values)
    if not span > 0 or not math.isfinite(span):
        return lambda value: (first + last) / 2
    return lambda value: first + (value - low) * (last - first) / span


def _list_ticks(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    if not high > low or not math.isfinite(high - low):
        return [low]
    rough = (high - low) / _TICKS
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step)
    return [place * step for place in range(first, math.floor(high / step) + 1)] or [low]


def _format_rows(sweep: Sweep) -> str:
    header, *rows = list_rows(sweep)
    table = Table(rows, header=tuple(header))
    return f"<h2>Runs</h2>\n{table.format_html('All combinations, with what their runs gave', matrix=True)}"
