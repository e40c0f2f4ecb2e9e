"""What is known to be clean, so that only what has not been seen before is looked at.

In a large store most profiles differ from their parents in a few values, and most values occur in many profiles.

The screen finds nothing: where it cannot say that all is well, the checks themselves run.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import Rule
from npuprof.checks import rules, scope, settings, sharing
from npuprof.checks.view import Fault, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from npuprof.document.profile import Profile

#: What the rules that count look at, and what is judged by its neighbours; a profile with any of these is not screened.
_COUNTED = frozenset(("dynamic_dims", "input_shape", "estimator.save_checkpoints_steps", "enable_data_pre_proc"))


def clean(view: View) -> bool:
    """Return whether the settings of a config certainly bring no error and no warning."""
    resolver, lineage = view.resolver, view.config.lineage
    if resolver is None or view.config.changed:
        return False
    # Names mean something in one store only, so what is known of them stays with the resolver of that store.
    states: dict[Any, Any] = resolver.screened.setdefault(id(view.scope), {})
    return _state(view, lineage, tuple(profile.key for profile in lineage), states)


def _state(view: View, lineage: tuple[Profile, ...], names: tuple[str, ...], states: dict[Any, Any]) -> bool:
    """Return whether the settings after a lineage are clean: those before its last profile, and its own."""
    known: bool | None = states.get(names)
    if known is not None:
        return known
    done = len(names) - 1
    while done and names[:done] not in states:
        done -= 1
    assert view.resolver is not None
    for place in range(done, len(names)):
        before = names[:place]
        values = view.resolver.fold(lineage[: place + 1], view.scenario) if place < len(names) - 1 else view.settings
        layers = view.resolver.layers(lineage[place], view.scenario)
        touched = tuple([(step.op, step.key) for _, steps in layers for step in steps])
        states[names[: place + 1]] = (not place or states[before]) and _fine(view, values, touched, before, states)
    return bool(states[names])


def _fine(
    view: View, values: dict[str, Any], touched: tuple[tuple[str, str], ...], before: tuple[str, ...], states: dict[Any, Any]
) -> bool:
    memory = view.scope.memory
    for op, key in touched:
        if key in _COUNTED or op == "unset":
            return False
        value = values[key]
        kind = type(value)
        seen = memory.get(key)
        if seen is None:
            seen = memory[key] = {}
        plain = kind is not dict and kind is not list
        good = seen.get((kind, value)) if plain else None
        if good is None:
            good = not any(fault.severity != "info" for fault in _faults(view, key, value))
            if plain:
                seen[kind, value] = good
        if not good:
            return False
    mark = (before, touched)  # with the same profiles below, the same keys are set
    awake = states.get(mark)
    if awake is None:
        awake = states[mark] = tuple(rule for rule in _rules_of(touched) if _speaks(rule, values))
    return all(_keeps(view, rule, values) for rule in awake)


def _speaks(rule: Rule, values: dict[str, Any]) -> bool:
    if rule.required:
        return all(key in values for key in rule.required)
    return any(key in values for key in rule.triggers)


def _keeps(view: View, rule: Rule, values: dict[str, Any]) -> bool:
    seen: dict[Any, bool] = view.scope.memory.setdefault(rule.code, {})
    mark = rules.sight(rule, values)
    if mark is None:
        return _calm(view, rule, values)
    calm = seen.get(mark)
    if calm is None:
        calm = seen[mark] = _calm(view, rule, values)
    return calm


def _faults(view: View, key: str, value: Any) -> Iterator[Fault]:
    yield from settings.faults(key, value)
    option = catalog.option(key)
    if option is None or option.value_products or option.choices_since or option.product_range:
        yield from scope.faults(view, key, value)
        frozen = sharing.frozen(key, value)
        if frozen is not None:
            yield frozen
        return
    mark = (key, "whatever its value")
    if mark not in view.scope.memory:
        frozen = sharing.frozen(key, value)
        view.scope.memory[mark] = (*scope.faults(view, key, value), *([frozen] if frozen else []))
    yield from view.scope.memory[mark]


@cache
def _rules_of(touched: tuple[tuple[str, str], ...]) -> tuple[Rule, ...]:
    by_key = catalog.rules_by_key()
    return tuple({rule.code: rule for _, key in touched for rule in by_key.get(key, ())}.values())


def _calm(view: View, rule: Rule, values: dict[str, Any]) -> bool:
    state = object.__new__(View)
    state.__dict__.update(view.__dict__, settings=values)
    return not any(rules.breaks(rule, state, family) for family in rules.families_of(rule, state))
