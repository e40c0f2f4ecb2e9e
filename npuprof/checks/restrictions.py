"""Restrictions of surfaces, product families and releases.

Examples are ATC flags, the classes of TF 2, and narrower forms of values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from npuprof import catalog
from npuprof.catalog import Flag, Option, Variable, build_finding, releases, targets, values
from npuprof.catalog.values import read_choice
from npuprof.checks.view import Fault, Scope, SettingFault, View
from npuprof.document.keys import format_plain_value, format_short_value
from npuprof.model import Any, Finding, Path, has_only_digits
from npuprof.system import list_leaves

OFFLINE = "offline-inference"


def find_twin_flag(scope: Scope, option: Option) -> Flag | None:
    """Return the flag that is equivalent to an option if ATC reads the preset.

    None if a session does.
    """
    is_converted = scope.scenario == OFFLINE or scope.surface == "atc"
    return catalog.find_flag(option.flag) if is_converted else None


def is_taken_by_flag(scope: Scope, option: Option, value: Any) -> bool:
    """Return whether the ATC compiler accepts a value that a session rejects."""
    flag = find_twin_flag(scope, option)
    return flag is not None and (value in flag.choices or has_form_of_flag(scope, option, value))


def has_form_of_flag(scope: Scope, option: Option, value: Any) -> bool:
    """Return whether a text has the form that ATC requires, if a session requires another one."""
    flag = find_twin_flag(scope, option)
    from npuprof.catalog import readers

    return (
        flag is not None
        and isinstance(value, str)
        and bool(flag.pattern)
        and readers.is_taken(flag, value)
    )


def encode_flag_value(option: Option, value: Any) -> Any:
    """Return an option's value as ATC reads it: structured values as text, except for files."""
    return option.write_on("atc", values.encode_field_value(option.name, value))[1]


def find_surface_faults(scope: Scope, option: Option, value: Any) -> Iterator[Fault]:
    """Yield the faults of a value that a session accepts and the selected surface rejects."""
    flag = find_twin_flag(scope, option)
    if flag is not None:
        yield from _find_flag_faults(option, flag, value)
    elif option.listed:
        yield from _find_unlisted_names(option, value)
    yield from _find_unwritable_faults(option, scope.surface, value, "this target")


def list_surface_releases(scope: Scope, surface: str) -> tuple[str, ...]:
    """Return the selected releases that have a surface.

    All of them if none has, since the surface was requested.
    """
    first = targets.find_first_release(surface)
    return (
        tuple(name for name in scope.releases if releases.release_index(name) >= first)
        or scope.releases
    )


def find_unwritable_faults(scope: Scope, key: str, value: Any) -> Iterator[SettingFault]:
    """Yield the faults of a value that a session accepts and some targets cannot write."""
    for target in targets.list_narrow_targets(key):
        option = catalog.find_option(key)
        assert option is not None
        if fault := _find_late_fault(scope, key, target):
            yield SettingFault(key, fault, target)
        for fault in _find_unwritable_faults(
            option, targets.find_surface(target), value, f"the target {target}"
        ):
            hint = (
                f'{fault.hint}, here or in an [[override]] with match = {{ target = "{target}" }}'
            )
            yield SettingFault(key, fault._replace(code="NP413", hint=hint), target)


@cache
def _find_late_fault(scope: Scope, name: str, target: str) -> Fault | None:
    """Return the fault of an option that a target cannot write yet in some releases.

    A session of these releases reads it.
    """
    option, surface = catalog.find_option(name), targets.find_surface(target)
    assert option is not None
    states = option.surface_states.get(surface, option.states)
    first = targets.find_first_release(surface)
    late = [
        release
        for release in list_surface_releases(scope, surface)
        # Releases without the surface do not concern the preset.
        if (index := releases.release_index(release)) >= first
        and states[index] == "."
        and option.states[index] != "."
    ]
    if not late:
        return None
    span = releases.describe_span(late)
    what = f"{option.name} cannot be written for the target {target} in CANN {span}"
    why = (
        "The adapter of that release has no "
        f"{option.spelling[surface]}, and raises an error if it is set."
    )
    hint = f'narrow cann, or unset it in an [[override]] with match = {{ target = "{target}" }}'
    return Fault("NP413", what, why, hint)


def check_unrequested_surfaces(view: View, unwritable: Sequence[SettingFault]) -> Iterator[Finding]:
    """Yield the values that a target cannot write although it supports each option."""
    if not unwritable:
        return
    for target, row in targets.load_target_index().items():
        items = [item for item in unwritable if item.target == target]
        if items and (row.surface == "atc") == view.is_converted and has_place(view, target):
            for item in items:
                yield view.build_finding(item.fault, item.key)


def build_conversion_finding(rejected: Finding) -> Finding:
    """Return the finding for what ATC rejects, if ATC was not requested."""
    name = rejected.key.split(".")[0]
    what = f"{name} cannot be written for the target atc: {rejected.message}"
    hint = f"set a scenario in [profile] unless it is for ATC; else {rejected.hint}"
    return build_finding(
        "NP413", what, rejected.why, hint, rejected.origin, rejected.key, rejected.profiles
    )


def has_place(view: View, target: str) -> bool:
    """Return whether a target supports each option."""
    surface = targets.find_surface(target)
    barring = [key for key in view.settings if may_bar(surface, key)]
    return all(
        (option := catalog.find_option(key)) and option.is_always(surface, view.settings[key])
        for key in barring
    )


@cache
def may_bar(surface: str, key: str) -> bool:
    """Return whether a surface has no place for a setting, except for its fixed value."""
    option = catalog.find_option(key) if "." not in key else None
    if option is None:
        return "." not in key or (key.startswith("estimator.") and surface != "run_config")
    return surface not in option.spelling or surface in option.not_carried


def _find_unwritable_faults(
    option: Option, surface: str, value: Any, where: str
) -> Iterator[Fault]:
    """Yield the parts of a value that a surface cannot write; ``where`` names it."""
    if surface not in option.spelling:
        return
    carried, _ = option.write_on(surface, value)
    if not carried:
        choices = [
            format_short_value(read_choice(option, text)) for text in option.surface_values[surface]
        ]
        taken = ", ".join(choices)
        what = f"{option.name} = {format_short_value(value)} cannot be written for {where}"
        yield Fault(
            "NP203",
            what,
            f"There {option.spelling[surface]} takes {taken} only.",
            f"write {'one of ' if choices[1:] else ''}{taken}",
        )
    if surface in option.surface_range:
        low, high = option.surface_range[surface]
        for path, number in list_option_leaves(option, value):
            if type(number) is int and not low <= number <= high:
                what = f"{option.name} = {number} is out of range for {where}"
                yield Fault("NP203", what, "", f"write {low} to {high}", path)


def _find_unlisted_names(option: Option, value: Any) -> Iterator[Fault]:
    """Yield the names that the session manual does not list."""
    known = {name.lower() for name in option.listed}  # letter case has its own finding
    names = (
        value.replace(" ", "").split(",") if isinstance(value, str) else value
    )  # the engine trims each name
    for path, name in list_option_leaves(option, names):
        if str(name).lower() not in known and re.fullmatch(option.pattern, str(name)):
            what = f"{option.name}: the manual does not list {format_short_value(name)}"
            why = "It names the operators that the option is supported for."
            yield Fault("NP205", what, why, f"it lists {', '.join(option.listed)}", path)


def _find_flag_faults(option: Option, flag: Flag, value: Any) -> Iterator[Fault]:
    from npuprof.checks.plain_values import find_chip_faults, find_path_faults

    carried, written = option.write_on("atc", value)
    text = format_plain_value(written)
    is_reported = option.choices and text not in map(
        str, (*option.choices, *option.choices_until)
    )  # if no session accepts it either
    if (
        carried
        and flag.choices
        and not is_reported
        and not isinstance(value, (dict, list))
        and text not in map(str, flag.choices)
    ):
        listed = ", ".join(map(str, flag.choices))
        what = f"{option.name} = {format_short_value(value)} is nothing that --{flag.name} takes"
        yield Fault("NP203", what, "ATC stops at such a value.", f"it takes {listed}")
    own = [
        pattern
        for pattern in (option.pattern, option.lax_pattern)
        if pattern and isinstance(written, str)
    ]
    from npuprof.catalog import readers

    if (
        carried
        and flag.pattern
        and any(re.fullmatch(pattern, written) for pattern in own)
        and not readers.is_taken(flag, written)
    ):
        what = f"{option.name} = {format_short_value(value)} is not in the format of --{flag.name}"
        yield Fault(
            "NP203", what, "ATC stops at such a value.", f"see npuprof option --{flag.name}"
        )
    if flag.kind == "chip" and isinstance(value, str):
        yield from find_chip_faults(option.name, value)
    if (
        option.kind.startswith("path")
        and isinstance(value, str)
        and value
        and not find_path_faults(option.name, value, option.path_characters)
    ):
        yield from find_path_faults(option.name, value, flag.path_characters)


def list_option_leaves(option: Option, value: Any) -> list[tuple[Path, Any]]:
    """Return the members of a value with their paths; a text in the option's form is parsed."""
    return list_leaves(values.parse_structured_value(option.name, value))


def find_family_faults(scope: Scope, key: str, record: catalog.Entry, text: str) -> Iterator[Fault]:
    """Yield the parts of a value that the selected product families or releases reject."""
    from npuprof.catalog import readers

    text = readers.find_spelling(record, text)
    parts = text.split(record.separator) if record.separator else [text]
    for part in dict.fromkeys(
        (*parts, *text.replace(";", ":").split(":"))
    ):  # a value may follow a node name
        works = record.value_products.get(part)
        barred = [family for family in scope.families if family not in works] if works else []
        if works and barred:
            what = f"{key} = {format_short_value(part)} is not supported on {', '.join(barred)}"
            yield Fault("NP409", what, "", f"the value works on {', '.join(works)}")
    yield from find_form_faults(scope, key, record, text)
    if isinstance(record, Variable):
        yield from _find_variable_faults(scope, key, record, text)
    else:
        yield from find_count_faults(
            record, scope.families, len(parts), f"{key} has {len(parts)} sizes"
        )


def find_count_faults(
    record: catalog.Entry, families: tuple[str, ...], count: int, what: str
) -> list[Fault]:
    """Return the fault of a list with too few or too many elements for the engine.

    The first of some families that rejects it counts.
    """
    if limits := record.default_count:
        for family in families or ("",):
            low, high = record.product_count.get(family, limits)
            if not low <= count <= high:
                where = f" on {family}" if family else ""
                return [
                    Fault(
                        "NP381",
                        f"{what}{where}",
                        "The engine builds one graph for each.",
                        f"write {low} to {high} of them",
                    )
                ]
    return []


def find_form_faults(scope: Scope, key: str, record: catalog.Entry, text: str) -> Iterator[Fault]:
    """Yield the product families that accept a narrower form of a value."""
    for family in scope.families if record.product_pattern else ():
        pattern = record.product_pattern.get(family)
        if pattern and not re.fullmatch(pattern, text):
            what = f"{key} = {format_short_value(text)} is not supported on {family}"
            fault = Fault(
                "NP409",
                what,
                "",
                "see the notes of npuprof option, or set it in an [[override]] for other products",
            )
            yield (
                fault if isinstance(record, Variable) else fault._replace(severity="warning")
            )  # ATC may accept more than its manual lists


def _find_variable_faults(scope: Scope, key: str, variable: Variable, text: str) -> Iterator[Fault]:
    for family in scope.families:
        low, high = variable.product_range.get(family, (None, None))
        bounded = low is not None and high is not None and has_only_digits(text.removeprefix("-"))
        if bounded and (len(text) > 19 or not (low or 0) <= int(text) <= (high or 0)):
            what = f"{key} = {format_short_value(text)[1:-1]} is out of range on {family}"
            yield Fault("NP410", what, "", f"there write {low} to {high} {variable.unit}".rstrip())
    for release, pattern in variable.pattern_before.items():
        early = [name for name in scope.releases if releases.is_earlier(name, release)]
        if (early or not scope.releases) and not re.fullmatch(pattern, text):
            span = (
                f"CANN {releases.describe_span(early)}" if early else f"releases before {release}"
            )
            what = f"{key} = {format_short_value(text)} is not complete for {span}"
            yield Fault(
                "NP412",
                what,
                f"Before {release} the value had more parts, and later releases still take them.",
                "write all parts",
            )
