"""A preset in the making: what settings of scripts say, where each comes from, and what is left out of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.model import Record
from npuprof.report.text import count_rest
from npuprof.scripts.records import ScriptSetting
from npuprof.system import find_repository_top

#: A key, and the text of its value.
Pair = tuple[str, str]


class Note(Record):
    """A setting that is not in the preset, why, and what to do about it.

    Where nothing but a ``condition`` keeps it out, ``value`` is what a preset would have. ``overruled`` is one that a later line
    replaces.
    """

    found: ScriptSetting
    why: str
    hint: str = ""
    condition: str = ""
    value: Any = None
    overruled: bool = False


class Source(Record):
    """A configuration of a script: the file and line where it begins, the function, the condition under which it is made at all."""

    file: str
    line: int = 1
    function: str = ""
    condition: str = ""


class Draft:
    """A preset in the making: ``settings`` by full key, ``origins`` where each comes from, ``notes`` what is left.

    ``carried`` are all settings that are in the preset, those that a later one takes the place of too; ``assumed`` are notes on
    those that have the default of a flag, which a run may change. ``others`` are variables of other programs that the file sets.
    ``sources`` are the configurations that have these settings, ``labels`` names that distinguish the first from others of its file, if it
    is one of several.
    """

    def __init__(self, name: str, file: str, surface: str = "") -> None:
        self.name = name
        self.file = file
        self.surfaces = {surface} if surface else set()
        self.settings: dict[str, Any] = {}
        self.origins: dict[str, ScriptSetting] = {}
        self.notes: list[Note] = []
        self.carried: list[ScriptSetting] = []
        self.assumed: list[Note] = []
        self.others: tuple[ScriptSetting, ...] = ()
        self.sources = [Source(file)]
        self.labels: tuple[str, ...] = ()
        self.is_one_of_several = False

    @property
    def scenario(self) -> str | None:
        """What the settings say about the scenario, None where they say nothing."""
        if self.surfaces == {"atc"}:
            return "offline-inference"
        mode = self.settings.get("graph_run_mode")
        return next((scenario for number, scenario in enumerate(("online-inference", "training")) if mode == number), None)


def describe_sources(draft: Draft) -> str:
    """Return the script of a draft, with the first of the configurations in it where that has several."""
    file = cite_script(draft.file)
    if not draft.is_one_of_several and len(draft.sources) < 2:
        condition = draft.sources[0].condition
        return f"{file}, made only if {condition}" if condition else file
    return f"{file}: {count_rest(dict.fromkeys(_describe_source(source) for source in draft.sources), 6)}"


def _describe_source(source: Source) -> str:
    where = f"{source.function}()" if source.function else f"line {source.line}"
    return f"{where} if {source.condition}" if source.condition else where


@cache
def cite_script(file: str) -> str:
    """Return the path of a script as a preset names it, the same on every machine: from the top of its repository, or its name."""
    if not os.path.isabs(file) and os.pardir not in file.split(os.sep):
        return file
    full = os.path.realpath(file)
    top = find_repository_top(os.path.dirname(full))
    return os.path.relpath(full, top) if top else os.path.basename(full)


def list_pairs(facts: Mapping[str, Any]) -> frozenset[Pair]:
    """Return settings as pairs of key and text, the same for the same value only; what is written as a string is that very string."""
    return frozenset((key, _write_value(key, value)) for key, value in facts.items())


def _write_value(key: str, value: Any) -> str:
    written = keys.format_toml_value(values.build_canonical_value(key, value))
    return f"{written} {value!r}" if isinstance(value, str) else written
