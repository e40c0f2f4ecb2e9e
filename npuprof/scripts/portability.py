"""Whether a setting of a script holds whatever happens, why it cannot be in a preset where it cannot, and what to do then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog.values import find_structure
from npuprof.document import keys
from npuprof.document.keys import format_toml_value
from npuprof.model import SECTIONS
from npuprof.scripts.python.config_classes import CLASSES, list_class_arguments
from npuprof.scripts.python.environ import list_ascend_names
from npuprof.scripts.records import ScriptSetting
from npuprof.scripts.sidecars import open_sidecar


def find_obstacle(one: ScriptSetting) -> tuple[str, str]:
    """Return why a setting cannot be in a preset, and what to do; empty where it can."""
    if one.reason:
        default = one.given.default
        return one.reason, f"{format_toml_value(default)} is what the script takes if nobody says otherwise" if default is not None else ""
    section, name = keys.split_section_and_name(one.key)
    if one.surface == "session":
        return _find_session_obstacle(one)
    if section == "env":
        return _find_variable_obstacle(name)
    if one.key in catalog.load_attributes()["choices"]:
        return "an attribute of global_options() that is no option", ""
    if section not in SECTIONS:
        return _find_foreign_obstacle(one)
    if section == "options" and catalog.find_option(one.key) is None:
        return "the catalogue does not know the option", "see npuprof scan"
    argument = catalog.find_argument(name) if section == "estimator" else None
    if section == "estimator" and argument is None:
        return "NPURunConfig takes no such argument", "see npuprof scan"
    return ("an object of the script", "") if argument is not None and argument.kind == "object" else ("", "")


def _find_session_obstacle(one: ScriptSetting) -> tuple[str, str]:
    option = catalog.find_option(one.name)
    if option is None or option.field is None:
        return "no adapter reads the key", "see npuprof scan"
    if one.field != option.field:
        return f"stored in .{one.field}, the adapter reads .{option.field}", "see npuprof scan"
    return "", ""


def _find_variable_obstacle(name: str) -> tuple[str, str]:
    variable = catalog.find_variable(name)
    if variable is None:
        return "" if name in list_ascend_names() else "the catalogue does not know the variable", ""
    if variable.freeze in ("never", "launcher"):
        hint = f'write {name} = {{ launcher = "{variable.launcher}" }}' if variable.launcher else variable.advice
        return "a fact of one process or job, not of a preset", hint
    return "", ""


def _find_foreign_obstacle(one: ScriptSetting) -> tuple[str, str]:
    """Return why an argument of an object, or an attribute of a group, that no option stands for cannot be in a preset."""
    if not one.made:
        return "global_options() has no such attribute", "see npuprof scan"
    if one.name in list_class_arguments(one.made):
        return f"an argument of {one.made} that is no option", ""
    return f"{one.made} takes {'it no more' if one.name in CLASSES[one.made].formerly else 'no such argument'}", "see npuprof scan"


def read_preset_value(one: ScriptSetting, folders: Sequence[str] | None) -> Any:
    """Return the value a preset holds; a sidecar file beside the script, or in one of the folders, is written out (None: no file is)."""
    if folders is None or find_structure(one.key) is None:  # files of flags stay where they are
        return one.value
    sidecar = open_sidecar(one, folders)
    if sidecar is None or not sidecar.value or sidecar.structure.faults(sidecar.value) or not sidecar.structure.format(sidecar.value):
        return one.value
    return sidecar.value
