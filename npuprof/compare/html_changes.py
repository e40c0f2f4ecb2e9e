"""Changes as HTML: a self-contained page, and a table for notebooks."""

from __future__ import annotations

from npuprof.compare.changes import Change
from npuprof.compare.folds import (
    fold_shared_changes,
    format_accepted,
    format_change_cause,
    format_change_sentence,
    format_pair_headline,
    format_pair_verdicts,
    format_survey_totals,
    identify_change,
)
from npuprof.compare.survey import Survey
from npuprof.report.html import escape_html, fold_long_text, format_notebook_table, format_page
from npuprof.report.tables import Table
from npuprof.report.text import Code, Markup, format_count

_CLASSES = {"breaks": "bad", "warns": "doubtful"}
_COLUMNS = ("change", "risk", "cause")


def format_survey_html(survey: Survey) -> str:
    """Return a survey as an HTML document."""
    out = [f"<p>{escape_html(format_survey_totals(survey))}</p>\n"]
    touched = survey.touched_pairs
    for line, names in format_accepted(touched).items():
        out.append(
            f'<p class="doubtful">{escape_html(line)}: {escape_html(", ".join(names))}</p>\n'
        )
    wide, shared = fold_shared_changes(touched)
    if wide:
        rows = [
            (
                *_list_cells(fold.change),
                Markup(
                    f"<details><summary>{len(fold.presets)}</summary>"
                    f"{escape_html(', '.join(fold.presets))}</details>"
                ),
            )
            for fold in wide
        ]
        out.append("<h2>In several presets</h2>\n")
        out.append(
            Table(rows, header=(*_COLUMNS, "presets")).format_html(
                "Changes of several presets", [fold.change.kind for fold in wide]
            )
        )
    for pair in touched:
        own = [change for change in pair.changes if identify_change(change) not in shared]
        headline = format_pair_headline(pair)
        verdicts = format_pair_verdicts(pair)
        if not (own or headline or verdicts):
            continue
        out.append(f"<h2>{escape_html(pair.name)}</h2>\n")
        if headline:
            out.append(f"<p>{escape_html(headline)}</p>\n")
        if own:
            table = Table([*map(_list_cells, own)], header=_COLUMNS)
            out.append(
                table.format_html(f"Changes of {pair.name}", [change.kind for change in own])
            )
        for line in verdicts:
            kind = _CLASSES.get(line.partition(" ")[0], "good")
            out.append(f'<p class="{kind}">{escape_html(line)}</p>\n')
    if survey.outputs:
        out.append(f"<p>outputs: {escape_html(', '.join(survey.outputs))}</p>\n")
    return format_page(f"Presets: {survey.before} → {survey.after}", "".join(out))


def _list_cells(change: Change) -> tuple[str, ...]:
    return (
        Code(f"{change.sign} {format_change_sentence(change)}"),
        ", ".join(change.risk),
        format_change_cause(change),
    )


class Changes(list[Change]):
    """The changes from one config to another: a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        """Return a table: before, after, what the changes may affect, and their cause."""
        rows = [
            (
                Code(change.sign),
                fold_long_text(format_change_sentence(change)),
                ", ".join(change.risk),
                format_change_cause(change),
            )
            for change in self
        ]
        if not rows:
            return "<p>no difference</p>"
        return format_notebook_table(format_count(len(rows), "change"), [], ("", *_COLUMNS), rows)
