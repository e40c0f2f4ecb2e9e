"""Coverage of scripts: constants compared with the catalogue.

Dynamic and unknown settings are counted, and the lines of surfaces that are not judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from npuprof import catalog
from npuprof.catalog.execution import is_known_variable
from npuprof.document.keys import split_section_and_name
from npuprof.report.coverage import Coverage, Unjudged
from npuprof.scripts.reading.file_kinds import detect_script_kind
from npuprof.scripts.script_records import ImportedFile, ScriptSetting

#: The start of a line with arguments of a program, or of an assignment that may contain some.
_LINE = re.compile(
    rb"\s*(?:['\"]?--[\w-]++(?![\w|-]*\))|\w+\+?=|"
    rb"[^#]*(?:\.py|torchrun|python3?|deepspeed|accelerate)\b)"
)
_ARGUMENT = re.compile(rb"(?<![\w-])--[A-Za-z][\w.-]*")
_DEEPSPEED = re.compile(rb"\b(?:zero_optimization|train_micro_batch_size_per_gpu)\b")
_KEY = re.compile(rb"^[ \t{-]*+[\"']?([\w.-]++)[\"']?:", re.MULTILINE)


def list_unjudged(imported: ImportedFile, data: bytes) -> Iterator[Unjudged]:
    """Yield the surfaces of a file that are not judged; ``imported`` is what was read of it."""
    kind = detect_script_kind(imported.file, data)
    names = [setting.name for setting in imported.settings if setting.surface == "config"]
    if names:
        yield Unjudged("options that other code interprets", len(names), Counter(names))
    elif kind in ("shell", "markdown"):
        judged = {setting.line for setting in imported.settings if setting.file == imported.file}
        lines = [
            line
            for number, line in enumerate(data.split(b"\n"), 1)
            if b"--" in line and number not in judged and _LINE.match(line)
        ]
        found = [match.decode() for line in lines for match in _ARGUMENT.findall(line)]
        yield Unjudged("program arguments", len(lines), Counter(found))
    elif not imported.settings and kind in ("yaml", "json"):
        surface = "DeepSpeed configs" if _DEEPSPEED.search(data) else "YAML"
        if kind == "yaml" or surface != "YAML":
            yield Unjudged(surface, len(_KEY.findall(data)), Counter())


class CoverageCount:
    """Counts the settings of files; one that several files have by a call counts once."""

    def __init__(self) -> None:
        self._checked = self._dynamic = self._unchecked = self._lost = 0
        self._unknown: list[str] = []
        self._places: set[tuple[str, int, int, str]] = set()
        self._unjudged: dict[str, Unjudged] = {}

    @property
    def coverage(self) -> Coverage:
        """The counts."""
        return Coverage(
            self._checked,
            self._dynamic,
            self._unknown,
            self._unchecked,
            self._lost,
            sorted(self._unjudged.values(), key=lambda seen: -seen.lines),
        )

    def add_unjudged(self, found: Iterable[Unjudged]) -> None:
        """Count the surfaces of a file that are not judged."""
        for new in found:
            if new.lines:
                known = self._unjudged.get(new.surface, Unjudged(new.surface, 0, Counter(), 0))
                self._unjudged[new.surface] = known._replace(
                    lines=known.lines + new.lines,
                    names=known.names + new.names,
                    files=known.files + 1,
                )

    def add_file(self, imported: ImportedFile) -> None:
        """Count the settings of a file."""
        for number, setting in enumerate((*imported.settings, *imported.other_variables)):
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
            elif number < len(imported.settings):
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
