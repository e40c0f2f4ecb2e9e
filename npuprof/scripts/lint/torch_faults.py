"""Faults of one torch_npu setting in a script: its name, type and value."""

from __future__ import annotations

from npuprof import catalog
from npuprof.checks.frameworks import find_framework_faults
from npuprof.checks.view import Fault
from npuprof.document.keys import split_section_and_name
from npuprof.model import Context
from npuprof.renderers.python_source import format_literal
from npuprof.scripts.script_records import ScriptSetting

_OFF = frozenset(("false", "0", "off", "no", "disable", "none"))
_STOPS = "The script stops there with TypeError."


def find_torch_faults(setting: ScriptSetting, requested: Context) -> list[Fault]:
    """Return the faults of a torch_npu setting."""
    section, name = split_section_and_name(setting.key)
    record = catalog.find_setting(section, name) if setting.name else None
    if record is None:
        return [_build_unknown_fault(setting, section, name)] if setting.name else []
    if setting.reason:
        return []
    members = record.call.partition(" = ")[2].removesuffix("{}")
    if members and setting.assigned.kind != members:
        what = (
            f"{name} takes a member of {members.rstrip('.')}, not "
            f"{format_literal(setting.assigned.written)}"
        )
        return [Fault("NP202", what, _STOPS, f"write {members}{record.choices[0]}")]
    if record.kind == "bool" and record.call and not isinstance(setting.value, bool):
        return [_build_switch_fault(setting, record)]
    faults = find_framework_faults(section, name, setting.value)
    return [
        fault._replace(why=fault.why or record.otherwise)
        for fault in faults
        if fault.severity != "info"
    ]


def _build_switch_fault(setting: ScriptSetting, record: catalog.Setting) -> Fault:
    """Return the fault of a value that is neither True nor False."""
    written = setting.assigned.written
    meant = bool(written) and str(written).strip().lower() not in _OFF
    what = f"{record.name} takes True or False, not {format_literal(written)}"
    why = record.otherwise or _STOPS
    return Fault("NP202", what, why, f"write {record.call.format(meant)}")


def _build_unknown_fault(setting: ScriptSetting, section: str, name: str) -> Fault:
    """Return the fault of an unknown setting.

    One without similar names may belong to an older release.
    """
    fault = find_framework_faults(section, name, setting.value)[0]._replace(fix=None)
    hint = _suggest_setting(setting, name)
    is_similar = (
        bool(hint) or fault.hint.startswith("did you mean") or " belongs below " in fault.hint
    )
    fault = fault._replace(hint=hint or fault.hint)
    if setting.class_name == "set_option":
        return fault._replace(
            why="set_option stops at a key that it does not know.",
            severity="error" if is_similar else "warning",
        )
    return fault._replace(why=_STOPS) if setting.class_name else fault


def _suggest_setting(setting: ScriptSetting, name: str) -> str:
    """Return how a script sets a similar setting; empty if there is no simple form."""
    records = [*catalog.list_records(catalog.Setting, "torch_npu")]
    same = (record for record in records if record.call and f".{name}".endswith(f".{record.name}"))
    by_call = [*same, *(record for record in records if f".{setting.class_name}(" in record.call)]
    if by_call:
        shown = format_literal(setting.value) if isinstance(setting.value, bool) else "..."
        return f"write {by_call[0].call.format(shown)}"
    meant = next((record.name for record in records if name in record.counterparts), "")
    return f"did you mean {meant!r}?" if meant else ""
