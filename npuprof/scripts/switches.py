"""What scripts set under a condition alone, as mix-ins: one for each distinct group of settings that some test switches on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from npuprof.model import Record
from npuprof.report.text import format_count
from npuprof.scripts.draft import Draft, Note, simplify_test
from npuprof.scripts.preset_text import describe_notes
from npuprof.scripts.sharing import Pair, list_pairs
from npuprof.scripts.topics import describe_topics

_MOST_LISTED = 20  #: of what depends on the run
_MOST_CONDITIONS = 2  #: in a description


class Switch(Record):
    """Settings that hold under a condition: ``facts`` by full key, and the first of the lines that each condition has in each script.

    ``left`` is what the same conditions switch on with a value that depends on the run.
    """

    facts: dict[str, Any]
    notes: tuple[Note, ...]
    left: tuple[Note, ...] = ()


def collect_switches(drafts: Iterable[Draft]) -> list[Switch]:
    """Return the groups of settings that some condition switches on, those of most places first."""
    found: dict[frozenset[Pair], tuple[dict[str, Any], list[Note], list[Note]]] = {}
    for draft in drafts:
        for notes in group_switched(draft.notes).values():
            facts = {note.found.key: note.value for note in notes}
            row = found.setdefault(list_pairs(facts), (facts, [], []))
            row[1].append(notes[0])
            row[2].extend(_list_left(draft.notes, notes))
    rows = sorted(found.items(), key=lambda row: (-len(row[1][1]), sorted(row[0])))
    return [Switch(facts, _sort_notes(notes), _sort_notes(left)) for _, (facts, notes, left) in rows]


def _list_left(notes: Sequence[Note], group: Sequence[Note]) -> list[Note]:
    """Return what depends on the run among the notes of a preset, and is set behind the same test as a group of them."""
    first, set_there = group[0].found, {note.found.key for note in group}
    return [
        note
        for note in notes
        if note.found.reason and not note.found.dead and not note.condition and note.found.key not in set_there
        and (note.found.file, note.found.scope, note.found.branches) == (first.file, first.scope, first.branches)
    ]  # fmt: skip


def select_untold(notes: Sequence[Note]) -> list[Note]:
    """Return the notes of a preset that no mix-in for a condition tells."""
    told = {id(note) for group in group_switched(notes).values() for note in (*group, *_list_left(notes, group))}
    return [note for note in notes if id(note) not in told]


def _sort_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(sorted(notes, key=lambda note: (note.found.file, note.found.line)))


def group_switched(notes: Sequence[Note]) -> dict[tuple[str, str, str], list[Note]]:
    """Return the notes on settings whose value is known and that only a condition keeps out: by file, configuration and condition."""
    found: dict[tuple[str, str, str], list[Note]] = {}
    for note in notes:
        if note.condition:
            found.setdefault((note.found.file, note.found.scope, note.condition), []).append(note)
    return found


def describe_switch(switch: Switch, cite: Callable[[str], str]) -> tuple[str, list[str]]:
    """Return what switches a mix-in on, as its description, and where, as comments."""
    places = [f"{cite(note.found.file)}:{note.found.line}" for note in switch.notes]
    listed = [f"{place}: if {simplify_test(note.condition)}" for place, note in zip(places, switch.notes, strict=True)]
    left = describe_notes(switch.left, _MOST_LISTED, cite)
    description = f"{describe_topics(switch.facts.items())} {_describe_conditions(switch)}: laid over a preset with --with"
    return description, ["", "Switched on in:", *listed, *left]


def _describe_conditions(switch: Switch) -> str:
    """Return the tests that switch something on, the commonest first, with the number of scripts where there are several."""
    scripts: dict[str, set[str]] = {}
    for note in switch.notes:
        scripts.setdefault(simplify_test(note.condition), set()).add(note.found.file)
    if len(scripts) == 1:
        return f"if {next(iter(scripts))}"
    order = sorted(scripts, key=lambda condition: -len(scripts[condition]))
    told = [f"if {condition} ({format_count(len(scripts[condition]), 'script')})" for condition in order[:_MOST_CONDITIONS]]
    rest = len(order) - len(told)
    return f"{', '.join(told)} and {rest} more" if rest else " or ".join(told)


def describe_switched(notes: Sequence[Note], names: dict[int, str], cite: Callable[[str], str]) -> list[str]:
    """Return which mix-ins stand for what scripts set under conditions, as comments; ``names`` by a group's first note.

    What is the same in several places is told once: the mix-in lists them all.
    """
    found: dict[str, list[str]] = {}
    for first, *_ in group_switched(notes).values():
        told = f"if {simplify_test(first.condition)}: --with {names[id(first)]}"
        found.setdefault(told, []).append(f"{cite(first.found.file)}:{first.found.line}")
    lines = [f"{places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''}: {told}" for told, places in found.items()]
    return ["", "Under a condition:", *lines] if lines else []
