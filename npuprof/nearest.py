"""Did you mean: the nearest of the names that exist."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, names: Iterable[str], count: int = 3, likeness: float = 0.72) -> list[str]:
    """Return up to ``count`` of ``names`` that look like ``word``, nearest first; case counts for little.

    ``likeness``, up to 1, says how near is near: as ``difflib.SequenceMatcher.ratio`` counts.
    """
    import difflib

    lowered: dict[str, str] = {}
    for name in names:
        lowered.setdefault(name.lower(), name)
    return [lowered[match] for match in difflib.get_close_matches(word.lower(), lowered, count, likeness)]


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return ``did you mean 'a' or 'b'?``, or ``otherwise`` where nothing is near."""
    found = nearest(word, names)
    return f"did you mean {' or '.join(repr(name) for name in found)}?" if found else otherwise
