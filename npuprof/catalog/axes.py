"""Axes and their values that a preset, a condition or a user names and npuprof.toml lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from npuprof.catalog import condition
from npuprof.model import Axes, Finding, Fix, suggest_name


def find_undeclared_values(tree: Any, declared: Axes) -> Iterator[Finding]:
    """Yield the findings for comparisons of an axis with an undeclared value in a condition."""
    for _, *sides in condition.list_comparisons(tree):
        for side, other in (sides, sides[::-1]):
            if side[0] == "value" and side[1][0] in declared and other[0] == "const":
                for value in other[1] if isinstance(other[1], tuple) else other[1:]:
                    yield from find_undeclared(side[1][0], str(value), declared)


def find_undeclared(name: str, value: str, declared: Axes) -> Iterator[Finding]:
    """Yield the finding for an axis or value that is not declared (NP006)."""
    known: Sequence[str] = declared.get(name, ())
    if value in known:
        return
    what, unknown = f"unknown value {value!r} of the axis {name!r}", value
    if name not in declared:
        what, unknown, known = f"unknown axis {name!r}", name, [*declared]
    why = "[axes] in npuprof.toml declares the axes and their values."
    otherwise = f"known are {', '.join(known)}"
    if not known:
        otherwise = f'declare it below [axes] of npuprof.toml: {name} = ["{value or "VALUE"}"]'
    hint, fix = suggest_name(unknown, known, otherwise)
    yield Finding("NP006", what, why, hint, fix=Fix(fix.name) if fix else None)
