"""What ATC makes of flags that stand together: the flags of ``[atc]``, and those that session options are there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import Flag, values
from npuprof.checks.surfaces import OFFLINE
from npuprof.checks.view import Fault, View
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.checks.rules import About


def check_flags(view: View, about: About | None = None) -> Iterator[Finding]:
    """Yield flags that exclude each other, and those that are given twice, where ATC reads the preset."""
    if view.scenario != OFFLINE and view.scope.surface != "atc":
        return
    given: dict[str, list[str]] = {}
    for key in view.settings:
        if flag := find_flag_name(key):
            given.setdefault(flag, []).append(key)
    for flag, setters in given.items():
        if len(setters) == 2 and (about is None or about(setters)):
            yield from _check_twice_given(view, flag, *sorted(setters))
        record = catalog.find_flag(flag)
        for other in record.conflicts if record else ():
            name = other.removeprefix("--").partition("=")[0]
            pair = [setters[0], given[name][0]] if name in given else []
            if record is not None and pair and (about is None or about(pair)):
                yield from _check_conflict(view, record, other, *pair)


@cache
def list_flag_reads() -> tuple[frozenset[str], ...]:
    """Return the settings that are looked at together, for each flag that may be given twice, and for each conflict."""
    setters: dict[str, list[str]] = {}
    for section in ("options", "atc"):
        for name in catalog.record_names(section):
            key = keys.format_full_key(section, name)
            if flag := find_flag_name(key):
                setters.setdefault(flag, []).append(key)
    found = {frozenset(both) for both in setters.values() if len(both) == 2}
    for flag, ours in setters.items():
        record = catalog.find_flag(flag)
        for other in record.conflicts if record else ():
            theirs = setters.get(other.removeprefix("--").partition("=")[0], ())
            found |= {frozenset((one, another)) for one in ours for another in theirs}
    return tuple(found)


@cache
def find_flag_name(key: str) -> str:
    """Return the flag that a setting is for ATC, empty where it is none."""
    section, name = keys.split_section_and_name(key)
    if section == "atc":
        return name
    option = catalog.find_option(name) if section == "options" else None
    return option.spelling.get("atc", "").removeprefix("--") if option else ""


def _check_conflict(view: View, record: Flag, other: str, key: str, beside: str) -> Iterator[Finding]:
    """Yield that two flags exclude each other; once, where each of them says so."""
    name, equals, value = other.removeprefix("--").partition("=")
    if equals and _format_value(view.settings[beside], beside) != value:
        return
    back = catalog.find_flag(name)
    if back is not None and f"--{record.name}" in back.conflicts and name < record.name:
        return
    stops = record.stops and back is not None and back.stops
    what = f"--{record.name} and {other} exclude each other"
    fault = Fault("NP912", what, "ATC stops." if stops else "One overrules the other.", f"unset {key} or {beside}")
    yield view.build_finding(fault._replace(severity="error") if stops else fault, key)


def _check_twice_given(view: View, flag: str, own: str, option: str) -> Iterator[Finding]:
    """Yield that a flag and the option that is the same hold two values."""
    first, second = (_format_value(view.settings[key], key) for key in (option, own))
    if first != second:
        what = f"--{flag} is {format_short_value(first)} by {option} and {format_short_value(second)} by {own}"
        why = "Either is a setting of the preset, and a command line takes one."
        hint = f'unset {own}, or {option} in an [[override]] with match = {{ target = "atc" }}'
        yield view.build_finding(Fault("NP912", what, why, hint, severity="error"), own)


def _format_value(value: Any, key: str) -> str:
    """Return a value as ATC reads it."""
    option = catalog.find_option(key)
    if option is not None:
        if isinstance(value, (dict, list)) and (structure := values.find_structure(key)) and not structure.file:
            value = structure.format(value)
        value = option.write_on("atc", value)[1]
    return str(value).lower() if isinstance(value, bool) else str(value)
