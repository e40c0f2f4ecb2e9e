"""Checks the settings in every context that the preset supports, values and overrides together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from npuprof import catalog
from npuprof.catalog import targets
from npuprof.checks import rules, scope, sharing
from npuprof.checks.flags import list_flag_reads
from npuprof.checks.judging import (
    add_conditions,
    check_other_targets,
    judge_value_alone,
    judge_view,
    list_value_reads,
)
from npuprof.checks.restrictions import OFFLINE, may_bar
from npuprof.checks.view import Fault, View, has_framework_settings, list_chip_settings
from npuprof.document.keys import format_short_value
from npuprof.model import TYPE_CHECKING, Context, Finding
from npuprof.resolve.claims import format_claim
from npuprof.resolve.contexts import MOST_CONTEXTS, UNREQUESTED, ContextMap

if TYPE_CHECKING:
    from npuprof.checks.rules import KeyFilter
    from npuprof.checks.view import ConditionalFinding
    from npuprof.document.profile import Override
    from npuprof.model import Origin
    from npuprof.resolve.contexts import Region

#: The flag that makes a finding disappear, by the condition in its message; other conditions are
#: framework releases and declared axes.
_FLAGS = {"where no product is asked for": "--product", "where no release is asked for": "--cann"}
#: Targets that support every scenario.
_ANY_SCENARIO = frozenset(("toml", "json", "env"))


def check_contexts(view: View, notes: bool, everywhere: bool) -> list[Finding]:
    """Return the findings of a config with overrides; each fault once, with its contexts.

    Checks that read no overridden setting run once. All others run in one context per equivalence
    class: two contexts are equivalent if the overrides of the settings that the check reads apply
    in both or in neither.
    """
    here = ContextMap(view.config)
    touched = here.touched
    # The chip of a conversion selects the product for all checks.
    chips = touched.intersection(list_chip_settings())
    found = judge_view(view, notes, (lambda reads: False) if chips else touched.isdisjoint)
    read_together = (
        *sharing.list_locked_keys(view.config),
        *_list_team_reads(view),
    )
    parts = (*list_parts(touched, read_together), *([frozenset[str]()] if chips else []))
    for region, about in _visit_parts(here, parts, chips):
        if everywhere or region.plain:
            found += judge_view(view.view_region(region), notes, about)
    if not view.requested.target:
        found += _judge_unrequested_targets(view, here, (*parts, frozenset()), chips, everywhere)
    if not everywhere:  # without a selected product
        found = [
            item._replace(
                conditions=tuple(
                    text for text in item.conditions if not text.startswith(UNREQUESTED)
                )
            )
            for item in found
        ]
    findings = [*_merge_contexts(found), *here.problems]
    if everywhere:
        idle = {*here.find_idle_overrides(), *_find_unfitting_overrides(view)}
        findings += _check_idle_overrides(view, sorted(idle), notes)
        if notes and here.declared and here.count > MOST_CONTEXTS:
            findings += view.sift_plain_findings([_build_many_finding(view, here)])
    return findings


def _find_unfitting_overrides(view: View) -> Iterator[int]:
    """Yield the indexes of a preset's own overrides for targets without its scenario."""
    if not view.config.scenario:
        return
    is_converted = view.config.scenario == OFFLINE

    def is_unfitting(target: str) -> bool:
        is_offline = targets.find_surface(target) == "atc"
        return target not in _ANY_SCENARIO and is_offline != is_converted

    for index, override in enumerate(view.config.profile.overrides):
        names = override.match.get("target", ())
        if names and all(map(is_unfitting, names)):
            yield index


def _visit_parts(
    here: ContextMap, parts: Iterable[frozenset[str]], always: frozenset[str], target: str = ""
) -> Iterator[tuple[Region, KeyFilter]]:
    """Yield the contexts in which to check each group of settings.

    The settings ``always``, or one ``target``, also decide.
    """
    # Groups of settings that are checked together, by the classes of their contexts.
    alike = defaultdict(list)
    for part in parts:
        alike[here.find_kinds(part | always)].append(part)
    for together in alike.values():

        def is_about(reads: Iterable[str], together: list[frozenset[str]] = together) -> bool:
            return here.touched.intersection(reads) in together

        settings = together[0] | always
        for region in here.find_regions(settings, target):
            yield region, is_about


def _judge_unrequested_targets(
    view: View,
    here: ContextMap,
    parts: tuple[frozenset[str], ...],
    chips: frozenset[str],
    everywhere: bool,
) -> Iterator[ConditionalFinding]:
    """Yield the values that targets cannot write, in their contexts, if none is selected."""
    keys = here.touched.union(view.settings)
    narrow = {name for key in keys for name in targets.list_narrow_targets(key)}
    # Targets with equal results are judged once.
    alike = defaultdict(list)
    for name, row in targets.load_target_index().items():
        if name in narrow or (name == "atc" and not view.config.scenario):
            barring = frozenset(key for key in here.touched if may_bar(row.surface, key))
            own_match = name if name in here.named_targets else ""
            alike[barring, own_match].append(name)
    for (barring, _), names in alike.items():
        for region, about in _visit_parts(here, parts, chips | barring, names[0]):
            if everywhere or region.plain:
                yield from check_other_targets(view.view_region(region), names, about)


@lru_cache(256)  # presets of one group override the same keys
def list_parts(
    touched: frozenset[str], read_together: tuple[tuple[str, ...], ...]
) -> tuple[frozenset[str], ...]:
    """Return the groups of these settings that one check reads together.

    ``read_together`` are further groups that checks of this preset read.
    """
    looked_at = (
        *((key,) for key in sorted(touched)),
        *(list_value_reads(key) for key, _ in catalog.load_excuses()),
        *rules.list_rule_reads(),
        *list_flag_reads(),
        *_list_framework_reads(touched),
        *read_together,
    )
    return tuple(
        dict.fromkeys(part for reads in looked_at if (part := touched.intersection(reads)))
    )


def _list_framework_reads(touched: frozenset[str]) -> Iterable[tuple[str, str]]:
    if not has_framework_settings(touched):
        return ()
    from npuprof.checks.frameworks import list_setting_reads  # few presets have framework sections

    return list_setting_reads(touched)


def _list_team_reads(view: View) -> tuple[tuple[str, ...], ...]:
    """Return the settings that each team rule reads."""
    if (policy := view.config.policy) is None or not policy.rules:
        return ()
    from npuprof.catalog.written_condition import list_team_reads

    return tuple(list_team_reads(rule) for rule in policy.rules)


def _merge_contexts(found: Iterable[ConditionalFinding]) -> Iterator[Finding]:
    """Yield findings with equal ones merged; the message names the contexts."""
    merged = defaultdict(list)
    for item in found:
        finding, origin = item.finding, item.finding.origin
        place = (id(origin.document), origin.path) if origin else None
        merged[finding.code, finding.key, finding.message, place].append(item)
    for items in merged.values():
        contexts = [item.conditions for item in items]
        finding = add_conditions(items[0].finding, contexts)
        yield _excuse_unrequested(finding, contexts)


def _excuse_unrequested(finding: Finding, contexts: list[tuple[str, ...]]) -> Finding:
    """Return an error as a warning if it occurs on none of the preset's products and releases."""
    unrequested = [
        [text for text in conditions if text.startswith(UNREQUESTED)] for conditions in contexts
    ]
    if finding.severity != "error" or not all(unrequested):
        return finding
    common = [text for text in unrequested[0] if all(text in texts for texts in unrequested)]
    flag = "--cann"
    if common:
        flag = _FLAGS.get(common[0], "--framework" if "release of" in common[0] else "--axis")
    hint = f"{finding.hint}; or give {flag} wherever the preset is used"
    return finding._replace(severity="warning", hint=hint.removeprefix("; "))


def _check_idle_overrides(view: View, idle: list[int], notes: bool) -> Iterator[Finding]:
    """Yield a preset's own overrides that never apply, and the faults of their values alone."""
    profile = view.config.profile
    for index in idle:
        override = profile.overrides[index]
        if view.config.context == Context() and not any(scope.find_match_faults(override.match)):
            origin = profile.origin("override", index, "match")
            yield from view.sift_plain_findings([_build_dead_finding(view, override, origin)])
        for step in override.steps:
            if step.op != "set":
                continue
            for fault in judge_value_alone(step.key, step.value, view.scenario):
                if notes or fault.severity != "info":
                    origin = profile.origin(*step.path, *fault.tail, layer=override.layer)
                    yield view.build_finding(fault, step.key, origin)


def _build_many_finding(view: View, here: ContextMap) -> Finding:
    """Return the note that not all contexts of a preset are judged, with the overrides at fault."""
    causes = [
        profile.origin("override", index, "match")
        for profile in view.config.lineage
        for index, override in enumerate(profile.overrides)
        if not override.match.keys().isdisjoint(here.declared)
    ]
    what = f"{view.config.name} has {here.count} contexts, of which {MOST_CONTEXTS} are checked"
    why = (
        f"Overrides match on {', '.join(here.declared)}, and each value goes with each value of "
        f"the other axes: {', '.join(map(str, causes))}."
    )
    hint = "select values with --axis, or narrow axes in [profile]"
    return view.build_finding(Fault("NP712", what, why, hint), "override.match", causes[0])


def _build_dead_finding(view: View, override: Override, origin: Origin) -> Finding:
    """Return the finding for an override that matches in no context that the preset supports."""
    config = view.config
    match = ", ".join(
        f"{axis} = {format_short_value(names[0] if len(names) == 1 else [*names])}"
        for axis, names in override.match.items()
    )
    meant = "; ".join(
        f"{name.rpartition('.')[2]} {format_claim(claim.value)}"
        for name, claim in config.claims.items()
        if claim.value
    )
    why = (
        f"{config.name} is meant for {meant or 'the releases that npuprof knows'}: "
        "the override never applies."
    )
    hint = "correct the match, remove the override, or set its scope in [profile]"
    return view.build_finding(
        Fault("NP711", f"no context of {config.name} matches {match}", why, hint),
        "override.match",
        origin,
    )
