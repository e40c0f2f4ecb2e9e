"""What a file sets, whatever its lines: equal before and after, or nothing is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.scripts.records import UNSET, ImportedFile, ScriptSetting

#: What a configuration comes to: its surface, its name, and for each key what happens to it, in order.
Row = tuple[str, str, dict[str, list[tuple[Any, ...]]]]
_LINE = re.compile(r"@\d+(?::\d+)?")
_LINES = re.compile(r"\blines? \d+(?:(?:, | and )\d+)*")
#: The code of a remark that only says which preset the variables of a block are of.
_EXPORT_REMARK = "NP828"


def find_differences(before: ImportedFile, after: ImportedFile) -> Iterator[str]:
    """Yield what a file sets otherwise than before."""
    had, has = ([problem.message for problem in file.problems if problem.code != _EXPORT_REMARK] for file in (before, after))
    if had != has:
        yield from (f"the file could not be read as before: {message}" for message in has)
    was, now = _describe_settings(before), _describe_settings(after)
    if [row[:2] for row in was] != [row[:2] for row in now]:
        yield "the script would have other configurations than before"
        return
    for (_, name, old), (_, _, new) in zip(was, now, strict=True):
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key):
                yield f"{key or 'a computed key'} of {name.rpartition(':')[2]} would not be what it was"


def _describe_settings(imported: ImportedFile) -> list[Row]:
    """Return the configurations of a file in order.

    What a later line always replaces is left out; what depends on the run stays with its condition and its reason.
    """
    rows: dict[str, Row] = {site.scope: (site.surface, _LINE.sub("", site.scope), {}) for site in imported.sites}
    for setting in imported.found:
        if setting.commented or _is_default(setting):
            continue
        events = rows.setdefault(setting.scope, (setting.surface, _LINE.sub("", setting.scope), {}))[2].setdefault(setting.key, [])
        if setting.key and not (setting.condition or setting.reason or setting.dead or setting.unused):
            events.clear()
        value = type(setting.value).__name__, repr(setting.value)
        reason, unused = (_LINES.sub("a line", text) for text in (setting.reason, setting.unused))
        events.append((setting.name, setting.field, value, reason, setting.condition, setting.dead, unused, setting.made))
    return list(rows.values())


def _is_default(setting: ScriptSetting) -> bool:
    """Return whether None is given where the class has None anyway."""
    option = catalog.find_option(setting.key) if setting.reason == UNSET else None
    return option is not None and option.estimator_default is None
