"""Products, releases and targets that overrides match, and the changes limited to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from npuprof.compare.changes import Change, compare_configs
from npuprof.model import Context
from npuprof.resolve import contexts
from npuprof.resolve.config import Config


def compare_with_scopes(
    before: Config,
    after: Config,
    key: str = "",
    compare: Callable[[Config, Config], list[Change]] = compare_configs,
) -> list[Change]:
    """Return the changes between two configs, with those that only an override causes.

    Compares at one product, release and target for each that an override of either side matches.
    With ``key``, only overrides that touch it count. Configs that were resolved for a context have
    no other scopes.
    """
    changes = compare(before, after)
    scopes = []
    for context, scope in list_override_scopes((after, before), key).items():
        old, new = (contexts.resolve_elsewhere(config, context) for config in (before, after))
        if old and new:
            scopes.append((scope, compare(old, new)))
    return add_scoped_changes(changes, scopes)


def resolve_scopes(config: Config, key: str) -> Iterator[tuple[Config, str]]:
    """Yield a config in each context that its overrides of a key match, with its name."""
    for context, scope in list_override_scopes((config,), key).items():
        scoped_config = contexts.resolve_elsewhere(config, context)
        if scoped_config:
            yield scoped_config, scope


def add_scoped_changes(
    changes: Sequence[Change], scopes: Iterable[tuple[str, Iterable[Change]]]
) -> list[Change]:
    """Return changes followed by those of each scope that are not among them."""
    found = {_identify_unscoped_change(change): change for change in changes}
    for scope, scoped in scopes:
        for change in scoped:
            found.setdefault(_identify_unscoped_change(change), change._replace(scope=scope))
    return list(found.values())


def _identify_unscoped_change(change: Change) -> str:
    """Return the identity of a change without its scope."""
    return repr((change.key, change.kind, change.before, change.after))


def list_override_scopes(configs: Sequence[Config], key: str) -> dict[Context, str]:
    """Return the contexts that overrides of any config match, each with its description.

    With ``key``, only overrides that touch it count. Empty if a config was resolved for a context.
    """
    overrides = [
        override
        for config in configs
        for profile in config.lineage
        for override in profile.overrides
    ]
    # a requested context is the only one that was asked for
    if not overrides or any(config.context != Context() for config in configs):
        return {}
    scopes: dict[Context, str] = {}
    for override in overrides:
        if key and all(step.key != key for step in override.steps):
            continue
        for context, axes in contexts.list_override_points(override, Context()):
            if axes:
                scopes.setdefault(context, ", ".join(f"{axis} {value}" for axis, value in axes))
    return scopes
