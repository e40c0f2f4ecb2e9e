"""Reads settings from existing scripts by parsing, never executing: one module per file format."""

from __future__ import annotations

from npuprof.scripts.reading.files import import_script as import_script
from npuprof.scripts.reading.files import may_call_settings as may_call_settings
from npuprof.scripts.reading.files import may_hold_settings as may_hold_settings
from npuprof.scripts.reading.files import place_settings as place_settings
from npuprof.scripts.reading.files import read_script as read_script
from npuprof.scripts.records import ImportedFile as ImportedFile
from npuprof.scripts.records import ScriptSetting as ScriptSetting
from npuprof.scripts.records import Site as Site
