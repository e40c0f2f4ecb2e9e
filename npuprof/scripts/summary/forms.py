"""The report of ``scan --statistics`` as text, and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from npuprof.model import Finding, shorten_values
from npuprof.report.findings import mark_likely
from npuprof.report.html import escape_html, format_page
from npuprof.report.tables import Table as TextTable
from npuprof.report.text import count_rest, escape_controls, format_count, paint_text
from npuprof.scripts.grouping import group_by
from npuprof.scripts.summary.report import (
    TOPICS,
    Report,
    Table,
    Weighty,
    group_findings,
    list_worst_files,
)
from npuprof.system import drop_empty, join_lines

_TITLE = "Problems in the scripts"
#: The maximum number of names in a cell of text, and of a page.
_MOST_NAMES, _MOST_IN_PAGE = 3, 20
_NEXT = """
  --all                                                lists each finding
  --statistics                                         counts them by kind, and settings by surface
  --baseline npuprof-baseline.json --write-baseline    accepts them: later runs report new ones
  --format sarif                                       is read by code scanning

"""
_COLOURS = {"error": "1;31", "warning": "1;33"}


def format_report(report: Report, coloured: bool) -> str:
    """Return a report as lines."""
    lines = [paint_text(_TITLE, "1", coloured)]
    lines += [f"  {number:>7}  {name.replace('_', ' ')}" for name, number in report.counts.items()]
    lines.append("")
    head = paint_text(_head_weighty(report), "1", coloured)
    lines.append(head if report.weighty else "Nothing is found wrong.")
    lines += _format_weighty(report.weighty, coloured)
    if report.others:
        lines.append(_count_others(report))
    for table in report.tables:
        lines += _format_table(table, coloured)
    return join_lines(lines)


def format_groups(findings: Sequence[Finding], folders: Sequence[str], coloured: bool) -> str:
    """Return the findings of scanned folders as groups, most important first.

    The files with the most findings and the flags for other forms follow.
    """
    groups = group_findings(findings, folders, by_value=True)
    lines = []
    number = 1
    for topic, same in group_by(groups, attrgetter("topic")).items():
        places = format_count(sum(group.places for group in same), "finding")
        lines.append(paint_text(f"{TOPICS[topic]}: {places}", "1", coloured))
        lines += [*_format_weighty(same, coloured, number), ""]
        number += len(same)
    worst = list_worst_files(findings)
    lines += _format_table(worst._replace(rows=worst.rows[: worst.most]), coloured)[1:]
    return join_lines(lines) + _NEXT


def _format_weighty(groups: Sequence[Weighty], coloured: bool, number: int = 1) -> Iterator[str]:
    """Yield the lines of faults, which are counted from ``number``."""
    for at, group in enumerate(groups, number):
        severity = paint_text(group.severity, _COLOURS.get(group.severity, "1"), coloured)
        message = _escape_text(mark_likely(group.message, group.certainty))
        yield f"{at}. {severity} {group.code}: {message}"
        for label, text in _explain_weighty(group).items():
            yield f"   {f'{label}:':<7}{_escape_text(text)}"


def _format_table(table: Table, coloured: bool) -> list[str]:
    """Return the lines of a table below an empty one; none without rows."""
    title = paint_text(table.title, "1", coloured)
    return ["", title, *_format_rows(table)] if table.rows else []


def _head_weighty(report: Report) -> str:
    return (
        f"What matters first: {len(report.weighty)}, before {report.others} more"
        if report.others
        else "What matters"
    )


def _count_others(report: Report) -> str:
    return f"and {format_count(report.others, 'more finding')}, counted by kind below"


def _explain_weighty(group: Weighty) -> dict[str, str]:
    """Return places, count and risk of a fault, its reason, and its hint."""
    places = f", {group.places} places" if group.places > len(group.files) else ""
    more = f"; {group.wordings} more of the kind" if group.wordings else ""
    risk = f"; at risk: {', '.join(group.risk)}" if group.risk else ""
    where = (
        f"in {format_count(len(group.files), 'file')}{places}: "
        f"{count_rest(group.locations, _MOST_NAMES) or 'all of them'}{more}{risk}"
    )
    return drop_empty({"where": where, "why": group.why, "try": group.hint})


def _shorten_cell(cell: Any, most: int = _MOST_NAMES) -> str:
    """Return a cell for display: the first names, and the number of others."""
    return count_rest(cell, most) if isinstance(cell, tuple) else str(cell)


def _format_rows(table: Table) -> Iterator[str]:
    """Yield the rows: the first columns on one line, each further one on a separate line below."""
    names = [name.replace("_", " ") for name in table.columns]
    rows = [[_escape_text(_shorten_cell(cell)) for cell in row] for row in table.rows[: table.most]]
    inline_names = names[: table.inline]
    # numbers at the right of their columns' names
    aligned = (
        [
            cell.rjust(len(name)) if cell.isdigit() else cell
            for cell, name in zip(row, inline_names, strict=False)
        ]
        for row in rows
    )
    grid = [inline_names, *aligned]
    head, *lines = TextTable(grid).format_plain().splitlines()
    yield f"  {head}"
    for line, row in zip(lines, rows, strict=True):
        yield f"  {line}"
        for name, cell in zip(names[table.inline :], row[table.inline :], strict=True):
            if cell:
                yield f"      {name}: {cell}"
    for text in _list_endings(table, table.most):
        yield f"  {_escape_text(text)}"


def _list_endings(table: Table, most: int) -> list[str]:
    """Return the lines below a table: the number of hidden rows, and its note."""
    more = len(table.rows) - most
    hidden = f"and {more} more, shown by --format json" if more > 0 else ""
    return [*filter(None, (hidden, table.note))]


def _escape_text(text: str) -> str:
    return escape_controls(shorten_values(text))


def format_report_page(report: Report) -> str:
    """Return a report as a page."""
    counts = [(name.replace("_", " "), str(number)) for name, number in report.counts.items()]
    parts = [TextTable(counts).format_html("Counts", matrix=True)]
    parts.append(
        f"<h2>{_head_weighty(report) if report.weighty else 'Nothing is found wrong'}</h2>\n"
    )
    if report.weighty:
        parts.append(f"<ol>\n{''.join(map(_format_weighty_item, report.weighty))}</ol>\n")
    if report.others:
        parts.append(f"<p>{_count_others(report)}</p>\n")
    parts += [_format_table_part(table) for table in report.tables if table.rows]
    parts += [f"<p>{escape_html(note)}</p>\n" for note in report.notes]
    return format_page(_TITLE, "".join(parts))


def _format_weighty_item(group: Weighty) -> str:
    head = (
        f'<strong class="{group.severity}">{group.severity} '
        f"{escape_html(group.code)}</strong>: "
        f"{_escape_html(mark_likely(group.message, group.certainty))}"
    )
    details = [f"{label}: {_escape_html(text)}" for label, text in _explain_weighty(group).items()]
    return f"<li><p>{'<br>'.join([head, *details])}</p></li>\n"


def _format_table_part(table: Table) -> str:
    most = table.most * 5
    rows = [
        [shorten_values(_shorten_cell(cell, _MOST_IN_PAGE)) for cell in row]
        for row in table.rows[:most]
    ]
    header = tuple(name.replace("_", " ") for name in table.columns)
    shown = TextTable(rows, header=header).format_html(table.title)
    endings = (f"<p>{_escape_html(text)}</p>\n" for text in _list_endings(table, most))
    return f"<h2>{escape_html(table.title)}</h2>\n{shown}{''.join(endings)}"


def _escape_html(text: str) -> str:
    return escape_html(shorten_values(text))
