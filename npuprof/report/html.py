"""Answers as one HTML page that needs nothing else: no script, no network, and nothing in it that somebody else wrote as markup."""

from __future__ import annotations

from html import escape

from npuprof.report.text import escape_controls

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
td, th { border-bottom: 1px solid #8884; padding: .25rem .5rem; text-align: left; vertical-align: top; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.added td:first-child { color: #1a7f37; } .removed td:first-child { color: #cf222e; } .changed td:first-child { color: #9a6700; }
.bad { color: #cf222e; } .doubtful { color: #9a6700; } .good { color: #1a7f37; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } }
"""


def escape_html(text: str) -> str:
    """Return a text as a page may show it: no markup, no character that shows nothing by itself."""
    return escape(escape_controls(text))


def format_page(title: str, body: str) -> str:
    """Return a page with a title, given as text, and a body, given as HTML."""
    shown = escape_html(title)
    head = f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n'
    return f"{head}<body>\n<h1>{shown}</h1>\n{body}</body>\n</html>\n"
