"""The state of a preset at a commit (resolved, unresolvable, missing), and differences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import chain
from operator import attrgetter

from npuprof.catalog import values
from npuprof.compare.changes import (
    Change,
    build_one_sided_changes,
    build_setting_change,
    compare_configs,
    compare_setting,
)
from npuprof.model import NpuprofError, Path, Record, is_same_typed_value
from npuprof.resolve.config import Config
from npuprof.resolve.lineages import has_overrides
from npuprof.store import is_source_reference, read_revision
from npuprof.store.gitstore.repository import TreeFile

_get_extends, _get_changed_lists = attrgetter("extends"), attrgetter("changed_lists")
#: Types of values that have no parts.
_PLAIN = (bool, int, float, str)


class SettingPath(Record):
    """The subject of a history: a setting, or a path below it; everything if the key is empty.

    ``everywhere`` includes values that only an override sets, each for the products, releases or
    targets it matches.
    """

    key: str = ""
    tail: Path = ()
    everywhere: bool = True


PresetState = Config | NpuprofError | None


def is_unknown_state(state: PresetState) -> bool:
    """Return whether the state of a preset is unknown as a source is missing here."""
    if not isinstance(state, NpuprofError):
        return False
    from npuprof.store import problems

    return problems.lacks_source(state.findings)


class Dependencies(Record):
    """What the history of a resolved preset depends on; edits of plain values do not change it.

    ``members`` are the names of its profiles that a commit can change: all except pinned ones.
    ``is_moving``: any commit may change a parent of these. ``is_linked``: one of them is a link.
    ``changed_lists`` are the settings whose elements its profiles remove or append.
    """

    members: frozenset[str]
    is_moving: bool
    is_linked: bool
    changed_lists: frozenset[str]


def find_dependencies(config: Config, files: Mapping[str, TreeFile]) -> Dependencies:
    """Return the dependencies of a config in a store with these files."""
    unpinned = [profile for profile in config.lineage if profile.document.revision is None]
    members = frozenset([profile.name for profile in unpinned])
    return Dependencies(
        members,
        any(map(is_moving_reference, chain.from_iterable(map(_get_extends, unpinned)))),
        any(files[member].is_link for member in members if member in files),
        frozenset(chain.from_iterable(map(_get_changed_lists, config.lineage))),
    )


@lru_cache(1024)  # called with the same references at each commit
def is_moving_reference(reference: str) -> bool:
    """Return whether a parent may change between commits.

    It does for the newest version in a range, and for a source's preset.
    """
    if is_source_reference(reference):
        return True
    version = read_revision(reference)
    if not version:
        return False
    from npuprof.store.versions import parse_version_request

    request = parse_version_request(version)
    return request is not None and request.is_range


def compare_states(
    then: Config, now: Config, path: SettingPath, trace: bool = True
) -> list[Change]:
    """Return the changes between two states: all, or those at or around a path."""
    if not path.everywhere or not has_overrides((*then.lineage, *now.lineage)):
        return _compare_requested_settings(then, now, path, trace)
    from npuprof.compare.override_scopes import compare_with_scopes

    compare = partial(_compare_requested_settings, path=path, trace=trace)
    return compare_with_scopes(then, now, path.key, compare)


def _compare_requested_settings(
    then: Config, now: Config, path: SettingPath, trace: bool
) -> list[Change]:
    """Return the changes between two states at or around a path, or all without a path."""
    if not path.key:
        return compare_configs(then, now, trace)
    # without a tail, the comparison below finds it
    if path.tail and _is_same_setting(then, now, path):
        return []
    old = then.settings.get(path.key)
    new = now.settings.get(path.key)
    if old is new:
        return []
    is_table = isinstance(old, dict) and isinstance(new, dict) and values.is_unordered(path.key)
    # the comparison of two such tables below finds no difference if they are equivalent
    if not is_table and None not in (old, new) and values.is_equivalent_setting(path.key, old, new):
        return []
    # the common case of a long history: no table or list to compare
    if type(old) in _PLAIN and type(new) in _PLAIN and values.find_structure(path.key) is None:
        return [
            build_setting_change(path.key, old, new, then.origin(path.key), now.origin(path.key))
        ]
    # below the path, or a table around it
    return [
        change
        for change in compare_setting(path.key, then, now, trace)
        if change.tail[: len(path.tail)] == path.tail[: len(change.tail)]
    ]


def build_added_changes(config: Config, path: SettingPath) -> list[Change]:
    """Return the settings of a config as added, with those that only an override sets."""
    changes = _build_requested_changes(config, path)
    if not path.everywhere:
        return changes
    from npuprof.compare.override_scopes import add_scoped_changes, resolve_scopes

    scoped = (
        (scope, _build_requested_changes(scoped_config, path))
        for scoped_config, scope in resolve_scopes(config, path.key)
    )
    return add_scoped_changes(changes, scoped)


def _build_requested_changes(config: Config, path: SettingPath) -> list[Change]:
    """Return the setting of a path as added, or all settings if the path is empty."""
    selected = {
        key: value for key, value in config.ordered_settings().items() if path.key in ("", key)
    }
    return build_one_sided_changes(selected, "added", config.origin)


def has_setting(state: PresetState, path: SettingPath) -> bool:
    """Return whether a preset has a value at a path in some context."""
    if not isinstance(state, Config):
        return False
    if _has_value(state, path):
        return True
    if not path.everywhere:
        return False
    from npuprof.compare.override_scopes import resolve_scopes

    return any(_has_value(config, path) for config, _ in resolve_scopes(state, path.key))


def _has_value(config: Config, path: SettingPath) -> bool:
    """Return whether a config has a value at a path."""
    return values.find_setting_value(config.settings, path.key, path.tail)[0]


def _is_same_setting(then: Config, now: Config, path: SettingPath) -> bool:
    """Return whether the values at a path are equivalent in two states."""
    key = path.key
    if key not in then.settings or key not in now.settings:
        return key not in then.settings and key not in now.settings
    was, value = (
        values.find_value(key, config.settings[key], path.tail)[1] for config in (then, now)
    )
    return is_same_typed_value(was, value)
