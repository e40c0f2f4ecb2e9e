"""Scope faults: CANN releases, products, scenarios; and obsolete settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from npuprof import catalog
from npuprof.catalog import Option, condition, releases, targets
from npuprof.checks import lifetimes
from npuprof.checks.restrictions import (
    encode_flag_value,
    find_family_faults,
    find_form_faults,
    find_surface_faults,
    find_twin_flag,
    list_option_leaves,
    list_surface_releases,
)
from npuprof.checks.view import Fault, Scope, SettingFault, View
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import (
    FRAMEWORK_SECTIONS,
    TYPE_CHECKING,
    Any,
    Axes,
    Context,
    Finding,
    Path,
    TomlTable,
    did_you_mean,
)
from npuprof.resolve.claims import VERSIONS, find_axis, narrow_value

if TYPE_CHECKING:
    from npuprof.resolve.config import Config


#: Names in ``[profile]`` with the values that a preset supports.
ClaimedValues = tuple[tuple[str, tuple[str, ...]], ...]
#: Findings about the claims of a preset rather than about its values.
MEANT_CODES = ("NP406", "NP407")

#: Codes of setting faults that make correcting the value pointless, and codes of value faults.
_ABOUT_SETTINGS = ("NP502", "NP501", "NP411")
_ABOUT_VALUES = ("NP202", "NP203")

_CLAIMS = frozenset(("cann", "versions", "products"))


def check_late_options(view: View) -> Iterator[Finding]:
    """Yield one note that lists the options that only the first session of a process can set."""
    late = _find_late_options(view.names)
    if late and not view.config.abstract and not view.is_converted:
        yield view.build_finding(late.fault, late.key)


@lru_cache(1024)  # presets of one kind set the same keys
def _find_late_options(names: tuple[str, ...]) -> SettingFault | None:
    late = [
        key
        for key in names
        if "." not in key and (option := catalog.find_option(key)) and option.level == "init"
    ]
    if not late:
        return None
    what = (
        f"{len(late)} of the options reach the engine only "
        f"when the process initialises it: {', '.join(late)}"
    )
    why = (
        "The first session of a process decides; later sessions' "
        "values of these options are silently ignored."
    )
    hint = (
        "give them to the first session, and to initialize_system "
        "or init_resource where the script calls it"
    )
    return SettingFault(late[0], Fault("NP505", what, why, hint))


def is_fault_excused(settings: TomlTable, key: str, fault: Fault) -> bool:
    """Return whether another setting excuses a fault.

    Examples: a deprecated option that is needed, a text that nothing reads.
    """
    excuse = catalog.load_excuses().get((key, fault.code))
    if fault.code == "NP203" and "." not in key and settings.get(key) != "":
        return False

    def lookup_setting(path: tuple[str, ...]) -> tuple[bool, Any]:
        name, _ = condition.find_key(path)
        return name in settings, settings.get(name)

    return excuse is not None and condition.evaluate_condition(excuse, lookup_setting) is True


def find_scope_faults(scope: Scope, key: str, value: Any) -> Iterator[Fault]:
    """Yield why a setting has no effect in the selected releases, products or scenario."""
    if "." in key:
        yield from _find_env_and_atc_faults(scope, key, value)
        return
    option = catalog.find_option(key)
    if option is not None:
        yield from _find_release_faults(scope, option, value)
        yield from _find_product_faults(scope, option, value)
        yield from _find_scenario_faults(scope, option)
        yield from find_surface_faults(scope, option, value)


def follow_advice(
    faults: Iterable[Fault], scoped: Iterable[Fault]
) -> tuple[list[Fault], list[Fault]]:
    """Return the faults of a value and its setting with a single hint.

    Advice about the setting has precedence over advice about its value.
    """
    of_value, of_setting = list(faults), list(scoped)
    if not of_value:
        return of_value, of_setting
    advice = next((fault for fault in of_setting if fault.code in _ABOUT_SETTINGS), None)
    if advice is None:
        return of_value, of_setting
    has_no_effect = advice.code == "NP502"
    if not has_no_effect and any(fault.code not in _ABOUT_VALUES for fault in of_value):
        return of_value, of_setting
    of_setting.remove(advice)
    reason = f"{advice.message}. {advice.why}".rstrip()
    advised = []
    for fault in of_value:
        # How a value that nothing reads would be treated is of no interest.
        why = reason if has_no_effect else f"{fault.why} {reason}".lstrip()
        is_kept = advice.code == "NP501" and fault.hint
        hint = f"{advice.hint}, or {fault.hint}" if is_kept else advice.hint
        advised.append(fault._replace(why=why, hint=hint, fix=None))
    return advised, of_setting


def check_profile_claims(view: View) -> Iterator[Finding]:
    """Yield the faults of the releases and products in ``[profile]``."""
    yield from view.config.remember("written claims", lambda: tuple(_check_written_claims(view)))
    yield from _check_scenario(view)
    claimed = list_claimed_values(view.config)
    for item in _find_context_faults(view.ranges, claimed, view.requested):
        origin = view.config.find_profile_origin(item.key)
        yield view.build_finding(item.fault, f"profile.{item.key}", origin)


def list_claimed_values(config: Config) -> ClaimedValues:
    """Return the products and values of axes that a preset supports, by key in ``[profile]``."""
    claims = config.claims.items()
    return tuple(
        (name, tuple(claim.value)) for name, claim in claims if isinstance(claim.value, list)
    )


@lru_cache(1024)  # many presets have the same claims
def _find_context_faults(
    ranges: tuple[tuple[str, str], ...],
    meant: ClaimedValues,
    requested: Context,
) -> tuple[SettingFault, ...]:
    """Return the faults of a context that a preset does not support.

    Each has its key in ``[profile]``.
    """
    faults = []
    for axis, claimed in ranges:
        release = requested.find_value(axis)
        # An invalid range, and one without known releases, have their own finding (NP402).
        written = dict(requested.newer).get(axis, release or "")
        supported = releases.find_releases_in_range(claimed, axis)
        if not release or (not supported and not releases.is_newer(claimed, axis)):
            continue
        if releases.is_inside_range(written, claimed, axis):
            continue
        title, key = ("CANN", axis) if axis == releases.CANN else (axis, f"{VERSIONS}{axis}")
        what = f"the preset is meant for {title} {claimed}, not for {written}"
        hint = f"widen {key} in [profile], or check another release"
        faults.append(SettingFault(key, Fault("NP406", what, hint=hint)))
    for name, values in meant:
        axis = find_axis(name)
        value = requested.find_value(axis)
        # a product may contain, or be part of, one that the preset supports
        if value and values and not narrow_value(name, [value], [*values]):
            noun = "" if axis == "product" else f"{axis} "
            what = f"the preset is meant for {noun}{', '.join(values)}, not for {value}"
            hint = f"add the {axis} to [profile], or check another one"
            faults.append(SettingFault(name, Fault("NP407", what, hint=hint)))
    return tuple(faults)


def _check_written_claims(view: View) -> Iterator[Finding]:
    """Yield the faults in ``[profile]`` that do not depend on the context."""
    for profile in view.config.lineage:
        if not profile.overrides and _CLAIMS.isdisjoint(profile.table):
            continue  # most of a long lineage
        for axis, spec in profile.list_ranges().items():
            if fault := _find_claim_fault(spec, axis):
                path = profile.locate_range(axis)
                yield view.build_finding(fault, ".".join(path), profile.origin(*path))
        for index, name in enumerate(profile.table.get("products", ())):
            if fault := _find_product_fault(name, "Checks for it cannot be made."):
                yield view.build_finding(
                    fault, "profile.products", profile.origin("profile", "products", index)
                )
        for index, override in enumerate(profile.overrides):
            for fault, path in find_match_faults(override.match):
                yield view.build_finding(
                    fault,
                    f"override.match.{path[0]}",
                    profile.origin("override", index, "match", *path),
                )


@lru_cache(1024)  # many presets have the same claims
def compare_contexts(
    there: Scope,
    ranges: tuple[tuple[str, str], ...],
    meant: ClaimedValues,
    contexts: tuple[Context, ...],
) -> tuple[tuple[str, ...] | None, ...]:
    """Return for each context the codes that report that a preset does not support it.

    ``()`` if the preset's scope contains the context, and None if only a check can tell.

    A context that the scope contains has no fault that the scope does not have. A fault of a scope
    is one of some release and some product in it, and rules only read the newest release that
    changes a default.
    """
    states = []
    for context in contexts:
        codes = [item.fault.code for item in _find_context_faults(ranges, meant, context)]
        is_known = codes or _contains_context(there, context)
        states.append(tuple(dict.fromkeys(codes)) if is_known else None)
    return tuple(states)


def _contains_context(there: Scope, context: Context) -> bool:
    """Return whether a scope contains a context, and no later release changes a default."""
    from npuprof.catalog import products

    family = next(iter(there.families), None)
    if context.product:
        family = products.find_product_family(context.product)
    release = context.cann or next(reversed(there.releases), None)
    if family not in there.families or release not in there.releases:
        return False
    later = there.releases[there.releases.index(release) + 1 :]
    return _list_default_changes().isdisjoint(later)


@cache
def _list_default_changes() -> frozenset[str]:
    """Return the releases that changed the default of an option."""
    return frozenset(
        release
        for option in catalog.list_records(catalog.Option)
        for release in option.default_since
    )


@lru_cache(1024)
def _find_barred_families(scenario: str, families: tuple[str, ...]) -> tuple[str, ...]:
    """Return the product families on which no adapter supports a scenario."""
    from npuprof.catalog import products

    return tuple(family for family in families if scenario not in products.list_scenarios(family))


def _check_scenario(view: View) -> Iterator[Finding]:
    """Yield the finding for a scenario that no adapter supports on a product."""
    scenario = view.scenario
    if scenario and (barred := _find_barred_families(scenario, view.families)):
        what = f"there is no {scenario} on {', '.join(barred)}"
        from npuprof.catalog import products

        there = "; ".join(
            f"{family} is there for {' and '.join(products.list_scenarios(family))}"
            for family in barred
        )
        why = f"The adapter of TensorFlow does not run it there: {there}."
        fault = Fault("NP414", what, why, "name other products, or correct the scenario")
        yield view.build_finding(
            fault, "profile.scenario", view.config.find_profile_origin("scenario")
        )


@cache
def _find_claim_fault(spec: str, axis: str) -> Fault | None:
    """Return the fault of a range in ``[profile]``: it is invalid, or has no known release."""
    if fault := _find_range_fault(spec, "", axis):
        return fault
    known = releases.load_releases(axis)
    if not known or releases.find_releases_in_range(spec, axis):
        return None
    what = f"{axis} = {format_short_value(spec)} contains no known release"
    if releases.is_newer(spec, axis):
        why = f"All its releases are newer than {known[-1]}, which is checked instead."
        return Fault("NP402", what, why, "update npuprof for newer ones", severity="info")
    hint = f"the newest known is {known[-1]}"
    if axis != releases.CANN:
        hint = f"{hint}; {releases.describe_known_releases(axis)}"
    return Fault("NP402", what, hint=hint, severity="warning")


def find_match_faults(match: Axes) -> Iterator[tuple[Fault, Path]]:
    """Yield the parts of a match that no job can satisfy; a single name is placed at its key."""
    never = "The override would never take part, without any message."
    finders = {"product": _find_product_fault, "target": _find_target_fault}
    for axis, names in match.items():
        if axis == "scenario":  # the parser reports unknown scenarios (NP007)
            continue
        for index, name in enumerate(names):
            if axis in finders:
                fault = finders[axis](name, never)
            else:
                fault = _find_range_fault(name, never, axis)
            if fault:
                yield fault, (axis, index)


@cache
def _find_product_fault(name: str, why: str) -> Fault | None:
    from npuprof.catalog import products

    if products.find_product(name) is not None:
        return None
    hint, fix = products.suggest_product(name)
    return Fault("NP403", f"unknown product {name!r}", why, hint, fix=fix)


def _find_range_fault(spec: str, why: str, axis: str) -> Fault | None:
    if releases.find_releases_in_range(spec, axis) is not None or not releases.load_releases(axis):
        return None
    return Fault(
        "NP402",
        f"{axis} = {format_short_value(spec)} is not a range of releases",
        why,
        releases.suggest_range(spec, axis),
    )


@cache
def _find_target_fault(name: str, why: str) -> Fault | None:
    known = targets.list_target_names()
    if name in known:
        return None
    hint = did_you_mean(name, known, f"known are {', '.join(known)}")
    return Fault("NP902", f"unknown target {name!r}", why, hint)


@cache
def _find_option_age_faults(scope: Scope, name: str) -> tuple[Fault, ...]:
    """Return the faults of an option in the releases of a scope, whatever its value."""
    option = catalog.find_option(name)
    assert option is not None
    if option.field is None:
        hint = f"use {option.replaced_by}" if option.replaced_by else "unset it"
        why = "No release of the adapter reads the key."
        return (Fault("NP502", f"{option.name} has no effect", why, hint),)
    unread = "the adapter of other releases does not know the key and ignores it silently"
    if scope.surface in option.surface_states:
        unread = (
            f"the adapter of other releases has no {option.spelling[scope.surface]}, "
            "and raises an error if it is set"
        )
    lifetime = lifetimes.build_lifetime(name, option)._replace(
        states=option.surface_states.get(scope.surface, option.states), unread=unread
    )
    covered = list_surface_releases(scope, scope.surface)
    return tuple(lifetimes.find_lifetime_faults(lifetime, covered))


def _find_release_faults(scope: Scope, option: Option, value: Any) -> Iterator[Fault]:
    """Yield the releases of the scope that do not read an option, or not with this value."""
    faults = _find_option_age_faults(scope, option.name)
    yield from faults
    if any(fault.code == "NP404" for fault in faults):
        return
    if not faults and option.page == "undocumented":
        why = "The manuals call such settings reserved. They may change without notice."
        yield Fault("NP503", f"{option.name} is not documented", why, "use it only on advice")
    since = option.choices_since.get(str(value)) if isinstance(value, (str, int)) else None
    if since is None:
        return
    early = [name for name in scope.releases if releases.is_earlier(name, since)]
    if early:
        what = (
            f"{option.name} = {format_short_value(value)} is not known in CANN "
            f"{releases.format_release_span(early)}"
        )
        why = f"The value came with {since}."
        yield Fault("NP408", what, why, "write an older value, or narrow cann")


def _find_product_faults(scope: Scope, option: Option, value: Any) -> Iterator[Fault]:
    flag = find_twin_flag(scope, option)
    record = flag or option
    barred = _list_barred_families(scope, record)
    if barred:
        why = "The documentation does not list it among the products that support the option."
        hint = (
            f"supported are {', '.join(_list_supported_families(record))}; "
            "set it in an [[override]] for them"
        )
        yield Fault("NP409", f"{option.name} is not supported on {', '.join(barred)}", why, hint)
    if flag and flag.product_pattern and isinstance(text := encode_flag_value(option, value), str):
        yield from find_form_faults(scope, option.name, flag, text)
    yield from _find_value_product_faults(
        scope, option, (flag and flag.value_products) or option.value_products, value
    )
    for family in scope.families:
        if type(value) is int and family in option.product_range:
            low, high = option.product_range[family]
            if not low <= value <= high:
                hint = f"there write {low} to {high} {option.unit}".rstrip()
                yield Fault(
                    "NP410", f"{option.name} = {value} is out of range on {family}", "", hint
                )


def _find_value_product_faults(
    scope: Scope, option: Option, allowed: dict[str, tuple[str, ...]], value: Any
) -> Iterator[Fault]:
    """Yield the values, and parts of them, that a product family does not support."""
    for path, item in list_option_leaves(option, value) if allowed and scope.families else ():
        works = allowed.get(str(item)) if isinstance(item, (str, int)) else None
        barred = [family for family in scope.families if family not in works] if works else []
        if works and barred:
            what = (
                f"{keys.format_key_path(option.name, path)} = {format_short_value(item)} is not "
                f"supported on {', '.join(barred)}"
            )
            why = "The documentation does not list it among the products that take the value."
            yield Fault(
                "NP409",
                what,
                why,
                f"the value works on {', '.join(works)}",
                path if isinstance(value, (dict, list)) else (),
            )


def _list_barred_families(
    scope: Scope, record: Option | catalog.Variable | catalog.Flag
) -> list[str]:
    """Return the product families of the scope that do not support a setting."""
    excluded = record.products_not if isinstance(record, catalog.Flag) else ()
    return [
        family
        for family in scope.families
        if (record.products and family not in record.products) or family in excluded
    ]


def _list_supported_families(record: Option | catalog.Variable | catalog.Flag) -> list[str]:
    """Return the product families that support a setting, as the documentation lists them."""
    if record.products or not isinstance(record, catalog.Flag):
        return list(record.products)
    from npuprof.catalog import products

    known = products.load_products()
    return [
        family
        for family in known
        if family not in record.products_not and not known[family].get("untabled")
    ]


def _find_scenario_faults(scope: Scope, option: Option) -> Iterator[Fault]:
    scenario = scope.scenario
    if scenario is None:
        return
    if scenario == "offline-inference":
        if "atc" not in option.spelling:
            what = f"{option.name} has no meaning for offline inference"
            yield Fault(
                "NP411", what, "ATC has no flag for it.", "unset it, or use another scenario"
            )
    elif option.scenarios and scenario not in option.scenarios:
        what = f"{option.name} is meant for {' and '.join(option.scenarios)}, not for {scenario}"
        yield Fault("NP411", what, "", "unset it, or correct the scenario")


def _find_env_and_atc_faults(scope: Scope, key: str, value: Any) -> Iterator[Fault]:
    """Yield the faults of a variable, a flag or a framework setting in a scope."""
    section, name = keys.split_section_and_name(key)
    if section in FRAMEWORK_SECTIONS:
        yield from _find_framework_scope_faults(scope, section, name, value)
        return
    record = catalog.find_record(section, name)
    if not isinstance(record, (catalog.Variable, catalog.Flag)):
        return
    yield from _find_family_support_faults(scope, key, record, value)
    lifetime = lifetimes.build_lifetime(key, record)
    yield from lifetimes.find_lifetime_faults(lifetime, _list_covered(scope, lifetime.axis))
    if section == "atc" and scope.scenario and scope.scenario != "offline-inference":
        hint = 'write scenario = "offline-inference", or unset it'
        yield Fault(
            "NP411",
            f"{key} has no meaning for {scope.scenario}",
            "Only the ATC compiler reads it.",
            hint,
        )


def _find_family_support_faults(
    scope: Scope, key: str, record: catalog.Variable | catalog.Flag, value: Any
) -> Iterator[Fault]:
    """Yield that some product families do not support a variable or a flag, or its value."""
    barred = _list_barred_families(scope, record)
    if barred:
        supported = ", ".join(_list_supported_families(record))
        hint = (
            f"supported are {supported}" if supported else "no product supports it so far: unset it"
        )
        why = (
            "The documentation does not list it among the products that "
            f"{'read the variable' if isinstance(record, catalog.Variable) else 'have the flag'}."
        )
        yield Fault("NP409", f"{key} is not supported on {', '.join(barred)}", why, hint)
    elif isinstance(value, (str, int, float)):
        yield from find_family_faults(scope, key, record, str(value))


def _list_covered(scope: Scope, axis: str) -> tuple[str, ...]:
    """Return the selected releases of an axis, none if none is named."""
    return scope.releases if axis == releases.CANN else releases.find_covered(axis, scope.versions)


def _find_framework_scope_faults(
    scope: Scope, section: str, name: str, value: Any
) -> Iterator[Fault]:
    """Yield the faults of time of the settings in a framework's section."""
    if catalog.load_sections()[section].launch.get("syntax") == "hydra":
        from npuprof.checks import overrides

        prefix, name = overrides.split_prefix(name)
        if prefix.startswith("+"):
            covered = _list_covered(scope, section)
            yield from overrides.find_added_faults(section, prefix, name, value, covered)
            return
    for path, item in catalog.list_settings(section, name, value):
        dotted = ".".join((name, *path))
        record = catalog.find_setting(section, dotted)
        if record is None:
            continue
        key = f"{section}.{dotted}"
        lifetime = lifetimes.build_lifetime(key, record)
        reading = lifetimes.find_value_states(record, item)
        if since := record.choices_since.get(str(item), ""):
            reading = releases.load_axis(lifetime.axis).parse_reads(f"{since}..")
        if reading:  # read where both the setting and its value are
            states = lifetimes.intersect_states(lifetime.states, reading)
            subject = f"{key} = {format_short_value(item)}"
            lifetime = lifetime._replace(subject=subject, states=states)
        covered = _list_covered(scope, lifetime.axis)
        faults = list(lifetimes.find_lifetime_faults(lifetime, covered))
        if catalog.is_argument(key):  # without a record, all arguments of a release are unknown
            faults = [
                fault
                for fault in faults
                if fault.code != "NP405" and (covered or not releases.is_installed(section, dotted))
            ]
        winner = record.npu_resets
        if not faults and winner is not None and str(item) not in (str(winner), "None"):
            what = f"{key} = {format_short_value(item)} has no effect on NPUs"
            why = f"vLLM-Ascend sets it to {format_short_value(winner)}."
            faults.append(Fault("NP502", what, why, "unset it"))
        for fault in faults:
            yield fault._replace(tail=path)
