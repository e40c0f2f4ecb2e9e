"""Changes of plain data by path, independent of any text."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from npuprof.model import LIST_OPS, Path, Record, TomlTable, is_same_typed_value

#: No value: the new value of a removed key, and the value of a missing one.
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


class PathChange(Record):
    """A value to set at a path, or MISSING to remove it; ``name`` renames the key in place.

    The comments of the value at ``source``, which another change removes, are kept with it.
    """

    path: Path
    value: Any
    name: str = ""
    source: Path = ()

    def make(self, data: Any) -> None:
        """Apply the change to plain data."""
        if self.name:
            assign_at_path(data, self.path, MISSING)
        assign_at_path(data, (*self.path[:-1], self.name) if self.name else self.path, self.value)


def assign_at_path(data: Any, path: Path, value: Any) -> None:
    """Set a value in plain data, or remove it for MISSING; missing tables are created."""
    *parents, last = path
    for part, below in zip(parents, path[1:], strict=True):
        if not isinstance(data, dict):
            data = data[part]
        elif value is MISSING:
            data = data.get(part, {})
        else:
            data = data.setdefault(part, [] if isinstance(below, int) else {})
    if value is not MISSING:
        # later changes must not reach the caller's value
        value = deepcopy(value)
        # the index after the last one appends
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
        is_key = isinstance(data, dict) and part in data
        is_index = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if not is_key and not is_index:
            return MISSING
        data = data[part]
    return data


def is_same_document(document: TomlTable, expected: TomlTable) -> bool:
    """Return whether two documents have equal content.

    An empty table of a profile counts as missing.
    """
    return is_same_typed_value(_prune_empty_tables(document), _prune_empty_tables(expected))


def _prune_empty_tables(data: TomlTable) -> TomlTable:
    remaining = {name: value for name, value in data.items() if value not in ({}, [])}
    # a removed element may leave its table, or its list, behind
    for op in LIST_OPS:
        if isinstance(remaining.get(op), dict):
            remaining[op] = {
                name: value for name, value in remaining[op].items() if value not in ({}, [])
            }
    return {name: value for name, value in remaining.items() if value != {}}
