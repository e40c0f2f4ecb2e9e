"""The claims of a preset: its scenario, releases and products.

They are its own, or the intersection of its parents' claims.

Mix-ins and overlays narrow the claims of a preset and never replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from npuprof.catalog import releases
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.model import TYPE_CHECKING, Finding, Origin, Path, Record

if TYPE_CHECKING:
    from typing import Any

    from npuprof.model import SourceText

    #: The claims of a preset by inherited key, for the keys that are set.
    Claims = dict[str, "Claim"]


class Claim(Record):
    """One claim of a preset with its origin.

    ``conflict`` names the two parents whose claims do not intersect.
    """

    value: Any
    document: SourceText
    path: Path
    conflict: Finding | None = None

    @property
    def origin(self) -> Origin:
        """The origin of the value."""
        return Origin(self.document, self.path)


def combine_claims(profile: Profile, parents: Sequence[Claims]) -> Claims:
    """Return the claims of a preset, given its parents' claims in the order of ``extends``."""
    own: Claims = {}
    for name, value in profile.table.items():
        if name in _PLAIN:
            # the range of CANN may be written in two tables
            path = profile.locate_range(name) if name == releases.CANN else ("profile", name)
            own[name] = Claim(value, profile.document, path)
        elif name in ("versions", "axes"):
            for axis, item in value.items():
                own[f"{name}.{axis}"] = Claim(item, profile.document, ("profile", name, axis))
    combined = dict(own)
    for claims in parents:
        # own claims replace those of the parents, so that a new preset can widen them
        for name in claims.keys() - own:
            known = combined.get(name)
            claim = claims[name]
            combined[name] = _narrow_claim(profile, name, known, claim) if known else claim
    return {name: combined[name] for name in order_claims(combined)}


def order_claims(*claims: Iterable[str]) -> list[str]:
    """Return the keys of claims in output order, without duplicates.

    The order is that of ``[profile]``, then declared axes and frameworks by name.
    """
    names = set(chain(*claims))
    return [name for name in _PLAIN if name in names] + sorted(names.difference(_PLAIN))


def _narrow_claim(profile: Profile, name: str, known: Claim, second: Claim) -> Claim:
    """Return the intersection of two claims, with the origin of the one that narrowed it."""
    if known.conflict:  # reported once, for the first two parents
        return known
    if second.conflict:
        return second
    if known.value == second.value:
        return known
    value = narrow_value(name, known.value, second.value)
    if not value:
        return known._replace(conflict=_build_conflict_finding(profile, name, known, second))
    return known if value == known.value else second._replace(value=value)


def find_axis(name: str) -> str:
    """Return the axis that a claim limits."""
    return "product" if name == "products" else name.rpartition(".")[2]


def narrow_value(name: str, known: Any, second: Any) -> Any:
    """Return the intersection of two values of a claim, empty if there is none."""
    if name.startswith(AXES):
        return [value for value in known if value in second]
    if name == "scenario":  # scenarios have no intersection
        return ""
    if name == "products":
        return _narrow_products(known, second)
    return _narrow_releases(known, second, name.removeprefix(VERSIONS))


def _narrow_releases(known: str, second: str, axis: str) -> str:
    """Return the intersection of two release ranges.

    One of the two texts if its range is inside the other; empty if no release is in both.
    """
    known_releases = releases.find_releases_in_range(known, axis)
    second_releases = releases.find_releases_in_range(second, axis)
    if known_releases is None or second_releases is None:
        return known  # not a range: its own profile reports it
    both = f"{known},{second}"
    common = releases.find_releases_in_range(both, axis)
    # the written text stays where it says the same: messages quote it with its line
    if common == known_releases:
        return known
    if common == second_releases:
        return second
    return both if common else ""


def _narrow_products(known: list[str], second: list[str]) -> list[str]:
    """Return the products that both lists cover; of a family and one of its lines, the line."""
    from npuprof.catalog.products import may_contain

    covered = [name for name in known if any(may_contain(family, name) for family in second)]
    return covered + [
        name
        for name in second
        if name not in covered and any(may_contain(family, name) for family in known)
    ]


_EMPTY_SCOPES = {"scenario": "two scenarios", "cann": "no CANN release", "products": "no product"}
#: The prefix of claim keys for framework releases.
VERSIONS = "versions."
#: The prefix of claim keys for declared axes.
AXES = "axes."
_PLAIN = tuple(name for name in INHERITED_KEYS if name not in ("versions", "axes"))


def _build_conflict_finding(profile: Profile, name: str, known: Claim, second: Claim) -> Finding:
    sides = " and ".join(
        f"for {format_claim(claim.value)} by {claim.origin.profile} ({claim.origin})"
        for claim in (known, second)
    )
    scope = _EMPTY_SCOPES.get(name) or f"no release of {name.removeprefix(VERSIONS)}"
    if name.startswith(AXES):
        scope = f"no {name.removeprefix(AXES)}"
    what = f"{profile.name} would be for {scope}: it is {sides}"
    why = (
        "A mix-in or overlay narrows the scenario, releases "
        "and products of a preset and never replaces them."
    )
    hint = (
        f"remove one of them, or unset {name} in one of them; "
        "or set the scope in a new preset that extends both"
    )
    return Finding("NP108", what, why, hint, second.origin, f"profile.{name}", (profile.name,))


def format_claim(value: Any) -> str:
    """Return the value of a claim as messages show it."""
    return ", ".join(value) if isinstance(value, list) else str(value)
