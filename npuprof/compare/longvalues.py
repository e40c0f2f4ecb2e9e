"""Values too long for a row of a page: what of them is shown there, and all of it, folded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from npuprof.compare.changes import Change
from npuprof.compare.folds import format_change_sentence
from npuprof.document import keys
from npuprof.report.text import escape_controls

#: How many characters of a value stand in a row, and how many that both sides share before they differ.
VALUE_LIMIT = 300
_SHARED = 40


def format_short_sentence(change: Change) -> str:
    """Return a change as a sentence in which long values are cut, and what is cut is counted."""
    sides = _list_sides(change)
    if all(len(side) <= VALUE_LIMIT for side in sides):
        return format_change_sentence(change)
    start = _count_shared(*sides) - _SHARED if len(sides) == 2 else 0
    shown = [_shorten(side, start if start > VALUE_LIMIT - 2 * _SHARED else 0) for side in sides]
    scope = f"({change.scope}) " if change.scope else ""
    return f"{scope}{change.key} {' → '.join(shown)}"


def list_full_values(changes: Iterable[Change]) -> dict[str, str]:
    """Return each change that a row only tells in part with its whole values, folded; equal ones once, by what makes them the same."""
    values: dict[str, str] = {}
    for change in changes:
        sides = _list_sides(change)
        mark = repr((change.key, change.scope, *sides))
        if any(len(side) > VALUE_LIMIT for side in sides) and mark not in values:
            values[mark] = _format_full_value(change, [escape_controls(side) for side in sides])
    return values


def shorten_text(text: str) -> str:
    """Return a text with its end cut where it is long, and counted."""
    limit = 2 * VALUE_LIMIT
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _list_sides(change: Change) -> list[str]:
    sides = {"added": [change.after], "removed": [change.before]}.get(change.kind, [change.before, change.after])
    return [keys.format_toml_value(side) for side in sides]


def _count_shared(old: str, new: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((place for place, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new)))


def _shorten(text: str, start: int) -> str:
    """Return at most as much of a text as a row has room for, from a place on."""
    if len(text) <= VALUE_LIMIT:
        return text
    end = start + VALUE_LIMIT
    after = len(text) - end
    count = f"… ({len(text) - VALUE_LIMIT:,} more characters)" if after > 0 else f" ({start:,} more characters before)"
    return f"{'…' if start else ''}{text[start:end]}{count}"


def _format_full_value(change: Change, sides: list[str]) -> str:
    signs = {"added": "+", "removed": "-"}.get(change.kind, "-+")
    lines = "".join(f"{sign} {change.key} = {side}\n" for sign, side in zip(signs, sides, strict=True))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", lines)), default=0))
    name = escape(escape_controls(f"({change.scope}) {change.key}" if change.scope else change.key))
    return f"\n<details><summary><code>{name}</code> in full</summary>\n\n{fence}diff\n{lines}{fence}\n\n</details>\n"
