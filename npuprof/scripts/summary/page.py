"""A report as one page of HTML: what matters first, then tables whose long lists open where somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.report.html import escape_html, format_html_table, format_page
from npuprof.report.text import format_count, shorten_words
from npuprof.scripts.summary.parts import Cell, Report, Table, Weighty
from npuprof.scripts.summary.plain import describe_reach, describe_weighty, shorten_cell

_CLASSES = {"error": "bad", "warning": "doubtful"}
#: A page is for a person: a list that opens holds so many names.
_MOST_OPENED = 200


def format_report_page(report: Report) -> str:
    """Return a report as a page."""
    return format_page(report.title, "".join(_list_parts(report)))


def _list_parts(report: Report) -> Iterator[str]:
    counts = [(escape_html(name.replace("_", " ")), str(number)) for name, number in report.counts.items()]
    yield format_html_table("Counts", (), counts, matrix=True)
    yield f"<h2>{escape_html(describe_weighty(report) if report.weighty else 'Nothing is found wrong')}</h2>\n"
    if report.weighty:
        yield f"<ol>\n{''.join(map(_format_weighty, report.weighty))}</ol>\n"
    if report.others:
        yield f"<p>and {format_count(report.others, 'more finding')}, counted by kind below</p>\n"
    for table in (table for table in report.tables if table.rows):
        yield from _format_table(table)
    for remark in report.remarks:
        yield f"<p>{escape_html(remark)}</p>\n"


def _format_weighty(one: Weighty) -> str:
    lines = [f'<strong class="{_CLASSES.get(one.severity, "good")}">{one.severity} {escape_html(one.code)}</strong>: {_show(one.message)}']
    lines += [_show(describe_reach(one))]
    lines += [f"{label}: {_show(text)}" for label, text in (("why", one.why), ("try", one.hint)) if text]
    return f"<li><p>{'<br>'.join(lines)}</p></li>\n"


def _format_table(table: Table) -> Iterator[str]:
    rows = [[_format_cell(cell) for cell in row] for row in table.rows[: table.most * 5]]
    yield f"<h2>{escape_html(table.title)}</h2>\n"
    yield format_html_table(table.title, [name.replace("_", " ") for name in table.columns], rows)
    if (hidden := len(table.rows) - table.most * 5) > 0:
        yield f"<p>and {hidden} more, which --format json tells</p>\n"
    if table.remark:
        yield f"<p>{_show(table.remark)}</p>\n"


def _format_cell(cell: Cell) -> str:
    if not isinstance(cell, tuple) or len(cell) < 4:
        return _show(shorten_cell(cell))
    names = _show(shorten_cell(cell, _MOST_OPENED))
    return f"<details><summary>{_show(shorten_cell(cell, 1))}</summary>{names}</details>"


def _show(text: str) -> str:
    return escape_html(shorten_words(text))
