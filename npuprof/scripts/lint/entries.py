"""Optimizer entries of one configuration: there should be one, named NpuOptimizer, since of two the later takes over."""

from __future__ import annotations

import re

from npuprof.model import Finding, Place
from npuprof.scripts.lint.worlds import are_exclusive
from npuprof.scripts.reading import ImportedFile
from npuprof.scripts.reading.session import AddedEntry

#: What ends a path through a script, or takes entries away again.
_LEAVES = re.compile(r"^[ \t]*(?:return|raise|break|continue|(?:sys\.)?exit\b)", re.MULTILINE)
_TAKEN_AWAY = re.compile(r"\bClear\w*\(|^[ \t]*del\b|\.pop\(|\.CopyFrom\(|\.remove\(", re.MULTILINE)
_ADDED = re.compile(r"[ \t]*([A-Za-z_]\w*)[ \t]*=[^=#]*custom_optimizers\.add\(\)")


def find_nameless_entries(imported: ImportedFile) -> list[Finding]:
    """Return the entries that get options but no name, in a script that hands them to nobody else who could name them."""
    names = {site.scope: site.entry for site in imported.sites}
    text = imported.facts.get("text", "")
    lines = text.split("\n")
    result = []
    for entry in imported.facts.get("added entries", ()):
        made = _ADDED.match(lines[entry.line - 1]) if entry.line <= len(lines) else None
        if entry.name or names.get(entry.site) or made is None:
            continue
        variable = re.escape(made[1])
        used = rf"(?<![\w.]){variable}\b(?![ \t]*\.[ \t]*parameter_map\b)(?![ \t]*=[^=]*custom_optimizers\.add\()"
        if re.search(rf"^[ \t]*{variable}\.parameter_map\[", text, re.MULTILINE) and not re.search(used, text):
            what = f"the optimizer entry {made[1]} has no name"
            why = "The adapter looks for an entry named exactly NpuOptimizer; all options of another are lost in silence."
            hint = f'write {made[1]}.name = "NpuOptimizer"'
            result.append(Finding("NP808", what, why, hint, where=Place(imported.file, entry.line, entry.column)))
    return result


def find_double_entries(imported: ImportedFile) -> list[Finding]:
    """Return the entries that are added to a configuration which has one of that name already."""
    names = {site.scope: site.entry for site in imported.sites}
    named = [entry for entry in imported.facts.get("added entries", ()) if (entry.name or names.get(entry.site)) == "NpuOptimizer"]
    lines = imported.facts.get("text", "").split("\n")
    result = []
    for number, entry in enumerate(named):
        before = next((one for one in named[:number] if _are_of_one_config(one, entry, lines)), None)
        if before is None:
            continue
        what = f"a second entry named NpuOptimizer is added to {entry.config}; the first is added in line {before.line}"
        why = (
            "The adapter reads both in turn: the later wins where they say the same key, and the checks between options see one at a time."
        )
        hint = f"set the options in the entry of line {before.line}"
        result.append(Finding("NP820", what, why, hint, where=Place(imported.file, entry.line, entry.column)))
    return result


def _are_of_one_config(one: AddedEntry, other: AddedEntry, lines: list[str]) -> bool:
    """Return whether two entries are certainly added to the same object, in one run."""
    if (one.scope, one.owner) != (other.scope, other.owner) or one.line >= other.line or are_exclusive(one.branches, other.branches):
        return False
    between = "\n".join(lines[one.line : other.line])
    if _TAKEN_AWAY.search(between) or (one.branches != other.branches[: len(one.branches)] and _LEAVES.search(between)):
        return False
    parts = one.owner.split(".")
    holders = "|".join(re.escape(".".join(parts[: n + 1])) for n in range(len(parts)))
    return not re.search(rf"^[ \t]*(?:{holders})\s*(?::[^=\n]*)?=[^=]", between, re.MULTILINE)
