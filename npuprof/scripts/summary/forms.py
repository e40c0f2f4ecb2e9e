"""The report of ``scan --statistics`` as text, and as one page of HTML whose long lists open where somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.report.html import escape_html, format_html_table, format_page
from npuprof.report.text import escape_controls, format_count, measure_width, paint_text, shorten_words
from npuprof.scripts.summary.report import Cell, Report, Table, Weighty

#: So many names are in a cell.
_MOST_NAMES = 3
#: A column that is wider than this is a long one.
_SHORT = 24
_COLOURS = {"error": "1;31", "warning": "1;33"}
_CLASSES = {"error": "bad", "warning": "doubtful"}
#: A page is for a person: a list that opens has so many names.
_MOST_OPENED = 200


def format_report(report: Report, coloured: bool = False) -> str:
    """Return a report as lines."""
    lines = [
        paint_text(escape_controls(report.title), "1", coloured),
        *(f"  {number:>7}  {name.replace('_', ' ')}" for name, number in report.counts.items()),
    ]
    if report.weighty:
        lines += ["", paint_text(describe_weighty(report), "1", coloured)]
        for number, one in enumerate(report.weighty, 1):
            lines += _format_weighty(number, one, coloured)
        if report.others:
            lines.append(f"and {format_count(report.others, 'more finding')}, counted by kind below")
    else:
        lines += ["", "Nothing is found wrong."]
    for table in (table for table in report.tables if table.rows):
        lines += ["", paint_text(escape_controls(table.title), "1", coloured), *_format_rows(table)]
    return "".join(f"{line}\n" for line in lines)


def describe_weighty(report: Report) -> str:
    """Return the heading of the findings that matter."""
    return f"What matters first: {len(report.weighty)}, before {report.others} more" if report.others else "What matters"


def describe_reach(one: Weighty) -> str:
    """Return where a fault is, how often, and what it puts at risk."""
    where = f"in {format_count(len(one.files), 'file')}"
    if one.places > len(one.files):
        where += f", {one.places} places"
    more = f"; {one.wordings} more of the kind" if one.wordings else ""
    risk = f"; at risk: {', '.join(one.risk)}" if one.risk else ""
    return f"{where}, first {one.place or 'of them all'}{more}{risk}"


def shorten_cell(cell: Cell, most: int = _MOST_NAMES) -> str:
    """Return a cell as a person reads it: of many names the first, and how many more there are."""
    if not isinstance(cell, tuple):
        return str(cell)
    shown = ", ".join(cell[:most])
    return shown if len(cell) <= most else f"{shown} and {len(cell) - most} more"


def _format_weighty(number: int, one: Weighty, coloured: bool) -> Iterator[str]:
    severity = paint_text(one.severity, _COLOURS.get(one.severity, "1"), coloured)
    yield f"{number}. {severity} {one.code}: {_show(one.message)}"
    for label, text in (("where", describe_reach(one)), ("why", one.why), ("try", one.hint)):
        if text:
            yield f"   {f'{label}:':<7}{_show(text)}"


def _format_rows(table: Table) -> Iterator[str]:
    """Yield the rows: short columns in one line up to the first long one, each further one on a line of its own below."""
    shown = [[_show(shorten_cell(cell)) for cell in row] for row in table.rows[: table.most]]
    names = [name.replace("_", " ") for name in table.columns]
    widths = [max(map(measure_width, column)) for column in zip(names, *shown, strict=True)]
    inline = next((place for place, width in enumerate(widths) if width > _SHORT), len(widths) - 1) + 1
    numbers = [isinstance(cell, int) for cell in table.rows[0]]
    for row in [names[:inline], *shown]:
        parts = [_align(cell, width, number) for cell, width, number in zip(row[: inline - 1], widths, numbers, strict=False)]
        yield f"  {'  '.join([*parts, _align(row[inline - 1], 0, numbers[inline - 1])])}".rstrip()
        yield from (f"      {name}: {cell}" for name, cell in zip(names[inline:], row[inline:], strict=False) if cell)
    if table.hidden:
        yield f"  and {table.hidden} more, which --format json tells"
    if table.remark:
        yield f"  {_show(table.remark)}"


def _align(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - measure_width(text))
    return blanks + text if right else text + blanks


def _show(text: str) -> str:
    return escape_controls(shorten_words(text))


def format_report_page(report: Report) -> str:
    """Return a report as a page."""
    return format_page(report.title, "".join(_list_parts(report)))


def _list_parts(report: Report) -> Iterator[str]:
    counts = [(escape_html(name.replace("_", " ")), str(number)) for name, number in report.counts.items()]
    yield format_html_table("Counts", (), counts, matrix=True)
    yield f"<h2>{escape_html(describe_weighty(report) if report.weighty else 'Nothing is found wrong')}</h2>\n"
    if report.weighty:
        yield f"<ol>\n{''.join(map(_format_weighty_item, report.weighty))}</ol>\n"
    if report.others:
        yield f"<p>and {format_count(report.others, 'more finding')}, counted by kind below</p>\n"
    for table in (table for table in report.tables if table.rows):
        yield from _format_table_part(table)
    for remark in report.remarks:
        yield f"<p>{escape_html(remark)}</p>\n"


def _format_weighty_item(one: Weighty) -> str:
    severity = f'<strong class="{_CLASSES.get(one.severity, "good")}">{one.severity} {escape_html(one.code)}</strong>'
    lines = [f"{severity}: {_escape(one.message)}", _escape(describe_reach(one))]
    lines += [f"{label}: {_escape(text)}" for label, text in (("why", one.why), ("try", one.hint)) if text]
    return f"<li><p>{'<br>'.join(lines)}</p></li>\n"


def _format_table_part(table: Table) -> Iterator[str]:
    rows = [[_format_cell(cell) for cell in row] for row in table.rows[: table.most * 5]]
    yield f"<h2>{escape_html(table.title)}</h2>\n"
    yield format_html_table(table.title, [name.replace("_", " ") for name in table.columns], rows)
    if (hidden := len(table.rows) - table.most * 5) > 0:
        yield f"<p>and {hidden} more, which --format json tells</p>\n"
    if table.remark:
        yield f"<p>{_escape(table.remark)}</p>\n"


def _format_cell(cell: Cell) -> str:
    if not isinstance(cell, tuple) or len(cell) < 4:
        return _escape(shorten_cell(cell))
    names = _escape(shorten_cell(cell, _MOST_OPENED))
    return f"<details><summary>{_escape(shorten_cell(cell, 1))}</summary>{names}</details>"


def _escape(text: str) -> str:
    return escape_html(shorten_words(text))
