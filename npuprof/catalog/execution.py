"""Classification of environment variables: affects code execution, known, option, misspelt."""

from __future__ import annotations

import re
from functools import cache

from npuprof.catalog import (
    Variable,
    find_setting,
    find_variable,
    list_records,
    load_built_part,
)
from npuprof.catalog.readers import is_documented
from npuprof.catalog.values import load_form
from npuprof.model import TYPE_CHECKING, has_only_digits, is_variable_name
from npuprof.system import group_pairs, lazy_pattern, list_items

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from typing import Any

    from npuprof.model import Path


#: Variables that decide where npuprof finds the user's configuration and trust.
_OWN = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
#: Characters at which a shell splits, expands or evaluates a value that a script uses unquoted or
#: in a calculation.
_ACTIVE = frozenset(" $`[;|&<>(){}*?~#'\"\\")
#: Parts of a pattern that match any character but a few.
_OPEN_PART = lazy_pattern(r"\\[DSWs]|\[\^|(?<!\\)\.")
_JSON_STRING = lazy_pattern(r'"((?:[^"\\]|\\.)*)"')
_NUMBER = lazy_pattern(r"-?[0-9]+(?:[.,:][0-9]+)*")
_DIGITS = lazy_pattern(r"[0-9]+")


def is_own_variable(name: str) -> bool:
    """Return whether a variable belongs to npuprof itself; no preset may set it."""
    return name in _OWN or name.startswith("NPUPROF_")


@cache
def find_execution(name: str) -> str:
    """Return how a variable affects code execution or loading.

    An empty string if no effect is known.
    """
    if (record := find_variable(name)) is not None:
        return str(record.executes or "")
    if (effect := _list_effects().get(name)) is not None:
        return effect
    for prefix, effect in load_built_part("variables")["effects_by_prefix"].items():
        if name.startswith(prefix):
            return str(effect)
    return ""


@cache
def _list_effects() -> dict[str, str]:
    rows = load_built_part("variables")["effects"]
    return {name: effect for effect, names in rows for name in names.split()}


def find_weakening(name: str, text: str = "") -> str:
    """Return what a text of a variable takes away from the user, an empty string if nothing.

    Without a text, what an ``unset`` does.
    """
    loss, kept_by = _find_protection(name)
    return "" if text.lower() in kept_by else loss


@cache
def _find_protection(name: str) -> tuple[str, tuple[str, ...]]:
    """Return what a variable protects, and the values (in lower case) that keep the protection.

    Empty if nothing.
    """
    record = find_variable(name)
    if record is not None:
        return record.protects, record.kept_by
    protections: dict[str, tuple[str, tuple[str, ...]]]
    protections = load_built_part("variables")["protections"]
    if name in protections:
        return protections[name]
    protections = load_built_part("variables")["protections_by_suffix"]
    for suffix, protection in protections.items():
        if name.upper().endswith(suffix):  # programs read such names in any letter case
            return protection
    return "", ()


def find_setting_effects(section: str, name: str, value: Any) -> Iterator[tuple[Path, Any, str]]:
    """Yield each part of a framework setting that needs trust: path below it, value and effect.

    The program's own default needs none, nor do values that keep a protection.
    """
    record = find_setting(section, name)
    if record is not None and value == record.default:
        return
    if isinstance(value, (dict, list)):
        for part, item in list_items(value):
            below = f"{name}.{part}" if isinstance(part, str) else name
            for path, leaf, effect in find_setting_effects(section, below, item):
                yield (part, *path), leaf, effect
        return
    effect = str(record.executes or record.protects) if record else ""
    if effect and record and str(value).lower() not in record.kept_by:
        yield (), value, effect


def find_value_execution(name: str, text: str) -> str:
    """Return why a variable needs trust with exactly this value, an empty string if it does not."""
    return find_execution(name) or find_weakening(name, text) or find_text_effect(name, text)


def find_text_effect(name: str, text: str) -> str:
    """Return what a script may do with a text other than use it as one value.

    An empty string if nothing.

    A script may use any variable unquoted (``torchrun --master_addr $MASTER_ADDR``) or in a
    calculation, where bash runs ``x[$(command)]``. Texts of the variable's documented form are
    free.
    """
    if has_only_digits(text):
        return ""
    if "NPUPROF_" in text:
        return "in a calculation, it stands for the text of an option"
    record = find_variable(name)
    if record:
        is_number = record.framework != "cann" and record.kind == "int"
    else:
        is_number = name in load_built_part("variables")["numbers"]
    active = find_active_part(text)
    if not active and not is_number:
        return ""
    is_numeric = _NUMBER.fullmatch(text) is not None
    takes_number = is_number or (record is not None and record.kind in ("int", "float"))
    if (is_numeric and takes_number) or _has_form(record, name, text):
        return ""
    if is_number:
        return "scripts take it for a number, and put other text into their command lines"
    return (
        "a program can take its value for an option"
        if active == "-"
        else f"a shell can split, expand or evaluate its value at {active!r}"
    )


def find_active_part(text: str) -> str:
    """Return the first character of a text on which a shell acts, or a leading ``-``; else empty.

    A path may begin with ``~/``.
    """
    path = text.removeprefix("~/")
    if path.startswith("-"):
        return "-"
    if path.isprintable() and _ACTIVE.isdisjoint(path):
        return ""
    return next(char for char in path if char in _ACTIVE or not char.isprintable())


def _has_form(record: Variable | None, name: str, text: str) -> bool:
    """Return whether a text has the form of a variable, if that form excludes other texts."""
    if record is None:
        form = load_built_part("variables")["forms"].get(name, "")
        return bool(form) and re.fullmatch(form, text) is not None
    if record.form:
        return re.fullmatch(record.form, text) is not None
    if record.kind == "pairs":
        return _has_plain_pairs(record, text)
    if record.structure:
        structure = load_form(record.structure)
        value = structure.parse(text)
        if value is None or structure.faults(value):
            return False
        # of a key that occurs twice in JSON, the parsed value has the last one only
        return not any(map(find_active_part, _JSON_STRING.findall(text)))
    if record.pattern and not record.choices and _OPEN_PART.search(record.pattern):
        return False
    return bool(record.choices or record.pattern) and is_documented(record, text)


def _has_plain_pairs(record: Variable, text: str) -> bool:
    """Return whether a text consists of known keys, each with a plain value.

    A list in brackets is one value.
    """
    from npuprof.catalog.key_value_pairs import find_pair_faults, is_known_key, parse_pairs

    pairs = parse_pairs(record, text)
    if pairs is None or find_pair_faults(record, text) or " ".join(text.split()) != text:
        return False
    for key, value in pairs.items():
        if key not in record.items and (not is_known_key(record, key) or find_active_part(key)):
            return False
        value_text = str(value)
        if value_text.startswith("[") and value_text.endswith("]"):
            value_text = value_text[1:-1]
        if find_active_part(value_text):
            return False
    return True


@cache
def is_unknown_variable(name: str) -> bool:
    """Return whether a valid variable name is neither npuprof's own nor in the catalogue."""
    return is_variable_name(name) and not is_own_variable(name) and not is_known_variable(name)


@cache
def is_known_variable(name: str) -> bool:
    """Return whether the catalogue has a variable, also one of other programs or of launchers."""
    if find_variable(name) is not None or name in _list_effects():
        return True
    from npuprof.catalog.launchers import FACTS

    if any(name in names for names in FACTS.values()):
        return True
    return name.startswith(tuple(load_built_part("variables")["effects_by_prefix"]))


def has_complete_prefix(name: str) -> bool:
    """Return whether the catalogue has every variable with a name's prefix."""
    return name.startswith(load_built_part("variables")["complete_prefixes"])


def list_option_calls() -> dict[str, tuple[str, str]]:
    """Return the options that no program reads as variables, by name: their API and the call."""
    calls: dict[str, tuple[str, str]] = load_built_part("variables")["option_calls"]
    return calls


def list_misspelt_names() -> dict[str, str]:
    """Return names that scripts and manuals are known to misspell, with those that are read."""
    names: dict[str, str] = load_built_part("variables")["misspelt"]
    return names


def find_declaration_fault(name: str) -> str:
    """Return why a team cannot declare a variable of this name, an empty string if it can."""
    if not is_variable_name(name):
        return "no shell can set it"
    if is_own_variable(name):
        return "it is a variable of npuprof itself"
    if effect := find_execution(name) or find_weakening(name):
        return f"it affects execution: {effect}"
    if is_known_variable(name):
        return "the catalogue has it"
    if has_complete_prefix(name) or name in list_misspelt_names() or name in list_option_calls():
        return "no program reads it"
    return ""


@cache
def list_ascend_names() -> tuple[str, ...]:
    """Return the variables that Ascend software reads, without names common to other programs."""
    return tuple(
        variable.name for variable in list_records(Variable, "env") if not variable.common_name
    )


def _list_spellings(name: str) -> Iterator[Hashable]:
    """Yield what a name shares with others that have a slip: its letters, its parts, all but one.

    Doubled letters count once in longer parts, and parts have any order if there are three or more.
    """
    parts = name.split("_")
    plain = [re.sub(r"([A-Z])\1", r"\1", part) if len(part) > 3 else part for part in parts]
    if len(name) > 10:
        yield "".join(plain)
    if len(parts) > 2:
        yield tuple(sorted(plain))
    for index in range(len(parts)):
        yield index, (*parts[:index], *parts[index + 1 :])


@cache
def _index_spellings() -> dict[Hashable, list[str]]:
    return group_pairs(
        (spelling, name) for name in list_ascend_names() for spelling in _list_spellings(name)
    )


@cache
def find_meant_variable(name: str) -> str:
    """Return the variable that an unknown name misspells, empty if there is none.

    Such names are recorded, or have the same letters, or parts in another order, or one part with a
    slip. Names of other vendors begin with another letter, and short parts may be intended.
    """
    if is_known_variable(name):
        return ""
    if recorded := list_misspelt_names().get(name, ""):
        return recorded
    for spelling in _list_spellings(name.upper()):
        for known in _index_spellings().get(spelling, ()):
            if not isinstance(spelling, tuple) or not isinstance(spelling[0], int):
                return known
            if _is_slip(name.upper().split("_")[spelling[0]], known.split("_")[spelling[0]]):
                return known
    return ""


def _is_slip(part: str, known: str) -> bool:
    """Return whether a part of a name is a known one with a wrong, missing or additional letter."""
    from difflib import SequenceMatcher

    shorter = min(len(part), len(known))
    if shorter < 4 or part[0] != known[0] or _DIGITS.findall(part) != _DIGITS.findall(known):
        return False
    common = sum(block.size for block in SequenceMatcher(None, part, known).get_matching_blocks())
    return 2 * common * shorter >= (shorter - 1) * (len(part) + len(known))
