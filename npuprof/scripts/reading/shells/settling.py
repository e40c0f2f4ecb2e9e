"""What the exports of a shell script come to, where one of them is made again."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.scripts.reading.variables import leave_out
from npuprof.scripts.records import ScriptSetting


def settle(found: Sequence[ScriptSetting]) -> list[ScriptSetting]:
    """Return settings with a reason where the order of calls decides on their value: of several values of one a function has one."""
    by_name: dict[str, list[ScriptSetting]] = {}
    for setting in found:
        if setting.surface == "env" and not setting.reason and not setting.unused:
            by_name.setdefault(setting.name, []).append(setting)
    reasons: dict[int, str] = {}
    for several in by_name.values():
        setter = next((setting for setting in several if setting.function), None)
        if setter is not None and len({setting.value for setting in several}) > 1:
            reasons |= dict.fromkeys(map(id, several), f"depends on the order: {setter.function}() sets it in {setter.cited_line}")
    return [leave_out(setting, reasons.get(id(setting), "")) for setting in found]
