"""Faults of overrides for Hydra: ``key``, ``+key``, ``++key`` and ``~key``."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.checks.program_values import find_form_faults, find_program_value_faults
from npuprof.checks.unknown_settings import build_unknown_fault
from npuprof.checks.view import Fault
from npuprof.document import keys
from npuprof.model import Any, Fix


def split_prefix(name: str) -> tuple[str, str]:
    """Return what precedes a key: ``+``, ``++``, ``~`` or nothing; and the key."""
    prefix = next((each for each in ("++", "+", "~") if name.startswith(each)), "")
    return prefix, name.removeprefix(prefix)


def find_override_faults(section: str, written: str, value: Any) -> list[Fault]:
    """Return the faults of the overrides for a key that hold in any release."""
    prefix, name = split_prefix(written)
    is_own = name.startswith("--") or name == "hydra"
    faults = []
    for path, leaf in keys.list_table_leaves(value):
        dotted = ".".join((name, *path))
        key = keys.format_key_path(section, (*written.split("."), *path))
        record = None if is_own else catalog.find_setting(section, dotted)
        found = find_form_faults(key, leaf)
        if record is not None and prefix != "~" and not _is_resolved_later(leaf):
            found = found or find_program_value_faults(key, record, leaf)
        elif record is None and not is_own and not prefix.startswith("+"):
            found = found or [_build_missing_fault(section, prefix, dotted)]
        faults += [fault._replace(tail=(*path, *fault.tail)) for fault in found]
    return faults


def _is_resolved_later(value: Any) -> bool:
    """Return whether Hydra makes another value of a text: null, or what it refers to."""
    return isinstance(value, str) and (value == "null" or "${" in value)


def _build_missing_fault(section: str, prefix: str, name: str) -> Fault:
    fault = build_unknown_fault(section, name)
    if prefix:
        return fault._replace(why="Hydra stops at a key that it cannot delete.", fix=None)
    title = keys.format_key_segment(f"+{name}")
    is_inside = catalog.find_setting(section, name.rpartition(".")[0]) is not None
    if is_inside or not fault.hint.startswith("did you mean"):
        return fault._replace(hint=f"write {title}, if your code reads it", fix=None)
    return fault._replace(hint=f"{fault.hint} If your code reads it, write {title}", fix=None)


def find_added_faults(
    section: str, prefix: str, name: str, value: Any, covered: tuple[str, ...]
) -> Iterator[Fault]:
    """Yield the keys that exist, although ``+`` adds them.

    Hydra (1.3) merges lists and tables, and sets a key that is null. Without ``covered`` releases,
    it is certain if all known releases have the key.
    """
    for path, leaf in keys.list_table_leaves(value) if prefix == "+" else ():
        record = catalog.find_setting(section, ".".join((name, *path)))
        if record is None or not record.always_set or isinstance(leaf, (dict, list)):
            continue
        known = releases.load_releases(section)
        having = {
            release
            for release, letter in zip(known, record.always_set, strict=True)
            if letter == "Y"
        }
        newest = releases.find_newest_stable(section)
        is_certain = having.issuperset(covered or known)
        if not (is_certain or (not covered and newest in having)):
            continue
        what = f"+ cannot add {record.name}: {section} has it"
        span = releases.describe_set(record.always_set, section)
        why = f"Hydra stops at + before a key that has a value. Releases with it: {span}."
        hint = f"write {record.name}" + ("" if is_certain else f', or "++{record.name}"')
        fix = Fix(name=record.name) if is_certain else None
        severity = "error" if is_certain else "warning"
        yield Fault("NP217", what, why, hint, path, severity, fix)
