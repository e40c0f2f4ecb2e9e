"""Judges the settings of one view: each value alone, in its scope, and together with the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import compress
from operator import is_not

from npuprof import catalog
from npuprof.catalog import condition
from npuprof.checks import restrictions, rules, scope, setting_values, sharing
from npuprof.checks.view import (
    ConditionalFinding,
    Fault,
    Scope,
    SettingFault,
    ValueFaults,
    View,
    has_framework_settings,
    select_all,
)
from npuprof.model import TYPE_CHECKING, Finding, select_errors

if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.rules import KeyFilter
    from npuprof.document.policy import TeamRule

#: Types whose equal values have equal texts. Others do not: 0.0 and -0.0, the same instant in two
#: time zones.
_PLAIN = frozenset((str, int, bool))


def judge_view(view: View, notes: bool, about: KeyFilter = select_all) -> list[ConditionalFinding]:
    """Return the findings about the settings, each with its conditions.

    Without ``notes``, some notes are omitted. With ``about``, only findings about the selected
    settings are returned.
    """
    faults = collect_faults(view, about)
    plain, scoped, shared = (
        [item for item in items if notes or item.fault.severity != "info"]
        for items in (faults.plain, faults.scoped, faults.shared)
    )
    rejected = [item for item in scoped if view.scope.surface and item.fault.code[:3] == "NP2"]
    team = view.config.policy.rules if view.config.policy else ()
    found = [_place_fault(view, item) for item in plain if not _is_excused(view, item)]
    found += judge_together(view, team, about)
    found += [
        _place_fault(view, item, rules.describe_setting_place(view, item.key))
        for item in scoped
        if item not in rejected and not _is_excused(view, item)
    ]
    if notes and view.region is None:
        found += map(ConditionalFinding, scope.check_late_options(view))
    found += [
        _place_fault(view, item)
        for item in shared
        if sharing.is_written_down(view.config, item.key)
    ]
    found += _add_place(view, sharing.check_locked_keys(view, about))
    if notes:
        found += _add_place(view, sharing.check_list_changes(view, about))
    # What the requested target rejects cannot be accepted.
    return [*view.sift_findings(found), *(_place_fault(view, item) for item in rejected)]


def _is_excused(view: View, item: SettingFault) -> bool:
    return scope.is_fault_excused(view.settings, item.key, item.fault)


def _place_fault(
    view: View, item: SettingFault, conditions: tuple[str, ...] = ()
) -> ConditionalFinding:
    return ConditionalFinding(view.build_finding(item.fault, item.key), conditions)


def _add_place(view: View, findings: Iterable[Finding]) -> Iterator[ConditionalFinding]:
    """Yield findings with the conditions of the view's region."""
    return (ConditionalFinding(finding, rules.describe_place(view)) for finding in findings)


def check_other_targets(
    view: View, names: Collection[str], about: KeyFilter = select_all
) -> list[ConditionalFinding]:
    """Return the values that some targets cannot write, when no target was requested.

    These targets support each option of the preset.
    """
    unwritable = [item for item in collect_faults(view, about).unwritable if item.target in names]
    findings = list(restrictions.check_unrequested_surfaces(view, unwritable))
    if (
        view.scenario is None
        and "atc" in names
        and not view.config.abstract
        and restrictions.has_place(view, "atc")
    ):
        findings += _check_unrequested_conversion(view, about)
    if not findings:
        return []
    return view.sift_findings([*_add_place(view, findings)])


def _check_unrequested_conversion(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield why ATC rejects a preset that sets no scenario, and whose options all have flags.

    ATC has its own rules for values and combinations of flags, so everything is checked as ATC
    reads it.
    """
    converted = View(view.config, view.region, "atc")
    converted.acceptance = None  # nothing is accepted there
    conversion = judge_view(converted, False, about)
    errors = select_errors(item.finding for item in conversion)
    if not errors:
        return
    reported = [item.finding for item in judge_view(view, False, about)]
    keys = {finding.key for finding in reported}
    has_conflict = any(finding.code.startswith("NP3") for finding in reported)
    for finding in errors:
        # NP912 reports flags that exclude each other: the same conflict in the words of ATC.
        if finding.key not in keys and not (has_conflict and finding.code == "NP912"):
            yield restrictions.build_conversion_finding(finding)


def judge_together(
    view: View, team: Sequence[TeamRule], about: KeyFilter = select_all
) -> Iterator[ConditionalFinding]:
    """Yield the findings about settings of a preset or a launch that do not go together.

    These are broken rules, conflicting framework settings, broken team rules and combinations of
    flags.
    """
    yield from rules.check_rules(view, about)
    yield from _add_place(view, _check_frameworks(view, about))
    if team and not view.config.abstract:
        from npuprof.checks.team import check_team_rules  # few stores have team rules

        yield from check_team_rules(view, team, about)
    if view.is_converted or view.scope.surface == "atc":
        from npuprof.checks.flags import check_flags

        yield from _add_place(view, check_flags(view, about))


def _check_frameworks(view: View, about: KeyFilter) -> Iterable[Finding]:
    if not has_framework_settings(view.names):
        return ()
    from npuprof.checks.frameworks import check_settings  # few presets have framework sections

    return check_settings(view, about)


def add_conditions(finding: Finding, places: Sequence[tuple[str, ...]]) -> Finding:
    """Return a finding whose message names its conditions, unless it also applies without any."""
    if () in places:
        return finding
    # Fewer conditions are wider: they cover all that more conditions select.
    widest = [
        conditions
        for conditions in dict.fromkeys(places)
        if not any(set(wider) < set(conditions) for wider in places)
    ]
    text = "; ".join(" ".join(conditions) for conditions in widest)
    return finding._replace(message=f"{finding.message} {text}")


@cache
def list_value_reads(key: str) -> tuple[str, ...]:
    """Return the settings that checking one value reads: itself and those that may excuse it."""
    excuses = (tree for (name, _), tree in catalog.load_excuses().items() if name == key)
    return (key, *(path[0] for tree in excuses for path in condition.collect_condition_paths(tree)))


def collect_faults(view: View, about: KeyFilter = select_all) -> ValueFaults:
    """Return the faults of each setting taken alone.

    Equal values are checked once for all presets of a store.
    """
    if about is select_all and view.faults is not None:
        return view.faults
    collected = ValueFaults([], [], [], [])
    memory = view.memory
    # The last value of each setting without faults; most presets inherit that object.
    clean = memory.setdefault("clean", {})
    known_values = map(clean.get, view.settings)
    is_new = map(is_not, known_values, view.settings.values())
    for key, value in compress(view.settings.items(), is_new):
        if about is not select_all and not about(list_value_reads(key)):
            continue
        kind = type(value)
        cache_key = (key, kind, value if kind in _PLAIN else id(value))
        known = memory.get(cache_key)
        if known is None:
            if kind is str and key in clean and setting_values.is_plain_folder(key, value):
                continue
            faults = _judge_value(view.scope, key, value, view.config.resolver.in_python)
            known = memory[cache_key] = (faults, value)  # keeping the value alive keeps its id
        faults = known[0]
        if faults is None:
            clean[key] = value
            continue
        collected.plain.extend(faults.plain)
        collected.scoped.extend(faults.scoped)
        collected.shared.extend(faults.shared)
        collected.unwritable.extend(faults.unwritable)
    if about is select_all:
        view.faults = collected
    return collected


def judge_value_alone(key: str, value: Any, scenario: str | None) -> tuple[Fault, ...]:
    """Return the faults of a setting's value in any preset of a scenario."""
    return tuple(setting_values.find_value_faults(Scope(scenario, (), ()), key, value))


def _judge_value(there: Scope, key: str, value: Any, in_python: bool) -> ValueFaults | None:
    """Return the faults of a setting's value in a scope, None if there are none."""
    of_value, of_setting = scope.follow_advice(
        setting_values.find_value_faults(there, key, value),
        scope.find_scope_faults(there, key, value),
    )
    plain = [SettingFault(key, fault) for fault in of_value]
    scoped = [SettingFault(key, fault) for fault in of_setting]
    shared = [
        SettingFault(key, fault)
        for fault in sharing.find_shared_faults(key, value, in_python, there.declared)
    ]
    unwritable = list(restrictions.find_unwritable_faults(there, key, value))
    if plain or scoped or shared or unwritable:
        return ValueFaults(plain, scoped, shared, unwritable)
    return None
