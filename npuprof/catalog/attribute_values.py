"""Values of ``global_options()`` attributes, and the values of options there.

For renderers and script readers.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.values import read_choice

#: The values of an attribute that accepts everything.
ANYTHING: tuple[Any, ...] = ()


@cache
def list_attribute_paths() -> tuple[str, ...]:
    """Return every assignable path below ``global_options()``: options, and a few others."""
    return (*catalog.options_by_spelling("global_options"), *catalog.load_attributes()["choices"])


@cache
def list_attribute_groups() -> frozenset[str]:
    """Return the dotted paths of attribute groups."""
    parts = [path.split(".") for path in list_attribute_paths()]
    return frozenset(".".join(part[:n]) for part in parts for n in range(1, len(part)))


def find_attribute_release(path: str, release: str) -> str:
    """Return whether the class has an attribute in a release: ``Y``, ``.`` no, ``?`` unknown."""
    history = catalog.load_attributes()
    if until := history["until"].get(path):
        return "Y" if releases.is_earlier(release, until) else "."
    if since := history["since"].get(path):
        if not releases.is_earlier(release, since):
            return "Y"
        # the last release that is known to lack it; of those in between nothing is known
        absent = history["absent"].get(path)
        return "?" if absent is not None and releases.is_earlier(absent, release) else "."
    option = _find_attribute_option(path)
    if option is None:
        return "."
    states = option.surface_states.get("global_options") or option.states
    return states[releases.release_index(release)]


def _find_attribute_option(path: str) -> catalog.Option | None:
    return catalog.find_option(catalog.options_by_spelling("global_options").get(path, ""))


def list_attribute_values(path: str, release: str | None = None) -> tuple[Any, ...]:
    """Return the values that the class accepts for an attribute, today or in a release.

    ``ANYTHING`` if it does not check.

    Raises KeyError for an unknown attribute.
    """
    before = catalog.load_attributes()["before"].get(path)
    if not before or not release or not releases.is_earlier(release, before["until"]):
        return _list_values_today(path)
    former: tuple[Any, ...] = before["values"]
    last_sure = before.get("sure")
    if last_sure is None or not releases.is_earlier(last_sure, release):
        return former
    # of the releases after it nothing is known: both lists are accepted
    return (*former, *(value for value in _list_values_today(path) if value not in former))


@cache
def _list_values_today(path: str) -> tuple[Any, ...]:
    plain: dict[str, tuple[Any, ...]] = catalog.load_attributes()["choices"]
    if path in plain:
        return plain[path]
    option = catalog.find_option(catalog.options_by_spelling("global_options")[path])
    assert option is not None
    if option.class_checks.get("global_options") == "nothing":
        return ANYTHING
    if table := option.surface_values.get("global_options"):
        return tuple(table.values())
    return (True, False) if option.field == "b" else option.choices


def is_attribute_value(path: str, value: Any, release: str | None = None) -> bool:
    """Return whether the class accepts a value by Python's equality: 1 and 1.0 count as True.

    Raises KeyError for an unknown attribute.
    """
    known = list_attribute_values(path, release)
    option = _find_attribute_option(path)
    none_too = option is not None and option.class_checks.get("global_options") == "choices or None"
    return known == ANYTHING or value in known or (value is None and none_too)


def read_attribute_value(path: str, value: Any) -> Any:
    """Return the option value for the value of an attribute, in the option's own type.

    Attributes are sent as text, so a number and its digits are equal. A value without a match is
    returned unchanged.
    """
    option = _find_attribute_option(path)
    if option is None:
        return value
    for known, written in option.surface_values.get("global_options", {}).items():
        if written == value:
            return read_choice(option, known)
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    if option.field == "b" and isinstance(plain, int) and plain in (0, 1):
        return bool(plain)
    if option.field == "i":
        is_digits = isinstance(plain, str) and re.fullmatch(r"-?\d{1,18}", plain, re.ASCII)
        if is_digits or isinstance(plain, bool):
            return int(plain)
    if option.field == "s" and isinstance(plain, (bool, int)):
        return str(int(plain))
    return value
