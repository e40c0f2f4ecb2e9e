"""CANN releases in their order, and the ranges a preset names (``>=8.0,<10``)."""

from __future__ import annotations

import re
from functools import cache

from npuprof.catalog import load_built_part

_OPERATORS = (">=", "<=", "==", "!=", "<", ">")

#: A version as something that sorts by date.
Key = tuple[int, int, int, int, int, int]

_VERSION = r"(\d+)(?:\.(\d+))?(?:\.(?:RC(\d+)|(\d+)))?(?:[.-]?(?:alpha|beta)(\d*))?"
_FINAL_STAGE = 10**6
_RELEASE = r"[0-9][0-9A-Za-z.]*?"


def parse_release_version(version: str) -> Key | None:
    """Return a version as something that sorts by date, or None where it is no version.

    20.1 and 20.2 came before 5.0.1; release candidates and alphas come before what they lead to.
    """
    words = version.strip().split(".")
    if len(words) <= 3 and all(word.isdecimal() and word.isascii() and len(word) < 7 for word in words):
        major, minor, patch = (*map(int, words), 0, 0)[:3]
        return int(major < 20), major, minor, 1, patch, _FINAL_STAGE
    match = re.fullmatch(_VERSION, version.strip(), re.IGNORECASE | re.ASCII)
    if not match or len(version) > 40:
        return None
    number, minor_, candidate, patch_, preview = match.groups()
    stage = _FINAL_STAGE if preview is None else int(preview or 0)
    return int(int(number) < 20), int(number), int(minor_ or 0), int(not candidate), int(candidate or patch_ or 0), stage


def find_release_inside(text: str) -> str:
    """Return the release that a text which is none holds, ``9.0.0`` in ``CANN-9.0.0.RC1``: the longest; empty where there is none."""
    match = re.search(r"\d{1,4}(?:\.\w{1,9}){1,3}", text, re.ASCII)
    parts = match[0].split(".") if match else []
    names = (find_release(".".join(parts[:count])) for count in range(len(parts), 1, -1))
    return next((name for name in names if name), "")


@cache
def load_releases() -> tuple[str, ...]:
    """Return the known releases, oldest first."""
    return tuple(load_built_part("releases"))


@cache
def find_release(version: str) -> str | None:
    """Return the release a user means: ``8.0`` is 8.0.0, ``8.1`` the newest 8.1; None where there is none."""
    wanted = parse_release_version(version.removeprefix("CANN").strip())
    if wanted is None:
        return None
    for name in load_releases():
        if parse_release_version(name) == wanted:
            return name
    same = [name for name in load_releases() if (parse_release_version(name) or ())[:3] == wanted[:3]]
    return same[-1] if same and re.fullmatch(r"\d+\.\d+", version.strip()) else None


@cache
def release_index(release: str) -> int:
    """Return the place of a known release in the order of all."""
    return load_releases().index(release)


@cache
def find_releases_in_range(spec: str) -> tuple[str, ...] | None:
    """Return the known releases inside a range, or None where ``spec`` is no range."""
    clauses = _parse_range(spec)
    if clauses is None:
        return None
    return tuple(
        name for name, known in load_built_part("releases").items() if all(_is_within_bound(known, op, bound) for op, bound in clauses)
    )


def suggest_range(spec: object) -> str:
    """Return how to write what was meant by a text that is no range of releases, an example where that cannot be told."""
    text = str(spec).strip().replace("=>", ">=").replace("=<", "<=").replace("≥", ">=").replace("≤", "<=")
    if span := re.fullmatch(rf"({_RELEASE})\s*(?:-|\.\.+|to)\s*({_RELEASE})", text):
        text = f">={span[1]},<={span[2]}"
    elif later := re.fullmatch(rf"({_RELEASE})\s*\+", text):
        text = f">={later[1]}"
    elif line := re.fullmatch(rf"(?:[~^]\s*({_RELEASE})|([0-9]+)\.[x*])", text):
        first = line[1] or line[2]
        text = f">={first},<{int(first.partition('.')[0]) + 1}"
    else:
        text = re.sub(r"\s*(?:[,;&\s]|\band\b)+\s*(?=[<>=!])", ",", re.sub(r"(?<=[<>=])\s+", "", text))
    return f'write "{text}"' if find_releases_in_range(text) is not None else 'write ">=8.0,<10"'


def is_range_within(inner: str, outer: str) -> bool:
    """Return whether a range names no release that another does not, releases to come among them; what is no range is only itself."""
    ranges = _parse_range(inner), _parse_range(outer)
    if ranges[0] is None or ranges[1] is None:
        return inner == outer
    bounds = [bound for clauses in ranges for _, bound in clauses or ()]
    neighbours = [(*bound[:-1], bound[-1] + step) for bound in bounds for step in (-1, 0, 1)]
    probes: list[Key] = [*load_built_part("releases").values(), *neighbours, (1, 10**9, 0, 1, 0, 0)]
    wide = ranges[1]
    return all(
        all(_is_within_bound(probe, op, bound) for op, bound in wide)
        for probe in probes
        if all(_is_within_bound(probe, op, bound) for op, bound in ranges[0])
    )


def _parse_range(spec: str) -> list[tuple[str, Key]] | None:
    """Return operators and bounds of a range, None where ``spec`` is none."""
    clauses: list[tuple[str, Key]] = []
    for clause in spec.split(","):
        text = clause.strip()
        version = text.lstrip("<>=!")
        op, bound = text.removesuffix(version) or "==", parse_release_version(version)
        if op not in _OPERATORS or bound is None:
            return None
        clauses.append((op, bound))
    return clauses


def _is_within_bound(version: Key, op: str, bound: Key) -> bool:
    if op in ("==", "!="):
        return (version == bound) == (op == "==")
    return version < bound if op == "<" else version <= bound if op == "<=" else version > bound if op == ">" else version >= bound
