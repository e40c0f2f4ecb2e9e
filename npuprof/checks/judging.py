"""Judges the settings of one view: each value alone, in its scope, and together with the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache

from npuprof import catalog
from npuprof.catalog import condition
from npuprof.checks import restrictions, rules, scope, setting_values, sharing
from npuprof.checks.view import Fault, Scope, View, select_all
from npuprof.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.rules import KeyFilter
    from npuprof.checks.view import ConditionalFinding, ValueFaults
    from npuprof.document.policy import TeamRule

    #: The faults of one value: of the value alone, of its scope, of a value in a shared preset, and
    #: of targets that were not requested.
    Judgement = tuple[
        tuple[Fault, ...], tuple[Fault, ...], tuple[Fault, ...], tuple[tuple[str, Fault], ...]
    ]

#: Types whose equal values have equal texts. Others do not: 0.0 and -0.0, the same instant in two
#: time zones.
_PLAIN = frozenset((str, int, bool))


def judge_view(view: View, notes: bool, about: KeyFilter = select_all) -> list[ConditionalFinding]:
    """Return the findings about the settings, each with its conditions.

    Without ``notes``, some notes are omitted.

    With ``about``, only findings about the selected settings are returned.
    """
    alone, scoped, frozen = (
        [(fault, key) for fault, key in findings if notes or fault.severity != "info"]
        for findings in collect_faults(view, about)[:3]
    )
    refused = [
        (fault, key) for fault, key in scoped if view.scope.surface and fault.code.startswith("NP2")
    ]  # by the requested target
    findings = [
        *(
            (view.build_finding(fault, key), ())
            for fault, key in alone
            if not scope.is_fault_excused(view.settings, key, fault)
        ),
        *judge_together(view, view.config.policy.rules if view.config.policy else (), about),
        *(
            (view.build_finding(fault, key), rules.describe_setting_place(view, key))
            for fault, key in scoped
            if (fault, key) not in refused and not scope.is_fault_excused(view.settings, key, fault)
        ),
        *((finding, rules.describe_place(view)) for finding in _check_frameworks(view, about)),
        *(
            (finding, ())
            for finding in (scope.check_late_options(view) if notes and view.region is None else ())
        ),
        *(
            (view.build_finding(fault, key), ())
            for fault, key in frozen
            if sharing.is_written_down(view.config, key)
        ),
        *(
            (finding, rules.describe_place(view))
            for finding in sharing.check_locked_keys(view, about)
        ),
    ]
    return [
        *view.sift_findings(findings),
        *((view.build_finding(fault, key), ()) for fault, key in refused),
    ]


def check_other_targets(
    view: View, names: Collection[str], about: KeyFilter = select_all
) -> list[ConditionalFinding]:
    """Return the values that targets cannot write although they support each option, when no target
    was requested.
    """
    words = rules.describe_place(view)
    unwritable = collect_faults(view, about)[3]
    findings = list(
        restrictions.check_unasked_surfaces(
            view, [fault for fault in unwritable if fault[0][0] in names]
        )
    )
    if (
        view.scenario is None
        and "atc" in names
        and not view.config.abstract
        and restrictions.has_place(view, "atc")
    ):
        findings += _check_unasked_conversion(view, about)
    return view.sift_findings([(finding, words) for finding in findings])


def _check_unasked_conversion(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield why ATC rejects a preset that may be meant for it: it sets no scenario, and each option
    has a flag.

    ATC has its own rules for values and combinations of flags, so everything is checked as ATC
    reads it.
    """
    refused = [
        finding
        for finding, _ in judge_view(view.view_surface("atc"), False, about)
        if finding.severity == "error"
    ]
    if not refused:
        return
    own = [finding for finding, _ in judge_view(view, False, about)]  # already reported
    keys, clash = (
        {finding.key for finding in own},
        any(finding.code.startswith("NP3") for finding in own),
    )
    for finding in refused:
        if finding.key not in keys and not (clash and finding.code == "NP912"):
            yield restrictions.build_conversion_finding(finding)


def judge_together(
    view: View, team: Sequence[TeamRule], about: KeyFilter = select_all
) -> Iterator[ConditionalFinding]:
    """Yield the findings about the settings of a preset or a launch together: broken rules, team
    rules, combinations of flags.
    """
    yield from rules.check_rules(view, about)
    if team and not view.config.abstract:
        from npuprof.checks.team import check_team_rules  # few stores have team rules

        yield from check_team_rules(view, team, about)
    if view.is_converted or view.scope.surface == "atc":
        from npuprof.checks.flags import check_flags

        yield from ((finding, rules.describe_place(view)) for finding in check_flags(view, about))


@lru_cache(1024)  # presets of one kind set the same keys
def has_framework_settings(names: Collection[str]) -> bool:
    """Return whether some settings belong to a framework section."""
    prefixes = tuple(
        section.prefix for section in catalog.load_sections().values() if section.dotted
    )
    return any(name.startswith(prefixes) for name in names)


def _check_frameworks(view: View, about: KeyFilter) -> Iterable[Finding]:
    if not has_framework_settings(view.names):
        return ()
    from npuprof.checks.frameworks import check_settings  # few presets have framework sections

    return check_settings(view, about)


def add_conditions(finding: Finding, places: Sequence[tuple[str, ...]]) -> Finding:
    """Return a finding whose message names its conditions, unless it also applies without any."""
    if () in places:
        return finding
    widest = [
        place
        for place in dict.fromkeys(places)
        if not any(set(wider) < set(place) for wider in places)
    ]
    return finding._replace(
        message=f"{finding.message} {'; '.join(' '.join(place) for place in widest)}"
    )


@cache
def list_value_reads(key: str) -> tuple[str, ...]:
    """Return the settings that checking one value reads: itself, and settings that may
    excuse it.
    """
    excuses = (tree for (name, _), tree in catalog.load_excuses().items() if name == key)
    return (key, *(path[0] for tree in excuses for path in condition.collect_condition_paths(tree)))


def collect_faults(view: View, about: KeyFilter = select_all) -> ValueFaults:
    """Return the faults of each setting taken alone.

    Equal values are checked once for all presets of a store.
    """
    if about is select_all and view.faults is not None:
        return view.faults
    judged_view: ValueFaults = ([], [], [], [])
    memory = view.memory
    clean = memory.setdefault(
        "clean", {}
    )  # the last value without faults of each setting; most presets inherit that object
    for key, value in view.settings.items():
        if clean.get(key, clean) is value or (
            about is not select_all and not about(list_value_reads(key))
        ):
            continue
        kind = type(value)
        mark = (key, kind, value if kind in _PLAIN else id(value))
        known = memory.get(mark)
        if known is None:
            judged = _judge_value(view.scope, key, value, view.config.resolver.in_python)
            known = memory[mark] = (judged, value)  # keeping the value alive keeps its id unique
        if known[0]:
            for collected, faults in zip(judged_view[:3], known[0][:3], strict=True):
                collected += [(fault, key) for fault in faults]
            judged_view[3].extend((fault, key) for fault in known[0][3])
        else:
            clean[key] = value
    if about is select_all:
        view.faults = judged_view
    return judged_view


def judge_value_alone(key: str, value: Any, scenario: str | None = None) -> tuple[Fault, ...]:
    """Return the faults of a setting's value in any preset of a scenario."""
    return tuple(setting_values.find_value_faults(Scope(scenario, (), ()), key, value))


def _judge_value(there: Scope, key: str, value: Any, in_python: bool) -> Judgement | tuple[()]:
    """Return the faults of a setting's value in a scope, empty if there are none."""
    alone, scoped = map(
        tuple,
        scope.follow_advice(
            setting_values.find_value_faults(there, key, value),
            scope.find_scope_faults(there, key, value),
        ),
    )
    frozen = sharing.find_frozen_fault(key, value, in_python)
    unwritable = tuple(restrictions.find_unwritable_faults(there, key, value))
    return (
        (alone, scoped, (frozen,) if frozen else (), unwritable)
        if alone or scoped or frozen or unwritable
        else ()
    )
