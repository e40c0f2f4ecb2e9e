"""Classification of environment variables: affects code execution, known, option, misspelt."""

from __future__ import annotations

import re
from functools import cache

from npuprof.catalog import find_variable, load_built_part, record_names
from npuprof.model import has_only_digits

#: Variables that decide where npuprof finds the user's configuration and trust.
_OWN = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")


def is_own_variable(name: str) -> bool:
    """Return whether a variable belongs to npuprof itself; no preset may set it."""
    return name in _OWN or name.startswith("NPUPROF_")


@cache
def find_execution(name: str) -> str:
    """Return how a variable affects code execution or loading, an empty string if no effect is known."""
    if (record := find_variable(name)) is not None:
        return str(record.executes or "")
    if (effect := _list_effects().get(name)) is not None:
        return effect
    return next((does for beginning, does in load_built_part("variables")[1].items() if name.startswith(beginning)), "")


@cache
def _list_effects() -> dict[str, str]:
    return {name: effect for effect, names in load_built_part("variables")[0] for name in names.split()}


def find_value_execution(name: str, text: str) -> str:
    """Return how a variable with a value affects code execution or loading, an empty string if no effect is known."""
    if effect := find_execution(name):
        return effect
    if "$(" in text or "`" in text:
        return "a shell that calculates with its text runs the command in it"
    if has_only_digits(text):
        return ""
    record = find_variable(name)
    is_number = name in load_built_part("variables")[2] or (record is not None and record.framework != "cann" and record.kind == "int")
    if is_number and re.fullmatch(r"-?\d+(?:[.,:]\d+)*", text) is None:
        return "scripts take it for a number, and put other text into their command lines"
    return ""


def is_unknown_variable(name: str) -> bool:
    """Return whether a valid variable name is neither npuprof's own nor in any table of the catalogue."""
    return name.isascii() and name.isidentifier() and not is_own_variable(name) and not is_known_variable(name)


@cache
def is_known_variable(name: str) -> bool:
    """Return whether a variable is in the catalogue, in its table of other programs' variables, or set by a launcher."""
    if find_variable(name) is not None:
        return True
    from npuprof.catalog.launchers import FACTS

    known = (_list_effects(), *FACTS.values())
    return any(name in names for names in known) or name.startswith(tuple(load_built_part("variables")[1]))


def has_complete_prefix(name: str) -> bool:
    """Return whether the catalogue has every variable with a name's prefix."""
    return name.startswith(load_built_part("variables")[3])


def list_option_calls() -> dict[str, tuple[str, str]]:
    """Return, by name, the options that no program reads as variables: the API that takes the option, and the call that sets it."""
    calls: dict[str, tuple[str, str]] = load_built_part("variables")[4]
    return calls


@cache
def list_ascend_names() -> tuple[str, ...]:
    """Return the variables that Ascend software reads, without names common to other programs."""
    return tuple(name for name in record_names("env") if (record := find_variable(name)) and not record.common_name)


def _sort_words(name: str) -> tuple[str, ...]:
    """Return the words of a name with doubled letters merged; words of three or more letters are sorted."""
    words = re.sub(r"([A-Z_])\1", r"\1", name).split("_")
    return tuple(sorted(words) if len(words) > 2 else words)


@cache
def _index_words() -> dict[tuple[str, ...], str]:
    return {_sort_words(name): name for name in list_ascend_names() if "_" in name}


def find_rewritten_name(name: str) -> str:
    """Return the variable whose words match an unknown name in another order, or with other doubled letters; else an empty string."""
    known = "" if is_known_variable(name) else _index_words().get(_sort_words(name), "")
    return known if known and not name.startswith(known) else ""  # with a suffix it is the script's own variable
