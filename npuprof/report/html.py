"""Answers as one HTML page that needs nothing else: no script, no network, and nothing in it that somebody else wrote as markup.

The pages of a site have the same style.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from npuprof.report.text import escape_controls


def escape_html(text: str) -> str:
    """Return a text as a page may show it: no markup, no character that shows nothing by itself."""
    return escape(escape_controls(text))


def read_style() -> str:
    """Return the style of every page that npuprof writes."""
    from importlib import resources

    return resources.files("npuprof").joinpath("templates", "page.css").read_text(encoding="utf-8")


def format_html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str] = (), matrix: bool = False
) -> str:
    """Return a table that scrolls by itself where a page is narrower; the cells are HTML, the first of a row names it.

    ``kinds`` are the classes of the rows. A matrix keeps its first column in sight; any other table stands cell below cell on a
    narrow page.
    """
    shown = escape_html(caption)
    out = [f'<div class="wide" role="region" aria-label="{shown}" tabindex="0">\n<table class="{"matrix" if matrix else "cards"}">\n']
    out.append(f'<caption class="quiet">{shown}</caption>\n')
    if columns:
        names = "".join(f'<th scope="col">{escape_html(name)}</th>' for name in columns)
        out.append(f"<thead><tr>{names}</tr></thead>\n")
    out.append("<tbody>\n")
    for place, (name, *cells) in enumerate(rows):
        kind = f' class="{kinds[place]}"' if kinds else ""
        out.append(f'<tr{kind}><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n')
    return "".join([*out, "</tbody>\n</table>\n</div>\n"])


def format_page(title: str, body: str) -> str:
    """Return a page with a title, given as text, and a body, given as HTML; it may load nothing, and its style is in it."""
    from base64 import b64encode
    from hashlib import sha256

    shown, style = escape_html(title), f"\n{read_style()}"
    policy = (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'; base-uri 'none'; form-action 'none'"
    )
    head = [
        '<!DOCTYPE html>', '<html lang="en">', '<head>', '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">', f"<title>{shown}</title>", f"<style>{style}</style>", "</head>",
    ]  # fmt: skip
    return "\n".join([*head, f"<body>\n<main>\n<h1>{shown}</h1>\n{body}</main>\n</body>\n</html>\n"])
