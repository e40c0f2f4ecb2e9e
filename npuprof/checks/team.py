"""Team rules: the requirements of npuprof.toml, in the language of ``list --where``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product as combinations

from npuprof import catalog
from npuprof.catalog import condition, written_condition
from npuprof.catalog.condition import Operand
from npuprof.checks.rules import describe_place
from npuprof.checks.setting_values import find_value_faults
from npuprof.checks.view import ConditionalFinding, Fault, Scope, View
from npuprof.document import keys
from npuprof.document.policy import Condition, TeamRule
from npuprof.model import TYPE_CHECKING, Any
from npuprof.system import join_boxes

if TYPE_CHECKING:
    from npuprof.checks.rules import KeyFilter
    from npuprof.checks.view import Spans
    from npuprof.resolve.contexts import Box

    #: A product family, and values of declared axes; None is unknown.
    Point = Mapping[str, str | None]


def check_team_rules(
    view: View, rules: Sequence[TeamRule], about: KeyFilter
) -> Iterator[ConditionalFinding]:
    """Yield every team rule that the settings break, with its conditions.

    With ``about``, only the selected ones.
    """
    for rule in rules:
        if about(written_condition.list_team_reads(rule)):
            known = _list_facts(view, rule)
            points: list[Box] = [
                tuple((value,) for value in point)
                for point in combinations(*known.values())
                if _is_broken(view, rule, dict(zip(known, point, strict=True)))
            ]
            for box in join_boxes(points):
                yield _build_finding(view, rule, known, dict(zip(known, box, strict=True)))


def _list_facts(view: View, rule: TeamRule) -> Spans:
    """Return the product families, and the values of declared axes, for which to judge a rule.

    Only those that it reads are listed.
    """
    read = {path[0] for path in written_condition.list_paths(rule)}
    axes = {"product": (), **rule.axes}
    return {axis: view.list_values(axis, axes[axis]) for axis in axes if axis in read}


def _is_broken(view: View, rule: TeamRule, point: Point) -> bool:
    if rule.when is not None and _evaluate(view, rule.when, point) is not True:
        return False
    is_met = _evaluate(view, rule.require, point)
    return is_met is not True if view.reports_undecided else is_met is False


def _evaluate(view: View, clause: Condition, point: Point) -> bool | None:
    return condition.evaluate_condition(clause[1], lambda path: _look_up(view, path, point))


def _look_up(view: View, path: tuple[str, ...], point: Point) -> Operand:
    if path[0] in point:
        value = point[path[0]]
        return (True, value) if value else (None, None)
    return view.look_up_written(path)


def _build_finding(
    view: View,
    rule: TeamRule,
    known: Spans,
    guilty: Spans,
) -> ConditionalFinding:
    tree = rule.require[1]
    paths = condition.collect_condition_paths(tree)
    point = {name: values[0] for name, values in guilty.items()}
    reasons = [reason for path in paths if (reason := _explain_unknown(view, path, point))]
    what = f"{rule.title}: {', '.join(reasons)}" if reasons else rule.title
    reads = written_condition.list_team_reads(rule)
    required = [written_condition.find_key(path)[0] for path in paths]
    key = next((key for key in (*required, *reads) if key in view.settings), "")
    fault = Fault(
        rule.code, what, f"{rule.describe()}.", _advise(tree, rule), severity=rule.severity
    )
    narrowed = {name: values for name, values in guilty.items() if len(values) < len(known[name])}
    origin = None
    if not key and view.config.lineage:
        # Nothing that the rule reads is set: the finding is at the preset's first section.
        own = view.config.profile
        sections = [name for name in ("profile", *own.document.data) if name in own.document.data]
        key, origin = next(iter(reads), ""), own.origin(*sections[:1])
    return ConditionalFinding(
        view.build_finding(fault, key, origin), describe_place(view, narrowed)
    )


def _explain_unknown(view: View, path: tuple[str, ...], point: Point) -> str:
    """Return a text that names an operand without a value, an empty string if all have one."""
    is_set, value = _look_up(view, path, point)
    name = ".".join(path)
    if is_set is False:
        return f"{name} is not set"
    return "" if is_set and value is not None else f"{name} is unknown"


def _advise(tree: Any, rule: TeamRule) -> str:
    """Return the hint: the one value that meets the rule, else the settings that decide."""
    if tree[0] == "==":
        _, (left_kind, left), (right_kind, right) = tree
        if left_kind == "value" and right_kind == "const" and _can_be_written(left, right):
            return f"write {written_condition.find_key(left)[0]} = {keys.format_toml_value(right)}"
    named = dict.fromkeys(".".join(path) for path in condition.collect_condition_paths(tree))
    return f"change {' or '.join(named)} to satisfy it; npuprof rule {rule.code} shows the rule"


def _can_be_written(path: tuple[str, ...], value: Any) -> bool:
    """Return whether the checks accept a value for an operand of a condition."""
    full, tail = written_condition.find_key(path)
    if tail or catalog.find_key_record(full) is None:
        return False
    return not any(
        fault.severity == "error" for fault in find_value_faults(Scope(None, (), ()), full, value)
    )
