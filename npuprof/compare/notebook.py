"""A config, and what differs between two, as a notebook shows them: tables without script, style sheet or colour of their own.

A notebook gives its tables the colours of its theme, light or dark; so what is shown here has none.
"""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_cause, format_change_sentence
from npuprof.document import keys
from npuprof.report.html import escape_html
from npuprof.report.text import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

_LEFT = ' style="text-align: left"'
#: A value that is longer is folded.
_LONGEST = 120


class Changes(list[Change]):
    """The changes from one config to another: a list, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return format_changes_html(self)


def format_config_html(config: Config) -> str:
    """Return a config as a table of its settings: value, who set it, and whom that overruled."""
    said = [config.description, _tell_purpose(config), f"digest {config.digest[:12]}, {format_count(len(config), 'setting')}"]
    rows = []
    for key in config:
        winner, *losers = [str(origin) for origin in config.origins(key)] or [""]
        overruled = f"<details><summary>{len(losers)}</summary>{'<br>'.join(map(escape_html, losers))}</details>" if losers else ""
        rows.append([_format_code(key), _format_value(config[key]), escape_html(winner), overruled])
    return _format_table(config.name, said, ("setting", "value", "set by", "overruled"), rows)


def format_changes_html(changes: Iterable[Change]) -> str:
    """Return changes as a table: what was and is, what it puts at risk, and who brought it about."""
    rows = [
        [
            _format_code(one.sign),
            _format_long(format_change_sentence(one)),
            escape_html(", ".join(one.risk)),
            escape_html(format_change_cause(one)),
        ]
        for one in changes
    ]
    if not rows:
        return "<p>no difference</p>"
    return _format_table(format_count(len(rows), "change"), [], ("", "change", "risk", "cause"), rows)


def _tell_purpose(config: Config) -> str:
    asked = config.context
    said = [config.scenario or "", f"CANN {config.cann}" if config.cann else "", ", ".join(config.products)]
    said += [f"resolved for {asked.describe()}" if asked.cann or asked.product else "", f"target {asked.target}" if asked.target else ""]
    return "; ".join(filter(None, said))


def _format_value(value: object) -> str:
    return _format_long(keys.format_toml_value(value))


def _format_long(text: str) -> str:
    if len(text) <= _LONGEST:
        return _format_code(text)
    return f"<details><summary>{_format_code(text[:_LONGEST] + '…')}</summary>{_format_code(text)}</details>"


def _format_code(text: str) -> str:
    return f"<code>{escape_html(text)}</code>"


def _format_table(title: str, said: Iterable[str], head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [f"<p><strong>{escape_html(title)}</strong></p>"]
    lines += [f"<p>{escape_html(line)}</p>" for line in said if line]
    lines += ["<table>", "<thead><tr>" + "".join(f'<th scope="col"{_LEFT}>{name}</th>' for name in head) + "</tr></thead>", "<tbody>"]
    lines += ["<tr>" + "".join(f"<td{_LEFT}>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>", ""])
