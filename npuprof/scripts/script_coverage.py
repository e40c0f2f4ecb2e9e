"""Coverage of scripts: constants compared with the catalogue.

Dynamic and unknown settings are counted.
"""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog.execution import is_known_variable
from npuprof.document.keys import split_section_and_name
from npuprof.report.coverage import Coverage
from npuprof.scripts.script_records import ImportedFile, ScriptSetting


class CoverageCount:
    """Counts the settings of files; one that several files have by a call counts once."""

    def __init__(self) -> None:
        self._checked = self._dynamic = self._unchecked = self._lost = 0
        self._unknown: list[str] = []
        self._places: set[tuple[str, int, int, str]] = set()

    @property
    def coverage(self) -> Coverage:
        """The counts."""
        return Coverage(self._checked, self._dynamic, self._unknown, self._unchecked, self._lost)

    def add_file(self, imported: ImportedFile) -> None:
        """Count the settings of a file."""
        marked = [
            *((setting, True) for setting in imported.settings),
            *((setting, False) for setting in imported.other_variables),
        ]
        for setting, is_judged in marked:
            place = (setting.file, setting.line, setting.column, setting.key or setting.name)
            if (
                setting.commented
                or setting.surface == "config"
                or not setting.name
                or place in self._places
            ):
                continue
            self._places.add(place)
            if setting.is_lost:
                self._lost += 1
                continue
            is_passed = catalog.is_passed_through(setting.key)
            if not is_passed and not _is_known(setting):
                self._unknown.append(setting.name)
            elif is_judged:
                self._dynamic += bool(setting.reason)
                self._unchecked += is_passed and not setting.reason
                self._checked += not is_passed and not setting.reason


def _is_known(setting: ScriptSetting) -> bool:
    if setting.surface == "env":
        return not setting.key.startswith("env.") or is_known_variable(setting.name)
    section, name = split_section_and_name(setting.key)
    if not setting.key or catalog.find_record(section, name) is not None:
        return True
    return bool(catalog.list_settings_below(section, name))  # an empty group
