"""What differs between two configs, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_cause, format_change_sentence
from npuprof.report.html import escape_html
from npuprof.report.notebook import format_code, format_long, format_table
from npuprof.report.text import format_count


class Changes(list[Change]):
    """The changes from one config to another: a list, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return format_changes_html(self)


def format_changes_html(changes: Iterable[Change]) -> str:
    """Return changes as a table: what was and is, what it puts at risk, and who brought it about."""
    rows = [
        [
            format_code(change.sign),
            format_long(format_change_sentence(change)),
            escape_html(", ".join(change.risk)),
            escape_html(format_change_cause(change)),
        ]
        for change in changes
    ]
    if not rows:
        return "<p>no difference</p>"
    return format_table(format_count(len(rows), "change"), [], ("", "change", "risk", "cause"), rows)
