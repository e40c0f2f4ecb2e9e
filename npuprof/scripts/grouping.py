"""Items by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def group_by(items: Iterable[Item], get_key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by their keys, the keys and the items of each in the order of the items."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(get_key(item), []).append(item)
    return groups
