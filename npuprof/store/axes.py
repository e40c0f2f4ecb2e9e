"""Axes that npuprof.toml declares: valid names and values, and those that a user selects."""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.axes import find_undeclared
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import SECTIONS, Axes, Finding

#: Names with a meaning in ``match``, ``[[output]]``, conditions or on the command line.
_TAKEN = ("axis", "framework", "path", "product", "release", "set", "spec", "target", "to", "with")


def find_axis_fault(name: str, values: Any) -> str:
    """Return why a name or its values cannot be declared, an empty string if they can."""
    plain = name.lower()
    if not (name.isascii() and name.isidentifier()) or iskeyword(plain):
        return "the name must be letters, digits and '_', and begin with a letter"
    if plain in (*_TAKEN, *PROFILE_KEYS, *SECTIONS, *releases.list_frameworks()):
        return "the name has another meaning in a match, an output or a condition"
    if catalog.find_option(name):
        return "the name is that of an option"
    is_fit = isinstance(values, list) and all(
        isinstance(value, str) and value and value.isprintable() and not set(value) & set(" ,=")
        for value in values
    )
    if not is_fit or not values:
        return "its values must be a list of texts without blanks, commas and '='"
    return "a value is listed twice" if len(set(values)) < len(values) else ""


def read_selected_axes(
    given: Iterable[tuple[str, str]], declared: Axes, problems: list[Finding]
) -> tuple[tuple[str, str], ...]:
    """Return the values that a user selects, by axis; undeclared ones are added to the problems."""
    selected: dict[str, str] = {}
    for name, value in given:
        problems += find_undeclared(name, value, declared)
        if selected.setdefault(name, value) != value:
            what = f"--axis selects two values of an axis: {name}={selected[name]} and {value}"
            problems.append(Finding("NP902", what, "", "select one, or none for all"))
    return tuple(sorted(selected.items()))
