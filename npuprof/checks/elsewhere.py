"""Where override blocks take part that the context at hand leaves out: each is looked at where it matches."""

from __future__ import annotations

from itertools import product as combinations

from npuprof.catalog import products, releases
from npuprof.model import Context, NpuprofError
from npuprof.resolve import Resolver, is_override_active

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from npuprof.document.profile import Override
    from npuprof.model import Finding
    from npuprof.resolve.config import Config


def find_overridden_families(config: Config) -> tuple[str, ...]:
    """Return the product families the profile is meant for and that an override treats apart, unless one was asked for."""
    if config.context.product or config.resolver is None or config.changed:
        return ()
    wanted = [name for profile in config.lineage for override in profile.overrides for name in override.match.get("product", ())]
    families = dict.fromkeys(products.find_product_family(products.find_product(name) or name) for name in config.products)
    return tuple(family for family in families if any(products.is_product_covered(name, family) for name in wanted))


def resolve_in_context(config: Config, context: Context) -> Config | None:
    """Return a config resolved again in another context, None where that cannot be."""
    assert config.resolver is not None
    try:
        return Resolver(config.resolver.lookup, context).resolve_profile(config.lineage[-1], config.name)
    except NpuprofError:
        return None


def resolve_inactive_overrides(config: Config) -> Iterator[tuple[Config, int]]:
    """Yield the config in contexts in which an override of the profile's own takes part, with the number of the override."""
    if config.resolver is None or config.changed or not config.lineage:
        return
    for index, override in enumerate(config.lineage[-1].overrides):
        if not is_override_active(override, config.context, config.scenario):
            for context in _build_override_contexts(config, override):
                found = resolve_in_context(config, context)
                if found is not None and is_override_active(override, context, found.scenario):
                    yield found, index


def is_in_override(finding: Finding, config: Config, index: int) -> bool:
    """Return whether a finding stands in an override block of the profile itself."""
    origin = finding.origin
    return origin is not None and origin.document is config.lineage[-1].document and origin.path[:2] == ("override", index)


def _build_override_contexts(config: Config, override: Override) -> Iterator[Context]:
    """Yield contexts that fill in what the override asks for and nobody has said; of releases the newest."""
    asked, match = config.context, override.match
    claimed = releases.find_releases_in_range(config.cann) if config.cann else None
    newest = [
        fit[-1]
        for spec in match.get("cann", ())
        if (fit := [r for r in releases.find_releases_in_range(spec) or () if not claimed or r in claimed])
    ]
    named = [found for name in match.get("product", ()) if (found := products.find_product(name))]
    targets = list(match.get("target", ()))
    for cann, family, target in combinations(
        [asked.cann] if asked.cann or "cann" not in match else newest,
        [asked.product] if asked.product or "product" not in match else named,
        [asked.target] if asked.target or "target" not in match else targets,
    ):
        yield Context(cann, family, target)
