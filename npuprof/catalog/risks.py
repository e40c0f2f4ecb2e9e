"""The unit of a setting, and what a change of it may affect."""

from __future__ import annotations

from collections.abc import Collection

from npuprof.catalog import find_flag, find_option, find_record_place, find_setting, find_variable, record_names
from npuprof.model import FRAMEWORK_SECTIONS, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The risk of variables that decide what programs execute or load.
EXECUTES = "executes"


def find_unit_and_risk(setting: str, tail: Path = (), *sides: Any) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a setting and what a change of it may affect, as far as the catalogue has them.

    ``sides`` are its values before and after, None if unset: either can affect execution, whatever the variable.
    """
    section, name = find_record_place(setting, tail)
    if section in FRAMEWORK_SECTIONS:
        records = [
            record for dotted in record_names(section) if f"{dotted}.".startswith(f"{name}.") and (record := find_setting(section, dotted))
        ]
        return records[0].unit if len(records) == 1 else "", tuple(dict.fromkeys(risk for record in records for risk in record.risk))
    if section == "options":
        option = find_option(name)
        return (option.unit, tuple(option.risk)) if option else ("", ())
    twin, unit = "", ""
    risk: tuple[str, ...] = ()
    if section == "env" and (variable := find_variable(name)):
        twin, unit, risk = variable.session_option, variable.unit, variable.risk
    elif section == "atc" and (flag := find_flag(name)):
        twin, risk = flag.twin, flag.risk
    option = find_option(twin) if twin and not risk else None
    risk = tuple(option.risk if option else risk)
    return unit, (EXECUTES, *risk) if section == "env" and _affects_execution(name, sides) else risk


def _affects_execution(name: str, sides: Collection[Any]) -> bool:
    from npuprof.catalog.execution import find_execution, find_value_execution, format_exported_text  # only variables need it

    texts = [format_exported_text(name, side) for side in sides if side is not None]
    return bool(find_execution(name)) or any(find_value_execution(name, text) for text in texts if text is not None)
