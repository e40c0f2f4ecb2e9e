"""Rules between settings: those of the catalogue, and the few that have to count."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import Rule, condition, values
from npuprof.checks.view import Fault, View
from npuprof.document import keys
from npuprof.model import SECTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from npuprof.model import Finding


def check_rules(view: View) -> Iterator[Finding]:
    """Yield every rule the settings break. A profile that is only there to be extended breaks none."""
    if view.config.abstract:
        return
    by_trigger = catalog.rules_by_trigger()
    awake: dict[str, Rule] = {}
    for key in view.settings:
        for rule in by_trigger.get(key, ()):
            if all(needed in view.settings for needed in rule.required):
                awake[rule.code] = rule
    for code in sorted(awake):
        broken = _check_rule(awake[code], view)
        if broken is not None:
            yield broken
    yield from check_size_profiles(view)
    yield from _check_checkpoint_steps(view)


def _check_rule(rule: Rule, view: View) -> Finding | None:
    families = rule_families(rule, view)
    guilty = _find_breaking_families(rule, view, families)
    if not guilty:
        return None
    key = next((key for key in map(_resolve_rule_key, rule.options) if key in view.settings), None)
    if key is None:
        key = next(key for key in rule.triggers if key in view.settings)
    on = f" on {', '.join(str(family) for family in guilty)}" if len(guilty) < len(families) else ""
    return view.build_finding(Fault(rule.code, rule.severity, rule.what + on, rule.why, rule.hint), key)


def _find_breaking_families(rule: Rule, view: View, families: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return the product families on which a rule is broken, found once for the same values of what it reads."""
    seen: dict[Any, tuple[str | None, ...]] = view.scope.memory.setdefault(("rule", rule.code), {})
    mark = collect_rule_inputs(rule, view.settings)
    known = seen.get(mark) if mark is not None else None
    if known is None:
        known = tuple(family for family in families if is_rule_broken(rule, view, family))
        if mark is not None:
            seen[mark] = known
    return known


def collect_rule_inputs(rule: Rule, settings: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return what a rule sees of settings: the values it compares, and of the rest whether they are set.

    None where it looks into a table or a list.
    """
    plan = _rule_input_plans.get(rule.code)
    if plan is None:
        trees = (rule.when,) if rule.needs is None else (rule.when, rule.needs)
        names = {path for tree in trees for path in condition.collect_compared_paths(tree)}
        names |= {
            path for tree in trees for path in condition.collect_condition_paths(tree) if len(path) > (2 if path[0] in SECTIONS else 1)
        }
        compared = {keys.format_full_key(path[0], path[1]) if path[0] in SECTIONS else path[0] for path in names}
        plan = _rule_input_plans[rule.code] = tuple((key, key in compared) for key in rule.reads)
    found: list[Any] = []
    for key, by_value in plan:
        if not by_value:
            found.append(key in settings)
            continue
        value = settings.get(key)
        if type(value) is dict or type(value) is list:
            return None
        found.append((type(value), value))
    return tuple(found)


_rule_input_plans: dict[str, tuple[tuple[str, bool], ...]] = {}


def rule_families(rule: Rule, view: View) -> tuple[str | None, ...]:
    """Return the product families a rule has to be asked for: one, where all give the same answer."""
    families = view.families or (None,)
    return families if rule.by_product else families[:1]


def is_rule_broken(rule: Rule, view: View, family: str | None) -> bool:
    """Return whether a config certainly breaks a rule on a product family."""

    def lookup_on_family(path: tuple[str, ...]) -> tuple[bool | None, Any]:
        return view.lookup_operand(path, family)

    if condition.evaluate_condition(rule.when, lookup_on_family) is not True:
        return False
    return rule.needs is None or condition.evaluate_condition(rule.needs, lookup_on_family) is False


def _resolve_rule_key(name: str) -> str:
    return f"env.{name}" if catalog.find_option(name) is None and catalog.find_variable(name) else name


def check_size_profiles(view: View) -> Iterator[Finding]:
    """Size profiles against the open dimensions of the shapes they fill."""
    dims = values.parse_structured_value("dynamic_dims", view.settings.get("dynamic_dims"))
    if not isinstance(dims, list) or not all(isinstance(sizes, list) for sizes in dims):
        return
    limits = catalog.find_option("dynamic_dims")
    assert limits is not None
    for family in view.families or (None,):
        low, high = limits.product_count.get(family or "", limits.default_count or (2, 100))
        if not low <= len(dims) <= high:
            what = f"dynamic_dims has {len(dims)} size profiles" + (f" on {family}" if family else "")
            yield view.build_finding(
                Fault("NP381", "error", what, "The engine builds one graph for each.", f"write {low} to {high} of them"), "dynamic_dims"
            )
            break
    shapes = values.parse_structured_value("input_shape", view.settings.get("input_shape"))
    if not isinstance(shapes, dict) or not all(isinstance(shape, list) for shape in shapes.values()):
        return
    opened = sum(shape.count(-1) for shape in shapes.values())
    for index, sizes in enumerate(dims):
        if len(sizes) != opened:
            what = f"size profile {index + 1} has {len(sizes)} numbers, input_shape has {opened} open dimensions"
            why = "The numbers fill the -1 of input_shape from left to right; a mismatch makes the job exit."
            yield view.build_finding(Fault("NP382", "error", what, why, f"write {opened} numbers", (index,)), "dynamic_dims")
    names = list(shapes)
    if names != sorted(names):
        why = "The engine takes the inputs in alphabetical order, so the sizes would fill other dimensions."
        hint = f"write them in the order {', '.join(sorted(names))}"
        yield view.build_finding(
            Fault("NP383", "warning", "input_shape does not list the inputs in alphabetical order", why, hint), "input_shape"
        )


def _check_checkpoint_steps(view: View) -> Iterator[Finding]:
    loop = view.settings.get("iterations_per_loop")
    steps = view.settings.get("estimator.save_checkpoints_steps")
    if type(loop) is int and type(steps) is int and loop > 1 and steps > 0 and steps % loop:
        what = f"save_checkpoints_steps = {steps} is no multiple of iterations_per_loop = {loop}"
        why = "A checkpoint can only be written between two loops."
        yield view.build_finding(
            Fault("NP384", "error", what, why, f"write {steps + loop - steps % loop}"), "estimator.save_checkpoints_steps"
        )
