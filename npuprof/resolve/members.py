"""What is so of any member of a lineage: asked of every preset of a store, whose lineages may have a thousand members each.

No function is called per member: in a chain each preset would pay for all below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from operator import attrgetter, contains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.document.profile import Profile

_get_overrides = attrgetter("overrides")
_get_table = attrgetter("table")
_get_home = attrgetter("home")
_get_yanked = attrgetter("yanked")


def has_overrides(lineage: Iterable[Profile]) -> bool:
    """Return whether any member has an override."""
    return any(map(_get_overrides, lineage))


def has_yanked(lineage: Iterable[Profile]) -> bool:
    """Return whether any member extends a version that was yanked, or is one that was asked for."""
    return any(map(_get_yanked, lineage))


def says_anywhere(lineage: Iterable[Profile], key: str) -> bool:
    """Return whether any member has a key in its ``[profile]``."""
    return any(map(contains, map(_get_table, lineage), repeat(key)))


def list_homes(lineage: tuple[Profile, ...]) -> list[Profile]:
    """Return one member of each store that the members come from."""
    return list(dict(zip(map(id, map(_get_home, lineage)), lineage, strict=True)).values())
