"""The products, releases and targets for which a preset says something of its own, and what differs only there."""

from __future__ import annotations

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
    if before.context != Context() or after.context != Context():
        return []
    if not any(profile.overrides for config in (before, after) for profile in config.lineage):
        return []
    if [p.document.text for p in before.lineage] == [p.document.text for p in after.lineage]:
        return []
    seen = {_change_identity(change) for change in known}
    found: list[Change] = []
    for context, scope in _collect_override_contexts(before, after).items():
        sides = [contexts.resolve_elsewhere(config, context) for config in (before, after)]
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
    """Return the contexts that overrides of either side name, each with the words of the first that does."""
    found: dict[Context, str] = {}
    overrides = [override for config in (after, before) for profile in config.lineage for override in profile.overrides]
    for context, words in (point for override in overrides for point in contexts.list_override_points(override, Context())):
        if words and len(found) < _MAX_CONTEXTS:
            found.setdefault(context, ", ".join(f"{word} {text}" for word, text in words))
    return found
