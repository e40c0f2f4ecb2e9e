"""Defaults of frameworks that differ in two releases, and what of them concerns a preset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import build_finding, releases
from npuprof.checks.lifetimes import Lifetime, build_lifetime, select_releases
from npuprof.document import keys
from npuprof.model import Finding, Record
from npuprof.resolve.config import Config

#: Why a changed default matters to a preset.
OMITTED = "Omitting it now means something else."
#: What a successor takes for a value that it has no word for.
NO_WORD: Any = object()
#: Variables of vLLM that nothing on an NPU reads.
_OF_GPUS = re.compile("VLLM_.*(?:CUDA|ROCM|FLASHINFER|DEEPEP|PREGRAD|MOE_SKIP_PADDING)")
#: Defaults that are no constants.
_OPEN = ("None", "computed")
#: The texts of variables that are switches.
_TRUTHS = {"0": False, "1": True, "false": False, "true": True}


def is_described(default: Any) -> bool:
    """Return whether a default is a description, such as another setting, and no value."""
    return default in _OPEN or " " in str(default)


def list_framework_sections() -> list[str]:
    """Return the sections of frameworks, and that of variables: the others have steps."""
    return [each for each in catalog.load_sections() if each not in ("options", "estimator", "atc")]


def is_read(lifetime: Lifetime, release: str) -> bool:
    """Return whether a release reads a setting, as far as known."""
    return not select_releases(lifetime, lifetime.states, (release,), ".")


def is_outdated(lifetime: Lifetime, release: str) -> bool:
    """Return whether a release does not read a setting, ignores it, or calls it deprecated."""
    return not is_read(lifetime, release) or any(
        select_releases(lifetime, marks, (release,), "Y")
        for marks in (lifetime.no_effect, lifetime.deprecated)
    )


def find_successor(lifetime: Lifetime, now: Mapping[str, str]) -> tuple[str, catalog.Entry] | None:
    """Return the key and record of what releases read in place of a setting.

    ``now`` are the releases by axis.
    """
    seen = {lifetime.subject}
    while (key := lifetime.replaced_by) and key not in seen:
        seen.add(key)
        key = f"env.{key}" if catalog.find_variable(key) else key
        record = catalog.find_key_record(key)
        if record is None or isinstance(record, catalog.Argument):
            return None
        lifetime = build_lifetime(key, record)
        release = now.get(lifetime.axis)
        if release is None:
            return None
        if not is_outdated(lifetime, release):
            return key, record
    return None


def convert(value: Any, record: catalog.Entry, successor: catalog.Entry) -> Any:
    """Return the value of a setting as its successor takes it, NO_WORD if it has no word for it."""
    text = keys.format_plain_value(value)
    if record.successor_values is not None:
        return record.successor_values.get(text, NO_WORD)
    is_text = isinstance(record, catalog.Variable) and not isinstance(successor, catalog.Variable)
    if not is_text or value is None:
        return value
    if successor.kind == "bool":
        return _TRUTHS.get(text.lower(), NO_WORD)
    with suppress(ValueError):
        return text if successor.kind in ("str", "path") else json.loads(text)
    return NO_WORD


def get_default(record: catalog.Entry, axis: str, release: str) -> Any:
    """Return the default of a setting in a release, None if it has none or it is not known."""
    known = releases.load_releases(axis)
    default = None if record.default_since else record.default
    for first, value in record.default_since.items():
        if release and known.index(first) <= known.index(release):
            default = value
    return default


class ChangedDefault(Record):
    """A setting whose default differs in two releases, its old default, and what to say of it."""

    path: tuple[str, ...]
    former: tuple[str, ...]
    key: str
    before: Any
    message: str
    hint: str
    is_moved: bool

    def concerns(self, sections: Mapping[str, Any]) -> bool:
        """Return whether a configuration omits the setting, and has the group that it is in.

        A switch that had another name was in force without a group.
        """
        missing, former = (_count_missing(path, sections) for path in (self.path, self.former))
        return former > 0 and (missing == 1 or (missing > 0 and self.is_moved))


def _count_missing(path: tuple[str, ...], sections: Mapping[str, Any]) -> int:
    """Return how many names at the end of a path a configuration does not have."""
    table, depth = sections.get(path[0]), 1
    while depth < len(path) and isinstance(table, Mapping) and path[depth] in table:
        table, depth = table[path[depth]], depth + 1
    return len(path) - depth


@cache
def list_changed_defaults(axis: str, since: str, release: str) -> tuple[ChangedDefault, ...]:
    """Return the settings of a framework whose default differs in two releases that read them."""
    changes = []
    for section in list_framework_sections():
        for name in catalog.record_names(section):
            record = catalog.find_record(section, name)
            if (
                record is None
                or _OF_GPUS.search(name)
                or releases.find_axis(section, record) != axis
            ):
                continue
            key, after = keys.format_full_key(section, name), record
            lifetime = build_lifetime(key, record)
            successor = find_successor(lifetime, {axis: release})
            is_moved = is_outdated(lifetime, release)
            if successor is not None and is_moved:
                key, after = successor
            is_known = is_read(lifetime, since) and (successor is not None or not is_moved)
            old = convert(get_default(record, axis, since), record, after)
            new = get_default(after, axis, release)
            is_open = None in (old, new) or (old in _OPEN and new in _OPEN)
            if is_known and old is not NO_WORD and old != new and not is_open:
                path = keys.find_key_path(key)
                shown, before, now = ".".join(path), *map(keys.format_short_value, (old, new))
                what = f"{shown} is not set, and {axis} {release} changes its default"
                hint = f"set {shown}{'' if is_described(old) else f' = {before}'} to keep it"
                message = f"{what}: {before}, then {now}"
                is_switch = after is not record and isinstance(old, bool)
                former = keys.find_key_path(keys.format_full_key(section, name))
                changes.append(ChangedDefault(path, former, key, old, message, hint, is_switch))
    return tuple(changes)


def find_changed_defaults(
    config: Config, since: Mapping[str, str], now: Mapping[str, str]
) -> Iterator[tuple[ChangedDefault, Finding]]:
    """Yield the defaults that differ in releases of two moments and that a preset does not set."""
    for axis, release in now.items():
        before = since.get(axis)
        # CANN has steps of its own
        if not before or axis == releases.CANN or not _is_used(axis, config):
            continue
        for change in list_changed_defaults(axis, before, release):
            if change.concerns(config.sections()):
                named = (f"versions.{each}" for each in (axis, *config.versions))
                origins = map(config.find_profile_origin, named)
                yield (
                    change,
                    build_finding(
                        "NP512",
                        change.message,
                        OMITTED,
                        change.hint,
                        next(filter(None, origins), None) or config.profile.origin(),
                        change.key,
                        (config.name,),
                    ),
                )


def find_defaults_of_ranges(before: Config, after: Config) -> tuple[Finding, ...]:
    """Return the defaults that change as a preset is meant for other releases of frameworks."""
    since, now = map(find_first_releases, (before, after))
    return tuple(finding for _, finding in find_changed_defaults(after, since, now))


def find_first_releases(config: Config) -> dict[str, str]:
    """Return the first releases that a preset is meant for by axis, and those they run on."""
    return releases.list_selected(
        {
            axis: names[0]
            for axis, spec in config.list_ranges().items()
            if (names := releases.find_releases_in_range(spec, axis))
        }
    )


def _is_used(axis: str, config: Config) -> bool:
    """Return whether a preset is for a framework, or for one that runs on it or below it."""
    used = {*config.versions}
    for section, table in config.sections().items():
        for name in table:
            used.add(releases.find_axis(section, catalog.find_record(section, name)))

    def runs_on(name: str, base: str) -> bool:
        return any(base in bases for bases in releases.load_axis(name).runs_on.values())

    return any(each == axis or runs_on(each, axis) or runs_on(axis, each) for each in used)
