"""Checks the settings in every context that the preset supports, values and overrides together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from npuprof.catalog import targets
from npuprof.checks import rules, scope, sharing
from npuprof.checks.flags import list_flag_reads
from npuprof.checks.judging import (
    add_conditions,
    check_other_targets,
    has_framework_settings,
    judge_value_alone,
    judge_view,
    list_value_reads,
)
from npuprof.checks.restrictions import OFFLINE, may_bar
from npuprof.checks.view import Fault, View, list_chip_settings
from npuprof.document.keys import format_short_value
from npuprof.model import Context, Finding
from npuprof.resolve.contexts import UNASKED, ContextMap
from npuprof.system import group_pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.checks.rules import KeyFilter
    from npuprof.checks.view import ConditionalFinding
    from npuprof.document.profile import Override
    from npuprof.model import Origin
    from npuprof.resolve.contexts import Region

#: The flag that makes a finding disappear, by the condition in its message; other conditions are
#: framework releases.
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
    chips = touched.intersection(
        list_chip_settings()
    )  # the chip of a conversion selects the product for all checks
    placed = judge_view(view, notes, touched.isdisjoint if not chips else lambda reads: False)
    read_together = (
        *((key,) for key in sharing.list_locked_keys(view.config)),
        *_list_team_reads(view),
    )
    parts = (*_list_parts(touched, read_together), *([frozenset[str]()] if chips else []))
    for region, about in _visit_parts(here, parts, chips):
        if everywhere or region.plain:
            placed += judge_view(view.view_region(region), notes, about)
    if not view.requested.target:
        placed += _judge_unasked_targets(view, here, (*parts, frozenset()), chips, everywhere)
    if not everywhere:  # without a selected product
        placed = [
            (finding, tuple(piece for piece in words if not piece.startswith(UNASKED)))
            for finding, words in placed
        ]
    findings = [*_merge_places(placed), *here.problems]
    idle = {*here.find_idle_overrides(), *_find_unfitting_overrides(view)}
    return (
        [*findings, *_check_idle_overrides(view, sorted(idle), notes)] if everywhere else findings
    )


def _find_unfitting_overrides(view: View) -> Iterator[int]:
    """Yield the indexes of the profile's own overrides for targets that do not support
    its scenario.
    """
    is_converted = view.config.scenario == OFFLINE
    for number, override in enumerate(
        view.config.lineage[-1].overrides if view.config.scenario else ()
    ):
        named = override.match.get("target", ())
        if named and all(
            _ANY_SCENARIO.isdisjoint([name])
            and (targets.find_surface(name) == "atc") != is_converted
            for name in named
        ):
            yield number


def _visit_parts(
    here: ContextMap, parts: Iterable[frozenset[str]], always: frozenset[str], target: str = ""
) -> Iterator[tuple[Region, KeyFilter]]:
    """Yield the contexts in which to check each group of settings.

    The settings ``always``, or one ``target``, also decide.
    """
    alike: dict[
        tuple[int, ...], set[frozenset[str]]
    ] = {}  # groups of settings that are checked together, by the classes of their contexts
    for part in parts:
        alike.setdefault(here.find_kinds(part | always), set()).add(part)
    for together in alike.values():

        def is_about(reads: Iterable[str], together: set[frozenset[str]] = together) -> bool:
            return here.touched.intersection(reads) in together

        settings = next(iter(together)) | always
        for region in (
            here.find_target_regions(settings, target) if target else here.find_regions(settings)
        ):
            yield region, is_about


def _judge_unasked_targets(
    view: View,
    here: ContextMap,
    parts: tuple[frozenset[str], ...],
    chips: frozenset[str],
    everywhere: bool,
) -> Iterator[ConditionalFinding]:
    """Yield the values that targets cannot write when no target is selected, each with
    its context.
    """
    keys = here.touched.union(view.settings)
    narrow = {name for key in keys for name in targets.list_narrow_targets(key)}
    alike = group_pairs(  # targets with equal results
        (
            (
                frozenset(key for key in here.touched if may_bar(row.surface, key)),
                name if name in here.named_targets else "",
            ),
            name,
        )
        for name, row in targets.load_target_index().items()
        if name in narrow or (name == "atc" and not view.config.scenario)
    )
    for (barring, _), names in alike.items():
        for region, about in _visit_parts(here, parts, chips | barring, names[0]):
            if everywhere or region.plain:
                yield from check_other_targets(view.view_region(region), names, about)


@lru_cache(256)  # presets of one group override the same keys
def _list_parts(
    touched: frozenset[str], read_together: tuple[tuple[str, ...], ...]
) -> tuple[frozenset[str], ...]:
    """Return the overridden settings that one check reads together.

    ``read_together`` are those of this preset.
    """
    looked_at = (
        *((key,) for key in touched),
        *map(list_value_reads, sorted(touched)),
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


def _merge_places(placed: Iterable[ConditionalFinding]) -> list[Finding]:
    """Return findings with equal ones merged; the message names the contexts."""
    merged: dict[tuple[object, ...], tuple[Finding, list[tuple[str, ...]]]] = {}
    for finding, words in placed:
        origin = finding.origin
        mark = (
            finding.code,
            finding.key,
            finding.message,
            origin and (id(origin.document), origin.path),
        )
        merged.setdefault(mark, (finding, []))[1].append(words)
    return [
        _excuse_unasked(add_conditions(finding, places), places)
        for finding, places in merged.values()
    ]


def _excuse_unasked(finding: Finding, places: list[tuple[str, ...]]) -> Finding:
    """Return a finding, downgraded to a warning if it occurs on none of the preset's products and
    releases.
    """
    if finding.severity != "error" or not all(
        any(piece.startswith(UNASKED) for piece in place) for place in places
    ):
        return finding
    common = [
        piece
        for piece in places[0]
        if piece.startswith(UNASKED) and all(piece in place for place in places)
    ]
    asking = _FLAGS.get(common[0] if common else "", "--framework") if common else "--cann"
    hint = f"{finding.hint}; or give {asking} wherever the preset is used"
    return finding._replace(severity="warning", hint=hint.removeprefix("; "))


def _check_idle_overrides(view: View, idle: list[int], notes: bool) -> Iterator[Finding]:
    """Yield the profile's own overrides that never apply, and the faults of their
    values taken alone.
    """
    profile = view.config.lineage[-1]
    for place in idle:
        override = profile.overrides[place]
        if view.config.context == Context() and not any(scope.find_match_faults(override.match)):
            origin = profile.origin("override", place, "match")
            yield from view.sift_plain_findings([_build_dead_finding(view, override, origin)])
        for step in override.steps:
            if step.op == "set":
                for fault in judge_value_alone(step.key, step.value, view.scenario):
                    if notes or fault.severity != "info":
                        yield view.build_finding(
                            fault,
                            step.key,
                            profile.origin(*step.path, *fault.tail, layer=override.layer),
                        )


def _build_dead_finding(view: View, override: Override, origin: Origin) -> Finding:
    """Return the finding for an override that matches in no context that the preset supports."""
    config = view.config
    match = ", ".join(
        f"{axis} = {format_short_value(names[0] if len(names) == 1 else [*names])}"
        for axis, names in override.match.items()
    )
    claims = {
        "scenario": config.scenario,
        "cann": config.cann,
        "products": ", ".join(config.products),
        **config.versions,
    }
    meant = "; ".join(f"{name} {value}" for name, value in claims.items() if value)
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
