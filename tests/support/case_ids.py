"""Ids of parametrized cases: lists and tables of plain values are named by their text."""

from __future__ import annotations

from typing import Any

#: Characters of the longest text of one value.
LONGEST = 60


def pytest_make_parametrize_id(val: Any) -> str | None:
    """Return the id of a list, tuple or table, or None where pytest has to make one."""
    if not isinstance(val, (list, tuple, dict)) or not is_plain(val):
        return None
    is_command = val and not isinstance(val, dict) and all(type(item) is str for item in val)
    text = " ".join(val) if is_command else repr(val)
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return shown.encode("unicode_escape").decode()


def is_plain(value: Any, depth: int = 5) -> bool:
    """Return whether the text of a value is the same in each process.

    The text of a set has no order, and that of a function has its address.
    """
    if isinstance(value, (list, tuple)):
        return depth > 0 and all(is_plain(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return depth > 0 and all(is_plain(row, depth - 1) for row in value.items())
    return value is None or type(value) in (str, bytes, int, float, bool)
