"""Optimizer entries of one configuration: there should be one, named NpuOptimizer, since of two the later takes over."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from npuprof.catalog import build_finding
from npuprof.model import Finding, Place
from npuprof.scripts.lint.worlds import are_exclusive
from npuprof.scripts.reading import ImportedFile
from npuprof.scripts.reading.found import IdleConfig
from npuprof.scripts.reading.surfaces.entries import AddedEntry

_TURNS = "The adapter reads both in turn: the later wins where they say the same key, and the checks between options see one at a time."
#: What ends a path through a script, or takes entries away again.
_LEAVES = re.compile(r"^[ \t]*(?:return|raise|break|continue|(?:sys\.)?exit\b)")
_TAKEN_AWAY = re.compile(r"\bClear\w*\(|^[ \t]*del\b|\.pop\(|\.CopyFrom\(|\.remove\(")
#: A line that gives something another value, and what.
_BINDS = re.compile(r"[ \t]*((?:[^\s=:\[\]]|\[[^\[\]]*\])+)\s*(?::[^=\n]*)?=(?!=)")
_ADDED = re.compile(r"[ \t]*([A-Za-z_]\w*)[ \t]*=[^=#]*custom_optimizers\.add\(\)")


def find_nameless_entries(imported: ImportedFile) -> list[Finding]:
    """Return the entries that get options but no name, in a script that hands them to nobody else who could name them."""
    names = {site.scope: site.entry for site in imported.sites}
    text = imported.text
    lines = text.split("\n")
    result = []
    for entry in imported.list_own_remarks(AddedEntry):
        made = _ADDED.match(lines[entry.line - 1]) if entry.line <= len(lines) else None
        if entry.name or names.get(entry.site) or made is None:
            continue
        variable = re.escape(made[1])
        used = rf"(?<![\w.]){variable}\b(?![ \t]*\.[ \t]*parameter_map\b)(?![ \t]*=[^=]*custom_optimizers\.add\()"
        if re.search(rf"^[ \t]*{variable}\.parameter_map\[", text, re.MULTILINE) and not re.search(used, text):
            what = f"the optimizer entry {made[1]} has no name"
            why = "The adapter looks for an entry named exactly NpuOptimizer; all options of another are lost silently."
            hint = f'write {made[1]}.name = "NpuOptimizer"'
            result.append(Finding("NP808", what, why, hint, where=Place(imported.file, entry.line, entry.column)))
    return result


def find_idle_configs(imported: ImportedFile) -> list[Finding]:
    """Return the configurations with an entry that are handed to nothing, in a script that makes a session without them."""
    return [_build_idle_finding(imported, one) for one in imported.list_remarks(IdleConfig)]


def _build_idle_finding(imported: ImportedFile, idle: IdleConfig) -> Finding:
    """Return that nothing is given a configuration, at the entry of it that is filled."""
    entry = next((one for one in imported.list_own_remarks(AddedEntry) if one.site in idle.scopes and not one.scope), None)
    settings = (one for one in imported.found if one.scope in idle.scopes and not one.commented and one.file == imported.file)
    place = (entry.line, entry.column) if entry else next(((one.line, one.column) for one in settings), (idle.line, 1))
    name, session, line = next(iter(idle.names), "config"), idle.session, idle.session_line
    has = "has another" if idle.has_other else "has no configuration"
    what = f"{name} has an entry for the adapter, and nothing is given {name}: {session} in line {line} {has}"
    why = "The adapter adds an entry of its own to such a session, with every option at its default."
    if idle.has_other:
        why = "What is set in it has no effect."
    hint = f"write {session.partition('(')[0]}(config={name})" + (f", or delete what fills {name}" if idle.has_other else "")
    return build_finding("NP823", what, why, hint, where=Place(imported.file, *place))


def find_double_entries(imported: ImportedFile) -> list[tuple[Finding, tuple[str, str]]]:
    """Return the entries that are added to a configuration which has one of that name already, with the scopes of both."""
    names = {site.scope: site.entry for site in imported.sites}
    named = [entry for entry in imported.list_own_remarks(AddedEntry) if (entry.name or names.get(entry.site)) == "NpuOptimizer"]
    marks = _LineMarks(imported.text) if len(named) > 1 or any(entry.loop for entry in named) else None
    earlier: dict[tuple[str, str], list[AddedEntry]] = {}
    result: list[tuple[Finding, tuple[str, str]]] = []
    for entry in named:
        others = earlier.setdefault((entry.scope, entry.owner), [])
        before = next(marks.iterate_same_config(others, entry), None) if marks else None
        insort(others, entry, key=_get_line)
        if before is None:
            if marks and entry.loop and marks.is_loop_on_same_config(entry):
                what = f"an entry named NpuOptimizer is added to {entry.config} in each turn of the loop of line {entry.loop[0]}"
                hint = "add it once, before the loop"
                found = build_finding("NP820", what, _TURNS, hint, where=Place(imported.file, entry.line, entry.column))
                result.append((found, (entry.site, entry.site)))
            continue
        what = f"a second entry named NpuOptimizer is added to {entry.config}; the first is added in line {before.line}"
        why = _TURNS
        hint = f"set the options in the entry of line {before.line}"
        found = build_finding("NP820", what, why, hint, where=Place(imported.file, entry.line, entry.column))
        result.append((found, (before.site, entry.site)))
    return result


class _LineMarks:
    """Which lines of a script end a path through it, take entries away again, or give a name another value."""

    def __init__(self, text: str) -> None:
        self._leaves: list[int] = []
        self._taken_away: list[int] = []
        self._bound: dict[str, list[int]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            if _LEAVES.search(line):
                self._leaves.append(number)
            if _TAKEN_AWAY.search(line):
                self._taken_away.append(number)
            if match := _BINDS.match(line):
                self._bound.setdefault(match[1], []).append(number)

    def iterate_same_config(self, others: list[AddedEntry], entry: AddedEntry) -> Iterator[AddedEntry]:
        """Yield those of some entries for the same owner, given by their lines, that are certainly added to the same object in one run."""
        parts = entry.owner.split(".")
        holders = [".".join(parts[: n + 1]) for n in range(len(parts))]
        bound = [_find_last(self._bound[name], entry.line) for name in holders if name in self._bound]
        newest = max((_find_last(self._taken_away, entry.line), *bound))
        leaves = _find_last(self._leaves, entry.line)
        for other in others[bisect_left(others, newest, key=_get_line) :]:  # those before are of another object
            within = leaves <= other.line or other.branches == entry.branches[: len(other.branches)]
            if within and other.line < entry.line and not are_exclusive(other.branches, entry.branches):
                yield other

    def is_loop_on_same_config(self, entry: AddedEntry) -> bool:
        """Return whether nothing in the loop around an entry ends it, makes its owner anew, or takes entries away."""
        first, last = entry.loop or (0, 0)
        parts = entry.owner.split(".")
        marks = [self._leaves, self._taken_away, *(self._bound.get(".".join(parts[: n + 1]), []) for n in range(len(parts)))]
        return all(_find_last(lines, last) < first for lines in marks)


def _get_line(entry: AddedEntry) -> int:
    return entry.line


def _find_last(lines: list[int], line: int) -> int:
    """Return the last of some lines that is not below one, 0 where there is none."""
    place = bisect_right(lines, line)
    return lines[place - 1] if place else 0
