"""CANN releases in their order, and the ranges a preset names (``>=8.0,<10``)."""

from __future__ import annotations

import re
from functools import cache

from npuprof.catalog import part

Key = tuple[int, int, int, int, int, int]

_VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(?:RC(\d+)|(\d+)))?(?:[.-]?(?:alpha|beta)(\d*))?", re.IGNORECASE)
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|<|>|)\s*([0-9][0-9A-Za-z.-]*)\s*")
_LAST = 10**6


@cache
def releases() -> tuple[str, ...]:
    """Return the known releases, oldest first."""
    return tuple(part("releases"))


def key(version: str) -> Key | None:
    """Return a version as something that sorts by date, or None where it is no version.

    20.1 and 20.2 came before 5.0.1; release candidates and alphas come before what they lead to.
    """
    match = _VERSION.fullmatch(version.strip())
    if not match:
        return None
    major, minor, candidate, patch, preview = match.groups()
    era = 0 if int(major) >= 20 else 1
    early = 0 if candidate else 1
    stage = _LAST if preview is None else int(preview or 0)
    return era, int(major), int(minor or 0), early, int(candidate or patch or 0), stage


@cache
def find(version: str) -> str | None:
    """Return the release a user means: ``8.0`` is 8.0.0, ``8.1`` the newest 8.1; None where there is none."""
    wanted = key(version.removeprefix("CANN").strip())
    if wanted is None:
        return None
    for name in releases():
        if key(name) == wanted:
            return name
    same = [name for name in releases() if (key(name) or ())[:3] == wanted[:3]]
    return same[-1] if same and re.fullmatch(r"\d+\.\d+", version.strip()) else None


@cache
def index(release: str) -> int:
    """Return the place of a known release in the order of all."""
    return releases().index(release)


@cache
def within(spec: str) -> tuple[str, ...] | None:
    """Return the known releases inside a range, or None where ``spec`` is no range."""
    clauses: list[tuple[str, Key]] = []
    for clause in spec.split(","):
        match = _CLAUSE.fullmatch(clause)
        bound = key(match[2]) if match else None
        if match is None or bound is None:
            return None
        clauses.append((match[1] or "==", bound))
    return tuple(name for name in releases() if all(_fits(key(name), op, bound) for op, bound in clauses))


def _fits(version: Key | None, op: str, bound: Key) -> bool:
    if version is None:
        return False
    if op in ("==", "!="):
        return (version == bound) == (op == "==")
    return version < bound if op == "<" else version <= bound if op == "<=" else version > bound if op == ">" else version >= bound
