"""What differs between two configs, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_cause, format_change_sentence
from npuprof.report.html import fold_long_text, format_notebook_table
from npuprof.report.text import Code, format_count


class Changes(list[Change]):
    """The changes from one config to another: a list, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return format_changes_html(self)


def format_changes_html(changes: Iterable[Change]) -> str:
    """Return changes as a table: what was and is, what it puts at risk, and who brought it about."""
    rows = [
        (Code(change.sign), fold_long_text(format_change_sentence(change)), ", ".join(change.risk), format_change_cause(change))
        for change in changes
    ]
    if not rows:
        return "<p>no difference</p>"
    return format_notebook_table(format_count(len(rows), "change"), [], ("", "change", "risk", "cause"), rows)
