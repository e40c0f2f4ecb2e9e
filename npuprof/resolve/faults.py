"""Findings for errors of the resolution. Imported only if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npuprof.catalog import releases
from npuprof.catalog.axes import find_undeclared
from npuprof.catalog.values import find_value
from npuprof.document import keys
from npuprof.document.profile import MATCH_KEYS, Profile
from npuprof.model import Axes, Finding, Path, Step, suggest_name

_NO_ORDER = (
    "Later parents win, and every preset wins over its "
    "ancestors; here these rules contradict each other."
)


def find_unknown_names(profile: Profile, declared: Axes) -> Iterator[Finding]:
    """Yield where a profile names an unknown framework, or an undeclared axis or value (NP006)."""
    for path in profile.named:
        *_, table, name = path
        known = ("cann", *releases.list_frameworks())
        if table == "match":
            known = (*MATCH_KEYS, *known[1:], *declared)
        elif table == "axes":
            known = tuple(declared)
        if name not in known:
            listed = ", ".join(known)
            otherwise = f"known are {listed}" if known else "declare it in npuprof.toml: [axes]"
            hint, fix = suggest_name(name, known, otherwise)
            what = f"unknown key {name!r} in {table}"
            why = "Unknown keys would otherwise be ignored silently."
            yield _locate(Finding("NP006", what, why, hint, fix=fix), profile, path)
        if table == "versions" or name not in declared:
            continue
        _, values = find_value("", profile.document.data, path)
        for index, value in enumerate(values if isinstance(values, list) else [values]):
            place = (*path, index) if isinstance(values, list) else path
            if isinstance(value, str):
                for finding in find_undeclared(name, value, declared):
                    yield _locate(finding, profile, place)


def _locate(finding: Finding, profile: Profile, path: Path) -> Finding:
    """Return a finding about a place in a profile."""
    return finding._replace(
        origin=profile.origin(*path),
        key=keys.format_path(path),
        profiles=(profile.name,),
    )


def _build_extends_finding(
    profile: Profile, code: str, what: str, why: str, hint: str, *place: int
) -> Finding:
    return Finding(
        code,
        what,
        why,
        hint,
        profile.origin("profile", "extends", *place),
        "profile.extends",
        (profile.name,),
    )


def build_repeated_parent_finding(profile: Profile, places: list[int]) -> Finding:
    """Return the finding for a parent that is listed several times (NP104).

    ``places`` are its indexes in ``extends``.
    """
    reference = profile.extends[places[1]]
    twice = len(places) == 2
    return _build_extends_finding(
        profile,
        "NP104",
        f"{profile.name} extends {reference} {'twice' if twice else f'{len(places)} times'}",
        "The order of parents decides which value wins, so each parent can be listed only once.",
        f"remove one of the two {reference!r}" if twice else f"leave one {reference!r}",
        places[1],
    )


def build_cycle_finding(chain: list[Profile], parent: Profile) -> Finding:
    """Return the finding for a cycle; the same one for each of its profiles."""
    keys = [member.key for member in chain]
    ring = chain[keys.index(parent.key) :]
    start = min(range(len(ring)), key=lambda place: ring[place].key)
    ring = ring[start:] + ring[:start]
    removed = (ring[1] if len(ring) > 1 else ring[0]).name
    place = ring[0].origin("profile", "extends")
    links = " -> ".join(
        [*(f"{p.name} ({p.origin('profile', 'extends')})" for p in ring), ring[0].name]
    )
    return Finding(
        "NP102",
        f"inheritance cycle: {links}",
        "A preset cannot extend itself, directly or through others.",
        f"remove {removed} from extends in {place}"
        + (", or break the circle at another of these lines" if len(ring) > 1 else ""),
        place,
        "profile.extends",
        tuple(p.name for p in ring),
    )


def build_long_lineage_finding(profile: Profile, most: int) -> Finding:
    """Return the finding for a profile with more than ``most`` ancestors (NP109)."""
    return _build_extends_finding(
        profile,
        "NP109",
        f"{profile.name} builds on more than {most} presets",
        (
            "Every preset is folded over all that it builds on; "
            "no store that people keep comes near this bound."
        ),
        "move their common settings into fewer presets",
    )


def build_two_versions_finding(
    profile: Profile, first: Profile, second: Profile, paths: list[str]
) -> Finding:
    """Return the finding for a profile that reaches two versions of one preset (NP110).

    They are reached by the two ``paths``.
    """
    cited = [member.document.source.partition(":")[0] for member in (first, second)]
    return _build_extends_finding(
        profile,
        "NP110",
        (
            f"{profile.name} builds on two versions of {first.name}: {cited[0]} by {paths[0]}, "
            f"and {cited[1]} by {paths[1]}"
        ),
        "Each counts once, and neither is newer for both of those who extend it.",
        (
            "let both take one version: npuprof source update, or "
            "pin the same one in extends; or extend only one of them"
        ),
    )


def build_order_finding(profile: Profile, queues: list[list[Profile]]) -> Finding:
    """Return the finding for contradicting orders of parents; each queue is one order (NP103)."""
    unordered = list(dict.fromkeys(member.name for queue in queues for member in queue))
    wishes = [
        " before ".join(member.name for member in queue) for queue in queues if len(queue) > 1
    ]
    return _build_extends_finding(
        profile,
        "NP103",
        f"{profile.name} has parents that cannot be ordered: {', '.join(unordered)}",
        f"{_NO_ORDER} Asked for: {'; '.join(dict.fromkeys(wishes))}.",
        (
            "list them in the same order in all presets, or "
            "remove the one that another already extends"
        ),
    )


def build_no_list_finding(profile: Profile, step: Step, path: Any) -> Finding:
    """Return the finding for a step that changes the elements of what is not a list (NP106).

    The value is at ``path`` inside its key.
    """
    shown = keys.format_key_path(step.key, path)
    return Finding(
        "NP106",
        f"{step.op} {'to' if step.op == 'append' else 'from'} {shown}, which is not a list",
        "Only lists have elements to add or remove.",
        f"set {shown} instead, or write both as lists",
        profile.origin(*step.path, *path),
        shown,
        (profile.name,),
    )
