"""Read settings out of existing scripts by their syntax, never by running them: one module for each surface."""

from __future__ import annotations

from npuprof.scripts.reading.files import import_script, may_call_settings, may_hold_settings, place_settings, read_script
from npuprof.scripts.records import ImportedFile, ScriptSetting, Site

__all__ = [
    "ImportedFile",
    "ScriptSetting",
    "Site",
    "import_script",
    "may_call_settings",
    "may_hold_settings",
    "place_settings",
    "read_script",
]
