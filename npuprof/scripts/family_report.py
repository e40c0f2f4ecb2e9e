"""What there is to say of a family beside its files."""

from __future__ import annotations

from typing import Any

from npuprof.report.text import format_count
from npuprof.scripts.family import Family
from npuprof.scripts.sharing import FILE_LINES


def describe_family(made: Family) -> str:
    """Return a family in one line: how many leaves, what they share, and how long it is with and without that."""
    scripts = len({source.file for leaf in made.leaves for source in leaf.sources})
    bases = sum(shared.is_base for shared in made.shared.values())
    count = len(made.leaves)
    leaves = f"{count} {'leaf' if count == 1 else 'leaves'} for {format_count(scripts, 'script')}"
    parts = f"{format_count(bases, 'base') if bases else 'no base'}, {format_count(len(made.shared) - bases, 'mix-in')}"
    length = f"{made.length_alone} lines without them, {made.length} with them ({FILE_LINES} for each file)"
    return f"{leaves}, {parts}: {length}; every leaf resolves to the digest it had"


def build_family_fields(family: Family) -> dict[str, Any]:
    """Return a family as the fields of the JSON form: the file of each preset, and for leaves every script that it stands for."""
    leaves = {
        leaf.name: [
            {"file": source.file, "line": source.line, "function": source.function or None, "condition": source.condition or None}
            for source in leaf.sources
        ]
        for leaf in family.leaves
    }
    return {
        "length_alone": family.length_alone, "length": family.length,
        "presets": [
            {
                "name": name, "kind": "leaf" if name in leaves else "base" if family.shared[name].is_base else "mix-in",
                "sources": leaves.get(name, []), "text": text,
            }
            for name, text in family.files.items()
        ],
    }  # fmt: skip
