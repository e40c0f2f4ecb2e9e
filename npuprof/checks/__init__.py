"""What is wrong or doubtful with a resolved profile.

A check is a function from a view of one config to findings; the modules beside this one each hold a family.
Rules between options are data (``catalog/rules.toml``), the pages of all other codes are ``pages.toml``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from npuprof.checks import rules, scope, settings, sharing
from npuprof.checks.view import Fault, Scope, View
from npuprof.model import Finding
from npuprof.resolve.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    #: Faults of one value: those it has alone, those where it is meant to count, those of standing in a preset at all.
    Judgement = tuple[tuple[Fault, ...], tuple[Fault, ...], tuple[Fault, ...]]

_PROFILE_CHECKS = (scope.check_profile_claims, sharing.check_locked_keys, sharing.check_dead_steps)
#: Equal values of these types read the same. Of others do not: 0.0 and -0.0, one instant in two time zones.
_PLAIN = frozenset((str, int, bool))


def check_config(config: Config, notes: bool = True, everywhere: bool = True) -> list[Finding]:
    """Return every finding of one config, family by family; without ``notes`` only errors and warnings.

    A product family that an override treats apart is judged with that override. With ``everywhere``, the profile's
    other overrides are looked at as well, each where it matches.
    """
    view = View(config)
    overridden = any(profile.overrides for profile in config.lineage)
    found = _check_families(config, notes) if overridden else _check_settings(view, notes)
    found += [finding for check in _PROFILE_CHECKS for finding in check(view)]
    if overridden and everywhere:
        found += [finding for finding in _check_inactive_overrides(config, notes) if finding not in found]
    return found if notes else [finding for finding in found if finding.severity != "info"]


def _check_families(config: Config, notes: bool) -> list[Finding]:
    """Return what is wrong with the settings, a product family that an override treats apart judged with that override."""
    from npuprof.resolve import contexts

    apart = contexts.find_overridden_families(config)
    found = _check_settings(View(config, apart), notes)
    for family in apart:
        there = contexts.resolve_elsewhere(config, config.context._replace(product=family))
        if there is not None:
            found += [finding for finding in _check_settings(View(there), notes) if finding not in found]
    return found


def _check_inactive_overrides(config: Config, notes: bool) -> list[Finding]:
    """Return what is wrong with the profile's own overrides, each where it matches."""
    from npuprof.resolve import contexts

    found: list[Finding] = []
    for there, index in contexts.resolve_inactive_overrides(config):
        more = [finding for finding in _check_settings(View(there), notes) if _is_in_override(finding, there, index)]
        found += [finding for finding in more if finding not in found]
    return found


def check_values(config: Config, notes: bool = True) -> list[Finding]:
    """Return what is wrong with the values of a config, each taken by itself: all that can be said where the rest is not known."""
    view = View(config)
    return [view.build_finding(fault, key) for faults in _collect_faults(view, notes)[:2] for fault, key in faults]


def _is_in_override(finding: Finding, config: Config, index: int) -> bool:
    """Return whether a finding stands in an override block of the profile itself."""
    origin = finding.origin
    return origin is not None and origin.document is config.lineage[-1].document and origin.path[:2] == ("override", index)


def _check_settings(view: View, notes: bool) -> list[Finding]:
    """Return what is wrong with the settings, each alone and together; without ``notes`` some of the notes are left out."""
    alone, scoped, frozen = _collect_faults(view, notes)
    return [
        *(view.build_finding(fault, key) for fault, key in alone if not scope.is_fault_excused(view.settings, key, fault)),
        *rules.check_rules(view),
        *(view.build_finding(fault, key) for fault, key in scoped if not scope.is_fault_excused(view.settings, key, fault)),
        *(scope.check_late_options(view) if notes else ()),
        *(view.build_finding(fault, key) for fault, key in frozen if sharing.is_written_down(view.config, key)),
    ]


def _collect_faults(view: View, notes: bool) -> tuple[list[tuple[Fault, str]], ...]:
    """Return what is wrong with each setting taken alone; a value is judged once for all presets of a store that hold it."""
    found: tuple[list[tuple[Fault, str]], ...] = ([], [], [])
    memory = view.memory
    for key, value in view.settings.items():
        kind = type(value)
        mark = (key, kind, value if kind in _PLAIN else id(value))
        known = memory.get(mark)
        if known is None:
            known = memory[mark] = (_judge_value(view.scope, key, value), value)  # while the value is kept no other has its id
        for kept, faults in zip(found, known[0], strict=False) if known[0] else ():
            kept += [(fault, key) for fault in faults if notes or fault.severity != "info"]
    return found


def _judge_value(there: Scope, key: str, value: Any) -> Judgement | tuple[()]:
    """Return what is wrong with a value of a setting in what it is meant for, nothing where all is well."""
    alone, scoped = tuple(settings.find_value_faults(there, key, value)), tuple(scope.find_scope_faults(there, key, value))
    frozen = sharing.find_frozen_fault(key, value)
    return (alone, scoped, (frozen,) if frozen else ()) if alone or scoped or frozen else ()


def identify_finding(finding: Finding) -> tuple[str, str, str]:
    """Return what two findings share that are the same fault, wherever it stands."""
    return finding.code, finding.key, finding.message


def fold_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with equal ones folded: one for each fault, naming all profiles that show it.

    Sorted by place; the profile that wrote the fault stands first.
    """
    folded: dict[tuple[object, ...], tuple[Finding, set[str]]] = {}
    for finding in findings:
        origin = finding.origin
        place = (origin.document.source, origin.path) if origin else finding.where
        mark = (finding.code, place, finding.key, finding.message)
        folded.setdefault(mark, (finding, set()))[1].update(finding.profiles)
    return sorted((_put_author_first(finding, names) for finding, names in folded.values()), key=_finding_sort_key)


def _put_author_first(finding: Finding, names: set[str]) -> Finding:
    author = finding.origin.profile if finding.origin else None
    others = sorted(name for name in names if name != author)
    return finding._replace(profiles=(author, *others) if author in names else tuple(others))


def _finding_sort_key(finding: Finding) -> tuple[object, ...]:
    return finding.path or "", *finding.position, finding.code, finding.message
