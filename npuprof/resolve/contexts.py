"""The contexts to look at a config in beside its own: those in which its overrides take part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as combinations

from npuprof.catalog import products, releases
from npuprof.document.profile import Override
from npuprof.model import Context, NpuprofError, Origin
from npuprof.resolve import is_match_met
from npuprof.resolve.config import Config

#: A context, and the words of an override's match that it was made from: ``("product", "atlas-a3")``.
Point = tuple[Context, tuple[tuple[str, str], ...]]


def resolve_elsewhere(config: Config, context: Context) -> Config | None:
    """Return a config resolved again in another context, None where that cannot be."""
    try:
        return config.resolver.for_context(context).resolve_members(config.lineage, config.name, config.claims, config.changes)
    except NpuprofError:
        return None


def list_override_points(override: Override, asked: Context, claimed: tuple[str, ...] | None = None) -> Iterator[Point]:
    """Yield the contexts that a match names: what was asked for stays, of a range of releases the newest counts.

    Only releases that are ``claimed`` do, if any are.
    """
    match = override.match
    for product, cann, target in combinations(
        ("",) if asked.product else match.get("product", ("",)),
        ("",) if asked.cann else match.get("cann", ("",)),
        ("",) if asked.target else match.get("target", ("",)),
    ):
        covered = [name for name in (releases.find_releases_in_range(cann) or ()) if not claimed or name in claimed] if cann else []
        if cann and not covered:
            continue
        found = Context(
            covered[-1] if cann else asked.cann,
            product or asked.product,
            target or asked.target,
        )
        yield found, tuple((word, text) for word, text in (("product", product), ("cann", cann), ("target", target)) if text)


def find_unasked_overrides(config: Config) -> dict[str, list[Origin]]:
    """Return where the overrides stand that were left out only because no product, or no release, was asked for, by which of the two."""
    asked = {**config.context._asdict(), "scenario": config.scenario}
    claimed = set(releases.find_releases_in_range(config.cann) or ()) if config.cann else None
    found: dict[str, list[Origin]] = {}
    for profile in config.lineage:
        for index, override in enumerate(profile.overrides):
            open_ = [axis for axis in ("product", "cann") if axis in override.match and not asked[axis]]
            met = all(is_match_met(axis, wanted, asked[axis]) for axis, wanted in override.match.items() if axis not in open_)
            if open_ and met and _may_be_asked(config, override, claimed):
                found.setdefault(" and ".join(f"--{axis}" for axis in open_), []).append(profile.origin("override", index))
    return found


def _may_be_asked(config: Config, override: Override, claimed: set[str] | None) -> bool:
    """Return whether an override is for products and releases that the preset is for."""
    wanted = override.match.get("product", ())
    if wanted and config.products:
        pairs = [(one, other) for one in wanted for other in config.products]
        if not any(products.may_contain(one, other) or products.may_contain(other, one) for one, other in pairs):
            return False
    spans = [set(releases.find_releases_in_range(spec) or ()) for spec in override.match.get("cann", ())]
    return not spans or claimed is None or any(span & claimed for span in spans)
