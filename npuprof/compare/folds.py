"""What all formats of changes share: merging, sentences, causes, counts, commit subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from npuprof.compare.changes import Change
from npuprof.compare.preset_states import Pair
from npuprof.compare.survey import Survey
from npuprof.document import keys
from npuprof.model import SEVERITIES, TYPE_CHECKING, Record, select_errors
from npuprof.report.text import count_rest, escape_controls, format_count
from npuprof.system import group_pairs

if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.accepted import Accepted

#: Verbs for a preset with a new finding, by severity.
_VERBS = {"error": "breaks", "warning": "warns", "info": "notes"}


class Fold(Record):
    """A change with one cause, and the presets it affects."""

    change: Change
    presets: tuple[str, ...]


def identify_change(change: Change) -> str:
    """Return the identity of a change and its cause."""
    revisions = [origin.revision if origin else None for origin in change.origins]
    return f"{identify_lasting_change(change)} {revisions}"


def identify_lasting_change(change: Change) -> str:
    """Return the identity of a change without revisions.

    Presets are compared with their own revisions by it.
    """
    origins = (
        (origin.file, origin.path, origin.layer) if origin else ()
        for origin in (*change.origins, change.extends)
    )
    # repr tells 1 from True and 1.0, and values may be lists, which have no hash
    return repr((change.key, change.scope, change.kind, change.before, change.after, *origins))


def fold_changes(
    pairs: Iterable[Pair], identify: Callable[[Change], str] = identify_change
) -> list[Fold]:
    """Return the changes of presets on both sides, merging equal changes with the same cause.

    Those of most presets come first. ``identify`` returns what equal changes share, if they may
    differ in revisions.
    """
    equal = group_pairs(
        (identify(change), (change, pair.name))
        for pair in pairs
        # new and removed presets differ in all settings, which have no common cause
        if pair.status == "changed"
        for change in pair.changes
    )
    folds = [Fold(found[0][0], tuple(name for _, name in found)) for found in equal.values()]
    return sorted(folds, key=lambda fold: -len(fold.presets))


def fold_shared_changes(
    pairs: Iterable[Pair], identify: Callable[[Change], str] = identify_change
) -> tuple[list[Fold], set[str]]:
    """Return the changes that several presets share, and their identities."""
    wide = [fold for fold in fold_changes(pairs, identify) if len(fold.presets) > 1]
    return wide, {identify(fold.change) for fold in wide}


def group_shared_verdicts(verdicts: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the verdicts that several presets share, with these presets.

    ``verdicts`` are those of each preset.
    """
    names = group_pairs((line, name) for name, lines in verdicts.items() for line in lines)
    return {line: tuple(several) for line, several in names.items() if len(several) > 1}


def format_change_value(change: Change, side: Any) -> str:
    """Return one side of a change with its unit."""
    text = keys.format_toml_value(side)
    has_unit = change.unit and not isinstance(side, (str, bool, list, dict))
    return f"{text} {change.unit}" if has_unit else text


def format_change_sentence(change: Change) -> str:
    """Return a change without sign and cause: ``hccl_timeout 1800 → 600 s``."""
    scope = f"({change.scope}) " if change.scope else ""
    if change.kind != "changed":
        value = change.after if change.kind == "added" else change.before
        return f"{scope}{change.key} {format_change_value(change, value)}"
    return (
        f"{scope}{change.key} {keys.format_toml_value(change.before)} → "
        f"{format_change_value(change, change.after)}"
    )


def format_moved_origin(was: str, now: str) -> str:
    """Return the lines that an edited ``extends`` adds and removes; empty strings are omitted."""
    if was and now:
        return f"{now} in place of {was}"
    return f"adds {now}" if now else f"removes {was}"


def format_change_cause(change: Change) -> str:
    """Return the cause of a change, with the other side's line if it differs."""
    was, now = change.origins
    before, after = str(was or ""), str(now or "")
    if change.extends:
        return f"via {change.extends}: {format_moved_origin(before, after)}"
    if now is None:
        return f"was set by {before}" if before else ""
    verb = "unset by" if change.kind == "removed" and now.layer == "unset" else "via"
    return f"{verb} {after}" + (f", before {before}" if before not in ("", after) else "")


def format_pair_headline(pair: Pair) -> str:
    """Return the status of a whole preset in a few words."""
    parts = []
    if pair.was:
        parts.append(f"renamed from {escape_controls(pair.was)}")
    if pair.status in ("added", "removed"):
        parts.append("new" if pair.status == "added" else "removed")
        if pair.changes:
            parts.append(format_count(len(pair.changes), "setting"))
    was_valid, is_valid = pair.valid
    if pair.unavailable:
        parts.append("unknown here")
    elif is_valid is False and was_valid is not False:
        parts.append("INVALID NOW" if was_valid else "invalid")
    elif was_valid is False and is_valid:
        parts.append("valid again")
    elif select_errors(pair.broken):
        parts.append("more errors")
    return ", ".join(parts)


def format_pair_verdicts(pair: Pair) -> list[str]:
    """Return a line for each new and each fixed error and warning; an accepted one is not fixed."""
    lines = []
    for finding in sorted(pair.broken, key=lambda finding: SEVERITIES.index(finding.severity)):
        location = f" ({finding.place})" if finding.place else ""
        lines.append(f"{_VERBS[finding.severity]} {finding.code}: {finding.message}{location}")
    accepted = {(known.finding.code, known.finding.key) for known in pair.accepted}
    # an accepted finding is still there
    fixed = [finding for finding in pair.fixed if (finding.code, finding.key) not in accepted]
    return lines + [f"no longer {finding.code}: {finding.message}" for finding in fixed]


def list_accepted(pairs: Iterable[Pair]) -> list[tuple[str, Accepted]]:
    """Return the newly accepted findings, each with its preset, those about execution first."""
    listed = [(pair.name, accepted) for pair in pairs for accepted in pair.accepted]
    return sorted(listed, key=lambda entry: (entry[1].order, entry[0]))


def format_accepted(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    """Return a line for each newly accepted finding, with its presets."""
    return group_pairs(
        (
            f"accepts {accepted.finding.code}: {accepted.finding.message} "
            f"({accepted.finding.place}); reason: {accepted.ignore.reason} "
            f"({accepted.ignore.origin})",
            name,
        )
        for name, accepted in list_accepted(pairs)
    )


def list_presets(names: Sequence[str]) -> str:
    """Return the first names of presets, with the number of further ones."""
    return count_rest(names, 10)


def format_survey_totals(survey: Survey) -> str:
    """Return the counts: ``12 presets differ, 988 do not; invalid now: leaf``."""
    touched = survey.touched_pairs
    number = len(survey.different_pairs)
    unknown = [pair.name for pair in survey.unknown_pairs]
    rest = len(survey.pairs) - number - len(unknown)
    differ = "differs" if number == 1 else "differ"
    do = "does" if rest == 1 else "do"
    parts = [f"{format_count(number, 'preset')} {differ}, {rest} {do} not"]
    states = {
        "invalid now": [
            pair.name for pair in touched if pair.valid[1] is False and pair.valid[0] is not False
        ],
        "unknown here": unknown,
        "valid again": [pair.name for pair in touched if pair.valid == (False, True)],
    }
    parts += [f"{state}: {list_presets(names)}" for state, names in states.items() if names]
    return "; ".join(parts)


#: The maximum number of characters of a commit subject.
_WIDTH = 72


def write_headline(survey: Survey, names: Sequence[str]) -> str:
    """Return a summary of a survey of at most 72 characters, as a commit subject."""
    touched = survey.touched_pairs
    line = "; ".join(_list_changes(touched))
    # a list of changes that does not fit is counted instead of cut
    if line and len(line) <= _WIDTH:
        return line
    settings = {change.setting or change.key for pair in touched for change in pair.changes}
    if settings:
        return (
            f"Change {format_count(len(settings), 'setting')} in "
            f"{format_count(len(touched), 'preset')}"
        )
    if any(name.endswith("npuprof.lock") for name in names):
        return "Lock sources"
    line = f"Reword {', '.join(names)}"
    return line if len(line) <= _WIDTH else f"Reword {format_count(len(names), 'preset')}"


def _list_changes(touched: Sequence[Pair]) -> list[str]:
    """Return status changes of whole presets, then each change with its presets."""
    whole = {
        "Add": [pair.name for pair in touched if pair.status == "added"],
        "Remove": [pair.name for pair in touched if pair.status == "removed"],
        "Mend": [pair.name for pair in touched if pair.valid == (False, True) and not pair.changes],
    }
    changes = [f"{verb} {', '.join(names)}" for verb, names in whole.items() if names]
    changes += [f"Rename {pair.was} to {pair.name}" for pair in touched if pair.was]
    for fold in fold_changes(touched):
        reach = fold.presets[0] if len(fold.presets) == 1 else f"{len(fold.presets)} presets"
        sign = "" if fold.change.kind == "changed" else f"{fold.change.sign} "
        changes.append(f"{reach}: {sign}{format_change_sentence(fold.change)}")
    return changes
