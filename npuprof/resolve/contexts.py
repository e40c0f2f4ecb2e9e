"""The contexts to look at a config in beside its own: those in which its overrides take part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as combinations

from npuprof.catalog import products, releases
from npuprof.document.profile import Override
from npuprof.model import Context, NpuprofError
from npuprof.resolve.config import Config

#: A context, and the words of an override's match that it was made from: ``("product", "atlas-a3")``.
Point = tuple[Context, tuple[tuple[str, str], ...]]


def resolve_elsewhere(config: Config, context: Context) -> Config | None:
    """Return a config resolved again in another context, without changes from the command line; None where that cannot be."""
    try:
        return config.resolver.for_context(context).resolve_members(config.lineage, config.name, config.claims)
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
            products.find_product(product) or product or asked.product,
            target or asked.target,
        )
        yield found, tuple((word, text) for word, text in (("product", product), ("cann", cann), ("target", target)) if text)
