"""What a commit of presets says of itself, made from what it changes."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.folds import fold_changes, format_change_sentence
from npuprof.report.text import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare import pairs, survey

_WIDTH = 72


def write_headline(found: survey.Survey, names: Sequence[str]) -> str:
    """Return one line that says what a survey found in files of presets of those names, at most 72 characters long."""
    touched = found.touched_pairs
    for words in _list_candidates(touched):
        line = "; ".join(words)
        if words and len(line) <= _WIDTH:
            return line
    keys = {change.setting or change.key for pair in touched for change in pair.changes}
    if keys:
        return f"Change {format_count(len(keys), 'setting')} in {format_count(len(touched), 'preset')}"
    if any(name.endswith("npuprof.lock") for name in names):
        return "Lock sources"
    line = f"Reword {', '.join(names)}"
    return line if len(line) <= _WIDTH else f"Reword {format_count(len(names), 'preset')}"


def _list_candidates(touched: Sequence[pairs.Pair]) -> list[list[str]]:
    named = {
        verb: ", ".join(pair.name for pair in touched if pair.status == status)
        for verb, status in (("Add", "added"), ("Remove", "removed"))
    }
    whole = [f"{verb} {names}" for verb, names in named.items() if names]
    if mended := ", ".join(pair.name for pair in touched if pair.valid == (False, True) and not pair.changes):
        whole.append(f"Mend {mended}")
    whole += [f"Rename {pair.was} to {pair.name}" for pair in touched if pair.was]
    folded = fold_changes(touched)
    long, short = [], []
    for fold in folded:
        reach = fold.presets[0] if len(fold.presets) == 1 else f"{len(fold.presets)} presets"
        long.append(f"{reach}: {fold.change.sign + ' ' if fold.change.kind != 'changed' else ''}{format_change_sentence(fold.change)}")
        short.append(f"{reach}: {fold.change.key}")
    presets = len({name for fold in folded for name in fold.presets})
    settings = len({fold.change.setting or fold.change.key for fold in folded})
    summed = [f"Change {format_count(settings, 'setting')} in {format_count(presets, 'preset')}"] if len(folded) > 1 else []
    return [whole + long, whole + short, whole + summed]
