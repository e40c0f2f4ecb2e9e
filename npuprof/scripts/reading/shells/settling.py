"""What the exports of a shell script come to, where one of them is made again."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.scripts.reading.variables import leave_out
from npuprof.scripts.records import ScriptSetting


def settle(found: Sequence[ScriptSetting]) -> list[ScriptSetting]:
    """Return settings with a reason where their value is not certain; one that is made again keeps its value, and is not in force."""
    overridden, disordered = _find_overridden(found), _find_disordered(found)
    settled = []
    for at, setting in enumerate(found):
        if not setting.reason and at in disordered:
            setting = leave_out(setting, disordered[at])
        elif not setting.reason and at in overridden:
            setting = setting._replace(unused=overridden[at])
        settled.append(setting)
    return settled


def _name_line(setting: ScriptSetting) -> str:
    return f"line {setting.line} of {setting.file}" if setting.place.call else f"line {setting.line}"


def _find_overridden(found: Sequence[ScriptSetting]) -> dict[int, str]:
    """Return the exports that another one follows whose value is not known."""
    reasons: dict[int, str] = {}
    before: dict[str, list[int]] = {}
    for at, setting in enumerate(found):
        if setting.surface != "env" or setting.branches or setting.unused:
            continue
        if setting.reason.startswith("depends"):
            why = f"{_name_line(setting)} sets it again, to what {setting.reason}"
            reasons.update(dict.fromkeys(before.pop(setting.name, ()), why))
        else:
            before.setdefault(setting.name, []).append(at)
    return reasons


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
