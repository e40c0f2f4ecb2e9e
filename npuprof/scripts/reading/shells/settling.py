"""What the exports of a shell script come to, where one of them is made again."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.scripts.reading.variables import leave_out
from npuprof.scripts.records import ScriptSetting


def settle(found: Sequence[ScriptSetting]) -> list[ScriptSetting]:
    """Return settings with a reason where the order of calls decides on their value."""
    disordered = _find_disordered(found)
    return [leave_out(setting, disordered[at]) if at in disordered else setting for at, setting in enumerate(found)]


def _name_line(setting: ScriptSetting) -> str:
    return f"line {setting.line} of {setting.file}" if setting.place.call else f"line {setting.line}"


def _find_disordered(found: Sequence[ScriptSetting]) -> dict[int, str]:
    """Return the exports of several values of which a function has one: the order of calls decides."""
    reasons: dict[int, str] = {}
    by_name: dict[str, list[int]] = {}
    for at, setting in enumerate(found):
        if setting.surface == "env" and not setting.reason and not setting.unused:
            by_name.setdefault(setting.name, []).append(at)
    for places in by_name.values():
        setter = next((found[at] for at in places if found[at].function), None)
        if setter is not None and len({found[at].value for at in places}) > 1:
            reasons |= dict.fromkeys(places, f"depends on the order: {setter.function}() sets it in {_name_line(setter)}")
    return reasons
