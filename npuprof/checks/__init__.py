"""Checks: the findings of a resolved profile.

A check is a function from a view of one config to findings; each module contains related checks. Rules between options
are data (``catalog/rules.toml``); the pages of all other codes are in ``pages.toml``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache

from npuprof import catalog
from npuprof.catalog import condition, targets
from npuprof.checks import rules, scope, settings, sharing, surfaces
from npuprof.checks.view import Fault, Scope, View
from npuprof.model import FRAMEWORK_SECTIONS, Context, Finding, NpuprofError, Record, renew_hints
from npuprof.report import say_option
from npuprof.resolve import lineages
from npuprof.resolve.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.accepted import Accepted
    from npuprof.checks.rules import About
    from npuprof.checks.view import Judged, Told

    #: The faults of one value: of the value alone, of its scope, of a value in a shared preset, and of targets that were not requested.
    Judgement = tuple[tuple[Fault, ...], tuple[Fault, ...], tuple[Fault, ...], tuple[tuple[str, Fault], ...]]

_FRAMEWORK_KEYS = tuple(f"{section}." for section in FRAMEWORK_SECTIONS)
#: Types whose equal values have equal texts. Others do not: 0.0 and -0.0, the same instant in two time zones.
_PLAIN = frozenset((str, int, bool))


class Verdict(Record):
    """The findings of a config, and its accepted findings."""

    findings: list[Finding]
    accepted: list[Accepted]


def check_config(config: Config, notes: bool = True, everywhere: bool = True) -> list[Finding]:
    """Return every finding of one config that is not accepted; without ``notes``, only errors and warnings.

    Values and overrides are checked together: with ``everywhere`` in every context that the preset supports, else only in
    those that need no further selection.
    """
    return judge_config(config, notes, everywhere).findings


def judge_config(config: Config, notes: bool = True, everywhere: bool = True) -> Verdict:
    """Return every finding of one config, as ``check_config`` does, and its accepted findings."""
    renew_hints()
    view = View(config)
    claims = [finding for finding, _ in view.sift_findings([(finding, ()) for finding in scope.check_profile_claims(view)])]
    if lineages.has_overrides(config.lineage):
        from npuprof.checks import contexts

        findings = contexts.check_contexts(view, notes, everywhere)
    else:
        placed = judge_view(view, notes)
        if not view.asked.target:
            placed += judge_unasked(view)
        findings = [say_where(finding, [words]) for finding, words in placed]
    findings += [*claims, *(finding for finding, _ in view.sift_findings([(finding, ()) for finding in _check_steps_and_parents(view)]))]
    if lineages.says_anywhere(config.lineage, "ignore"):
        from npuprof.checks.accepted import check_ignores

        findings += check_ignores(config)
    return Verdict(findings if notes else [finding for finding in findings if finding.severity != "info"], view.accepted)


def _check_steps_and_parents(view: View) -> tuple[Finding, ...]:
    """Return the findings about steps and parents of a preset, cached for all contexts with equal settings."""
    memo = view.config.memo
    if "steps and parents" not in memo:
        found = (*sharing.check_dead_steps(view), *sharing.check_lost_protections(view), *sharing.check_parents(view))
        memo["steps and parents"] = found
    known: tuple[Finding, ...] = memo["steps and parents"]
    return known


def check_before_export(config: Config) -> list[Finding]:
    """Return the errors and warnings of an export in the config's own context; for an abstract preset, first that it is abstract."""
    findings = fold_findings(check_config(config, notes=False, everywhere=False))
    if config.abstract:
        origin = config.lineage[-1].origin("profile", "abstract")
        why = "An abstract preset exists only to be extended, and may be incomplete."
        hint = f"extend it, or compose it with another preset: {say_option('with', in_python=config.resolver.in_python)}"
        findings.insert(0, Finding("NP107", f"{config.name} is abstract", why, hint, origin, "profile.abstract", (config.name,)))
    return findings


def require_exportable(config: Config) -> list[Finding]:
    """Return the warnings of an exported config. Raises NpuprofError for errors and abstract presets."""
    findings = check_before_export(config)
    if any(finding.severity == "error" for finding in findings):
        raise NpuprofError(findings)
    return findings


def find_clean_contexts(config: Config, findings: Iterable[Finding], asked: tuple[Context, ...]) -> tuple[tuple[str, ...] | None, ...]:
    """Return for each context, none of which names a target: ``()`` if a preset has neither errors nor warnings there.

    If the preset does not support the context, return the codes that report it; if only a check can tell, None. ``findings``
    are those of the preset in its own context.
    """
    view = View(config)
    if view.asked != Context() or view.find_acceptance() is not None:
        return (None,) * len(asked)
    states = scope.compare_contexts(view.scope, tuple(config.list_ranges().items()), config.products, asked)
    is_clean = all(finding.severity == "info" for finding in findings) and not has_framework_settings(view.names)
    is_clean &= view.scenario in ("training", "online-inference") and not lineages.has_overrides(config.lineage)
    return states if is_clean else tuple([state or None for state in states])


def check_values(config: Config, notes: bool = True) -> list[Finding]:
    """Return the findings about each value of a config and about its claims; needs no other data."""
    view = View(config)
    findings = [view.build_finding(fault, key) for faults in collect_faults(view)[:2] for fault, key in faults]
    return [finding for finding in (*findings, *scope.check_profile_claims(view)) if notes or finding.severity != "info"]


def is_fixable(finding: Finding) -> bool:
    """Return whether a finding has a safe fix in a file of the work tree."""
    origin = finding.origin
    return finding.fix is not None and origin is not None and origin.revision is None and origin.document.name != "-"


def identify_finding(finding: Finding) -> tuple[str, str, str]:
    """Return the identity of a finding's fault, independent of its place."""
    return finding.code, finding.key, finding.message


def fold_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings without duplicates: one per fault, with all affected profiles.

    Sorted by place; the profile that contains the fault comes first.
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
    profiles = (author, *others) if author in names else tuple(others)
    return finding if profiles == finding.profiles else finding._replace(profiles=profiles)


def _finding_sort_key(finding: Finding) -> tuple[object, ...]:
    return finding.path or "", *finding.position, finding.code, finding.message


def judge_view(view: View, notes: bool, about: About | None = None) -> list[Told]:
    """Return the findings about the settings, each with its conditions; without ``notes``, some notes are omitted.

    With ``about``, only findings about the selected settings are returned.
    """
    alone, scoped, frozen = (
        [(fault, key) for fault, key in findings if notes or fault.severity != "info"] for findings in collect_faults(view, about)[:3]
    )
    refused = [(fault, key) for fault, key in scoped if view.scope.surface and fault.code.startswith("NP2")]  # by the requested target
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
    """Return the values that targets cannot write although they support each option, when no target was requested."""
    words = rules.describe_place(view)
    unwritable = collect_faults(view, about)[3]
    findings = list(surfaces.check_unasked_surfaces(view, [fault for fault in unwritable if fault[0][0] in names]))
    if view.scenario is None and "atc" in names and not view.config.abstract and surfaces.has_place(view, "atc"):
        findings += _check_unasked_conversion(view, about)
    return view.sift_findings([(finding, words) for finding in findings])


def _check_unasked_conversion(view: View, about: About | None) -> Iterator[Finding]:
    """Yield why ATC rejects a preset that may be meant for it: it sets no scenario, and each option has a flag.

    ATC has its own rules for values and combinations of flags, so everything is checked as ATC reads it.
    """
    refused = [finding for finding, _ in judge_view(view.view_surface("atc"), False, about) if finding.severity == "error"]
    if not refused:
        return
    own = [finding for finding, _ in judge_view(view, False, about)]  # already reported
    keys, clash = {finding.key for finding in own}, any(finding.code.startswith("NP3") for finding in own)
    for finding in refused:
        if finding.key not in keys and not (clash and finding.code == "NP912"):
            yield surfaces.build_conversion_finding(finding)


def _check_team_rules(view: View, about: About | None) -> Iterable[Told]:
    """Return the team rules that the settings break; abstract profiles break none."""
    if (policy := view.config.policy) is None or not policy.rules or view.config.abstract:
        return ()
    from npuprof.checks.team import check_team_rules  # few stores have team rules

    return check_team_rules(view, policy.rules, about)


def _check_flags(view: View, about: About | None) -> Iterable[Finding]:
    if view.scenario != surfaces.OFFLINE and view.scope.surface != "atc":
        return ()
    from npuprof.checks.flags import check_flags

    return check_flags(view, about)


@lru_cache(1024)  # presets of one kind set the same keys
def has_framework_settings(names: Collection[str]) -> bool:
    """Return whether some settings belong to a framework section."""
    return any(name.startswith(_FRAMEWORK_KEYS) for name in names)


def _check_frameworks(view: View, about: About | None) -> Iterable[Finding]:
    if not has_framework_settings(view.names):
        return ()
    from npuprof.checks.frameworks import check_settings  # few presets have framework sections

    return check_settings(view, about)


def say_where(finding: Finding, places: Sequence[tuple[str, ...]]) -> Finding:
    """Return a finding whose message names its conditions, unless it also applies without any."""
    if () in places:
        return finding
    widest = [place for place in dict.fromkeys(places) if not any(set(wider) < set(place) for wider in places)]
    return finding._replace(message=f"{finding.message} {'; '.join(' '.join(place) for place in widest)}")


@cache
def list_value_reads(key: str) -> tuple[str, ...]:
    """Return the settings that checking one value reads: itself, and settings that may excuse it."""
    excuses = (tree for (name, _), tree in catalog.load_excuses().items() if name == key)
    return (key, *(path[0] for tree in excuses for path in condition.collect_condition_paths(tree)))


def collect_faults(view: View, about: About | None = None) -> Judged:
    """Return the faults of each setting taken alone; equal values are checked once for all presets of a store."""
    if about is None and view.faults is not None:
        return view.faults
    judged_view: Judged = ([], [], [], [])
    memory = view.memory
    clean = memory.setdefault("clean", {})  # the last value without faults of each setting; most presets inherit that object
    for key, value in view.settings.items():
        if clean.get(key, clean) is value or (about is not None and not about(list_value_reads(key))):
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
    if about is None:
        view.faults = judged_view
    return judged_view


def judge_value_alone(key: str, value: Any, scenario: str | None = None) -> tuple[Fault, ...]:
    """Return the faults of a setting's value in any preset of a scenario."""
    return tuple(settings.find_value_faults(Scope(scenario, (), ()), key, value))


def _judge_value(there: Scope, key: str, value: Any, in_python: bool) -> Judgement | tuple[()]:
    """Return the faults of a setting's value in a scope, empty if there are none."""
    alone, scoped = map(
        tuple, scope.follow_advice(settings.find_value_faults(there, key, value), scope.find_scope_faults(there, key, value))
    )
    frozen = sharing.find_frozen_fault(key, value, in_python)
    unwritable = tuple(surfaces.find_unwritable_faults(there, key, value))
    return (alone, scoped, (frozen,) if frozen else (), unwritable) if alone or scoped or frozen or unwritable else ()
