"""What scripts set under a condition alone, as mix-ins: one for each distinct group of settings that some test switches on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from npuprof.model import Record
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.preset_text import describe_notes
from npuprof.scripts.sharing import Pair, list_pairs

_MOST_LISTED = 20


class Switch(Record):
    """Settings that hold under a condition: ``facts`` by full key, and the first of the lines that each condition has in each script.

    ``left`` is what the same conditions switch on with a value that depends on the run.
    """

    facts: dict[str, Any]
    notes: tuple[Note, ...]
    left: tuple[Note, ...] = ()

    @property
    def condition(self) -> str:
        """The test as the first script has it."""
        return self.notes[0].condition


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
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    listed = [f"{place}: if {note.condition}" for place, note in zip(places, switch.notes, strict=True)][:_MOST_LISTED]
    if len(places) > _MOST_LISTED:
        listed.append(f"and {len(places) - _MOST_LISTED} more")
    left = describe_notes(switch.left, _MOST_LISTED, cite)
    return f"if {switch.condition} in {places[0]}{more}: laid over a preset with --with", ["", "Switched on in:", *listed, *left]


def describe_switched(notes: Sequence[Note], names: dict[int, str], cite: Callable[[str], str]) -> list[str]:
    """Return which mix-ins stand for what a script sets under conditions, as comments; ``names`` by a group's first note."""
    lines = [
        f"{cite(group[0].found.file)}:{group[0].found.line}: if {group[0].condition}: --with {names[id(group[0])]}"
        for group in group_switched(notes).values()
    ]
    if not lines:
        return []
    rest = [f"and {len(lines) - _MOST_LISTED} more"] if len(lines) > _MOST_LISTED else []
    return ["", "Under a condition:", *lines[:_MOST_LISTED], *rest]
