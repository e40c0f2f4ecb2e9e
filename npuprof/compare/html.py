"""Changes as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

from npuprof.compare.changes import Change
from npuprof.compare.folds import (
    fold_changes,
    format_change_cause,
    format_change_sentence,
    format_pair_headline,
    format_pair_verdicts,
    format_survey_totals,
    identify_change,
)
from npuprof.report.html import escape_html, format_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.survey import Survey

_CLASSES = {"breaks": "bad", "warns": "doubtful"}
_HEAD = "<tr><th></th><th>change</th><th>risk</th><th>cause</th><th>presets</th></tr>\n"


def format_survey_html(survey: Survey) -> str:
    """Return a survey as an HTML document."""
    out = [f"<p>{escape_html(format_survey_totals(survey))}</p>\n"]
    touched = survey.touched_pairs
    wide = [fold for fold in fold_changes(touched) if len(fold.presets) > 1]
    if wide:
        out.append(f"<h2>In several presets</h2>\n<table>\n{_HEAD}")
        for fold in wide:
            names = escape_html(", ".join(fold.presets))
            out.append(_format_html_row(fold.change, f"<details><summary>{len(fold.presets)}</summary>{names}</details>"))
        out.append("</table>\n")
    shared = {identify_change(fold.change) for fold in wide}
    for pair in touched:
        own = [change for change in pair.changes if identify_change(change) not in shared]
        said, judged = format_pair_headline(pair), format_pair_verdicts(pair)
        if not (own or said or judged):
            continue
        out.append(f"<h2>{escape_html(pair.name)}</h2>\n")
        if said:
            out.append(f"<p>{escape_html(said)}</p>\n")
        if own:
            out.append(f"<table>\n{_HEAD}")
            out += [_format_html_row(change, "") for change in own]
            out.append("</table>\n")
        for line in judged:
            kind = _CLASSES.get(line.partition(" ")[0], "good")
            out.append(f'<p class="{kind}">{escape_html(line)}</p>\n')
    return format_page(f"Presets: {survey.before} → {survey.after}", "".join(out))


def _format_html_row(change: Change, presets: str) -> str:
    cells = (change.sign, format_change_sentence(change), ", ".join(change.risk), format_change_cause(change))
    shown = [escape_html(cell) for cell in cells]
    return (
        f'<tr class="{change.kind}"><td><code>{shown[0]}</code></td><td><code>{shown[1]}</code></td>'
        f"<td>{shown[2]}</td><td>{shown[3]}</td><td>{presets}</td></tr>\n"
    )
