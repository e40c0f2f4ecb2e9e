"""Compares a file's settings before and after an edit.

Unless they are equal, nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.scripts.script_records import UNSET, ImportedFile, ScriptSetting

#: A configuration: its surface, its name, and the operations on each key, in order.
Row = tuple[str, str, dict[str, list[tuple[Any, ...]]]]
_LINE = re.compile(r"@\d+(?::\d+)?")
_LINES = re.compile(r"\blines? \d+(?:(?:, | and )\d+)*")
#: The code of a note that only identifies the preset of a block's variables.
_EXPORT_REMARK = "NP828"


def find_differences(before: ImportedFile, after: ImportedFile) -> Iterator[str]:
    """Yield the differences between a file's settings before and after."""
    had, has = (
        [problem.message for problem in file.problems if problem.code != _EXPORT_REMARK]
        for file in (before, after)
    )
    if had != has:
        yield from (f"the file could not be read as before: {message}" for message in has)
    was, now = _describe_settings(before), _describe_settings(after)
    if [row[:2] for row in was] != [row[:2] for row in now]:
        yield "the script would have other configurations than before"
        return
    for (_, name, old), (_, _, new) in zip(was, now, strict=True):
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key):
                yield f"{key or 'a computed key'} of {name.rpartition(':')[2]} would change"


def _describe_settings(imported: ImportedFile) -> list[Row]:
    """Return the configurations of a file in order.

    Values that a later line always replaces are omitted; values that depend on the run keep their
    conditions and reasons.
    """
    rows: dict[str, Row] = {
        site.scope: (site.surface, _LINE.sub("", site.scope), {}) for site in imported.sites
    }
    for setting in imported.settings:
        if setting.commented or _is_default(setting):
            continue
        events = rows.setdefault(
            setting.scope, (setting.surface, _LINE.sub("", setting.scope), {})
        )[2].setdefault(setting.key, [])
        if setting.key and not (
            setting.condition or setting.reason or setting.dead or setting.unused
        ):
            events.clear()
        value = type(setting.value).__name__, repr(setting.value)
        reason, unused = (_LINES.sub("a line", text) for text in (setting.reason, setting.unused))
        events.append(
            (
                setting.name,
                setting.field,
                value,
                reason,
                setting.condition,
                setting.dead,
                unused,
                setting.class_name,
            )
        )
    return list(rows.values())


def _is_default(setting: ScriptSetting) -> bool:
    """Return whether None is assigned to an argument whose default is None."""
    option = catalog.find_option(setting.key) if setting.reason == UNSET else None
    return option is not None and option.estimator_default is None
