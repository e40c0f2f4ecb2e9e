"""How much of what scripts set was checked: constants against the catalogue; what is not constant, or not known, is counted."""

from __future__ import annotations

from collections.abc import Iterable

from npuprof import catalog
from npuprof.catalog.execution import is_known_variable
from npuprof.document.keys import split_section_and_name
from npuprof.report.coverage import Coverage
from npuprof.scripts.records import ImportedFile, ScriptSetting


def measure_coverage(files: Iterable[ImportedFile]) -> Coverage:
    """Return how much was checked of what some files set. A setting that several files have by a call counts once."""
    checked, dynamic, unknown, places = 0, 0, list[str](), set[tuple[str, int, int, str]]()
    for imported in files:
        for setting in (*imported.found, *imported.others):
            place = (setting.file, setting.line, setting.column, setting.key or setting.name)
            if setting.commented or setting.surface == "config" or not setting.name or place in places:
                continue
            places.add(place)
            if not _is_known(setting):
                unknown.append(setting.name)
            elif setting not in imported.others:
                dynamic += bool(setting.reason)
                checked += not setting.reason
    return Coverage(checked, dynamic, unknown)


def _is_known(setting: ScriptSetting) -> bool:
    if setting.surface == "env":
        return not setting.key.startswith("env.") or is_known_variable(setting.name)
    section, name = split_section_and_name(setting.key)
    return not setting.key or catalog.find_record(section, name) is not None
