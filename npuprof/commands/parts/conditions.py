"""What ``--where`` asks: conditions on the resolved values of presets, and what is said of those that no preset could meet."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from npuprof import catalog
from npuprof.catalog import condition, written_condition
from npuprof.catalog.written_condition import find_compared_key
from npuprof.document import keys
from npuprof.model import SCENARIOS, Finding, NpuprofError, did_you_mean
from npuprof.resolve.config import Config


def parse_condition(text: str) -> Any:
    """Return a condition as ``catalog.condition`` has it. Raises NpuprofError, with what to write, for what is none."""
    try:
        return written_condition.read_condition(text, _guess_value)
    except written_condition.ConditionError as error:
        raise NpuprofError([Finding("NP013", error.what, written_condition.LANGUAGE, error.hint)]) from None


def parse_conditions(texts: Sequence[str]) -> Any:
    """Return what all of several conditions ask, None where there is none. Raises NpuprofError for the first that is none."""
    found = [parse_condition(text) for text in texts]
    return ("and", *found) if len(found) > 1 else found[0] if found else None


def _guess_value(key: str, value: Any, kind: str) -> Any:
    from npuprof.checks import settings
    from npuprof.checks.meaning import UNKNOWN, guess_plain_value

    option = catalog.find_option(key)
    found = settings.guess_option_value(option, value) if option else guess_plain_value(value, kind)
    return None if found is UNKNOWN else found


def find_refused_values(tree: Any) -> dict[tuple[str, Any], Finding]:
    """Return the settings that a condition compares with a value that no check takes, with what to write: no preset should hold it."""
    from npuprof.checks import settings
    from npuprof.checks.meaning import suggest_choice

    found: dict[tuple[str, Any], Finding] = {}
    for word, left, right in condition.list_comparisons(tree):
        key, other = find_compared_key(left), right
        if not key or other[0] != "const" or word not in ("==", "in"):
            continue
        for value in other[1] if word == "in" and isinstance(other[1], tuple) else (other[1],):
            hint = next((fault.hint for fault in settings.find_setting_faults(key, value) if fault.code == "NP203"), "")
            if key == "scenario":
                hint = suggest_choice(key, value, SCENARIOS)[0] if value not in SCENARIOS else ""
            hint = re.sub(r"^write (\S+) = (.*)", rf"write '{key} == \2'", hint)
            if hint:
                what = f"--where asks for {key} = {keys.format_short_value(value)}, which it never is"
                found[key, value] = Finding("NP013", what, "No preset holds it, and no check would take it.", hint)
    return found


def build_unknown_name_error(key: str, held: Collection[str] = ()) -> NpuprofError:
    """Return the error that a condition asks for what is no setting; ``held`` are those that presets hold."""
    section, name = keys.split_section_and_name(key)
    elsewhere = catalog.find_key_elsewhere(key, held)
    otherwise = "npuprof options lists all; variables are env.NAME"
    hint = f"write {elsewhere}" if elsewhere else did_you_mean(name, catalog.record_names(section), otherwise)
    return NpuprofError([Finding("NP201", f"--where asks for {key!r}, which is no setting", "", hint)])


def meets_condition(config: Config, wanted: Any) -> bool:
    """Return whether the resolved values of a preset certainly meet a condition."""

    def look_up(path: tuple[str, ...]) -> tuple[bool | None, Any]:
        return written_condition.look_up(config.scenario, config.settings, path)

    return condition.evaluate_condition(wanted, look_up) is True
