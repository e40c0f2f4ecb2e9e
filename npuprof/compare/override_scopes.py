"""Products, releases and targets that overrides match, and the changes limited to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from npuprof.compare.changes import Change, compare_configs
from npuprof.model import Context
from npuprof.resolve import contexts
from npuprof.resolve.config import Config


def compare_with_scopes(before: Config, after: Config, trace: bool = True) -> list[Change]:
    """Return the changes between two configs, with those that only an override causes.

    Compares at one product, release and target for each that an override of either side matches.
    Configs that were resolved for a context have no other scopes.
    """
    changes = compare_configs(before, after, trace)
    if [p.document.text for p in before.lineage] == [p.document.text for p in after.lineage]:
        return changes
    return add_scoped_changes(
        changes,
        compare_scopes(before, after, "", lambda old, new: compare_configs(old, new, trace)),
    )


def compare_scopes(
    before: Config, after: Config, key: str, compare: Callable[[Config, Config], list[Change]]
) -> Iterator[tuple[str, list[Change]]]:
    """Yield the changes in each context that an override of a key matches, with its name.

    Overrides of either side count.
    """
    for context, scope in list_override_scopes((after, before), key).items():
        old, new = (contexts.resolve_elsewhere(config, context) for config in (before, after))
        if old is not None and new is not None:
            yield scope, compare(old, new)


def resolve_scopes(config: Config, key: str) -> Iterator[tuple[Config, str]]:
    """Yield a config in each context that its overrides of a key match, with its name."""
    for context, scope in list_override_scopes((config,), key).items():
        if there := contexts.resolve_elsewhere(config, context):
            yield there, scope


def add_scoped_changes(
    changes: Sequence[Change], scopes: Iterable[tuple[str, Iterable[Change]]]
) -> list[Change]:
    """Return changes followed by those of each scope that are not among them."""
    known = set(map(_identify_unscoped_change, changes))
    result = list(changes)
    for scope, scoped in scopes:
        for change in scoped:
            mark = _identify_unscoped_change(change)
            if mark not in known:
                known.add(mark)
                result.append(change._replace(scope=scope))
    return result


def _identify_unscoped_change(change: Change) -> str:
    """Return the identity of a change without its scope."""
    return repr((change.key, change.kind, change.before, change.after))


def list_override_scopes(configs: Sequence[Config], key: str = "") -> dict[Context, str]:
    """Return the contexts that overrides of any config match, each with its description.

    Only those that touch a key.

    Empty if a config was resolved for a context.
    """
    overrides = [
        override
        for config in configs
        for profile in config.lineage
        for override in profile.overrides
    ]
    if not overrides or any(config.context != Context() for config in configs):
        return {}
    scopes: dict[Context, str] = {}
    for override in overrides:
        if not key or any(step.key == key for step in override.steps):
            for context, words in contexts.list_override_points(override, Context()):
                if words:
                    scopes.setdefault(context, ", ".join(f"{word} {text}" for word, text in words))
    return scopes
