"""What the attributes of ``global_options()`` take, and how values of options are written there: for who writes and who reads them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import Option

#: An attribute that takes whatever it is given.
ANYTHING: tuple[Any, ...] = ()


def translate_surface_value(option: Option, value: Any, surface: str) -> tuple[bool, Any]:
    """Return whether a surface can write a value of an option, and the value as it is written there."""
    table = option.surface_values.get(surface)
    if table is None:
        return True, value
    known = str(value).lower() if isinstance(value, bool) else str(value)
    return known in table, table.get(known)


@cache
def list_attribute_paths() -> tuple[str, ...]:
    """Return every path below ``global_options()`` that can be assigned: those of options, and the few that are none."""
    return (*catalog.options_by_spelling("global_options"), *catalog.load_attributes())


@cache
def list_attribute_groups() -> frozenset[str]:
    """Return the dotted paths that hold attributes, and are none."""
    parts = [path.split(".") for path in list_attribute_paths()]
    return frozenset(".".join(part[:n]) for part in parts for n in range(1, len(part)))


def list_attribute_values(path: str) -> tuple[Any, ...]:
    """Return the values the class takes for an attribute, ``ANYTHING`` where it does not look. Raises KeyError for no attribute."""
    if path in catalog.load_attributes():
        return catalog.load_attributes()[path]
    option = catalog.find_option(catalog.options_by_spelling("global_options")[path])
    assert option is not None
    if option.class_checks.get("global_options") == "nothing":
        return ANYTHING
    if table := option.surface_values.get("global_options"):
        return tuple(table.values())
    return (True, False) if option.field == "b" else option.choices


def is_attribute_value(path: str, value: Any) -> bool:
    """Return whether the class takes a value, which Python compares: 1 and 1.0 are as good as True. Raises KeyError for no attribute."""
    option = catalog.find_option(catalog.options_by_spelling("global_options").get(path, ""))
    checks = option.class_checks.get("global_options", "") if option else ""
    if checks == "pattern" and option is not None:
        return value is None or (isinstance(value, str) and re.fullmatch(option.pattern, value) is not None)
    known = list_attribute_values(path)
    return known == ANYTHING or value in known or (value is None and checks == "choices or None")


def read_attribute_value(path: str, value: Any) -> Any:
    """Return the value of an option that an attribute stands for: what is written there for it, in the option's own type.

    The attributes are sent as text, so that a number and its digits are one. What stands for nothing is returned as it is.
    """
    option = catalog.find_option(catalog.options_by_spelling("global_options").get(path, ""))
    if option is None:
        return value
    for known, written in option.surface_values.get("global_options", {}).items():
        if written == value:
            return next((choice for choice in (*option.choices, *option.tolerated) if str(choice) == known), known)
    plain = value if not isinstance(value, float) or not value.is_integer() else int(value)
    if option.field == "b" and isinstance(plain, int) and plain in (0, 1):
        return bool(plain)
    if option.field == "i" and isinstance(plain, bool):
        return int(plain)
    if option.field == "i" and isinstance(plain, str) and re.fullmatch(r"-?\d{1,18}", plain, re.ASCII):
        return int(plain)
    if option.field == "s" and isinstance(plain, (bool, int)):
        return str(int(plain))
    return value
