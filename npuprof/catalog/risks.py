"""The unit of a setting, and what a change of it may affect."""

from __future__ import annotations

from collections.abc import Collection

from npuprof.catalog import (
    Flag,
    Option,
    Variable,
    find_option,
    find_record,
    find_record_place,
    list_settings_below,
    values,
)
from npuprof.model import Any, Path

#: The risk of variables that decide what programs execute or load.
EXECUTES = "executes"


def find_unit_and_risk(setting: str, tail: Path = (), *sides: Any) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a setting and what a change of it may affect, if the catalogue has them.

    ``sides`` are its values before and after, None if unset: either can affect execution, whatever
    the variable.
    """
    section, name = find_record_place(setting, tail)
    record = find_record(section, name)
    if isinstance(record, Option):
        return record.unit, record.risk
    equivalent = ""
    unit = ""
    risk: tuple[str, ...] = ()
    if isinstance(record, (Variable, Flag)):
        equivalent = record.session_option if isinstance(record, Variable) else record.twin
        unit, risk = record.unit, record.risk
    elif settings := list_settings_below(section, name):
        unit = settings[0].unit if len(settings) == 1 else ""
        risk = tuple(dict.fromkeys(risk for setting in settings for risk in setting.risk))
    option = find_option(equivalent) if equivalent and not risk else None
    risk = option.risk if option else risk
    return unit, (EXECUTES, *risk) if section == "env" and _affects_execution(name, sides) else risk


def _affects_execution(name: str, sides: Collection[Any]) -> bool:
    from npuprof.catalog.execution import (
        find_execution,
        find_value_execution,
    )  # only variables need it

    texts = [values.format_exported_text(name, side) for side in sides if side is not None]
    return bool(find_execution(name)) or any(
        find_value_execution(name, text) for text in texts if text is not None
    )
