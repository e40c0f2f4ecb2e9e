"""Changes as markdown for a pull-request comment: full where it fits, then folded, then counts."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    from npuprof.compare.survey import Pair, Survey

#: GitHub takes 65,536 characters in a comment; some room is left for a heading above.
COMMENT_LIMIT = 60_000
_PIPE = re.compile(r"(?<!\\)(\\*)\|")
_HEAD = "| | change | risk | cause |\n|---|---|---|---|\n"


def format_survey_markdown(survey: Survey, limit: int = COMMENT_LIMIT) -> str:
    """Return a survey as markdown of at most ``limit`` characters."""
    for form in (_format_full_markdown, _format_folded_markdown, _format_key_counts):
        found = form(survey)
        if len(found) <= limit:
            return found
    counts = format_survey_totals(survey).partition(";")[0]
    return f"### Presets\n\n{counts}\n\n(more than a comment can hold: run `npuprof diff` to see it)\n"


def format_code_span(text: str, in_table: bool = True) -> str:
    """Return text as a code span, in which nothing is a link, a mention or a mark; it may stand in a table cell."""
    shown = escape_controls(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    span = f"{ticks}{pad}{shown}{pad}{ticks}"
    return _PIPE.sub(_escape_pipe, span) if in_table else span


def _escape_pipe(found: re.Match[str]) -> str:
    """Return a pipe that ends no cell, whatever stands before it: backslashes escape each other there, so an odd number."""
    before: str = found[1]
    return before + ("\\" if len(before) % 2 == 0 else "\\\\") + "|"


def format_change_table(changes: Sequence[Change]) -> str:
    """Return changes as a table: sign, change, risk, cause."""
    return _HEAD + "".join(map(_format_markdown_row, changes))


def _format_listed_span(text: str) -> str:
    return format_code_span(text, in_table=False)


def _format_markdown_title(survey: Survey) -> str:
    sides = f"{_format_listed_span(survey.before)} → {_format_listed_span(survey.after)}"
    return f"### Presets: {sides}\n\n{format_survey_totals(survey, _format_listed_span)}\n"


def _format_markdown_row(change: Change) -> str:
    said = f"{format_code_span(change.sign)} | {format_code_span(format_change_sentence(change))}"
    cause = format_change_cause(change)
    return f"| {said} | {', '.join(change.risk)} | {format_code_span(cause) if cause else ''} |\n"


def _format_code_list(names: Sequence[str]) -> str:
    return ", ".join(map(_format_listed_span, names))


def _format_verdict_list(pair: Pair) -> str:
    return "".join(f"- {_format_listed_span(line)}\n" for line in format_pair_verdicts(pair))


def _format_full_markdown(survey: Survey) -> str:
    """Every preset with all it has, folded changes named once with their presets."""
    return _format_markdown_body(survey, own=True)


def _format_folded_markdown(survey: Survey) -> str:
    """Folded changes with the number of their presets, verdicts, and no preset's new or removed settings."""
    return _format_markdown_body(survey, own=False)


def _format_markdown_body(survey: Survey, own: bool) -> str:
    touched = survey.touched_pairs
    every = fold_changes(touched)
    wide = [fold for fold in every if len(fold.presets) > 1] if own else every
    out = [_format_markdown_title(survey)]
    if wide:
        out.append("\n" + _HEAD)
        out += [_format_markdown_row(fold.change).replace("| ", f"| **{len(fold.presets)} presets** ", 1) for fold in wide]
        if own:
            out.append("\n<details><summary>which presets</summary>\n\n")
            out += [f"- {_format_listed_span(format_change_sentence(fold.change))}: {_format_code_list(fold.presets)}\n" for fold in wide]
            out.append("\n</details>\n")
    shared = {identify_change(fold.change) for fold in wide}
    for pair in touched:
        left = [change for change in pair.changes if identify_change(change) not in shared] if own else []
        said = format_pair_headline(pair, _format_listed_span)
        judged = _format_verdict_list(pair)
        if not (left or said or judged):
            continue
        out.append(f"\n**{_format_listed_span(pair.name)}**" + (f" ({said})" if said else "") + "\n")
        if left:
            out.append("\n" + _HEAD)
            out += map(_format_markdown_row, left)
        if judged:
            out.append("\n" + judged)
    return "".join(out)


def _format_key_counts(survey: Survey) -> str:
    """Return the number of presets for each key."""
    by_key: dict[str, set[str]] = {}
    for pair in survey.touched_pairs:
        for change in pair.changes if pair.status == "changed" else ():
            by_key.setdefault(change.setting or change.key, set()).add(pair.name)
    out = [_format_markdown_title(survey), "\n| key | presets |\n|---|--:|\n"]
    out += [
        f"| {format_code_span(key)} | {len(names)} |\n" for key, names in sorted(by_key.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return "".join(out)
