"""Coverage of scripts: constants compared with the catalogue.

Dynamic and unknown settings are counted, and the lines of surfaces that are not judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from npuprof import catalog
from npuprof.catalog.execution import is_known_variable
from npuprof.catalog.programs import load_programs
from npuprof.document.keys import split_section_and_name
from npuprof.report.coverage import Coverage, Unjudged
from npuprof.scripts.python.environ import is_ascend_variable
from npuprof.scripts.reading.file_kinds import detect_script_kind
from npuprof.scripts.reading.program_arguments import mentions_arguments, mentions_program
from npuprof.scripts.script_records import ImportedFile, ScriptSetting, StartedProgram, UnreadLines
from npuprof.scripts.words import list_words
from npuprof.system import decode_safely

#: The start of a line with arguments of a program, or of an assignment that may contain some.
_LINE = re.compile(
    rb"\s*(?:['\"]?--[\w-]++(?![\w|-]*\))|\w+\+?=|"
    rb"[^#]*(?:\.py|torchrun|python3?|deepspeed|accelerate)\b)"
)
_COMMENT = re.compile("#.*")
#: A variable that is set, a flag, and a field of several words; one pattern for all is slower.
_SETTINGS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"([A-Z](?<![\w$].)[A-Z0-9]*_[A-Z0-9_]+)[\"']?(?:[^\S\n]*(?:[]:=]|$)|,[^\S\n]*$|[,}])",
        r"--(?<![\w-]--)([a-z][\w-]*)",
        r"\n(?:[^\S\n]|-)*[\"']?([a-z]+[-_A-Z][\w-]*)[\"']?:",
    )
]
#: The section of programs whose arguments are read, but not judged.
_UNJUDGED = "args"
_DEEPSPEED = (b"zero_optimization", b"train_micro_batch_size_per_gpu")
_KEY = re.compile(rb"^[ \t{-]*+[\"']?([\w.-]++)[\"']?:", re.MULTILINE)


def list_unjudged(imported: ImportedFile, data: bytes) -> Iterator[Unjudged]:
    """Yield the surfaces of a file that are not judged; ``imported`` is what was read of it."""
    kind = detect_script_kind(imported.file, data)
    read = (*imported.settings, *imported.other_variables)
    judged = {
        setting.line
        for setting in read
        if setting.file == imported.file and setting.surface != _UNJUDGED
    }
    for started in imported.list_records(StartedProgram):
        judged |= started.lines
    unread = set[int]()
    for record in imported.list_records(UnreadLines) if imported.settings else ():
        unread |= record.lines
    if kind not in ("", "markdown") and (mentions_program(data) or mentions_arguments(data)):
        text = _COMMENT.sub("", f"\n{decode_safely(data)}")
        for pattern in _SETTINGS:
            number = end = 0
            for match in pattern.finditer(text):
                number, end = number + text.count("\n", end, match.start(1)), match.start(1)
                if _is_setting(match[1]):
                    unread.add(number)
    places = tuple(f"{imported.file}:{line}" for line in sorted(unread - judged))
    yield Unjudged("other arguments and variables", len(places), places=places)
    if options := sum(setting.surface == "config" for setting in imported.settings):
        yield Unjudged("options that other code interprets", options)
    elif kind in ("shell", "markdown"):
        judged |= unread
        lines = sum(
            b"--" in line and number not in judged and _LINE.match(line) is not None
            for number, line in enumerate(data.split(b"\n"), 1)
        )
        yield Unjudged("program arguments", lines)
    elif not imported.settings and kind in ("yaml", "json"):
        is_deepspeed = not list_words(data).isdisjoint(_DEEPSPEED)
        if kind == "yaml" or is_deepspeed:
            yield Unjudged("DeepSpeed configs" if is_deepspeed else "YAML", len(_KEY.findall(data)))


@cache
def _is_setting(name: str) -> bool:
    """Return whether a variable is known, or else a program has an argument of that name."""
    if name.isupper():
        return is_known_variable(name) or is_ascend_variable(name)
    return any(f"--{program.spell_field(name)}" in program.flags for program in load_programs())


class CoverageCount:
    """Counts the settings of files; one that several files have by a call counts once."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._unknown: list[str] = []
        self._places: set[tuple[str, int, int, str]] = set()
        self._unjudged: dict[str, Unjudged] = {}

    @property
    def coverage(self) -> Coverage:
        """The counts."""
        unjudged = sorted(self._unjudged.values(), key=lambda seen: -seen.lines)
        return Coverage(unknown=self._unknown, unjudged=unjudged, **self._counts)

    def add_unjudged(self, found: Iterable[Unjudged]) -> None:
        """Count the surfaces of a file that are not judged."""
        for new in found:
            if new.lines:
                known = self._unjudged.get(new.surface, Unjudged(new.surface, 0, 0))
                places = (*known.places, *new.places)
                self._unjudged[new.surface] = Unjudged(
                    new.surface, known.lines + new.lines, known.files + 1, places
                )

    def add_file(self, imported: ImportedFile) -> None:
        """Count the settings of a file."""
        for number, setting in enumerate((*imported.settings, *imported.other_variables)):
            place = (setting.file, setting.line, setting.column, setting.key or setting.name)
            if (
                setting.commented
                or setting.surface in ("config", _UNJUDGED)
                or not setting.name
                or place in self._places
            ):
                continue
            self._places.add(place)
            if setting.is_lost:
                self._counts["lost"] += 1
            elif not _is_known(setting):
                self._unknown.append(setting.name)
            elif number < len(imported.settings):
                self._counts["dynamic" if setting.reason else "checked"] += 1


def _is_known(setting: ScriptSetting) -> bool:
    if setting.surface == "env":
        return not setting.key.startswith("env.") or is_known_variable(setting.name)
    section, name = split_section_and_name(setting.key)
    if not setting.key or catalog.find_record(section, name) is not None:
        return True
    return bool(catalog.list_settings_below(section, name))  # an empty group
