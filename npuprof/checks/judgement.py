"""What is wrong with the settings of one view: each alone, and together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import condition, targets
from npuprof.checks import rules, scope, settings, sharing, surfaces
from npuprof.checks.view import Fault, Scope, View
from npuprof.model import FRAMEWORK_SECTIONS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.checks.rules import About
    from npuprof.checks.view import Judged, Told

    #: Faults of one value: those it has alone, those where it is meant to count, those of standing in a preset at all; and those for
    #: targets that nobody asked for.
    Judgement = tuple[tuple[Fault, ...], tuple[Fault, ...], tuple[Fault, ...], tuple[tuple[str, Fault], ...]]

_FRAMEWORK_KEYS = tuple(f"{section}." for section in FRAMEWORK_SECTIONS)
#: Equal values of these types read the same. Of others do not: 0.0 and -0.0, one instant in two time zones.
_PLAIN = frozenset((str, int, bool))


def judge_view(view: View, notes: bool, about: About | None = None) -> list[Told]:
    """Return what is wrong with the settings, with words for where that is; without ``notes`` some of the notes are left out.

    Only what looks at settings that are asked for, where it is told ``about`` which.
    """
    alone, scoped, frozen = (
        [(fault, key) for fault, key in findings if notes or fault.severity != "info"] for findings in collect_faults(view, about)[:3]
    )
    refused = [(fault, key) for fault, key in scoped if view.scope.surface and fault.code.startswith("NP2")]  # by the target asked for
    findings = [
        *((view.build_finding(fault, key), ()) for fault, key in alone if not scope.is_fault_excused(view.settings, key, fault)),
        *rules.check_rules(view, about),
        *_check_team_rules(view, about),
        *(
            (view.build_finding(fault, key), rules.describe_setting_place(view, key))
            for fault, key in scoped
            if (fault, key) not in refused and not scope.is_fault_excused(view.settings, key, fault)
        ),
        *((finding, rules.describe_place(view)) for finding in _check_flags(view, about)),
        *((finding, rules.describe_place(view)) for finding in _check_frameworks(view, about)),
        *((finding, ()) for finding in (scope.check_late_options(view) if notes and view.region is None else ())),
        *((view.build_finding(fault, key), ()) for fault, key in frozen if sharing.is_written_down(view.config, key)),
        *((finding, rules.describe_place(view)) for finding in sharing.check_locked_keys(view, about)),
    ]
    return [*view.sift_findings(findings), *((view.build_finding(fault, key), ()) for fault, key in refused)]


def judge_unasked(view: View, names: Collection[str] = targets.NAMES, about: About | None = None) -> list[Told]:
    """Return what targets cannot write although they have a place for each option, where nobody asked for one."""
    words = rules.describe_place(view)
    unwritable = collect_faults(view, about)[3]
    findings = list(surfaces.check_unasked_surfaces(view, [fault for fault in unwritable if fault[0][0] in names]))
    if view.scenario is None and "atc" in names and not view.config.abstract and surfaces.has_place(view, "atc"):
        findings += _check_unasked_conversion(view, about)
    return view.sift_findings([(finding, words) for finding in findings])


def _check_unasked_conversion(view: View, about: About | None) -> Iterator[Finding]:
    """Yield why ATC refuses a preset that may be for it: one that names no scenario, each of whose options is a flag.

    ATC has rules of its own for values and for flags that stand together, so all is judged as it reads them.
    """
    refused = [finding for finding, _ in judge_view(view.view_surface("atc"), False, about) if finding.severity == "error"]
    if not refused:
        return
    own = [finding for finding, _ in judge_view(view, False, about)]  # what is told anyway
    keys, clash = {finding.key for finding in own}, any(finding.code.startswith("NP3") for finding in own)
    for finding in refused:
        if finding.key not in keys and not (clash and finding.code == "NP912"):
            yield surfaces.build_conversion_finding(finding)


def _check_team_rules(view: View, about: About | None) -> Iterable[Told]:
    """Return the rules of the team that the settings break; a profile that is only there to be extended breaks none."""
    if (policy := view.config.policy) is None or not policy.rules or view.config.abstract:
        return ()
    from npuprof.checks.team import check_team_rules  # few stores have rules of their own

    return check_team_rules(view, policy.rules, about)


def _check_flags(view: View, about: About | None) -> Iterable[Finding]:
    if view.scenario != surfaces.OFFLINE and view.scope.surface != "atc":
        return ()
    from npuprof.checks.flags import check_flags

    return check_flags(view, about)


def has_framework_settings(names: Iterable[str]) -> bool:
    """Return whether some settings are a framework's own."""
    return any(name.startswith(_FRAMEWORK_KEYS) for name in names)


def _check_frameworks(view: View, about: About | None) -> Iterable[Finding]:
    if not has_framework_settings(view.settings):
        return ()
    from npuprof.checks.frameworks import check_settings  # few presets have sections of frameworks

    return check_settings(view, about)


def say_where(finding: Finding, places: Sequence[tuple[str, ...]]) -> Finding:
    """Return a finding that says in which places it holds, unless it holds wherever nothing is asked for."""
    if () in places:
        return finding
    widest = [place for place in dict.fromkeys(places) if not any(set(wider) < set(place) for wider in places)]
    return finding._replace(message=f"{finding.message} {'; '.join(' '.join(place) for place in widest)}")


@cache
def list_value_reads(key: str) -> tuple[str, ...]:
    """Return the settings that judging one value looks at: itself, and what may excuse it."""
    excuses = (tree for (name, _), tree in catalog.load_excuses().items() if name == key)
    return (key, *(path[0] for tree in excuses for path in condition.collect_condition_paths(tree)))


def collect_faults(view: View, about: About | None = None) -> Judged:
    """Return what is wrong with each setting taken alone; a value is judged once for all presets of a store that hold it."""
    if about is None and view.faults is not None:
        return view.faults
    judged_view: Judged = ([], [], [], [])
    memory = view.memory
    for key, value in view.settings.items():
        if about is not None and not about(list_value_reads(key)):
            continue
        kind = type(value)
        mark = (key, kind, value if kind in _PLAIN else id(value))
        known = memory.get(mark)
        if known is None:
            judged = _judge_value(view.scope, key, value, view.config.resolver.in_python)
            known = memory[mark] = (judged, value)  # while the value is kept no other has its id
        if known[0]:
            for collected, faults in zip(judged_view[:3], known[0][:3], strict=True):
                collected += [(fault, key) for fault in faults]
            judged_view[3].extend((fault, key) for fault in known[0][3])
    if about is None:
        view.faults = judged_view
    return judged_view


def judge_value_alone(key: str, value: Any, scenario: str | None = None) -> tuple[Fault, ...]:
    """Return what is wrong with a value of a setting wherever it stands in a preset of a scenario."""
    return tuple(settings.find_value_faults(Scope(scenario, (), ()), key, value))


def _judge_value(there: Scope, key: str, value: Any, in_python: bool) -> Judgement | tuple[()]:
    """Return what is wrong with a value of a setting in what it is meant for, nothing where all is well."""
    alone, scoped = map(
        tuple, scope.follow_advice(settings.find_value_faults(there, key, value), scope.find_scope_faults(there, key, value))
    )
    frozen = sharing.find_frozen_fault(key, value, in_python)
    unwritable = tuple(surfaces.find_unwritable_faults(there, key, value))
    return (alone, scoped, (frozen,) if frozen else (), unwritable) if alone or scoped or frozen or unwritable else ()
