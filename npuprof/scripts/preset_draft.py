"""A preset draft: settings of scripts with their origins, and omitted settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.model import Record, TomlTable
from npuprof.report.text import count_rest
from npuprof.scripts.script_records import ScriptSetting
from npuprof.system import find_repository_top

#: Returns the path of a script for a preset.
Citation = Callable[[str], str]
#: A key, and the text of its value.
Pair = tuple[str, str]


class Note(Record):
    """An omitted setting, with reason and hint.

    If only a ``condition`` excludes it, ``value`` is its preset value. ``overruled`` is set if a
    later line replaces it.
    """

    setting: ScriptSetting
    why: str
    hint: str = ""
    condition: str = ""
    value: Any = None
    overruled: bool = False

    @property
    def remark(self) -> str:
        """The line that stays, and why."""
        return f"{self.setting.file_line}: {self.setting.shown_key} stays as it is: {self.why}"


class Source(Record):
    """A configuration of a script: its file, its first line and its function.

    ``condition`` is that of its creation.
    """

    file: str
    line: int = 1
    function: str = ""
    condition: str = ""


class Draft:
    """A preset draft: ``settings`` by full key, ``origins`` of each.

    ``notes`` are about omitted settings.

    ``carried`` are all settings in the preset, including replaced ones; ``assumed`` are notes on
    settings with a flag's default, which a run may change. ``other_variables`` are variables of
    other programs in the file. ``sources`` are the configurations with these settings, ``labels``
    distinguish the first one from others of its file, if there are several.
    """

    def __init__(self, file: str, surface: str = "") -> None:
        self.name = ""  #: set when all drafts are known
        self.file = file
        self.surfaces = {surface} if surface else set()
        self.settings: TomlTable = {}
        self.origins: dict[str, ScriptSetting] = {}
        self.notes: list[Note] = []
        self.carried: list[ScriptSetting] = []
        self.assumed: list[Note] = []
        self.other_variables: tuple[ScriptSetting, ...] = ()
        self.sources = [Source(file)]
        self.labels = "", ""
        self.is_one_of_several = False

    @property
    def scenario(self) -> str | None:
        """The scenario of the settings, None if they do not determine it."""
        if self.surfaces == {"atc"}:
            return "offline-inference"
        mode = self.settings.get("graph_run_mode")
        if mode == 0:
            return "online-inference"
        return "training" if mode == 1 else None


def describe_sources(draft: Draft) -> str:
    """Return the script of a draft, with the first of its configurations if it has several."""
    file = cite_script(draft.file)
    if not draft.is_one_of_several and len(draft.sources) < 2:
        condition = draft.sources[0].condition
        return f"{file}, made only if {condition}" if condition else file
    return (
        f"{file}: "
        f"{count_rest(dict.fromkeys(_describe_source(source) for source in draft.sources), 6)}"
    )


def _describe_source(source: Source) -> str:
    where = f"{source.function}()" if source.function else f"line {source.line}"
    return f"{where} if {source.condition}" if source.condition else where


@cache
def cite_script(file: str) -> str:
    """Return the path of a script for a preset, equal on every machine.

    It is relative to its repository, or its name.
    """
    if not os.path.isabs(file) and os.pardir not in file.split(os.sep):
        return file
    full = os.path.realpath(file)
    top = find_repository_top(os.path.dirname(full))
    return os.path.relpath(full, top) if top else os.path.basename(full)


def list_pairs(facts: Mapping[str, Any]) -> frozenset[Pair]:
    """Return settings as pairs of key and text, unique to their values; strings are unchanged."""
    return frozenset((key, _write_value(key, value)) for key, value in facts.items())


def _write_value(key: str, value: Any) -> str:
    written = keys.format_toml_value(values.build_canonical_value(key, value))
    return f"{written} {value!r}" if isinstance(value, str) else written
