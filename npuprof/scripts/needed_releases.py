"""Which releases of CANN have all that some settings need: the options and the values they are given.

Only what is certain is said. A release of which nobody knows whether it reads an option is no bound, and an option that no
adapter ever read bounds nothing.
"""

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
    whole = "Y" * len(known)
    for key, value in settings.items():
        option = catalog.find_option(key)
        if option is None:
            continue
        for states in {option.surface_states.get(surface, option.states) for surface in surfaces} or {option.states}:
            if "Y" in states and not states.startswith("Y"):
                whole = _combine(whole, states)
        whole = _combine(whole, _list_value_states(option, value, known))
    start = len(whole.rstrip("Y"))
    return f">={known[start]}" if 0 < start < len(known) and whole[start - 1] == "." else ""


def _combine(one: str, other: str) -> str:
    return "".join(min(pair, key=".?Y".index) for pair in zip(one, other, strict=True))


def _list_value_states(option: catalog.Option, value: Any, known: tuple[str, ...]) -> str:
    """Return, for each release, whether it takes a value, as far as the value has a history."""
    text = str(value)
    since = releases.release_index(option.choices_since[text]) if text in option.choices_since else 0
    until = releases.release_index(option.choices_until[text]) if text in option.choices_until else len(known)
    return "".join("Y" if since <= at < until else "." for at in range(len(known)))
