"""Axes that npuprof.toml declares: valid names and values, and those that a user selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from npuprof import catalog
from npuprof.catalog import condition, releases
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import SECTIONS, Axes, Finding, did_you_mean

#: Names with a meaning in ``match``, ``[[output]]``, conditions or on the command line.
_TAKEN = frozenset(
    (
        "all",
        "axis",
        "check",
        "digest",
        "env",
        "framework",
        "frameworks",
        "name",
        "output",
        "path",
        "preset",
        "product",
        "release",
        "set",
        "spec",
        "target",
        "to",
        "version",
        "with",
        *PROFILE_KEYS,
        *SECTIONS,
    )
)


def find_name_fault(name: str) -> str:
    """Return why an axis cannot have a name, an empty string if it can."""
    if not (name.isascii() and name.isidentifier()) or iskeyword(name):
        return "A name has letters, digits and '_', and begins with a letter."
    plain = name.lower()
    if plain in _TAKEN or plain in releases.list_frameworks():
        return f"{plain} has another meaning in a match, an output or a condition."
    return f"{name} is an option." if catalog.find_option(name) else ""


def find_values_fault(values: object) -> str:
    """Return why a list cannot contain the values of an axis, to follow its name; else empty."""
    if not isinstance(values, list) or not values:
        return "must be a list of texts"
    for value in values:
        if not isinstance(value, str) or not value.isprintable() or set(value) & set(" ,=*"):
            return f"has the value {value!r}: a value is a text without blanks, commas and '='"
        if not value or values.count(value) > 1:
            return f"has the value {value!r} twice" if value else "has an empty value"
    return ""


def read_selected_axes(
    given: Mapping[str, str] | Sequence[str], declared: Axes, problems: list[Finding]
) -> tuple[tuple[str, str], ...]:
    """Return the values that a user selects, by axis, or as texts like ``role=decode``.

    Undeclared ones are added to the problems.
    """
    pairs = (
        given.items()
        if isinstance(given, Mapping)
        else [argument.partition("=")[::2] for argument in given]
    )
    selected: dict[str, str] = {}
    for name, value in pairs:
        if fault := find_undeclared(name, value, declared):
            problems.append(Finding("NP006", fault[0], _WHY, fault[1]))
        elif selected.setdefault(name, value) != value:
            what = f"{name} is selected twice: {selected[name]} and {value}"
            problems.append(Finding("NP902", what, "", "omit one of them"))
    return tuple(sorted(selected.items()))


_WHY = "[axes] in npuprof.toml declares the axes and their values."


def find_undeclared_values(tree: Any, declared: Axes) -> Iterator[tuple[str, str]]:
    """Yield why a condition compares an axis with an undeclared value, each with a hint."""
    for _, *sides in condition.list_comparisons(tree):
        for side, other in (sides, sides[::-1]):
            if side[0] == "value" and side[1][0] in declared and other[0] == "const":
                for value in other[1] if isinstance(other[1], tuple) else other[1:]:
                    if fault := find_undeclared(side[1][0], value, declared):
                        yield fault


def find_undeclared(name: str, value: str, declared: Axes) -> tuple[str, str] | None:
    """Return why an axis or its value is not a declared one, and a hint; None if it is."""
    if name not in declared:
        known = f"known are {', '.join(declared)}" if declared else "declare it in npuprof.toml"
        return f"unknown axis {name!r}", did_you_mean(name, declared, known)
    if value not in declared[name]:
        hint = did_you_mean(value, declared[name], f"known are {', '.join(declared[name])}")
        return f"unknown value {value!r} of the axis {name!r}", hint
    return None
