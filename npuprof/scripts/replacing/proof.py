"""Compares a file's settings before and after an edit.

Unless they are equal, nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuprof import catalog
from npuprof.model import Record
from npuprof.scripts.script_records import UNSET, ImportedFile, ScriptSetting, Site

_LINE = re.compile(r"@\d+(?::\d+)?")
_LINES = re.compile(r"\blines? \d+(?:(?:, | and )\d+)*")
#: The code of a note that only identifies the preset of a block's variables.
_EXPORT_NOTE = "NP828"


class _Configuration(Record):
    """A configuration of a file: the operations on each key, in order.

    An operation is what one assignment of the key does, without its line: equal ones do the same.
    """

    surface: str
    name: str
    operations: dict[str, list[tuple[object, ...]]]


def find_differences(before: ImportedFile, after: ImportedFile) -> Iterator[str]:
    """Yield the differences between a file's settings before and after."""
    messages = _list_messages(after)
    if _list_messages(before) != messages:
        yield from (f"the file could not be read as before: {message}" for message in messages)
    old, new = _list_configurations(before), _list_configurations(after)
    if [(item.surface, item.name) for item in old] != [(item.surface, item.name) for item in new]:
        yield "the script would have other configurations than before"
        return
    for was, now in zip(old, new, strict=True):
        for key in dict.fromkeys((*was.operations, *now.operations)):
            if was.operations.get(key) != now.operations.get(key):
                _, _, name = was.name.rpartition(":")
                yield f"{key or 'a computed key'} of {name} would change"


def _list_messages(imported: ImportedFile) -> list[str]:
    return [problem.message for problem in imported.problems if problem.code != _EXPORT_NOTE]


def _list_configurations(imported: ImportedFile) -> list[_Configuration]:
    """Return the configurations of a file in order.

    Values that a later line always replaces are omitted; values that depend on the run keep their
    conditions and reasons.
    """
    settings = [
        setting for setting in imported.settings if not (setting.commented or _is_default(setting))
    ]
    parts: list[Site | ScriptSetting] = [*imported.sites, *settings]
    by_scope: dict[str, _Configuration] = {}
    for part in parts:
        name = _LINE.sub("", part.scope)
        by_scope.setdefault(part.scope, _Configuration(part.surface, name, {}))
    for setting in settings:
        operations = by_scope[setting.scope].operations.setdefault(setting.key, [])
        is_conditional = setting.condition or setting.reason or setting.dead or setting.unused
        if setting.key and not is_conditional:
            operations.clear()
        operations.append(
            (
                setting.name,
                setting.field,
                type(setting.value).__name__,
                repr(setting.value),
                _LINES.sub("a line", setting.reason),
                setting.condition,
                setting.dead,
                _LINES.sub("a line", setting.unused),
                setting.class_name,
            )
        )
    return list(by_scope.values())


def _is_default(setting: ScriptSetting) -> bool:
    """Return whether None is assigned to an argument whose default is None."""
    option = catalog.find_option(setting.key) if setting.reason == UNSET else None
    return option is not None and option.estimator_default is None
