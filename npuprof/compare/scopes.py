"""The products, releases and targets for which a preset says something of its own, and what differs only there."""

from __future__ import annotations

from npuprof.catalog import products, releases
from npuprof.compare.changes import Change, compare_configs
from npuprof.model import Context, NpuprofError
from npuprof.resolve import Resolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

_MAX_CONTEXTS = 24  # contexts looked at for one preset


def find_scoped_changes(before: Config, after: Config, known: list[Change]) -> list[Change]:
    """Return the changes that only an ``[[override]]`` brings about, each with the ``scope`` it holds for.

    Looks at one product, release and target for each that an override names, on either side; ``known`` are the
    changes without any. Where the configs were resolved for something already, there is nothing to add.
    """
    if before.context != Context() or after.context != Context():
        return []
    if not any(profile.overrides for config in (before, after) for profile in config.lineage):
        return []
    if [p.document.text for p in before.lineage] == [p.document.text for p in after.lineage]:
        return []
    seen = {_change_identity(change) for change in known}
    found: list[Change] = []
    for context, scope in _collect_override_contexts(before, after).items():
        sides = [_resolve_again(config, context) for config in (before, after)]
        if sides[0] is None or sides[1] is None:
            continue
        for change in compare_configs(sides[0], sides[1]):
            if _change_identity(change) not in seen:
                seen.add(_change_identity(change))
                found.append(change._replace(scope=scope))
    return found


def _change_identity(change: Change) -> str:
    return repr((change.key, change.kind, change.before, change.after))


def _collect_override_contexts(before: Config, after: Config) -> dict[Context, str]:
    found: dict[Context, str] = {}
    for config in (after, before):
        for profile in config.lineage:
            for override in profile.overrides:
                match = override.match
                named = [
                    (product, cann, target)
                    for product in match.get("product", ("",))
                    for cann in match.get("cann", ("",))
                    for target in match.get("target", ("",))
                ]
                for product, cann, target in named:
                    within = (releases.find_releases_in_range(cann) or ()) if cann else ()
                    if (cann and not within) or len(found) >= _MAX_CONTEXTS:
                        continue
                    context = Context(within[-1] if within else None, products.find_product(product) or product or None, target or None)
                    words = [f"{word} {text}" for word, text in (("product", product), ("cann", cann), ("target", target)) if text]
                    if words:
                        found.setdefault(context, ", ".join(words))
    return found


def _resolve_again(config: Config, context: Context) -> Config | None:
    if config.resolver is None:
        return None
    try:
        return Resolver(config.resolver.lookup, context).resolve_profile(config.lineage[-1], config.name)
    except NpuprofError:
        return None
