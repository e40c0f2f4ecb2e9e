"""Grouping by key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from npuprof.system import group_pairs

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


def group_by(items: Iterable[Item], get_key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by key, keys and items in their original order."""
    return group_pairs((get_key(item), item) for item in items)
