"""Changes as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

from html import escape

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
from npuprof.report.text import escape_controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare.survey import Survey

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
td, th { border-bottom: 1px solid #8884; padding: .25rem .5rem; text-align: left; vertical-align: top; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.added td:first-child { color: #1a7f37; } .removed td:first-child { color: #cf222e; } .changed td:first-child { color: #9a6700; }
.bad { color: #cf222e; } .doubtful { color: #9a6700; } .good { color: #1a7f37; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } }
"""
_CLASSES = {"breaks": "bad", "warns": "doubtful"}
_HEAD = "<tr><th></th><th>change</th><th>risk</th><th>cause</th><th>presets</th></tr>\n"


def format_survey_html(survey: Survey) -> str:
    """Return a survey as an HTML document."""
    title = f"Presets: {escape(escape_controls(survey.before))} → {escape(escape_controls(survey.after))}"
    out = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n',
        f"<body>\n<h1>{title}</h1>\n<p>{escape(format_survey_totals(survey))}</p>\n",
    ]
    touched = survey.touched_pairs
    wide = [fold for fold in fold_changes(touched) if len(fold.presets) > 1]
    if wide:
        out.append(f"<h2>In several presets</h2>\n<table>\n{_HEAD}")
        for fold in wide:
            names = escape(escape_controls(", ".join(fold.presets)))
            out.append(_format_html_row(fold.change, f"<details><summary>{len(fold.presets)}</summary>{names}</details>"))
        out.append("</table>\n")
    shared = {identify_change(fold.change) for fold in wide}
    for pair in touched:
        own = [change for change in pair.changes if identify_change(change) not in shared]
        said, judged = format_pair_headline(pair), format_pair_verdicts(pair)
        if not (own or said or judged):
            continue
        out.append(f"<h2>{escape(escape_controls(pair.name))}</h2>\n")
        if said:
            out.append(f"<p>{escape(said)}</p>\n")
        if own:
            out.append(f"<table>\n{_HEAD}")
            out += [_format_html_row(change, "") for change in own]
            out.append("</table>\n")
        for line in judged:
            kind = _CLASSES.get(line.partition(" ")[0], "good")
            out.append(f'<p class="{kind}">{escape(escape_controls(line))}</p>\n')
    out.append("</body>\n</html>\n")
    return "".join(out)


def _format_html_row(change: Change, presets: str) -> str:
    cells = (change.sign, format_change_sentence(change), ", ".join(change.risk), format_change_cause(change))
    shown = [escape(escape_controls(cell)) for cell in cells]
    return (
        f'<tr class="{change.kind}"><td><code>{shown[0]}</code></td><td><code>{shown[1]}</code></td>'
        f"<td>{shown[2]}</td><td>{shown[3]}</td><td>{presets}</td></tr>\n"
    )
