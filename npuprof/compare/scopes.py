"""The products, releases and targets for which a preset says something of its own, and what differs only there."""

from __future__ import annotations

from collections.abc import Sequence

from npuprof.compare.changes import Change, compare_configs
from npuprof.model import Context
from npuprof.resolve import contexts
from npuprof.resolve.config import Config

_MAX_CONTEXTS = 24  # contexts looked at for one preset


def find_scoped_changes(before: Config, after: Config, known: list[Change]) -> list[Change]:
    """Return the changes that only an ``[[override]]`` brings about, each with the ``scope`` it holds for.

    Looks at one product, release and target for each that an override names, on either side; ``known`` are the
    changes without any. Where the configs were resolved for something already, there is nothing to add.
    """
    scopes = list_override_scopes((after, before))
    if not scopes:
        return []
    if [p.document.text for p in before.lineage] == [p.document.text for p in after.lineage]:
        return []
    seen = {identify_unscoped_change(change) for change in known}
    changes: list[Change] = []
    for context, scope in scopes.items():
        sides = [contexts.resolve_elsewhere(config, context) for config in (before, after)]
        if sides[0] is None or sides[1] is None:
            continue
        for change in compare_configs(sides[0], sides[1]):
            if identify_unscoped_change(change) not in seen:
                seen.add(identify_unscoped_change(change))
                changes.append(change._replace(scope=scope))
    return changes


def identify_unscoped_change(change: Change) -> str:
    """Return what two changes share that say the same, wherever they hold."""
    return repr((change.key, change.kind, change.before, change.after))


def list_override_scopes(configs: Sequence[Config], key: str = "") -> dict[Context, str]:
    """Return the contexts that overrides of any config name, each with the words of the first that does; only those that touch a key.

    None where a config was resolved for something already.
    """
    overrides = [override for config in configs for profile in config.lineage for override in profile.overrides]
    if not overrides or any(config.context != Context() for config in configs):
        return {}
    scopes: dict[Context, str] = {}
    for override in overrides:
        if not key or any(step.key == key for step in override.steps):
            for context, words in contexts.list_override_points(override, Context()):
                if words and len(scopes) < _MAX_CONTEXTS:
                    scopes.setdefault(context, ", ".join(f"{word} {text}" for word, text in words))
    return scopes
