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


def is_config_clean(view: View) -> bool:
    """Return whether the settings of a config certainly bring no error and no warning."""
    resolver, lineage = view.resolver, view.config.lineage
    if resolver is None or view.config.changed:
        return False
    # Names mean something in one store only, so what is known of them stays with the resolver of that store.
    states: dict[Any, Any] = resolver.screened.setdefault(id(view.scope), {})
    return _is_lineage_clean(view, lineage, tuple(profile.key for profile in lineage), states)


def _is_lineage_clean(view: View, lineage: tuple[Profile, ...], names: tuple[str, ...], states: dict[Any, Any]) -> bool:
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
        values = view.resolver.fold_lineage(lineage[: place + 1], view.scenario) if place < len(names) - 1 else view.settings
        layers = view.resolver.select_layers(lineage[place], view.scenario)
        touched = tuple([(step.op, step.key) for _, steps in layers for step in steps])
        states[names[: place + 1]] = (not place or states[before]) and _is_layer_clean(view, values, touched, before, states)
    return bool(states[names])


def _is_layer_clean(
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
            good = not any(fault.severity != "info" for fault in _find_value_faults(view, key, value))
            if plain:
                seen[kind, value] = good
        if not good:
            return False
    mark = (before, touched)  # with the same profiles below, the same keys are set
    awake = states.get(mark)
    if awake is None:
        awake = states[mark] = tuple(rule for rule in _collect_touched_rules(touched) if _is_rule_triggered(rule, values))
    return all(_is_rule_known_satisfied(view, rule, values) for rule in awake)


def _is_rule_triggered(rule: Rule, values: dict[str, Any]) -> bool:
    if rule.required:
        return all(key in values for key in rule.required)
    return any(key in values for key in rule.triggers)


def _is_rule_known_satisfied(view: View, rule: Rule, values: dict[str, Any]) -> bool:
    seen: dict[Any, bool] = view.scope.memory.setdefault(rule.code, {})
    mark = rules.collect_rule_inputs(rule, values)
    if mark is None:
        return _is_rule_satisfied(view, rule, values)
    calm = seen.get(mark)
    if calm is None:
        calm = seen[mark] = _is_rule_satisfied(view, rule, values)
    return calm


def _find_value_faults(view: View, key: str, value: Any) -> Iterator[Fault]:
    yield from settings.find_setting_faults(key, value)
    option = catalog.find_option(key)
    if option is None or option.value_products or option.choices_since or option.product_range:
        yield from scope.find_scope_faults(view, key, value)
        frozen = sharing.find_frozen_fault(key, value)
        if frozen is not None:
            yield frozen
        return
    mark = (key, "whatever its value")
    if mark not in view.scope.memory:
        frozen = sharing.find_frozen_fault(key, value)
        view.scope.memory[mark] = (*scope.find_scope_faults(view, key, value), *([frozen] if frozen else []))
    yield from view.scope.memory[mark]


@cache
def _collect_touched_rules(touched: tuple[tuple[str, str], ...]) -> tuple[Rule, ...]:
    by_key = catalog.rules_by_key()
    return tuple({rule.code: rule for _, key in touched for rule in by_key.get(key, ())}.values())


def _is_rule_satisfied(view: View, rule: Rule, values: dict[str, Any]) -> bool:
    state = object.__new__(View)
    state.__dict__.update(view.__dict__, settings=values)
    return not any(rules.is_rule_broken(rule, state, family) for family in rules.rule_families(rule, state))
