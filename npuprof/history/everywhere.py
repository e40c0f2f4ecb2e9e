"""What changes from one config to another wherever they are used: in every context that their overrides tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as combinations
from typing import NamedTuple

from npuprof.catalog import products, releases
from npuprof.compare.changes import Change, compare_configs
from npuprof.document.profile import Override
from npuprof.model import Context
from npuprof.resolve import is_override_active
from npuprof.resolve.config import Config
from npuprof.resolve.contexts import resolve_elsewhere


class ContextChanges(NamedTuple):
    """What changes in one context and those like it; ``resolved`` says on which sides the preset can be resolved there."""

    context: Context
    changes: list[Change]
    resolved: tuple[bool, bool]


def compare_everywhere(before: Config, after: Config) -> Iterator[ContextChanges]:
    """Yield what changes in one context of each kind: two are of a kind where the same overrides take part on both sides.

    No context is left out: products, releases and targets that no override names are like one that was not asked for.
    """
    sides = [(config, [override for profile in config.lineage for override in profile.overrides]) for config in (before, after)]
    seen: set[tuple[bool, ...]] = set()
    for context in _list_contexts([override for _, overrides in sides for override in overrides]):
        active = tuple(is_override_active(override, context, config.scenario) for config, overrides in sides for override in overrides)
        if active in seen:
            continue
        seen.add(active)
        old, new = (resolve_elsewhere(config, context) for config in (before, after))
        changes = compare_configs(old, new, trace=False) if old and new else []
        yield ContextChanges(context, changes, (old is not None, new is not None))


def _list_contexts(overrides: list[Override]) -> Iterator[Context]:
    """Yield the contexts that overrides may tell apart; that in which nothing was asked for comes first."""
    named = {word: {text for override in overrides for text in override.match.get(word, ())} for word in ("product", "cann", "target")}
    strange = sorted(text for text in named["product"] if products.find_product(text) is None)
    for product, cann, target in combinations(
        (None, *products.product_names(), *strange) if named["product"] else (None,),
        (None, *releases.load_releases()) if named["cann"] else (None,),
        (None, *sorted(named["target"])),
    ):
        yield Context(cann, product, target)


def describe_context(context: Context) -> str:
    """Return for what a context stands, as the end of a sentence; an empty text where nothing was asked for."""
    words = [f"{name} {value}" for name in ("product", "cann", "target") if (value := getattr(context, name))]
    return f" for {', '.join(words)}" if words else ""
