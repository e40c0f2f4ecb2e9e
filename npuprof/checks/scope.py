"""Scope faults: CANN releases, products, scenarios; and obsolete settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from npuprof import catalog
from npuprof.catalog import Option, condition, releases, targets
from npuprof.checks.restrictions import (
    encode_flag_value,
    find_family_faults,
    find_form_faults,
    find_surface_faults,
    find_twin_flag,
    list_leaves,
    list_surface_releases,
)
from npuprof.checks.view import Fault, Scope, View
from npuprof.document import keys
from npuprof.document.keys import format_short_value
from npuprof.model import Context, Finding, Path, did_you_mean
from npuprof.resolve.claims import VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: Findings about the claims of a preset rather than about its values.
MEANT_CODES = ("NP406", "NP407")

#: Codes of setting faults that make correcting the value pointless, and codes of value faults.
_ABOUT_SETTINGS = ("NP502", "NP501", "NP411")
_ABOUT_VALUES = ("NP202", "NP203")

_CLAIMS = frozenset(("cann", "versions", "products"))


def check_late_options(view: View) -> Iterator[Finding]:
    """Yield one note that lists the options that only the first session of a process can set."""
    late = [
        key
        for key in view.settings
        if "." not in key and (option := catalog.find_option(key)) and option.level == "init"
    ]
    if late and not view.config.abstract and not view.is_converted:
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
        yield view.build_finding(Fault("NP505", what, why, hint), late[0])


def is_fault_excused(settings: dict[str, Any], key: str, fault: Fault) -> bool:
    """Return whether another setting excuses a fault.

    Examples: a deprecated option that is needed, a text that nothing reads, one of two similar
    names.
    """
    if fault.meant and f"env.{fault.meant}" in settings:
        return True
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
        yield from _find_deprecation_faults(scope, option)
        yield from find_surface_faults(scope, option, value)


def follow_advice(
    faults: Iterable[Fault], scoped: Iterable[Fault]
) -> tuple[list[Fault], list[Fault]]:
    """Return the faults of a value and its setting with a single hint.

    Advice about the setting has precedence over advice about its value.
    """
    of_value, of_setting = list(faults), list(scoped)
    advice = (
        next((fault for fault in of_setting if fault.code in _ABOUT_SETTINGS), None)
        if of_value
        else None
    )
    if advice is None or (
        advice.code != "NP502" and not all(fault.code in _ABOUT_VALUES for fault in of_value)
    ):
        return of_value, of_setting
    of_setting.remove(advice)
    reason = f"{advice.message}. {advice.why}".rstrip()
    reasons = [
        reason if advice.code == "NP502" else f"{fault.why} {reason}".lstrip() for fault in of_value
    ]
    return [
        fault._replace(why=why, hint=advice.hint, fix=None)
        for fault, why in zip(of_value, reasons, strict=True)
    ], of_setting


def check_profile_claims(view: View) -> Iterator[Finding]:
    """Yield the faults of the releases and products in ``[profile]``."""
    yield from view.config.remember("written claims", lambda: tuple(_check_written_claims(view)))
    yield from _check_scenario(view)
    for claim, fault in _find_context_faults(
        tuple(view.config.list_ranges().items()), view.config.products, view.requested
    ):
        yield view.build_finding(fault, f"profile.{claim}", view.config.find_profile_origin(claim))


@lru_cache(1024)  # many presets have the same claims
def _find_context_faults(
    ranges: tuple[tuple[str, str], ...], meant: tuple[str, ...], requested: Context
) -> tuple[tuple[str, Fault], ...]:
    """Return the faults of a context that a preset does not support.

    Each has its key in ``[profile]``.
    """
    faults = []
    for axis, named in ranges:
        release = requested.find_value(axis)
        if release and release not in (releases.find_releases_in_range(named, axis) or (release,)):
            what, claim = ("CANN", axis) if axis == releases.CANN else (axis, f"{VERSIONS}{axis}")
            hint = f"widen {claim} in [profile], or check another release"
            faults.append(
                (
                    claim,
                    Fault(
                        "NP406",
                        f"the preset is meant for {what} {named}, not for {release}",
                        "",
                        hint,
                    ),
                )
            )
    product = requested.product
    from npuprof.catalog import products

    if (
        product
        and meant
        and not any(
            products.may_contain(name, product) or products.may_contain(product, name)
            for name in meant
        )
    ):
        hint = "add the product to [profile], or check another one"
        faults.append(
            (
                "products",
                Fault(
                    "NP407",
                    f"the preset is meant for {', '.join(meant)}, not for {product}",
                    "",
                    hint,
                ),
            )
        )
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
    meant: tuple[str, ...],
    contexts: tuple[Context, ...],
) -> tuple[tuple[str, ...] | None, ...]:
    """Return for each context: the codes that report that a preset does not support it.

    None if its scope contains the context.

    A context that it contains has no fault that the scope does not have: a fault of a scope is one
    of some release, and of some product in it, and rules only read the newest release that changes
    a default. Else, return None.
    """
    unmeant = [
        tuple(
            dict.fromkeys(fault.code for _, fault in _find_context_faults(ranges, meant, context))
        )
        for context in contexts
    ]
    return tuple(
        codes or (() if _contains_context(there, context) else None)
        for codes, context in zip(unmeant, contexts, strict=True)
    )


def _contains_context(there: Scope, context: Context) -> bool:

    from npuprof.catalog import products

    family = (
        products.find_product_family(context.product)
        if context.product
        else next(iter(there.families), None)
    )
    release = context.cann or next(reversed(there.releases), None)
    if family not in there.families or release not in there.releases:
        return False
    return _list_default_changes().isdisjoint(there.releases[there.releases.index(release) + 1 :])


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


def _find_claim_fault(spec: str, axis: str) -> Fault | None:
    if (
        (fault := _find_range_fault(spec, "", axis))
        or releases.find_releases_in_range(spec, axis)
        or not releases.load_releases(axis)
    ):
        return fault
    newest = f"the newest known is {releases.load_releases(axis)[-1]}"
    hint = (
        newest if axis == releases.CANN else f"{newest}; {releases.describe_known_releases(axis)}"
    )
    return Fault(
        "NP402",
        f"{axis} = {format_short_value(spec)} contains no known release",
        "",
        hint,
        severity="warning",
    )


def find_match_faults(match: dict[str, tuple[str, ...]]) -> Iterator[tuple[Fault, Path]]:
    """Yield the parts of a match that no job can satisfy; a single name is placed at its key."""
    never = "The override would never take part, without any message."
    finders = {"product": _find_product_fault, "target": _find_target_fault}
    for axis, wanted in match.items():
        for index, name in enumerate(wanted if axis != "scenario" else ()):
            find_fault = finders.get(axis)
            if (
                fault := find_fault(name, never)
                if find_fault
                else _find_range_fault(name, never, axis)
            ):
                yield fault, (axis, index)


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


def _find_target_fault(name: str, why: str) -> Fault | None:
    known = targets.list_target_names()
    if name in known:
        return None
    hint = did_you_mean(name, known, f"known are {', '.join(known)}")
    return Fault("NP902", f"unknown target {name!r}", why, hint)


@cache
def _find_unread_releases(scope: Scope, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the releases of the scope that do not read an option, and those that may not."""
    option = catalog.find_option(name)
    assert option is not None
    states = option.surface_states.get(scope.surface, option.states)
    covered = [
        (release, states[releases.release_index(release)])
        for release in list_surface_releases(scope, scope.surface)
    ]
    return tuple(release for release, state in covered if state == "."), tuple(
        release for release, state in covered if state == "?"
    )


def _find_release_faults(scope: Scope, option: Option, value: Any) -> Iterator[Fault]:
    missing, unknown = _find_unread_releases(scope, option.name)
    if missing and option.field:
        states = option.surface_states.get(scope.surface, option.states)
        readers = [
            name
            for name, state in zip(releases.load_releases(), states, strict=True)
            if state == "Y"
        ]
        why = "The adapter of that release does not know the key and ignores it silently."
        if scope.surface in option.surface_states:
            why = (
                "The adapter of that release has no "
                f"{option.spelling[scope.surface]}, and raises an error if it is set."
            )
        span = (
            f"it is read in {releases.format_release_span(readers)}"
            if readers
            else "no release reads it"
        )
        hint = f"{span}; unset it there, or narrow cann"
        if option.replaced_by:
            hint = f"use {option.replaced_by}; {span}"
        yield Fault(
            "NP404",
            f"{option.name} is not read in CANN {releases.format_release_span(missing)}",
            why,
            hint,
        )
        return
    if unknown:
        why = (
            "The sources of these releases could not be read; the "
            "option is missing before them and there after them."
        )
        what = (
            "it is not known whether CANN "
            f"{releases.format_release_span(unknown)} reads {option.name}"
        )
        yield Fault(
            "NP405", what, why, "narrow cann to releases that certainly read it, or test it"
        )
    since = option.choices_since.get(str(value)) if isinstance(value, (str, int)) else None
    if since:
        early = [name for name in scope.releases if releases.is_earlier(name, since)]
        if early:
            what = (
                f"{option.name} = {format_short_value(value)} is not known in CANN "
                f"{releases.format_release_span(early)}"
            )
            yield Fault(
                "NP408",
                what,
                f"The value came with {since}.",
                "write an older value, or narrow cann",
            )


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
    for path, item in list_leaves(option, value) if allowed and scope.families else ():
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
    excluded = record.products_not if isinstance(record, catalog.Flag) else ()
    return [
        family
        for family in scope.families
        if (record.products and family not in record.products) or family in excluded
    ]


def _list_supported_families(record: Option | catalog.Variable | catalog.Flag) -> list[str]:

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


def _find_deprecation_faults(scope: Scope, option: Option) -> Iterator[Fault]:
    gone = (
        option.states[-1] == "." and not scope.releases
    )  # requested releases are checked one by one (NP404)
    if (
        gone
        or option.field is None
        or _is_mark_in_force(scope, option.no_effect, option.no_effect_since)
    ):
        why = "The engine takes the value and does nothing with it."
        if gone or option.field is None:
            ended = len(option.states.rstrip("."))
            why = (
                f"Since CANN {releases.load_releases()[ended]} no adapter"
                if ended
                else "No release of the adapter"
            )
            why += " reads the key."
        yield Fault(
            "NP502",
            f"{option.name} has no effect",
            why,
            f"use {option.replaced_by}" if option.replaced_by else "unset it",
        )
    elif _is_mark_in_force(scope, option.deprecated, option.deprecated_since):
        since = f" since CANN {option.deprecated_since}" if option.deprecated_since else ""
        hint = f"use {option.replaced_by}" if option.replaced_by else "unset it if you can"
        yield Fault(
            "NP501", f"{option.name} is deprecated{since}", "A later release may remove it.", hint
        )
    elif option.page == "undocumented":
        why = "The manuals call such settings reserved. They may change without notice."
        yield Fault("NP503", f"{option.name} is not documented", why, "use it only on advice")


def _is_mark_in_force(scope: Scope, flagged: bool, since: str) -> bool:
    """Return whether a deprecation applies to the newest selected release."""
    if not flagged or not scope.releases or not since:
        return flagged
    return not releases.is_earlier(scope.releases[-1], since)


def _find_env_and_atc_faults(scope: Scope, key: str, value: Any) -> Iterator[Fault]:
    section, name = keys.split_section_and_name(key)
    yield from _find_framework_scope_faults(scope, section, name, value)
    record = catalog.find_record(section, name)
    if not isinstance(record, (catalog.Variable, catalog.Flag)):
        return
    barred = _list_barred_families(scope, record)
    if barred:
        supported = ", ".join(_list_supported_families(record))
        hint = (
            f"supported are {supported}" if supported else "no product supports it so far: unset it"
        )
        why = (
            "The documentation does not list it among the products that "
            f"{'read the variable' if section == 'env' else 'have the flag'}."
        )
        yield Fault("NP409", f"{key} is not supported on {', '.join(barred)}", why, hint)
    elif isinstance(value, (str, int, float)):
        yield from find_family_faults(scope, key, record, str(value))
    unread = (
        [*_find_version_faults(scope, record.framework, record, key)]
        if isinstance(record, catalog.Variable)
        else []
    )
    yield from unread
    if (
        isinstance(record, catalog.Variable)
        and record.dead
        and not dict(scope.versions).get(record.framework)
    ):
        yield Fault(
            "NP502",
            f"{key} has no effect",
            record.dead,
            f"use {record.replaced_by}" if record.replaced_by else "unset it",
        )
    elif (
        record.deprecated
        and not unread
        and not (isinstance(record, catalog.Variable) and _is_newer_name_unknown(scope, record))
    ):
        newer = record.replaced_by if isinstance(record, catalog.Variable) else record.replacement
        of_adapter = (
            "the TensorFlow adapter's option "
            if section == "env" and catalog.find_option(newer) is not None
            else ""
        )
        yield Fault(
            "NP501", f"{key} is deprecated", "", f"use {of_adapter}{newer}" if newer else "unset it"
        )
    if section == "atc" and scope.scenario and scope.scenario != "offline-inference":
        hint = 'write scenario = "offline-inference", or unset it'
        yield Fault(
            "NP411",
            f"{key} has no meaning for {scope.scenario}",
            "Only the ATC compiler reads it.",
            hint,
        )


def _find_version_faults(
    scope: Scope, framework: str, record: catalog.Variable | catalog.Setting, key: str
) -> Iterator[Fault]:
    """Yield the framework releases that do not read a setting yet, or no longer.

    Only those that the preset supports.
    """
    covered = dict(scope.versions).get(framework, ())
    readers = releases.find_releases_read(record.since, record.until, framework) if covered else ()
    missing = [name for name in covered if name not in readers]
    if not missing:
        return
    bounds = (
        f"since {record.since}" if record.since else "",
        f"until {record.until}" if record.until else "",
    )
    span = f"{framework} reads it {' '.join(filter(None, bounds))}"
    hint = f"unset it there, or narrow {framework}"
    where = f"{framework} {releases.format_release_span(missing, framework)}"
    if releases.load_axis(framework).documented:
        why = f"Its documentation lists it {' '.join(filter(None, bounds))}."
        yield Fault("NP405", f"it is not known whether {where} reads {key}", why, hint)
        return
    others = []
    if isinstance(record, catalog.Variable):
        others = [
            reader
            for reader in catalog.find_record_texts("env", record.name).get("read_by", ())
            if reader != framework
        ]
    also = f", and so may {', '.join(others)}" if others else ""
    unread = (
        "others fail at it or ignore it"
        if isinstance(record, catalog.Setting)
        else "where nothing reads it, it is ignored silently"
    )
    why = f"{span}{also}; {unread}."
    yield Fault(
        "NP404",
        f"{key} is not read in {where}",
        why,
        hint,
        severity="warning" if others else "error",
    )


def _find_framework_scope_faults(
    scope: Scope, section: str, name: str, value: Any
) -> Iterator[Fault]:
    """Yield the framework settings that the selected releases do not read, and deprecated ones."""
    for path, item in catalog.list_settings(section, name, value):
        dotted = ".".join((name, *path))
        record = catalog.find_setting(section, dotted)
        if record is None:
            continue
        key, axis = f"{section}.{dotted}", catalog.load_sections()[section].axis
        since = record.choices_since.get(str(item), "")
        dated = record._replace(since=since or record.since)
        unread = list(
            _find_version_faults(
                scope, axis, dated, f"{key} = {format_short_value(item)}" if since else key
            )
        )
        yield from (fault._replace(tail=path) for fault in unread)
        is_old = bool(record.until) and axis not in dict(scope.versions)
        if (record.deprecated or is_old) and not unread:
            why = f"{axis} reads it until {record.until}." if is_old else ""
            yield Fault(
                "NP501",
                f"{key} is deprecated",
                why,
                f"use {record.replaced_by}" if record.replaced_by else "unset it",
                path,
            )


def _is_newer_name_unknown(scope: Scope, variable: catalog.Variable) -> bool:
    """Return whether all selected releases are older than a variable's replacement."""
    since = variable.replacement_since
    return bool(since and scope.releases) and releases.is_earlier(scope.releases[-1], since)
