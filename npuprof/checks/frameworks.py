"""Faults of framework settings: [torch_npu], [vllm_ascend] and [vllm].

Arguments of programs, such as [vllm], have values of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from npuprof import catalog
from npuprof.catalog import releases, values
from npuprof.catalog.programs import spell_key
from npuprof.checks.meaning import (
    UNKNOWN,
    describe_value_kind,
    guess_choice,
    read_number,
    read_truth,
)
from npuprof.checks.plain_values import find_path_faults, find_plain_value_faults
from npuprof.checks.program_values import (
    find_form_faults,
    find_program_value_faults,
    list_occurrences,
)
from npuprof.checks.rules import describe_partners
from npuprof.checks.view import Fault, View
from npuprof.document import keys
from npuprof.document.keys import format_short_value, format_toml_value
from npuprof.document.profile import FORM, Profile
from npuprof.model import LIKELY, TYPE_CHECKING, Finding, Fix, Path
from npuprof.resolve.config import Config

if TYPE_CHECKING:
    from typing import Any

    from npuprof.checks.rules import KeyFilter


def find_framework_faults(section: str, name: str, value: Any) -> list[Fault]:
    """Return the faults of a framework setting, or of a table of settings.

    Each with its path below ``name``.
    """
    if catalog.load_sections()[section].launch.get("syntax") == "hydra":
        from npuprof.checks.overrides import find_override_faults  # few presets have such a section

        return find_override_faults(section, name, value)
    return [
        fault
        for path, item in catalog.list_settings(section, name, value)
        for fault in _find_item_faults(section, name, path, item)
    ]


def _find_table_faults(section: str, name: str, path: Path, tables: list[Any]) -> list[Fault]:
    """Return the faults of the settings in a list of tables."""
    return [
        fault._replace(tail=(*path, number, key, *fault.tail))
        for number, table in enumerate(tables)
        if isinstance(table, dict)
        for key, value in table.items()
        for fault in find_framework_faults(section, f"{name}.{key}", value)
    ]


def _find_item_faults(section: str, name: str, path: Path, value: Any) -> list[Fault]:
    dotted = ".".join((name, *path))
    key = f"{section}.{dotted}"
    described = catalog.load_sections()[section]
    if table := described.tables.get(name.replace("_", "-")):
        return [
            Fault(
                "NP212",
                f"{key} has a section of its own",
                "There its keys are checked.",
                f"move its keys below [{table}]",
            )
        ]
    record = catalog.find_setting(section, dotted)
    if record is None:
        above = catalog.find_setting(section, dotted.rpartition(".")[0])
        if above is not None and above.kind != "list" and not above.closed:
            return []  # a table with other keys than the known ones
        if releases.is_installed(section, dotted):
            return []
        if described.names:
            from npuprof.checks.unknown_settings import build_unknown_fault

            fault = build_unknown_fault(section, dotted)._replace(tail=path)
            if above is None or above.closed:
                return [fault]
            # a table in a list may have keys for another part of the program
            is_slip = fault.fix or (fault.hint.startswith("did you mean") and "_" not in dotted)
            return [fault._replace(**LIKELY)] if is_slip else []
        record = catalog.Setting(name=dotted, kind="any")
    if isinstance(value, list) and catalog.list_settings_below(section, dotted)[1:]:
        return _find_table_faults(section, dotted, path, value)
    if described.launch or record.kinds:
        faults = find_form_faults(key, value)
        for given in list_occurrences(value) if described.is_exact else [value]:
            faults = faults or find_program_value_faults(key, record, given)
        return [
            fault._replace(
                tail=(*path, *fault.tail), why=fault.why or f"{described.title} stops at it."
            )
            for fault in faults
        ]
    if record.kind in ("json", "list"):
        kind, expected = (dict, "a table") if record.kind == "json" else (list, "a list")
        faults = []
        if not isinstance(value, kind):
            what = f"{key} takes {expected}, not {describe_value_kind(value)}"
            faults.append(Fault("NP202", what, hint=f"write {expected}"))
    else:
        plain = value
        # The option call of a framework takes texts, so a number may be written as digits.
        may_be_text = described.option_call and not record.call and record.kind == "int"
        if may_be_text and isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
            plain = int(value)
        faults = find_plain_value_faults(key, record, plain)
        if not faults and record.kind == "path":
            faults = find_path_faults(key, value)
    otherwise = record.otherwise or described.otherwise
    return [
        fault._replace(tail=(*path, *fault.tail), why=fault.why or otherwise) for fault in faults
    ]


def check_settings(view: View, about: KeyFilter) -> Iterator[Finding]:
    """Yield the framework settings that contradict another one, or need it to have an effect."""
    pairs = set()
    for key in view.settings:
        section, name = keys.split_section_and_name(key)
        for path, value in catalog.list_settings(section, name, view.settings[key]):
            record = catalog.find_setting(section, ".".join((name, *path)))
            if record is None:
                continue
            for partner, fault in _find_pair_faults(view, section, record, value):
                pair = frozenset((f"{section}.{record.name}", partner))
                other = keys.split_key(partner)
                if pair not in pairs and about((key, other[0])):
                    pairs.add(pair)
                    why = describe_partners(view, fault.why, (key, path), [other])
                    yield view.build_finding(fault._replace(tail=path, why=why), key)


def check_spellings(config: Config) -> Iterator[Finding]:
    """Yield the misspelt arguments in the layers of a preset that can be edited."""
    for profile in config.lineage:
        if profile.form == FORM and not (profile.home and profile.home.is_locked):
            for finding in find_spelling_faults(profile):
                yield finding._replace(profiles=(config.name,))


def find_spelling_faults(profile: Profile) -> Iterator[Finding]:
    """Yield the arguments of a program in a profile that are not in their written form."""
    steps = (*profile.steps, *profile.override_steps)
    written = [(step.key, step.tail, step.path) for step in steps]
    for index, name in enumerate(profile.locked):
        written.append((*keys.split_key(name), ("profile", "locked", index)))
    paths = {path for _, _, path in written}
    for key, tail, path in written:
        right = spell_key(key)
        section, name = keys.split_section_and_name(right)
        record = catalog.find_setting(section, name)
        if record is not None and record.name != name:
            right, is_off = f"{section}.{record.name}", f"--{name}" in record.negations
            hint = f"write {record.name}{' with the opposite value' * is_off}"
            yield _build_spelling_finding(profile, key, right, hint, path, tail)
            continue
        if right in ("", key) or name in catalog.load_sections()[section].tables:
            continue
        fix: Fix | None = Fix(None, name)
        if isinstance(path[-1], int):
            name = keys.format_key_path(right, tail)
            fix = Fix(name)
        elif record is None:
            continue  # unknown in any spelling (NP212)
        hint = f"write {name}"
        if (*path[:-1], name) in paths:
            fix, hint = None, f"{name} is set too: remove one of them"
        yield _build_spelling_finding(profile, key, right, hint, path, tail)._replace(fix=fix)


def _build_spelling_finding(
    profile: Profile, key: str, right: str, hint: str, path: Path, tail: Path
) -> Finding:
    return Finding(
        "NP215",
        f"{key} is another spelling of {right}",
        "Parents and child presets would set one argument under two names.",
        hint,
        profile.origin(*path),
        keys.format_key_path(key, tail),
    )


def list_setting_reads(touched: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of settings that are compared, for each overridden framework setting."""
    for key in touched:
        section, name = keys.split_section_and_name(key)
        for record in catalog.list_settings_below(section, name):
            named = _list_keys(section, (*record.conflicts, *record.requires))
            for partner in (*record.counterparts, *named):
                yield key, keys.split_key(partner)[0]


def _list_keys(section: str, names: Iterable[str]) -> list[str]:
    """Return the keys for names in a section: other settings of the section, or variables."""
    return [name if name.startswith("env.") else f"{section}.{name}" for name in names]


def _find_pair_faults(
    view: View, section: str, record: catalog.Setting, value: Any
) -> Iterator[tuple[str, Fault]]:
    """Yield the faults of a setting in combination with another one, with that one's key."""
    key = f"{section}.{record.name}"
    for partner in record.counterparts:
        is_set, partner_value = _find_value(view, partner)
        if (
            is_set
            and not isinstance(partner_value, dict)
            and view.is_decided(key)
            and view.is_decided(partner)
            and not _do_agree(record, value, partner, partner_value)
        ):
            yield partner, _build_counterpart_fault(section, record, value, partner, partner_value)
    successor = record.replaced_by
    is_set, partner_value = _find_value(view, successor) if successor else (False, None)
    if (
        is_set
        and value != partner_value
        and getattr(catalog.find_key_record(successor), "replaced_by", "") != key
        and view.is_decided(key)
        and view.is_decided(successor)
    ):
        what = f"{key} = {format_short_value(value)} contradicts {successor}"
        yield successor, Fault("NP213", what, f"{successor} replaces it.", f"unset {key}")
    for partner in _list_keys(section, record.conflicts):
        is_set, _ = _find_value(view, partner)
        if is_set:
            what = f"{key} and {partner} conflict"
            why = catalog.load_sections()[section].conflict or record.otherwise
            yield partner, Fault("NP213", what, why, "unset one of the two")
    # A child preset may set what an abstract one lacks, and a setting that is off needs nothing.
    if view.config.abstract or read_truth(value) is False or not view.is_decided(key):
        return
    for partner in _list_keys(section, record.requires):
        partner_key, tail = keys.split_key(partner)
        has_partner, partner_value = view.lookup_operand((*partner_key.split("."), *tail), {})
        if has_partner is False or read_truth(partner_value) is False:
            needed = catalog.find_record(*catalog.find_record_place(partner_key, tail))
            written = " = true" if getattr(needed, "kind", "") == "bool" else ""
            what = f"{key} has no effect without {partner}"
            yield partner, Fault("NP214", what, hint=f"write {partner}{written}, or unset {key}")


def _find_value(view: View, key: str) -> tuple[bool, Any]:
    """Return whether a setting of a preset is set, and its value."""
    return values.find_setting_value(view.settings, *keys.split_key(key))


def _do_agree(record: catalog.Setting, value: Any, partner: str, partner_value: Any) -> bool:
    """Return whether a setting and its counterpart have equivalent values."""
    agreeing, text = record.counterparts[partner], _format_text(value)
    if isinstance(agreeing, str):  # a pattern with {} for the value
        return re.fullmatch(agreeing.replace("{}", re.escape(text)), str(partner_value)) is not None
    equivalents = agreeing.get(text, ()) if agreeing else (_convert(record, value, partner),)
    return any(_are_same(item, partner_value, partner) for item in equivalents)


def _format_text(value: Any) -> str:
    return format_toml_value(value) if isinstance(value, bool) else str(value)


def _are_same(value: Any, partner_value: Any, partner: str) -> bool:
    truth = read_truth(value)
    parsed = [values.parse_structured_value(partner, item) for item in (value, partner_value)]
    return (
        str(value) == str(partner_value)
        or parsed[0] == parsed[1]
        or (truth is not None and truth is read_truth(partner_value))
    )


def _convert(record: catalog.Setting, value: Any, partner: str) -> Any:
    """Return a value in the unit of its counterpart."""
    unit = getattr(catalog.find_key_record(partner), "unit", "")
    return read_number(f"{value}{record.unit}", unit) if unit and record.unit else value


def _build_counterpart_fault(
    section: str, record: catalog.Setting, value: Any, partner: str, partner_value: Any
) -> Fault:
    """Return the fault of a setting that contradicts its counterpart.

    The hint is the counterpart's matching value, if there is one.
    """
    agreeing = record.counterparts[partner]
    choices = getattr(catalog.find_key_record(partner), "choices", ())
    if isinstance(agreeing, str):
        best = UNKNOWN
    elif agreeing:
        best = next(iter(agreeing.get(_format_text(value), ())), UNKNOWN)
    else:
        best = _convert(record, value, partner)
    if choices and best is not UNKNOWN:
        best = guess_choice(best, choices)
    elif isinstance(best, float):  # conversion of units may leave a fraction
        best = UNKNOWN
    what = (
        f"{section}.{record.name} = {format_short_value(value)} contradicts {partner} = "
        f"{format_short_value(partner_value)}"
    )
    why = f"{section} and the readers of [options] would run with different values."
    if partner.startswith("env."):
        why = "The setting overrides the variable."
    hint = "unset one of the two"
    if best not in (UNKNOWN, None):
        hint = f"write {partner} = {format_toml_value(best)}, or {hint}"
    return Fault("NP213", what, why, hint)
