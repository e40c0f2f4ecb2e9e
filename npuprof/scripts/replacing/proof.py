"""What a file sets, in a form that does not know of lines: equal before and after, or nothing is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.model import Finding
from npuprof.scripts.reading.found import UNSET, FoundSetting, ImportedFile

#: What a configuration comes to: its surface, its name, and for each key what happens to it, in order.
Told = list[tuple[str, str, dict[str, list[tuple[Any, ...]]]]]
_LINE = re.compile(r"@\d+(?::\d+)?")
_LINES = re.compile(r"\blines? \d+(?:(?:, | and )\d+)*")


def describe_settings(imported: ImportedFile) -> Told:
    """Return the configurations of a file in order, and for each key what it gets.

    What a later line always takes the place of is left out; what depends on the run stays with its condition and its reason.
    """
    told: dict[str, tuple[str, str, dict[str, list[tuple[Any, ...]]]]] = {
        site.scope: (site.surface, _LINE.sub("", site.scope), {}) for site in imported.sites
    }
    for one in imported.found:
        if one.commented or _says_nothing(one):
            continue
        row = told.setdefault(one.scope, (one.surface, _LINE.sub("", one.scope), {}))
        events = row[2].setdefault(one.key or "", [])
        if one.key and not one.condition and not one.reason and not one.dead and not one.unused:
            events.clear()
        events.append(_describe_event(one))
    return list(told.values())


def _says_nothing(one: FoundSetting) -> bool:
    """Return whether None is given where the class has None anyway."""
    option = catalog.find_option(one.key) if one.reason == UNSET else None
    return option is not None and option.estimator_default is None


def _describe_event(one: FoundSetting) -> tuple[Any, ...]:
    value = (type(one.value).__name__, repr(one.value))
    return (
        one.name,
        one.field,
        value,
        _LINES.sub("a line", one.reason),
        one.condition,
        one.dead,
        _LINES.sub("a line", one.unused),
        one.made,
    )


def _is_export_remark(finding: Finding) -> bool:
    """Return whether a finding only says which preset the variables of a block are of."""
    return finding.code == "NP828"


def find_differences(before: ImportedFile, after: ImportedFile) -> Iterator[str]:
    """Yield what a file sets otherwise than before."""
    told, tells = ([one.message for one in file.problems if not _is_export_remark(one)] for file in (before, after))
    if told != tells:
        yield from (f"the file could not be read as before: {message}" for message in tells)
    was, now = describe_settings(before), describe_settings(after)
    if [row[:2] for row in was] != [row[:2] for row in now]:
        yield "the script would have other configurations than before"
        return
    for (_, name, old), (_, _, new) in zip(was, now, strict=True):
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key):
                yield f"{key or 'a computed key'} of {name.rpartition(':')[2]} would not be what it was"
