"""HTML that a site contains thousands of times, formatted without a template.

Examples are paths, origins, and rows of settings. Every value goes through ``escape_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from npuprof.model import Origin, Record
from npuprof.report.text import escape_lines
from npuprof.site.catalogue import find_parts, find_record
from npuprof.site.setting_rows import Setting, SettingRow

#: Texts of at most this many characters are on many pages, so each is escaped once.
_SHORT = 200


def show_value(value: Any) -> Any:
    """Return a value for a template: invisible characters made visible, short texts escaped.

    Markup unchanged.
    """
    if type(value) not in (str, Origin):
        return value
    text = str(value)
    return escape_text(text) if len(text) <= _SHORT else escape_lines(text)


@lru_cache(16384)
def escape_text(text: str) -> Markup:
    """Return a text as a template writes it: escaped, with invisible characters made visible."""
    return escape(escape_lines(text))


def mark_markup(text: str) -> Markup:
    """Return an escaped text as markup."""
    return Markup(text)  # noqa: S704 - its values went through escape_text


@lru_cache(16384)
def format_path(path: str, separator: str = "/") -> str:
    """Return a path that wraps only after its separators."""
    # a NUL is in no escaped text
    parts = escape_lines(path).replace(separator, f"{separator}\0").split("\0")
    return "".join(f"<span>{escape_text(part)}</span>" for part in parts if part)


class Links(Record):
    """The links of a page: to presets, and to the lines in the repository that set values."""

    preset: Callable[[str], str]
    line: Callable[[Origin], str]


def format_author(links: Links, origin: Origin, part: str = "") -> str:
    """Return the preset, file and line that set a value."""
    elements = f' <span class="quiet">{escape_text(part)}</span>' if part else ""
    return (
        f'<span class="by"><b>{links.preset(origin.profile)}</b>{elements} '
        f"{format_source(links, origin)}</span>"
    )


def format_source(links: Links, origin: Origin, text: str = "") -> str:
    """Return file and line of an origin, or another text, linked if the repository is known."""
    code = f'<code class="path">{format_path(text or str(origin))}</code>'
    address = links.line(origin)
    return f'<a href="{escape_text(address)}">{code}</a>' if address else code


def format_setting_rows(settings: Iterable[Setting], links: Links, up: str) -> str:
    """Return the table rows of settings.

    ``up`` is the path to the top of the site, for which ``links`` write a NUL.
    """
    for setting in settings:
        if not setting.html:
            # most presets inherit most settings, so that each is formatted once
            setting.html = "".join([_format_row(row, links) for row in setting.rows])
    return "".join([setting.html for setting in settings]).replace("\0", up)


def _format_row(row: SettingRow, links: Links) -> str:
    authors = "".join([format_author(links, origin, part) for origin, part in row.authors])
    losers = [
        (
            f'<span class="over"><del><code>{escape_text(old)}</code></del> '
            f"{format_author(links, by)}</span>"
        )
        for old, by in row.losers
    ]
    risks = "".join(
        f' <span class="risk {escape_text(risk)}">{escape_text(risk)}</span>' for risk in row.risk
    )
    unit = f" {escape_text(row.unit)}" if row.unit else ""
    name = f'<code class="path">{format_path(row.key, ".")}</code>'
    if record := find_record(row.key):
        name = f'<a href="\0{find_parts()[record]}#{quote(record)}">{name}</a>'
    return (
        f'<tr><th scope="row">{name}</th>'
        "<td><code "
        f'class="value">{escape_text(row.value)}</code>{unit}</td>'
        f"<td>{authors}{''.join(losers)}</td>"
        "<td><span "
        f'class="quiet">{escape_text(row.meaning)}</span>{risks}</td></tr>\n'
    )
