"""Reads settings from existing scripts by parsing, never executing: one module per file format."""

from __future__ import annotations

from npuprof.scripts.reading.file_kinds import import_script as import_script
from npuprof.scripts.reading.file_kinds import may_call_settings as may_call_settings
from npuprof.scripts.reading.file_kinds import may_hold_settings as may_hold_settings
from npuprof.scripts.reading.file_kinds import place_settings as place_settings
from npuprof.scripts.reading.file_kinds import read_script as read_script
from npuprof.scripts.script_records import ImportedFile as ImportedFile
from npuprof.scripts.script_records import ScriptSetting as ScriptSetting
from npuprof.scripts.script_records import Site as Site
