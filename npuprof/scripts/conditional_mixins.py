"""What scripts set under a condition alone, as mix-ins: one for each distinct group of settings that some test switches on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from npuprof.model import Record
from npuprof.report.text import count_rest
from npuprof.scripts.draft import Draft, Note
from npuprof.scripts.grouping import group_by
from npuprof.scripts.sharing import Pair, list_pairs
from npuprof.scripts.topics import describe_topics


class Switch(Record):
    """Settings under a condition: ``facts`` by full key, and the first of the notes that each condition has in each script."""

    facts: dict[str, Any]
    notes: tuple[Note, ...]


def collect_switches(drafts: Iterable[Draft]) -> list[Switch]:
    """Return the groups of settings that some condition switches on, those of most places first."""
    found: dict[frozenset[Pair], tuple[dict[str, Any], list[Note]]] = {}
    for draft in drafts:
        for notes in group_switched(draft.notes).values():
            facts = {note.found.key: note.value for note in notes}
            found.setdefault(list_pairs(facts), (facts, []))[1].append(notes[0])
    rows = sorted(found.items(), key=lambda row: (-len(row[1][1]), sorted(row[0])))
    return [Switch(facts, tuple(sorted(notes, key=lambda note: (note.found.file, note.found.line)))) for _, (facts, notes) in rows]


def group_switched(notes: Sequence[Note]) -> dict[tuple[str, str, str], list[Note]]:
    """Return the notes on settings whose value is known and that only a condition keeps out: by file, configuration and condition."""
    return group_by((note for note in notes if note.condition), lambda note: (note.found.file, note.found.scope, note.condition))


def describe_switch(switch: Switch, cite: Callable[[str], str]) -> tuple[str, list[str]]:
    """Return what switches a mix-in on, as its description, and where, as comments."""
    listed = [f"{cite(note.found.file)}:{note.found.line}: if {note.condition}" for note in switch.notes]
    count = Counter(note.condition for note in switch.notes)
    more = f" and {len(count) - 1} more" if len(count) > 1 else ""
    description = f"{describe_topics(switch.facts.items())} if {count.most_common(1)[0][0]}{more}: laid over a preset with --with"
    return description, ["", "Switched on in:", *listed]


def describe_switched(notes: Sequence[Note], names: dict[int, str], cite: Callable[[str], str]) -> list[str]:
    """Return the mix-ins for what scripts set under conditions, as comments; ``names`` by a group's first note.

    What is the same in several places is listed once: the mix-in lists them all.
    """
    found: dict[str, list[str]] = {}
    for first, *_ in group_switched(notes).values():
        text = f"if {first.condition}: --with {names[id(first)]}"
        found.setdefault(text, []).append(f"{cite(first.found.file)}:{first.found.line}")
    lines = [f"{count_rest(places, 1)}: {text}" for text, places in found.items()]
    return ["", "Under a condition:", *lines] if lines else []
