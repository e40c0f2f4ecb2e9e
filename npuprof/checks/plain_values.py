"""Faults of plain values: estimator arguments, ATC flags, chip names, and paths in any section."""

from __future__ import annotations

import re

from npuprof import catalog
from npuprof.catalog import products
from npuprof.catalog.readers import find_shell_expansion, find_spelling, may_be_taken
from npuprof.checks.meaning import (
    UNKNOWN,
    build_choice_fault,
    describe_value_kind,
    format_choices,
    guess_choice,
    guess_plain_value,
    suggest_value,
    verify_guess,
)
from npuprof.checks.view import Fault, find_nul_faults, find_range_faults
from npuprof.document.keys import format_short_value
from npuprof.model import Any, suggest_name

_TYPES = {"int": (int,), "bool": (bool,), "float": (int, float)}
_CHINESE = "\\u3400-\\u9fff"
_TYPE_NAMES = {int: "a whole number", bool: "true or false", float: "a number", str: "text"}


def find_argument_faults(name: str, value: Any) -> list[Fault]:
    """Return the faults of an argument of ``NPURunConfig`` and its value."""
    argument = catalog.find_argument(name)
    if argument is None:
        if catalog.find_option(name):
            what = f"{name} is a session option, not only an estimator argument"
            why, hint = "It would be lost on every other target.", f"write {name} below [options]"
            return [Fault("NP208", what, why, hint)]
        known = catalog.record_names("estimator")
        hint, fix = suggest_name(name, known, f"known are {', '.join(known)}")
        what = f"unknown estimator argument {name!r}"
        return [Fault("NP208", what, "NPURunConfig raises TypeError for it.", hint, fix=fix)]
    if argument.kind == "object":
        what, hint = (
            f"estimator.{name} is an object of the script",
            "pass it in the script, to the rendered function",
        )
        return [Fault("NP208", what, "A preset contains only plain values.", hint)]
    key = f"estimator.{name}"
    faults = find_plain_value_faults(key, argument, value)
    if not faults and argument.kind == "path":
        return find_path_faults(key, value)
    return faults


def find_flag_faults(name: str, value: Any) -> list[Fault]:
    """Return the faults of an ``atc`` flag, named without dashes, and its value."""
    flag = catalog.find_flag(name)
    if flag is None:
        hint, fix = suggest_name(name, catalog.record_names("atc"), "npuprof options lists all")
        if name.startswith("-"):
            hint = f"write {name.lstrip('-')} without dashes"
        what = f"unknown ATC flag {name!r}"
        return [Fault("NP209", what, "atc stops at a flag it does not know.", hint, fix=fix)]
    if isinstance(value, str):
        value = find_spelling(flag, value)
    faults = find_plain_value_faults(f"atc.{name}", flag, value)
    if faults and isinstance(value, str) and may_be_taken(flag, value):
        return [fault._replace(severity="info") for fault in faults]
    if faults and flag.kind == "chip":  # the number as text, the usual fix, is no chip either
        hint = 'write the name of a chip, as "Ascend910B2"'
        return [fault._replace(hint=hint, fix=None) for fault in faults]
    if faults:
        return faults
    if flag.kind == "chip":
        return find_chip_faults(f"atc.{name}", value)
    if flag.kind == "path":
        return find_path_faults(f"atc.{name}", value, flag.path_characters)
    return []


def find_chip_faults(setting: str, value: str) -> list[Fault]:
    """Return the fault of a ``setting`` with an unknown chip.

    A warning if the name does not look like an Ascend chip.
    """
    if products.find_chip_family(value):
        return []
    hint, fix = products.suggest_chip(value)
    what = f"{setting} = {format_short_value(value)} is no known chip"
    fault = Fault(
        "NP403",
        what,
        "ATC compiles for the chips it has files of, and checks for a product cannot be made.",
        hint,
        fix=fix,
    )
    return [fault if fix or value.startswith("Ascend") else fault._replace(severity="warning")]


def find_path_faults(key: str, path: str, characters: str = "") -> list[Fault]:
    """Return the faults of a path: unexpanded variables and undocumented characters.

    Manuals allow a set of characters for some paths.
    """
    if expansion := find_shell_expansion(path):
        what = f"{key} = {format_short_value(path)} contains {expansion}, which nothing expands"
        why = (
            "A shell replaces it in a line that is typed; "
            "rendered code and exports hand the path on as it is."
        )
        return [Fault("NP211", what, why, "write the path out, or one from the current folder on")]
    if not characters:
        return []
    # the large character range compiles slowly
    allowed = characters.replace(_CHINESE, "") if path.isascii() else characters
    undocumented = re.sub(f"[{allowed}]+", "", path)
    if undocumented:
        listed = ", ".join(dict.fromkeys(map(format_short_value, undocumented)))
        what = f"{key} = {format_short_value(path)} contains {listed}"
        why = (
            "The manual lets such a path be made of letters, digits, '_', '-', '.', Chinese "
            "characters and the '/' between them."
        )
        return [Fault("NP203", what, why, "rename the folder or the file")]
    return []


def find_plain_value_faults(key: str, record: catalog.Entry, value: Any) -> list[Fault]:
    """Return the type, choice, range and format faults of a plain value."""
    kind, choices = record.kind, record.choices
    types = tuple({type(choice) for choice in choices}) or _TYPES.get(kind, (str,))
    if type(value) not in types:  # not isinstance: True is an int
        expected = " or ".join(dict.fromkeys(map(_TYPE_NAMES.__getitem__, types)))
        if choices:
            guess = guess_choice(value, choices, record.numbered)
            otherwise = f"write one of {format_choices(choices)}"
        else:
            guess = guess_plain_value(value, kind, record.unit)
            otherwise = f"write {expected}"
        if kind == "path":  # any text is a path, so that no guess can be verified
            guess = UNKNOWN
        else:
            guess = verify_guess(guess, lambda guess: find_plain_value_faults(key, record, guess))
        hint, fix = suggest_value(key.partition(".")[2], guess, otherwise, value)
        what = f"{key} takes {expected}, not {describe_value_kind(value)}"
        return [Fault("NP202", what, "", hint, fix=fix)]
    if choices and value not in choices:
        return [build_choice_fault(key, value, record)]
    if not isinstance(value, str):
        return find_range_faults(f"{key} = {value}", value, record)
    faults = find_nul_faults(key, value, "No argument can hold one.")
    is_flag = isinstance(record, catalog.Flag)
    pattern = record.pattern if is_flag or isinstance(record, catalog.Setting) else ""
    if faults or not pattern or re.fullmatch(pattern, value):
        return faults
    what = f"{key} = {format_short_value(value)} is not in its format"
    hint = f"see npuprof option {f'--{key[4:]}' if is_flag else key}"
    return [Fault("NP203", what, "atc stops at it." * is_flag, hint)]
