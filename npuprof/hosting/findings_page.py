"""Findings as HTML: a list for pages, and a self-contained page with a filter and the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from npuprof.catalog.code_pages import load_pages
from npuprof.model import SEVERITIES, Finding
from npuprof.report.findings import build_hint, mark_likely, mark_source_line, split_lines
from npuprof.report.html import escape_html, format_page
from npuprof.system import group_pairs

#: The length of a source line that fits a phone; longer ones scroll, also by keyboard.
_FITTING = 36


def format_findings_page(findings: Sequence[Finding], summary: str) -> str:
    """Return a page of findings by file, with the texts of their rules below ``summary``."""
    by_file = group_pairs((finding.path or "Other", finding) for finding in findings)
    sections = (
        f'<section><h2>{escape_html(path)} <span class="total">{len(found)}</span></h2>\n'
        f"{format_finding_list(found, '#')}</section>\n"
        for path, found in by_file.items()
    )
    codes = sorted({finding.code for finding in findings})
    rules = "".join(
        f'<section id="{page.code}"><h3>{page.code}: {escape_html(page.title)}</h3>\n'
        f"<p>{escape_html(page.why)}<br><b>Try:</b> {escape_html(page.fix)}</p></section>\n"
        for page in load_pages().values()
        if page.code in codes
    )
    return format_page(
        "Findings",
        f'<p class="lead">{escape_html(summary)}</p>\n'
        '<form class="search" hidden><label>Search <input type="search"></label>\n'
        f"{_format_choice('severity', SEVERITIES)}{_format_choice('code', codes)}"
        '<output aria-live="polite"></output></form>\n'
        + "".join(sections)
        + (f"<h2>Rules</h2>\n{rules}" if rules else ""),
        script="findings.js",
    )


def _format_choice(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape_html(value)}</option>" for value in values)
    return (
        f'<label>{name.capitalize()} <select name="{name}"><option value="">all</option>'
        f"{options}</select></label>\n"
    )


def format_finding_list(findings: Iterable[Finding], rules: str) -> str:
    """Return findings as a list; ``rules`` is the address of the rules' texts up to a code."""
    split_lines.cache_clear()  # files may have changed
    return f'<ul class="findings">\n{"".join(_format_item(one, rules) for one in findings)}</ul>\n'


def _format_item(finding: Finding, rules: str) -> str:
    code = escape_html(finding.code)
    # a team's rule has no page
    link = f'<a href="{rules}{code}">{code}</a>' if finding.code in load_pages() else code
    parts = [
        f"<strong>{finding.severity} {link}</strong> "
        f"{escape_html(mark_likely(finding.message, finding.certainty))}"
    ]
    if finding.place:
        parts.append(f' <code class="path">{escape_html(finding.place)}</code>')
    if lines := mark_source_line(finding):
        focus = ' tabindex="0"' if len(lines[0]) > _FITTING else ""
        text, below = map(escape_html, lines)
        parts.append(f"<pre{focus}><code>{text}\n{below.replace('^', '<b>^</b>')}</code></pre>")
    if finding.why:
        parts.append(f"<div>{escape_html(finding.why)}</div>")
    if hint := build_hint(finding):
        parts.append(f"<div><b>Try:</b> {escape_html(hint)}</div>")
    return f'<li class="{finding.severity}" data-code="{code}">{"".join(parts)}</li>\n'
