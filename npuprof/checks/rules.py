"""Rules between settings: those of the catalogue, and those that need arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache, partial
from itertools import product as combinations

from npuprof import catalog
from npuprof.catalog import Rule, condition, releases, values
from npuprof.catalog.condition import Operand
from npuprof.checks.restrictions import find_count_faults
from npuprof.checks.view import ConditionalFinding, Fault, View, select_all
from npuprof.document import keys
from npuprof.model import TYPE_CHECKING, Finding, Path, Record
from npuprof.system import is_list_of, join_boxes, lazy_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from npuprof.checks.view import Spans

    #: Whether a check that reads some settings is selected.
    KeyFilter = Callable[[Iterable[str]], bool]
    Result = TypeVar("Result", bound=tuple[Any, ...])


def check_rules(view: View, about: KeyFilter) -> Iterator[ConditionalFinding]:
    """Yield every rule that the settings break, with its conditions.

    With ``about``, only rules that read the selected settings.

    Abstract profiles break no rules.
    """
    if view.config.abstract:
        return
    for broken in _find_broken_rules(view, about):
        yield from _build_rule_findings(view, broken)
    for check, reads in _COUNTING_CHECKS.items():
        if reads[0] in view.settings and about(reads):
            conditions = describe_place(view)
            yield from (ConditionalFinding(finding, conditions) for finding in check(view))


@cache
def list_rule_reads() -> tuple[frozenset[str], ...]:
    """Return the settings that each rule reads."""
    return (
        *map(frozenset, catalog.list_rule_reads().values()),
        *map(frozenset, _COUNTING_CHECKS.values()),
    )


class BrokenRule(Record):
    """A broken rule, and the products and releases for which it is broken.

    Axes that make no difference are omitted.
    """

    rule: Rule
    spans: tuple[Spans, ...]


class RulePlan(Record):
    """A rule that a set of settings triggers: those it reads, and those whose values count."""

    rule: Rule
    present: frozenset[str]
    compared: tuple[str, ...]


@lru_cache(1024)  # presets of one group set the same keys
def _plan_rules(names: tuple[str, ...]) -> tuple[tuple[RulePlan, ...], tuple[str, ...]]:
    """Return the rules that settings trigger, by code, and all compared settings."""
    known = frozenset(names)
    arguments = set(filter(catalog.is_argument, names))
    # any argument of a program tells that others are not set, a "no-" form or an override what is
    special = {key for key in arguments if ".no-" in key or '"' in key or "--config" in key}
    marks = special.union(key.partition(".")[0] for key in arguments)
    plans = tuple(
        RulePlan(
            rule,
            known.intersection(rule.reads) | marks,
            (*(key for key in rule.compares if key in known), *sorted(special)),
        )
        for rule in map(catalog.find_rule, catalog.list_triggered_rules(names))
    )
    return plans, tuple(dict.fromkeys(key for plan in plans for key in plan.compared))


def _find_broken_rules(view: View, about: KeyFilter) -> tuple[BrokenRule, ...]:
    """Return the rules that the settings break, of those that read selected settings."""
    plans, compared = _plan_rules(view.names)
    if about is select_all:
        cache_key = (view.names, *view.possible)
        return _find_once(view, cache_key, compared, lambda: tuple(_judge_rules(view, plans)))
    return tuple(_judge_rules(view, [plan for plan in plans if about(plan.rule.reads)]))


def _judge_rules(view: View, plans: Iterable[RulePlan]) -> Iterator[BrokenRule]:
    is_converted = view.is_converted
    for plan in plans:
        rule = plan.rule
        if is_converted and not rule.atc:  # ATC does not have it
            continue
        possible = [name for name in view.possible if name.startswith(rule.reads)]
        cache_key = (rule.code, plan.present, *possible)
        spans = _find_once(view, cache_key, plan.compared, partial(_find_spans, rule, view))
        if spans:
            yield BrokenRule(rule, spans)


def _find_once(
    view: View, cache_key: Any, compared: Iterable[str], find: Callable[[], Result]
) -> Result:
    """Return the result for the values of some settings, cached by these values."""
    compared_values = [view.settings[key] for key in compared]
    cache_key = (*cache_key, *map(type, compared_values), *compared_values)
    try:
        known = view.memory.get(cache_key)
    except TypeError:  # a rule that reads lists or tables
        known = view.memory.get(cache_key := repr(cache_key))
    if known is None:
        known = view.memory[cache_key] = find()
    return known


def _find_spans(rule: Rule, view: View) -> tuple[Spans, ...]:
    """Return the products and releases for which a config certainly breaks a rule.

    Axes that make no difference are omitted.
    """
    known = {axis: _list_values(rule, view, axis) for axis in rule.axes}
    points = [
        point
        for point in combinations(*known.values())
        if _is_rule_broken(rule, view, dict(zip(known, point, strict=True)))
    ]
    spans = []
    for box in join_boxes([tuple((name,) for name in point) for point in points]):
        axes = zip(known, box, strict=True)
        spans.append({axis: names for axis, names in axes if len(names) < len(known[axis])})
    return tuple(spans)


def _list_values(rule: Rule, view: View, axis: str) -> tuple[str | None, ...]:
    """Return the values of an axis for which to evaluate a rule.

    If no release is selected and only releases newer than the newest stable one read a setting of
    the rule, the newest release is used.
    """
    known = view.list_values(axis)
    if not view.has_default_release(axis):
        return known
    names = releases.load_releases(axis)
    stable = names.index(releases.find_newest_stable(axis))
    for key, tail in map(_resolve_rule_key, rule.options):
        record = catalog.find_record(*catalog.find_record_place(key, tail))
        is_set, _ = values.find_setting_value(view.settings, key, tail)
        if is_set and record and releases.find_axis(key.partition(".")[0], record) == axis:
            letters = getattr(record, "states", "")
            if letters[stable : stable + 1] == "." and letters[stable:].strip("."):
                return names[-1:]
    return known


def _build_rule_findings(view: View, broken: BrokenRule) -> list[ConditionalFinding]:
    rule = broken.rule
    paths = (*map(_resolve_rule_key, rule.options), *((key, ()) for key in rule.triggers))
    present = [
        path for path in dict.fromkeys(paths) if values.find_setting_value(view.settings, *path)[0]
    ]
    inside = {key for key, tail in present if tail}
    present = [path for path in present if path[1] or path[0] not in inside]
    key, tail = present[0]
    if view.region is not None:
        key, tail = next((path for path in present if _is_overridden(view, path[0])), (key, tail))
    why = describe_partners(view, rule.atc if view.is_converted else rule.why, (key, tail), present)
    finding = view.build_finding(Fault(rule.code, rule.what, why, rule.hint, tail), key)
    return [ConditionalFinding(finding, describe_place(view, spans)) for spans in broken.spans]


def describe_partners(
    view: View,
    why: str,
    setting: tuple[str, Path],
    others: Iterable[tuple[str, Path]],
) -> str:
    """Return the reason of a finding, with the places of the other settings that it is about."""
    texts = []
    for other in others:
        if other == setting:
            continue
        file, own_line = view.locate(*setting)
        place, line = view.locate(*other)
        if line and (place, line) != (file, own_line):
            where = f"line {line}" if place == file else f"{place}:{line}"
            texts.append(f"{keys.format_key_path(*other)} is set in {where}.")
    return " ".join((why, *texts)).strip()


def _is_overridden(view: View, key: str) -> bool:
    """Return whether an override sets a setting, so that the finding is placed at the override."""
    origin = view.config.origin(key)
    return origin is not None and origin.layer.startswith("override")


def describe_place(view: View, narrowed: Spans | None = None) -> tuple[str, ...]:
    """Return the conditions of a finding that does not apply in every use of the preset.

    ``narrowed`` are the products and releases of a finding that applies to some of them only.
    """
    region = view.region
    # later ones replace earlier ones: the finding may apply to less than the view covers
    spans = {
        "product": view.families if region and region.apart else (),
        **view.spans,
        **(narrowed or {}),
    }
    texts = (_describe_span(axis, names) for axis, names in spans.items() if names)
    return (*texts, *(region.words if region else ()))


def _describe_span(axis: str, names: tuple[str | None, ...]) -> str:
    """Return products or releases as a condition: ``on atlas-a3``, ``in CANN 8.5 to 9.0``."""
    if axis == "product":
        return f"on {', '.join(map(str, names))}"
    if not releases.is_axis(axis):
        return f"for {axis} {', '.join(map(str, names))}"
    where = "in CANN" if axis == releases.CANN else f"with {axis}"
    return f"{where} {releases.format_release_span(names, axis)}"


def describe_setting_place(view: View, key: str) -> tuple[str, ...]:
    """Return the conditions of a fault of one setting that names its products.

    If an override sets it, its match adds the rest.
    """
    return () if _is_overridden(view, key) else describe_place(view, {"product": ()})


def _is_rule_broken(rule: Rule, view: View, point: Mapping[str, str | None]) -> bool:
    """Return whether a config certainly breaks a rule on a product family and at some releases."""

    def lookup_there(path: tuple[str, ...]) -> Operand:
        return view.lookup_operand(path, point)

    if condition.evaluate_condition(rule.when, lookup_there) is not True:
        return False
    return rule.needs is None or condition.evaluate_condition(rule.needs, lookup_there) is False


@cache
def _resolve_rule_key(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the key of a setting that a rule names, and the path below it."""
    if catalog.find_option(name) is None and catalog.find_variable(name):
        return f"env.{name}", ()
    return keys.split_key(name)


def check_size_profiles(view: View) -> Iterator[Finding]:
    """Compare size profiles with the open dimensions of the shapes that they fill."""
    dims = values.parse_structured_value("dynamic_dims", view.settings.get("dynamic_dims"))
    if not is_list_of(list, dims):
        return
    limits = catalog.find_option("dynamic_dims")
    assert limits is not None
    for fault in find_count_faults(
        limits, view.families, len(dims), f"dynamic_dims has {len(dims)} size profiles"
    ):
        yield view.build_finding(fault, "dynamic_dims")
    shapes = values.parse_structured_value("input_shape", view.settings.get("input_shape"))
    if not isinstance(shapes, dict) or not all(
        isinstance(shape, list) for shape in shapes.values()
    ):
        return
    opened = sum(shape.count(-1) for shape in shapes.values())
    for index, sizes in enumerate(dims):
        if len(sizes) != opened:
            what = (
                f"size profile {index + 1} has {len(sizes)} "
                f"numbers, input_shape has {opened} open dimensions"
            )
            stops = "atc stop" if view.is_converted else "the job exit"
            why = (
                "The numbers fill the -1 of input_shape from "
                f"left to right; a mismatch makes {stops}."
            )
            yield view.build_finding(
                Fault("NP382", what, why, f"write {opened} numbers", (index,)), "dynamic_dims"
            )
    names = list(shapes)
    # GE sorts only if dynamic_node_type says what varies: multi_batch_clone_pass.cc
    if names != sorted(names) and "dynamic_node_type" in view.settings and not view.is_converted:
        why = (
            "The engine takes the inputs in alphabetical "
            "order, so the sizes would fill other dimensions."
        )
        hint = f"write them in the order {', '.join(sorted(names))}"
        yield view.build_finding(
            Fault("NP383", "input_shape does not list the inputs in alphabetical order", why, hint),
            "input_shape",
        )


def check_checkpoint_steps(view: View) -> Iterator[Finding]:
    """Compare the steps between checkpoints with the steps of a loop."""
    loop = view.settings.get("iterations_per_loop")
    steps = view.settings.get("estimator.save_checkpoints_steps")
    if type(loop) is int and type(steps) is int and loop > 1 and steps > 0 and steps % loop:
        what = f"save_checkpoints_steps = {steps} is not a multiple of iterations_per_loop = {loop}"
        why = (
            "A checkpoint can only be written between two loops, so it comes later than asked for."
        )
        yield view.build_finding(
            Fault("NP384", what, why, f"write {steps + loop - steps % loop}"),
            "estimator.save_checkpoints_steps",
        )


def check_container_devices(view: View) -> Iterator[Finding]:
    """Compare the devices of a process with the number of devices in its container."""
    inside, given = (str(view.settings.get(name)) for name in _DEVICES_READ)
    count = given.count(",") + 1
    if _DEVICES.fullmatch(f"{inside},{given}") and max(map(int, inside.split(","))) >= count:
        what = f"ASCEND_RT_VISIBLE_DEVICES = {inside} in a container with {count} devices"
        why = "In a container, devices are numbered from 0, whatever their numbers outside are."
        hint = f'unset it, or write "{",".join(map(str, range(count)))}"'
        fault = Fault("NP3112", what, why, hint, severity="warning")
        yield view.build_finding(fault, _DEVICES_READ[0])


_DEVICES = lazy_pattern(r"[0-9]{1,3}(?:,[0-9]{1,3})*")
_DEVICES_READ = ("env.ASCEND_RT_VISIBLE_DEVICES", "env.ASCEND_VISIBLE_DEVICES")
#: Checks with arithmetic, with the settings they read; without the first one there is nothing to
#: check.
_COUNTING_CHECKS = {
    check_size_profiles: ("dynamic_dims", "input_shape", "dynamic_node_type"),
    check_checkpoint_steps: ("iterations_per_loop", "estimator.save_checkpoints_steps"),
    check_container_devices: _DEVICES_READ,
}
