"""Moves of settings to other releases of frameworks, by the records of the catalogue.

A setting that a release does not read, or calls deprecated, is moved to its successor. One that had
no effect is taken out, and one whose effect is lost becomes a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from npuprof import catalog
from npuprof.catalog import build_finding, releases
from npuprof.checks.changed_defaults import (
    NO_WORD,
    convert,
    find_changed_defaults,
    find_first_releases,
    find_successor,
    get_default,
    is_described,
    is_outdated,
    is_read,
    list_framework_sections,
)
from npuprof.checks.lifetimes import Lifetime, build_lifetime
from npuprof.document import keys
from npuprof.document.profile import PROFILE_KEYS, Profile
from npuprof.edit.migration_steps import MadeStep, Step
from npuprof.edit.paths import MISSING, PathChange, find_at_path
from npuprof.model import LIST_OPS, Finding, Path, Record, TomlTable, build_usage_error
from npuprof.resolve import is_match_met
from npuprof.resolve.config import Config


class Upgrade(Record):
    """The releases to move to, by axis, and those to move from, if they are known.

    With ``widen``, ranges keep what they have, and nothing is moved; with ``keep``, defaults that
    change are written down. ``flags`` are those of the command line with the releases.
    """

    releases: dict[str, str]
    since: dict[str, str] = {}
    widen: bool = False
    keep: bool = False
    flags: str = ""

    def find_all_since(self, config: Config) -> dict[str, str]:
        """Return the releases from which a preset is moved by axis, as far as they are known."""
        return self.since | find_first_releases(config)


class Moves(Record):
    """The changes of a text, their steps, what is left to decide, and the data after them."""

    after: TomlTable
    changes: list[PathChange]
    made: list[MadeStep]
    findings: list[Finding]


class Setting(Record):
    """A setting in a block of a text: its key, where it is, its value, and its record."""

    key: str
    path: Path
    value: Any
    lifetime: Lifetime
    record: catalog.Entry


def plan_moves(profile: Profile, config: Config, was: Config, upgrade: Upgrade) -> Moves:
    """Return how a profile is moved.

    ``config`` is the profile resolved, and ``was`` the same before its parents were moved.
    """
    moves = Moves(deepcopy(profile.document.data), [], [], [])
    since = upgrade.find_all_since(was)
    for axis, release in upgrade.releases.items():
        find_place = releases.load_releases(axis).index
        if axis != releases.CANN and find_place(since.get(axis, release)) > find_place(release):
            what = f"{was.name} is for {axis} {since[axis]}, later than {release}"
            why = "A move goes to a later release."
            raise build_usage_error(what, "name a later release, or other presets", why)
    for setting in list_settings(profile.document.data, upgrade):
        _move(setting, profile, was, upgrade, since.get(setting.lifetime.axis, ""), moves)
    if not upgrade.widen:
        moves.changes.extend(_rename_entries(profile, config, moves.after, upgrade))
    _settle_defaults(config, since, upgrade, moves)
    rules = {made.step.rule for made in moves.made}
    for axis in upgrade.releases:
        if axis != releases.CANN:
            moves.changes.extend(fit_range(profile, axis, upgrade, lambda title, _: title in rules))
    return moves


def list_blocks(data: TomlTable) -> dict[Path, Any]:
    """Return the blocks of a text by path: itself, and its overrides."""
    overrides = enumerate(data.get("override", ()))
    return {(): data} | {("override", number): block for number, block in overrides}


def list_key_lists(data: TomlTable) -> Iterator[tuple[Path, Path, list[str]]]:
    """Yield the lists of keys in a text, each with the paths of its block and of itself."""
    lists = [((), ("profile", name)) for name, key in PROFILE_KEYS.items() if key.names_settings]
    for base, path in [*lists, *((base, (*base, "unset")) for base in list_blocks(data) if base)]:
        names = find_at_path(data, path)
        if isinstance(names, list):
            yield base, path, names


def list_settings(data: TomlTable, upgrade: Upgrade) -> Iterator[Setting]:
    """Yield the settings of a text that belong to an axis of the upgrade."""
    for base, block in list_blocks(data).items():
        if base and not _matches(block.get("match", {}), upgrade):
            continue
        for above in ((), *((op,) for op in LIST_OPS)):
            for section in list_framework_sections():
                inside = (*above, section)
                seen = set()
                for path, _ in keys.list_table_leaves(find_at_path(block, inside)):
                    found = _find_record(section, path, upgrade)
                    if found and found[0] not in seen:
                        key, record, length = found
                        seen.add(key)
                        place = (*base, *inside, *path[:length])
                        value = find_at_path(data, place)
                        yield Setting(key, place, value, build_lifetime(key, record), record)


def _matches(match: Mapping[str, Any], upgrade: Upgrade) -> bool:
    """Return whether an override can apply to the releases of an upgrade."""
    return all(
        is_match_met(axis, (spec,) if isinstance(spec, str) else spec, release)
        for axis, release in upgrade.releases.items()
        if (spec := match.get(axis)) is not None
    )


def _find_record(
    section: str, path: Path, upgrade: Upgrade
) -> tuple[str, catalog.Entry, int] | None:
    """Return the key and record of a setting, and how many names of a path lead to it."""
    for end in range(len(path), 0, -1):
        name = ".".join(map(str, path[:end]))
        record = catalog.find_record(section, name)
        if record and not isinstance(record, catalog.Argument):
            axis = releases.find_axis(section, record)
            key = keys.format_full_key(section, name)
            return (key, record, end) if axis in upgrade.releases else None
    return None


def _move(
    setting: Setting, profile: Profile, was: Config, upgrade: Upgrade, since: str, moves: Moves
) -> None:
    """Add what becomes of a setting that is moved from a release."""
    axis, key = setting.lifetime.axis, setting.key
    release = upgrade.releases[axis]
    was_unread = bool(since) and not is_read(setting.lifetime, since)
    shown, title = ".".join(keys.find_key_path(key)), f"{axis} {release}"

    def report(what: str, why: str, hint: str) -> None:
        origin = profile.origin(*setting.path)
        moves.findings.append(build_finding("NP511", what, why, hint, origin, key, (profile.name,)))

    # an override for some releases is meant to take effect
    match = find_at_path(moves.after, (*setting.path[:2], "match", axis))
    if was_unread and match is MISSING and is_read(setting.lifetime, release):
        why = f"{axis} {since} does not read it."
        report(f"{shown} takes effect with {title}", why, "unset it if that is not meant")
    # what had no effect is a finding of its own
    if was_unread or not is_outdated(setting.lifetime, release):
        return
    successor = find_successor(setting.lifetime, upgrade.releases)
    is_kept = is_read(setting.lifetime, release)
    if is_kept and upgrade.widen:
        return
    why = f"{title} calls it deprecated." if is_kept else f"{title} does not read it."
    step = Step(title, key, why, release)
    value, problem = None, ""
    if successor:
        new_key, record = successor
        value = convert(setting.value, setting.record, record)
        # in the block that has the setting
        place = (*setting.path[: -len(keys.find_key_path(key))], *keys.find_key_path(new_key))
        there = find_at_path(moves.after, place)
        above = (find_at_path(moves.after, place[:end]) for end in range(len(place)))
        step = step._replace(to=new_key, action="rename")
        if value is NO_WORD:
            problem = f"{new_key} has no word for {keys.format_short_value(setting.value)}"
        elif there is not MISSING and there != value:
            problem = f"{new_key} is set as well, to {keys.format_short_value(there)}"
        elif there is MISSING and _is_set_in((each.document.data for each in was.lineage), new_key):
            problem = f"{new_key} is set elsewhere as well"
        elif any(isinstance(each, (str, int, float)) for each in above):
            problem = f"{new_key} is in a value that is no table"
        elif upgrade.widen:
            problem = f"older releases read it, and {title} reads {new_key}"
        else:
            moves.changes.append(PathChange(setting.path, MISSING))
            moves.changes.append(PathChange(place, value, source=setting.path))
            for change in moves.changes[-2:]:
                change.make(moves.after)
    elif is_kept:
        return  # the check says that it is deprecated
    elif setting.value == get_default(setting.record, axis, since):
        moves.changes.append(PathChange(setting.path, MISSING))
    else:
        summary = catalog.find_record_texts(*keys.split_section_and_name(key)).get("summary", "")
        problem = f"its effect is lost: {summary}".removesuffix(".")
    if problem:
        what = f"{shown} = {keys.format_short_value(setting.value)} is not carried over: {problem}"
        hint = f"use {step.to}, or unset it for {title}" if step.to else f"unset it for {title}"
        report(what, why, hint)
    else:
        moves.made.append(MadeStep(step, setting.path, setting.value, value))


def _is_set_in(texts: Iterable[TomlTable], key: str) -> bool:
    """Return whether a block of some presets sets a key."""
    path = keys.find_key_path(key)
    blocks = (block for data in texts for block in list_blocks(data).values())
    return any(find_at_path(block, path) is not MISSING for block in blocks)


def _rename_entries(
    profile: Profile, config: Config, after: TomlTable, upgrade: Upgrade
) -> Iterator[PathChange]:
    """Yield the lists of keys in which some are renamed, as nothing sets them any more."""
    texts = [each.document.data for each in config.lineage if each.key != profile.key] + [after]
    for _, path, names in list_key_lists(profile.document.data):
        renamed = [_rename_entry(name, texts, upgrade) for name in names]
        if renamed != names:
            yield PathChange(path, list(dict.fromkeys(renamed)))


def _rename_entry(name: str, texts: list[TomlTable], upgrade: Upgrade) -> str:
    """Return an entry of a list of keys under its new name, unless a text sets the old one."""
    section, *path = keys.split_dotted_key(name) or [""]
    found = _find_record(section, tuple(path), upgrade)
    if found is None or found[2] != len(path):
        return name
    key, record, _ = found
    lifetime = build_lifetime(key, record)
    successor = find_successor(lifetime, upgrade.releases)
    is_kept = not is_outdated(lifetime, upgrade.releases[lifetime.axis]) or _is_set_in(texts, key)
    return name if is_kept or successor is None else ".".join(keys.find_key_path(successor[0]))


def _settle_defaults(
    config: Config, since: Mapping[str, str], upgrade: Upgrade, moves: Moves
) -> None:
    """Add the defaults that change and that a preset does not set; write them down if asked."""
    for change, finding in find_changed_defaults(config, since, upgrade.releases):
        if is_described(change.before):
            moves.findings.append(finding)
        elif upgrade.keep:
            moves.changes.append(PathChange(change.path, change.before))
        else:
            moves.findings.append(finding._replace(hint=f"{finding.hint}; --keep-defaults does so"))


def fit_range(
    profile: Profile, axis: str, upgrade: Upgrade, is_outdated: Callable[[str, Iterable[str]], bool]
) -> Iterator[PathChange]:
    """Yield the change of a range that lacks the release, or whose releases are outdated."""
    path = profile.locate_range(axis)
    spec = find_at_path(profile.document.data, path)
    within = releases.find_releases_in_range(spec, axis) if isinstance(spec, str) else None
    release = upgrade.releases[axis]
    if within is None or (release in within and not is_outdated(f"{axis} {release}", within)):
        return
    yield PathChange(path, _write_range(str(spec), within or (release,), axis, upgrade))


def _write_range(spec: str, within: Sequence[str], axis: str, upgrade: Upgrade) -> str:
    """Return a range with a release: from that on, or with widen from its first one on."""
    release = upgrade.releases[axis]
    clauses = [each.strip() for each in spec.split(",")]
    if upgrade.widen:
        return ",".join([f">={within[0]}", *(each for each in clauses if each[0] == "!")])
    # what allows the release was set on purpose
    find = releases.find_releases_in_range
    kept = [each for each in clauses if each[0] in "<!" and release in (find(each, axis) or ())]
    return ",".join([f">={release}", *kept])
