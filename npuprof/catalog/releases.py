"""Releases of CANN and of the frameworks in ``frameworks``: their order and ranges (``>=8.0,<10``).

An ``axis`` is ``cann`` or the name of a framework. The packages of torch_npu have their own
numbering: a range over it selects the releases that have a package inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from npuprof.catalog import load_built_part
from npuprof.catalog.records import (
    Axis,
    Key,
    Option,
    is_inside,
    parse_framework_version,
    parse_release_version,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CANN = "cann"

#: Later than every release that a range can name.
_FUTURE: Key = (1, 10**9, 0, 1, 0, 0)
_RELEASE = r"[0-9][0-9A-Za-z.]*?"


@cache
def list_frameworks() -> tuple[str, ...]:
    """Return the frameworks with known releases."""
    return tuple(load_built_part("frameworks"))


@cache
def load_axis(axis: str) -> Axis:
    """Return the releases of an axis, none for an unknown name (NP006 reports it)."""
    if axis == CANN:
        return Axis(parse_release_version, load_built_part("axes")["releases"])
    return Axis(
        parse_framework_version, **load_built_part("frameworks").get(axis, {"releases": {}})
    )


def describe_known_releases(axis: str) -> str:
    """Return the releases of a framework as text, in all its numberings."""
    packages = sorted(load_axis(axis).packages.items(), key=lambda item: item[1][0])
    listed = f"; packages are {', '.join(name for name, _ in packages)}" if packages else ""
    return f"releases are {', '.join(load_releases(axis))}{listed}"


def find_release_inside(text: str) -> str:
    """Return the longest release inside a text, ``9.0.0`` in ``CANN-9.0.0.RC1``.

    Empty if there is none.
    """
    match = re.search(r"\d{1,4}(?:\.\w{1,9}){1,3}", text, re.ASCII)
    parts = match[0].split(".") if match else []
    names = (find_release(".".join(parts[:count])) for count in range(len(parts), 1, -1))
    return next((name for name in names if name), "")


@cache
def load_releases(axis: str = CANN) -> tuple[str, ...]:
    """Return the known releases, oldest first."""
    return tuple(load_axis(axis).releases)


@cache
def find_release(version: str, axis: str = CANN) -> str | None:
    """Return the release for a user's version: ``8.0`` is 8.0.0, ``8.1`` the newest 8.1, a package
    its release; None if unknown.
    """
    return load_axis(axis).find_release(version)


def find_newest_stable(axis: str) -> str:
    """Return the newest release that is not a release candidate, alpha or beta.

    post-releases are stable.
    """
    return [
        name
        for name in load_releases(axis)
        if not any(stage in name.lower() for stage in ("rc", "alpha", "beta"))
    ][-1]


@cache
def release_index(release: str, axis: str = CANN) -> int:
    """Return the index of a known release, oldest first."""
    return load_releases(axis).index(release)


def is_earlier(release: str, other: str) -> bool:
    """Return whether a known CANN release came before another."""
    return release_index(release) < release_index(other)


@cache
def find_releases_in_range(spec: str, axis: str = CANN) -> tuple[str, ...] | None:
    """Return the known releases in a range, or None if ``spec`` is not a range."""
    return load_axis(axis).find_releases_in_range(spec)


def list_covered_releases(requested: str | None, spec: str | None) -> tuple[str, ...]:
    """Return the CANN releases to check: the requested one, else those of a range, none without a
    range.
    """
    return (requested,) if requested else (find_releases_in_range(spec) or () if spec else ())


def resolve_default(
    option: Option, scenario: str | None, covered: tuple[str, ...], family: str | None
) -> Any:
    """Return the effective default of an option, None if it is unknown."""
    if family in option.default_by_product and scenario == "training":
        return option.default_by_product[family]
    if scenario == "training" and option.default_training is not None:
        return option.default_training
    if scenario == "online-inference" and option.default_inference is not None:
        return option.default_inference
    default = option.default
    if option.default_since and covered:
        for release, value in option.default_since.items():
            if not is_earlier(covered[-1], release):
                default = value
    return default


def find_releases_read(since: str, until: str, axis: str) -> tuple[str, ...]:
    """Return a framework's releases between two of them, both included.

    An empty string is no bound.
    """
    bounds = [
        (op, key)
        for op, text in ((">=", since), ("<=", until))
        if text and (key := parse_framework_version(text))
    ]
    return tuple(name for name, key in load_axis(axis).releases.items() if is_inside(key, bounds))


def format_release_span(names: Iterable[str | None], axis: str = CANN) -> str:
    """Return releases as text, consecutive ones as ``8.0.0 to 9.2.0``."""
    wanted = set(names)
    runs: list[list[str]] = [[]]
    for name in load_releases(axis):
        if name in wanted:
            runs[-1].append(name)
        elif runs[-1]:
            runs.append([])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run)


def suggest_range(spec: object, axis: str = CANN) -> str:
    """Return the corrected form of an invalid range, an example if it cannot be guessed."""
    text = (
        str(spec)
        .strip()
        .replace("=>", ">=")
        .replace("=<", "<=")
        .replace("≥", ">=")
        .replace("≤", "<=")
    )
    if span := re.fullmatch(rf"({_RELEASE})\s*(?:-|\.\.+|to)\s*({_RELEASE})", text):
        text = f">={span[1]},<={span[2]}"
    elif later := re.fullmatch(rf"({_RELEASE})\s*\+", text):
        text = f">={later[1]}"
    elif line := re.fullmatch(rf"(?:[~^]\s*({_RELEASE})|([0-9]+)\.[x*])", text):
        first = line[1] or line[2]
        text = f">={first},<{int(first.partition('.')[0]) + 1}"
    else:
        text = re.sub(
            r"\s*(?:[,;&\s]|\band\b)+\s*(?=[<>=!])", ",", re.sub(r"(?<=[<>=])\s+", "", text)
        )
    if find_releases_in_range(text, axis) is not None:
        return f'write "{text}"'
    return (
        'write ">=8.0,<10"'
        if axis == CANN
        else f'write ">={load_releases(axis)[-3]}"; {describe_known_releases(axis)}'
    )


def is_range_within(inner: str, outer: str, axis: str = CANN) -> bool:
    """Return whether a range is contained in another, future releases included.

    An invalid range contains only itself.
    """
    ranges = load_axis(axis).parse_range(inner), load_axis(axis).parse_range(outer)
    if ranges[0] is None or ranges[1] is None:
        return inner == outer
    bounds = [bound for clauses in ranges for _, bound in clauses or ()]
    neighbours = [(*bound[:-1], bound[-1] + step) for bound in bounds for step in (-1, 0, 1)]
    known = [set(find_releases_in_range(spec, axis) or ()) for spec in (inner, outer)]
    return known[0] <= known[1] and all(
        is_inside(probe, ranges[1])
        for probe in (*neighbours, _FUTURE)
        if is_inside(probe, ranges[0])
    )
