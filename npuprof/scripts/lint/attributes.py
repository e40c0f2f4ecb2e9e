"""Faults of one ``global_options()`` attribute.

Values that the class rejects are errors, those that the engine rejects are warnings.
"""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog.attribute_values import (
    find_attribute_release,
    is_attribute_value,
    list_attribute_paths,
    list_attribute_values,
)
from npuprof.checks import setting_values
from npuprof.checks.view import Fault
from npuprof.model import Context, did_you_mean
from npuprof.renderers.python_source import format_literal
from npuprof.scripts.script_records import UNSET, ScriptSetting


def find_plain_value_faults(setting: ScriptSetting) -> list[Fault]:
    """Return the faults of a value anywhere, without notes."""
    return [
        fault
        for fault in setting_values.find_setting_faults(setting.key, setting.value)
        if fault.severity != "info"
    ]


def find_attribute_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    """Return the faults of an attribute and its value, today or in the requested release."""
    if not setting.name:
        return []
    is_current = setting.name in list_attribute_paths()
    is_there = (
        find_attribute_release(setting.name, requested.cann) != "."
        if requested.cann
        else is_current
    )
    if not is_there:
        return [_build_unknown_attribute_fault(setting.name, requested)]
    if not is_current:
        return []  # an attribute of an older release
    if setting.reason not in ("", UNSET) and not setting.assigned.kind:
        return []
    if not is_attribute_value(setting.name, setting.assigned.written, requested.cann):
        return [_build_refused_fault(setting, requested)]
    if (
        setting.reason
        or setting.key not in catalog.record_names()
        or not is_attribute_value(setting.name, setting.assigned.written)
    ):
        return []  # a value valid then is not a fault of today's option
    return [
        fault._replace(severity="warning") for fault in find_plain_value_faults(setting)
    ] or _find_engine_faults(setting)


def _build_unknown_attribute_fault(path: str, requested: Context) -> Fault:
    what = (
        "global_options() of "
        f"{f'CANN {requested.cann}' if path in list_attribute_paths() else 'the current adapter'} "
        f"has no option {path!r}"
    )
    option = catalog.find_option(path.rpartition(".")[2])
    if gone := catalog.load_attributes()["until"].get(path):
        hint = f"remove the line: CANN {gone} took it away; scan --cann judges by an older release"
    elif path in list_attribute_paths():
        hint = "omit the line, or check another release"
    else:
        spelled = option.spelling.get("global_options", "") if option is not None else ""
        elsewhere = option.not_carried.get("global_options", "") if option is not None else ""
        similar = did_you_mean(path, list_attribute_paths(), "npuprof options lists all")
        hint = f"write global_options().{spelled}" if spelled else elsewhere or similar
    return Fault(
        "NP812", what, "global_options() raises ValueError for a name it does not have.", hint
    )


def _build_refused_fault(setting: ScriptSetting, requested: Context) -> Fault:
    taken = list_attribute_values(setting.name, requested.cann)
    value = format_literal(setting.assigned.written)
    listed = ", ".join(map(format_literal, taken))
    code, what = "NP202", f"it takes {listed}, not {value}"
    if {type(choice) for choice in taken} == {type(setting.assigned.written)}:
        code, what = "NP203", f"{value} is none of {listed}"
    why = "The class accepts only these values and raises TypeError or ValueError for any other."
    hint = "omit the line" if setting.assigned.written is None else f"write one of {listed}"
    return Fault(code, f"global_options().{setting.name}: {what}", why, hint)


def _find_engine_faults(setting: ScriptSetting) -> list[Fault]:
    """Return the engine's problems with a value that the class accepts."""
    option = catalog.find_option(setting.key)
    known = option.engine_choices.get("global_options", ()) if option else ()
    if not known or setting.value in known:
        return []
    what = (
        f"global_options().{setting.name} = {format_literal(setting.assigned.written)} passes the "
        "class, but the engine rejects it"
    )
    hint = f"write {' or '.join(map(format_literal, known))}"
    return [
        Fault(
            "NP203", what, f"The engine knows {' and '.join(known)} only.", hint, severity="warning"
        )
    ]
