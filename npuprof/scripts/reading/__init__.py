"""Read settings out of existing scripts by their syntax, never by running them: one module for each surface."""

from __future__ import annotations

from npuprof.scripts.reading.files import import_script, may_call_settings, may_hold_settings, place_settings, read_script
from npuprof.scripts.reading.found import FoundSetting, ImportedFile, Site

__all__ = [
    "FoundSetting",
    "ImportedFile",
    "Site",
    "import_script",
    "may_call_settings",
    "may_hold_settings",
    "place_settings",
    "read_script",
]
