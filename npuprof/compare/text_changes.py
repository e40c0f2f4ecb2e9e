"""Changes as text for a terminal or a pipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from npuprof.compare.changes import SIGNS, Change
from npuprof.compare.folds import (
    Fold,
    fold_shared_changes,
    format_accepted,
    format_change_cause,
    format_change_sentence,
    format_pair_headline,
    format_pair_verdicts,
    format_survey_totals,
    group_shared_verdicts,
    identify_change,
    list_presets,
)
from npuprof.compare.preset_states import Pair
from npuprof.compare.survey import Survey
from npuprof.document import keys
from npuprof.report.tables import Table
from npuprof.report.text import escape_controls, paint_text
from npuprof.system import join_lines

_COLOURS = {"+": "32", "-": "31", "~": "33"}
_VERDICT_COLOURS = {"breaks": "31", "warns": "33", "accepts": "33"}


def format_survey_text(survey: Survey, everything: bool = False, coloured: bool = False) -> str:
    """Return a survey as blocks of text.

    These are newly accepted findings, shared changes, each preset's own, headlines, and totals.
    """
    touched = survey.touched_pairs
    shared_changes, known = fold_shared_changes(touched)
    verdicts = {pair.name: format_pair_verdicts(pair) for pair in touched}
    shared_verdicts = group_shared_verdicts(verdicts)
    accepted = []
    for verdict, names in format_accepted(touched).items():
        accepted += format_verdict_lines([verdict], "", coloured)
        accepted.append(f"    in {list_presets(names)}")
    blocks = [accepted, *_format_shared(shared_changes, shared_verdicts, coloured)]
    headlines = []
    alike = defaultdict(list)  # presets with shared verdicts, by their headline
    for pair in touched:
        own = [
            change
            for change in pair.changes
            # shared changes are printed once, above
            if (identify_change(change) not in known if pair.status == "changed" else everything)
        ]
        own_verdicts = [line for line in verdicts[pair.name] if line not in shared_verdicts]
        title = format_pair_headline(pair)
        headline = paint_text(escape_controls(pair.name), "1", coloured)
        if title:
            headline += f" ({title})"
        if own or own_verdicts:
            block = [headline]
            for change in own:
                block += format_change_lines(change, "  ", coloured)
            blocks.append(block + format_verdict_lines(own_verdicts, "  ", coloured))
        elif title and verdicts[pair.name]:
            alike[title].append(pair.name)
        elif title:
            headlines.append(headline)
    headlines += [f"{title}: {list_presets(names)}" for title, names in alike.items()]
    unchanged = [
        f"{escape_controls(pair.name)}: unchanged"
        for pair in survey.pairs
        if everything and not pair.is_touched
    ]
    outputs = [f"output {escape_controls(output)}" for output in survey.outputs]
    blocks += [headlines, unchanged, outputs, [format_survey_totals(survey)]]
    return "\n".join(join_lines(block) for block in blocks if block)


def _format_shared(
    folds: Sequence[Fold], verdicts: Mapping[str, tuple[str, ...]], coloured: bool
) -> list[list[str]]:
    """Return a block of lines for each group of presets that share changes or verdicts."""
    blocks = defaultdict(list)
    for fold in folds:
        blocks[fold.presets].extend(
            format_change_lines(fold.change, "", coloured, len(fold.presets))
        )
    for line, presets in verdicts.items():
        blocks[presets].extend(format_verdict_lines([line], "", coloured))
    return [[*lines, f"    in {list_presets(presets)}"] for presets, lines in blocks.items()]


def format_pair_text(pair: Pair, everything: bool = False, coloured: bool = False) -> str:
    """Return the differences of two presets as text; with ``everything``, also the equal values."""
    out = [line for change in pair.changes for line in format_change_lines(change, "", coloured)]
    verdicts = format_verdict_lines(
        [*format_accepted([pair]), *format_pair_verdicts(pair)], "", coloured
    )
    out += ["", *verdicts] if out and verdicts else verdicts
    if everything and pair.before and pair.after:
        different = {change.setting for change in pair.changes}
        out += [
            f"  {escape_controls(key)} = {escape_controls(keys.format_toml_value(value))}"
            for key, value in pair.after.ordered_settings().items()
            if key not in different
        ]
    return join_lines(out)


def format_survey_stat(survey: Survey) -> str:
    """Return the number of changes of each preset that differs, and the sum."""
    rows = []
    for pair in survey.touched_pairs:
        signs = [change.sign for change in pair.changes]
        counts = [f"{signs.count(sign)}{sign}" for sign in "+-~"]
        rows.append((pair.name, f"| {' '.join(counts)}", format_pair_headline(pair)))
    return f"{Table(rows, gaps=(1,)).format_plain()}{format_survey_totals(survey)}\n"


def format_verdict_lines(verdicts: Iterable[str], indent: str, coloured: bool) -> list[str]:
    """Return the lines for new, fixed and accepted findings."""
    return [
        indent
        + paint_text(
            f"! {escape_controls(verdict)}",
            _VERDICT_COLOURS.get(verdict.partition(" ")[0], "32"),
            coloured,
        )
        for verdict in verdicts
    ]


def format_change_lines(
    change: Change, indent: str, coloured: bool = False, presets: int = 0
) -> list[str]:
    """Return a change as lines of text: sign, key, old and new, risk, cause.

    Then the changes inside a list.
    """
    reach = f"{presets} presets: " if presets else ""
    risk = f"  [{', '.join(change.risk)}]" if change.risk else ""
    cause = escape_controls(format_change_cause(change))
    head = paint_text(
        f"{change.sign} {reach}{escape_controls(format_change_sentence(change))}",
        _COLOURS[change.sign],
        coloured,
    )
    line = f"{indent}{head}{risk}"
    if cause:
        line += f"  {paint_text(cause, '2', coloured)}"
    lines = [line]
    # In a short list, the difference is seen in the line itself.
    if change.has_lists and len(keys.format_toml_value(change.after)) > 60:
        for inner in change.compare_elements():
            index = escape_controls(inner.index)
            # the added or removed element, or the element before and after
            sides = (side for side in (inner.before, inner.after) if side is not None)
            shown = escape_controls(" → ".join(map(keys.format_toml_value, sides)))
            lines.append(f"{indent}    {SIGNS[inner.kind]} {index} {shown}")
    return lines
