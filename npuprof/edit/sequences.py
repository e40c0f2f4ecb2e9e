"""Where two sequences of texts differ."""

from __future__ import annotations

from collections.abc import Sequence


def find_differing_runs(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where two sequences differ, in order: start and end of a run in the first, and of what it became."""
    from difflib import SequenceMatcher

    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(first, last, start, stop) for kind, first, last, start, stop in codes if kind != "equal"]
