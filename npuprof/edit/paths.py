"""Documents as plain data, by path: what a change means, apart from any text."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from npuprof.catalog import values
from npuprof.model import Path, Record

#: No value: what a change gives to a key that is to go, and what a missing key has.
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


class PathChange(Record):
    """A value to put at a path, or MISSING to take away what is there; ``name`` is another name for the key, which keeps its place."""

    path: Path
    value: Any
    name: str = ""

    def make(self, data: Any) -> None:
        """Make the change to plain data."""
        if self.name:
            assign_at_path(data, self.path, MISSING)
        assign_at_path(data, (*self.path[:-1], self.name) if self.name else self.path, self.value)


def assign_at_path(data: Any, path: Path, value: Any) -> None:
    """Put a value into plain data, or take MISSING away; tables on the way are made where they are missing."""
    *way, last = path
    for part, below in zip(way, path[1:], strict=True):
        if isinstance(data, dict):
            data = data.setdefault(part, [] if isinstance(below, int) else {}) if value is not MISSING else data.get(part, {})
        else:
            data = data[part]
    if value is not MISSING:
        value = deepcopy(value)
        if isinstance(data, list) and last == len(data):
            data.append(value)
        else:
            data[last] = value
    elif isinstance(data, list):
        del data[last]
    else:
        data.pop(last, None)


def find_at_path(data: Any, path: Path) -> Any:
    """Return the value of plain data at a path, or MISSING."""
    for part in path:
        if (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int) and part < len(data)):
            data = data[part]
        else:
            return MISSING
    return data


def is_same_document(document: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Return whether two documents hold the same; a table of a profile that is empty counts as none."""
    return values.is_same_typed_value(_prune_empty_tables(document), _prune_empty_tables(expected))


def _prune_empty_tables(data: dict[str, Any]) -> dict[str, Any]:
    remaining = {name: value for name, value in data.items() if value not in ({}, [])}
    if isinstance(remaining.get("append"), dict):
        remaining["append"] = {name: value for name, value in remaining["append"].items() if value not in ({}, [])}
    return {name: value for name, value in remaining.items() if value != {}}
