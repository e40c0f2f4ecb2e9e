"""Releases of CANN and of the frameworks in ``frameworks``: their order and ranges (``>=8.0,<10``).

An ``axis`` is ``cann`` or the name of a framework. The packages of torch_npu have their own
numbering: a range over it selects the releases that have a package inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter

from npuprof.catalog import find_key_record, load_built_part, load_sections
from npuprof.catalog.records import (
    Axis,
    Entry,
    Option,
    Setting,
    Variable,
    is_inside,
    parse_framework_version,
    parse_release_version,
)
from npuprof.document.keys import format_toml_value
from npuprof.model import Any
from npuprof.system import count_common, group_pairs

CANN = "cann"

#: Later than every release that a range can name.
_FUTURE = (1, 10**9, 0, 1, 0, 0)
_RELEASE = r"[0-9][0-9A-Za-z.]*?"


@cache
def list_frameworks() -> tuple[str, ...]:
    """Return the frameworks with known releases."""
    return tuple(load_built_part("frameworks"))


def is_axis(name: str) -> bool:
    """Return whether a name is that of releases: CANN's or a framework's."""
    return name == CANN or name in list_frameworks()


def describe_newest_releases() -> list[str]:
    """Return the newest known release of each axis with its date, as texts."""
    return [
        f"{'CANN' if axis == CANN else axis} {release}{f' ({date})' if date else ''}"
        for axis, (release, date) in load_built_part("newest").items()
    ]


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
    listed = f"; packages are {', '.join(name for name, _ in packages[-8:])}" if packages else ""
    return f"the newest are {', '.join(load_releases(axis)[-8:])}{listed}"


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
    """Return the release for a user's version, as ``Axis.find_release`` does; None if unknown."""
    return load_axis(axis).find_release(version)


def find_newest_stable(axis: str) -> str:
    """Return the newest release that is not a release candidate, alpha or beta.

    Post-releases are stable.
    """
    return find_stable_lines(axis)[0]


@cache
def find_stable_lines(axis: str) -> tuple[str, tuple[str, ...]]:
    """Return the newest stable release, and the stable releases of the two newest lines.

    A line is a major and a minor number with a stable release.
    """
    stages = ("rc", "alpha", "beta")
    lines = group_pairs(
        (key[:3], name)
        for name, key in load_axis(axis).releases.items()
        if not any(stage in name.lower() for stage in stages)
    )
    newest = [name for line in sorted(lines)[-2:] for name in lines[line]]
    return newest[-1], tuple(newest)


@cache
def release_index(release: str) -> int:
    """Return the index of a known CANN release, oldest first."""
    return load_releases().index(release)


def is_earlier(release: str, other: str) -> bool:
    """Return whether a known CANN release came before another."""
    return release_index(release) < release_index(other)


@cache
def find_releases_in_range(spec: str, axis: str = CANN) -> tuple[str, ...] | None:
    """Return the known releases in a range, or None if ``spec`` is not a range."""
    return load_axis(axis).find_releases_in_range(spec)


def find_judged_release(version: str, axis: str = CANN) -> tuple[str, bool]:
    """Return the release to check for a user's version, and whether that is newer than all known.

    The newest known release represents a newer one. The text is empty for any other unknown one.
    """
    if known := find_release(version, axis):
        return known, False
    plain = version.removeprefix("CANN").strip()
    if load_axis(axis).parse(plain) and load_axis(axis).is_newer(plain):
        return load_releases(axis)[-1], True
    return "", False


@cache
def find_judged_releases(spec: str, axis: str = CANN) -> tuple[str, ...] | None:
    """Return the releases to check for a range: the newest known one if all others are newer.

    None if ``spec`` is not a range.
    """
    inside = find_releases_in_range(spec, axis)
    return load_releases(axis)[-1:] if inside == () and is_newer(spec, axis) else inside


@cache
def is_newer(spec: str, axis: str = CANN) -> bool:
    """Return whether a range has only releases that are newer than the newest known one."""
    return not find_releases_in_range(spec, axis) and load_axis(axis).is_newer(spec)


def is_inside_range(release: str, spec: str, axis: str) -> bool:
    """Return whether a release, which may be newer than all known ones, is in a range."""
    if release in load_releases(axis):
        return release in (find_releases_in_range(spec, axis) or ())
    key = load_axis(axis).parse(release)
    return key is not None and is_inside(key, load_axis(axis).parse_range(spec) or ())


def list_covered_releases(requested: str | None, spec: str | None) -> tuple[str, ...]:
    """Return the CANN releases to check: the requested one, else those of a range, if any."""
    if requested:
        return (requested,)
    return find_judged_releases(spec) or () if spec else ()


def find_covered(axis: str, versions: Iterable[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return the selected releases of an axis, else those that selected ones of others run on."""
    selected = dict(versions)
    if selected.get(axis):
        return selected[axis]
    bases = {
        load_axis(other).runs_on.get(name, {}).get(axis)
        for other, names in selected.items()
        for name in names
    }
    return tuple(name for name in load_releases(axis) if name in bases)


def format_releases(named: Mapping[str, str]) -> str:
    """Return releases by axis as text: ``CANN 9.0.0, vllm_ascend 0.23.0``."""
    return ", ".join(
        f"{'CANN' if axis == CANN else axis} {release}" for axis, release in named.items()
    )


def list_selected(named: Mapping[str, str]) -> dict[str, str]:
    """Return the named releases by axis, with those of other frameworks that they run on."""
    versions = {axis: (release,) for axis, release in named.items()}
    return {
        axis: names[-1]
        for axis in (CANN, *list_frameworks())
        if (names := find_covered(axis, versions.items()))
    }


def is_installed(section: str, name: str) -> bool:
    """Return whether the vLLM beside npuprof reads an argument of a section."""
    from npuprof.catalog.installed_arguments import list_installed_arguments

    return section == "vllm" and name in list_installed_arguments()


def find_uncertain_axes(
    newer: tuple[str, ...], versions: Iterable[tuple[str, tuple[str, ...]]]
) -> tuple[str, ...]:
    """Return the axes of programs whose arguments are unknown in a selected release.

    That is one without a record, or one that a release newer than all known ones runs on.
    """
    found = []
    for section in load_sections().values():
        if not section.launch or section.axis in newer:
            continue
        axis, named = section.axis, dict(versions)
        bases = {base for row in newer for each in load_axis(row).runs_on.values() for base in each}
        covered = find_covered(axis, versions)
        first = section.find(section.names[0]) if covered else None
        letters = dict(zip(load_releases(axis), first.states if first else "", strict=False))
        unread = any(letters[name] == "?" for name in covered)
        if unread or (axis in bases and not named.get(axis)):
            found.append(axis)
    return tuple(found)


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
    if covered:  # the newest release decides
        for release, value in option.default_since.items():
            if not is_earlier(covered[-1], release):
                default = value
    return default


def list_defaults(fields: Mapping[str, Any], since: str = "") -> list[str]:
    """Return the defaults of a record as texts, each with where it holds."""
    defaults = {since: fields.get("default")}
    for scenario in ("training", "inference"):
        defaults[f" in {scenario}"] = fields.get(f"default_{scenario}")
    for product, default in fields.get("default_by_product", {}).items():
        defaults[f" on {product}"] = default
    return [
        f"{format_toml_value(default)}{where}"
        for where, default in defaults.items()
        if default is not None
    ]


def format_release_span(names: Iterable[str | None], axis: str = CANN) -> str:
    """Return releases as text, consecutive ones as ``8.0.0 to 9.2.0``."""
    selected = set(names)
    runs: list[list[str]] = [[]]
    for name in load_releases(axis):
        if name in selected:
            runs[-1].append(name)
        elif runs[-1]:
            runs.append([])
    return ", ".join(describe_span(run) for run in runs if run)


def describe_span(names: Sequence[str]) -> str:
    """Return successive releases as text: ``8.0.0``, ``8.0.0 to 9.0.0``."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def describe_set(letters: str, axis: str, *, unknown: bool = False) -> str:
    """Return a set of releases as text: ``0.9.1 to 0.11.0, 0.20.2rc1 on``.

    ``letters`` are those of a record. ``all`` if the set has all known releases, or ``none``.
    With ``unknown``, releases with ``?`` are listed as unknown ones.
    """
    known = load_releases(axis)
    if set(letters) == {"Y"}:
        return "all"
    parts = []
    for letter, group in groupby(zip(letters, known, strict=False), key=itemgetter(0)):
        run = [name for _, name in group]
        if letter == "Y" or (unknown and letter == "?"):
            span = describe_span(run)
            if len(run) > 1 and run[-1] == known[-1]:
                span = f"{run[0]} on"
            parts.append(f"{span} (unknown)" if letter == "?" else span)
    return ", ".join(parts) or "none"


def is_past(record: Entry | None) -> bool:
    """Return whether the newest known release warns of a setting, or no longer reads it."""
    signs = {"states": ".", "deprecated": "Y", "no_effect": "Y"}
    return any(getattr(record, field, "").endswith(sign) for field, sign in signs.items())


def describe_readers(section: str, record: Entry | None) -> str:
    """Return the releases that read a setting as text, empty if all known ones do."""
    states = getattr(record, "states", "")
    return describe_set(states, find_axis(section, record)) if set(states) - {"Y"} else ""


def find_name_axis(key: str) -> str:
    """Return the axis of the releases that read a key.

    That of an unknown name is the one of its section, or of the variable that begins most alike.
    """
    name = key.partition(".")[0]
    if name == "env" and find_key_record(key) is None:
        known = load_sections()["env"].names
        plain = key.removeprefix("env.")
        key = f"env.{max(known, key=lambda other: count_common(other, plain))}"
    if record := find_key_record(key):
        return find_axis(name, record)
    section = load_sections().get(name)
    return section.axis if section and section.axis in list_frameworks() else CANN


def find_axis(section: str, record: Entry | None) -> str:
    """Return the axis of the releases that a record's letters stand for."""
    if isinstance(record, Variable):
        own = record.axis or record.framework
        # the list of frameworks is not loaded for most variables
        return own if own != CANN and own in list_frameworks() else CANN
    return load_sections()[section].axis if isinstance(record, Setting) else CANN


def suggest_range(spec: object, axis: str) -> str:
    """Return the corrected form of an invalid range, an example if it cannot be guessed."""
    text = (
        str(spec)
        .strip()
        .replace("=>", ">=")
        .replace("=<", "<=")
        .replace("≥", ">=")
        .replace("≤", "<=")
    )
    if span := re.fullmatch(
        rf"(?P<first>{_RELEASE})\s*(?:-|\.\.+|to)\s*(?P<last>{_RELEASE})", text
    ):
        text = f">={span['first']},<={span['last']}"
    elif later := re.fullmatch(rf"({_RELEASE})\s*(?:\+|or (?:later|newer|higher))", text):
        text = f">={later[1]}"
    elif line := re.fullmatch(rf"[~^]\s*({_RELEASE})", text) or re.fullmatch(
        r"([0-9]+)\.[x*]", text
    ):
        text = f">={line[1]},<{int(line[1].partition('.')[0]) + 1}"
    else:
        text = re.sub(r"(?<=[<>=])\s+", "", text)
        text = re.sub(r"\s*(?:[,;&\s]|\band\b)+\s*(?=[<>=!])", ",", text)
    if find_releases_in_range(text, axis) is not None:
        return f'write "{text}"'
    if axis == CANN:
        return 'write ">=8.0,<10"'
    return f'write ">={load_releases(axis)[-3]}"; {describe_known_releases(axis)}'


def is_range_within(inner: str, outer: str, axis: str) -> bool:
    """Return whether a range is contained in another, future releases included.

    An invalid range contains only itself.
    """
    inner_clauses = load_axis(axis).parse_range(inner)
    outer_clauses = load_axis(axis).parse_range(outer)
    if inner_clauses is None or outer_clauses is None:
        return inner == outer
    inner_releases = find_releases_in_range(inner, axis) or ()
    if not set(inner_releases) <= set(find_releases_in_range(outer, axis) or ()):
        return False
    # ranges differ at a bound of either first, so the versions around all bounds decide
    probes = [_FUTURE]
    for _, bound in (*inner_clauses, *outer_clauses):
        probes += [(*bound[:-1], bound[-1] + step) for step in (-1, 0, 1)]
    return all(
        is_inside(probe, outer_clauses) for probe in probes if is_inside(probe, inner_clauses)
    )
