"""What a commit of presets says of itself, made from what it changes."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.folds import fold_changes, format_change_sentence
from npuprof.report.text import format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.compare import pairs, survey

_WIDTH = 72


def write_headline(changed: survey.Survey, names: Sequence[str]) -> str:
    """Return one line of at most 72 characters that says what a survey found in files of presets of those names."""
    touched = changed.touched_pairs
    line = "; ".join(_list_changes(touched))
    if line and len(line) <= _WIDTH:
        return line
    settings = {change.setting or change.key for pair in touched for change in pair.changes}
    if settings:
        return f"Change {format_count(len(settings), 'setting')} in {format_count(len(touched), 'preset')}"
    if any(name.endswith("npuprof.lock") for name in names):
        return "Lock sources"
    line = f"Reword {', '.join(names)}"
    return line if len(line) <= _WIDTH else f"Reword {format_count(len(names), 'preset')}"


def _list_changes(touched: Sequence[pairs.Pair]) -> list[str]:
    """Return what happened to presets as a whole, then each change with the presets that it reaches."""
    changes = []
    for verb, status in (("Add", "added"), ("Remove", "removed")):
        if listed := ", ".join(pair.name for pair in touched if pair.status == status):
            changes.append(f"{verb} {listed}")
    if fixed := ", ".join(pair.name for pair in touched if pair.valid == (False, True) and not pair.changes):
        changes.append(f"Mend {fixed}")
    changes += [f"Rename {pair.was} to {pair.name}" for pair in touched if pair.was]
    for fold in fold_changes(touched):
        reach = fold.presets[0] if len(fold.presets) == 1 else f"{len(fold.presets)} presets"
        changes.append(f"{reach}: {fold.change.sign + ' ' if fold.change.kind != 'changed' else ''}{format_change_sentence(fold.change)}")
    return changes
