"""Answers as a self-contained HTML page: no network, and all foreign text escaped.

Pages of a site have the same style.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from npuprof.report.text import Code, Markup, escape_controls

_LEFT = ' style="text-align: left"'
#: Longer values are folded.
_LONGEST = 120


def escape_html(text: str) -> str:
    """Return a text escaped for HTML, with invisible characters made visible."""
    return escape(escape_controls(text))


def read_template(name: str) -> str:
    """Return a file of npuprof's templates: ``page.css`` is the style of every page."""
    from importlib import resources

    return resources.files("npuprof").joinpath("templates", name).read_text(encoding="utf-8")


def _hash_text(text: str) -> str:
    """Return the source of a content security policy that allows only this text."""
    from base64 import b64encode
    from hashlib import sha256

    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def format_html_cell(cell: str) -> str:
    """Return a cell as HTML: ``Markup`` as it is, ``Code`` as code, other text escaped."""
    if isinstance(cell, Markup):
        return cell
    return f"<code>{escape_html(cell)}</code>" if isinstance(cell, Code) else escape_html(cell)


def format_html_table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    kinds: Sequence[str],
    matrix: bool,
) -> str:
    """Return a table; the first cell of a row names it. ``kinds`` are the classes of the rows."""
    body = []
    for index, row in enumerate(rows):
        kind = f' class="{kinds[index]}"' if kinds else ""
        name, *cells = map(format_html_cell, row)
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        body.append(f'<tr{kind}><th scope="row">{name}</th>{data}</tr>\n')
    return frame_html_table(caption, header, "".join(body), "matrix" if matrix else "cards")


def frame_html_table(
    caption: str,
    header: Sequence[str],
    body: str,
    kind: str = "cards",
    widths: Sequence[int] = (),
    mark: str = "",
) -> str:
    """Return a table of rows that are HTML; it scrolls by itself if a page is narrower.

    ``kind`` are its classes: ``matrix`` keeps the first column in sight, ``cards`` has cells below
    each other on a narrow page. ``widths`` are numbers of the style for columns, 0 for what is left
    over; ``mark`` is the id.
    """
    shown = escape_html(caption)
    classes = [f' class="w{width}"' if width else "" for width in widths] or [""] * len(header)
    heads = "".join(
        f'<th scope="col"{width}>{escape_html(name)}</th>'
        for name, width in zip(header, classes, strict=True)
    )
    name = f' id="{mark}"' if mark else ""
    return (
        f'<div class="wide" role="region" aria-label="{shown}" tabindex="0">\n'
        f'<table{name} class="{kind}">\n<caption class="quiet">{shown}</caption>\n'
        + (f"<thead><tr>{heads}</tr></thead>\n" if header else "")
        # as plain text: escaped text would escape what is before it
        + (str(body) if "<tbody>" in body else f"<tbody>\n{body}</tbody>\n")
        + "</table>\n</div>\n"
    )


def format_page(title: str, body: str, script: str = "") -> str:
    """Return a page with a title, given as text, and a body, given as HTML.

    It may load nothing: its style and ``script``, the name of a template, are in it.
    """
    shown = escape_html(title)
    style = f"\n{read_template('page.css')}"
    policy = (
        f"default-src 'none'; style-src {_hash_text(style)}; base-uri 'none'; form-action 'none'"
    )
    if script:
        script = read_template(script)
        policy += f"; script-src {_hash_text(script)}"
        body += f"<script>{script}</script>\n"
    head = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{shown}</title>",
        f"<style>{style}</style>",
        "</head>",
    ]
    return "\n".join(
        [*head, f"<body>\n<main>\n<h1>{shown}</h1>\n{body}</main>\n</body>\n</html>\n"]
    )


def fold_long_text(text: str) -> str:
    """Return the cell of a text as code, folded if it is long."""
    if len(text) <= _LONGEST:
        return Code(text)
    start = format_html_cell(Code(text[:_LONGEST] + "…"))
    full = format_html_cell(Code(text))
    return Markup(f"<details><summary>{start}</summary>{full}</details>")


def format_notebook_table(
    title: str, lines_above: Iterable[str], header: Iterable[str], rows: Iterable[Iterable[str]]
) -> str:
    """Return a table with a title and introductory lines, for notebooks.

    It has no style of its own: notebooks have light and dark themes.
    """
    lines = [f"<p><strong>{escape_html(title)}</strong></p>"]
    lines += [f"<p>{escape_html(line)}</p>" for line in lines_above if line]
    names = "".join(f'<th scope="col"{_LEFT}>{escape_html(name)}</th>' for name in header)
    lines += ["<table>", f"<thead><tr>{names}</tr></thead>", "<tbody>"]
    for row in rows:
        cells = "".join(f"<td{_LEFT}>{format_html_cell(cell)}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>", ""])
