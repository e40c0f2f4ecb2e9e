"""From which release of CANN on every setting of a preset is read; said where it is certain only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from npuprof import catalog
from npuprof.catalog import releases


def find_needed_releases(settings: dict[str, Any], surfaces: Iterable[str] = ()) -> str:
    """Return the range from which on every setting is read (``>=6.3.RC2``); empty where that is every release, or not certain.

    Where a setting has gone again nothing is said: a range that ends before today would only hide from a check what is to be mended.
    Nor does an option bound anything that the earliest release read: where it was gone for a while, the script may be from before that.
    """
    known = releases.load_releases()
    rows: list[str] = []
    for key, value in settings.items():
        if option := catalog.find_option(key):
            states = {option.surface_states.get(surface, option.states) for surface in surfaces} or {option.states}
            rows += [row for row in states if "Y" in row and not row.startswith("Y")]
            rows.append(_list_value_states(option, value, known))
    start = max((len(row.rstrip("Y")) for row in rows), default=0)
    return f">={known[start]}" if 0 < start < len(known) and any(row[start - 1] == "." for row in rows) else ""


def _list_value_states(option: catalog.Option, value: Any, known: tuple[str, ...]) -> str:
    """Return, for each release, whether it takes a value, as far as the value has a history."""
    text = str(value)
    since = releases.release_index(option.choices_since[text]) if text in option.choices_since else 0
    until = releases.release_index(option.choices_until[text]) if text in option.choices_until else len(known)
    return "." * since + "Y" * (until - since) + "." * (len(known) - until)
