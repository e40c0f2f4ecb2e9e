"""What there is to say of a family beside its files."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from npuprof.report.text import format_count
from npuprof.scripts.family import Family


def describe_family(made: Family) -> str:
    """Return a family in one line: the number of leaves, scripts, bases and mix-ins."""
    scripts = len({source.file for leaf in made.leaves for source in leaf.sources})
    count = len(made.leaves)
    leaves = f"{count} {'leaf' if count == 1 else 'leaves'} for {format_count(scripts, 'script')}"
    bases = format_count(len(made.bases), "base") if made.bases else "no base"
    mixins = f", {format_count(len(made.switches), 'mix-in')} for what conditions switch on" if made.switches else ""
    return f"{leaves}, {bases}{mixins}; every leaf resolves to the settings of its scripts"


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
        "presets": [
            {
                "name": name, "kind": _name_kind(family, name, leaves),
                "conditions": [note.condition for note in family.switches[name].notes] if name in family.switches else [],
                "sources": leaves.get(name, []), "text": text,
            }
            for name, text in family.files.items()
        ],
    }  # fmt: skip


def _name_kind(family: Family, name: str, leaves: Container[str]) -> str:
    if name in leaves:
        return "leaf"
    return "base" if name in family.bases else "mix-in"
