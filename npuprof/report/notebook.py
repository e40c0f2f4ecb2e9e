"""Tables as a notebook shows them: without script, style sheet or colour of their own.

A notebook gives its tables the colours of its theme, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.report.html import escape_html

_LEFT = ' style="text-align: left"'
#: A value that is longer is folded.
_LONGEST = 120


def format_long(text: str) -> str:
    """Return a text as code, folded if it is long."""
    if len(text) <= _LONGEST:
        return format_code(text)
    return f"<details><summary>{format_code(text[:_LONGEST] + '…')}</summary>{format_code(text)}</details>"


def format_code(text: str) -> str:
    """Return a text as code."""
    return f"<code>{escape_html(text)}</code>"


def format_table(title: str, lines_above: Iterable[str], head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table with a title and lines of text above it. The cells are HTML, the rest is text."""
    lines = [f"<p><strong>{escape_html(title)}</strong></p>"]
    lines += [f"<p>{escape_html(line)}</p>" for line in lines_above if line]
    lines += ["<table>", "<thead><tr>" + "".join(f'<th scope="col"{_LEFT}>{name}</th>' for name in head) + "</tr></thead>", "<tbody>"]
    lines += ["<tr>" + "".join(f"<td{_LEFT}>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>", ""])
