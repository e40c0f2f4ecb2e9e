"""What a preset was at a commit: resolved, known in one setting, unresolvable, or not there; and what lies between two of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npuprof.catalog import values
from npuprof.compare.changes import Change, build_one_sided_changes, build_setting_change, compare_configs
from npuprof.compare.scopes import add_scoped_changes, compare_with_scopes, list_override_scopes
from npuprof.document import keys
from npuprof.model import Context, Event, NpuprofError, Origin, Path, Record, TomlTable, TomlValue
from npuprof.resolve.config import Config
from npuprof.resolve.contexts import resolve_elsewhere
from npuprof.store.parents import is_source_reference
from npuprof.store.sources.mirror import is_untold
from npuprof.store.versions import parse_version_request


class SettingPath(NamedTuple):
    """What a history is asked for: a setting, or what lies below it; everything where the key is empty.

    ``everywhere`` includes what only an override sets, each for the products, releases or targets it names.
    """

    key: str = ""
    tail: Path = ()
    everywhere: bool = True


class SettingPlace(NamedTuple):
    """Where a value is written: a profile of the store, and a line of it."""

    profile: str
    line: int


class KnownSetting(Record):
    """One setting of a preset, known without resolving it: as in ``config``, a later state of it, or with another value at its place.

    ``winner`` is who set it; ``place`` is None where no profile of the store did. ``reworked`` names the settings
    that some step adds to or takes from.
    """

    config: Config
    settings: TomlTable
    winner: Origin | None
    place: SettingPlace | None
    reworked: frozenset[bytes]

    def origin(self, key: str) -> Origin | None:
        """Return who set the setting."""
        return self.winner

    def trace_setting(self, key: str) -> tuple[TomlValue, list[Event]]:
        """Return the value of the setting with its origins, and every step that touched it."""
        then, now = self.config.settings.get(key), self.settings.get(key)
        value = self.config.traced_value(key) if then is now or self.winner is None else values.Leaf(now, self.winner)
        return value, self.config.history(key)


ResolvedState = Config | KnownSetting
PresetState = ResolvedState | NpuprofError | None


def build_known_setting(config: Config, key: str) -> KnownSetting:
    """Return what is needed to follow one setting of a preset to earlier commits."""
    reworked = {
        keys.split_section_and_name(step.key)[1].encode()
        for profile in config.lineage
        for steps in (profile.steps, *(override.steps for override in profile.overrides))
        for step in steps
        if step.op == "append" or step.tail
    }
    settings = {key: config.settings[key]} if key in config.settings else {}
    origin = config.origin(key) if settings else None
    place = SettingPlace(origin.profile, origin.line) if origin is not None and origin.revision is None else None
    return KnownSetting(config, settings, origin, place, frozenset(reworked))


def is_untold_state(state: PresetState) -> bool:
    """Return whether the state of a preset is unknown, as one of its sources is not on this machine."""
    return isinstance(state, NpuprofError) and is_untold(state.findings)


def find_member_names(state: ResolvedState) -> frozenset[str]:
    """Return the names of the profiles that take part and that a commit can change: not those that are pinned to a revision."""
    config = state if isinstance(state, Config) else state.config
    if "members" not in config.memo:
        config.memo["members"] = frozenset(profile.name for profile in config.lineage if profile.document.revision is None)
    members: frozenset[str] = config.memo["members"]
    return members


def is_moving_reference(reference: str) -> bool:
    """Return whether a parent may be another one from commit to commit: the newest version in some range, or a source's preset."""
    if is_source_reference(reference):
        return True
    request = parse_version_request(reference.partition("@")[2].strip("\"'"))
    return request is not None and request.is_range


def find_moving_references(state: ResolvedState) -> frozenset[str]:
    """Return what the profiles of a state refer to that any commit may move; those that are pinned to a revision do not count."""
    config = state if isinstance(state, Config) else state.config
    if "ranges" not in config.memo:
        own = [profile for profile in config.lineage if profile.document.revision is None]
        config.memo["ranges"] = frozenset(reference for profile in own for reference in profile.extends if is_moving_reference(reference))
    references: frozenset[str] = config.memo["ranges"]
    return references


def compare_states(then: ResolvedState, now: ResolvedState, path: SettingPath, trace: bool = True) -> list[Change]:
    """Return the changes between two states: all of them, or those at a place, inside it, or of what contains it."""
    if not path.everywhere:
        return _compare_asked_states(then, now, path, trace)
    if not path.key:
        return compare_with_scopes(_require_config(then), _require_config(now), trace)
    return add_scoped_changes(_compare_asked_states(then, now, path, trace), _compare_scopes(then, now, path, trace))


def _compare_scopes(then: ResolvedState, now: ResolvedState, path: SettingPath, trace: bool) -> Iterator[tuple[str, list[Change]]]:
    for context, scope in _list_state_scopes((now, then), path).items():
        old, new = (_resolve_state_elsewhere(state, context, path) for state in (then, now))
        if old is not None and new is not None:
            yield scope, _compare_asked_states(old, new, path, trace)


def _require_config(state: ResolvedState) -> Config:
    assert isinstance(state, Config), "single settings are known only where one is asked for"
    return state


def has_override_of(config: Config, path: SettingPath) -> bool:
    """Return whether what is asked for may be another for some product, release or target."""
    mark = f"override of {path.key}"
    if mark not in config.memo:
        config.memo[mark] = path.everywhere and bool(list_override_scopes((config,), path.key))
    return bool(config.memo[mark])


def _list_state_scopes(states: Sequence[ResolvedState], path: SettingPath) -> dict[Context, str]:
    configs = [state if isinstance(state, Config) else state.config for state in states]
    return list_override_scopes(configs, path.key) if any(has_override_of(config, path) for config in configs) else {}


def _resolve_state_elsewhere(state: ResolvedState, context: Context, path: SettingPath) -> ResolvedState | None:
    """Return a state in another context; what is known of one setting alone is so in every context."""
    if isinstance(state, KnownSetting) or not has_override_of(state, path):
        return state
    return resolve_elsewhere(state, context)


def _compare_asked_states(then: ResolvedState, now: ResolvedState, path: SettingPath, trace: bool) -> list[Change]:
    if not path.key:
        return compare_configs(_require_config(then), _require_config(now), trace)
    if _is_same_setting(then, now, path):
        return []
    if _is_plain_value(then, path.key) and _is_plain_value(now, path.key) and values.find_structure(path.key) is None:
        return [_build_change(then, now, path.key)]
    changes = compare_configs(_restrict_state(then, path.key), _restrict_state(now, path.key), trace)
    return [change for change in changes if change.tail[: len(path.tail)] == path.tail[: len(change.tail)]]


def build_added_changes(state: ResolvedState, path: SettingPath) -> list[Change]:
    """Return the settings of a state as what came with it, and those that only an override sets, with their scope."""
    scopes = ((scope, _build_asked_changes(there, path)) for there, scope in _resolve_scopes(state, path))
    return add_scoped_changes(_build_asked_changes(state, path), scopes)


def _build_asked_changes(state: ResolvedState, path: SettingPath) -> list[Change]:
    settings = state.ordered_settings() if isinstance(state, Config) else state.settings
    selected = {key: value for key, value in settings.items() if path.key in ("", key)}
    return build_one_sided_changes(selected, "added", state.origin)


def _resolve_scopes(state: ResolvedState, path: SettingPath) -> Iterator[tuple[ResolvedState, str]]:
    """Yield a state as it is in each context that its overrides name, with the words for that."""
    for context, scope in _list_state_scopes((state,), path).items():
        there = _resolve_state_elsewhere(state, context, path)
        if there is not None:
            yield there, scope


def has_setting(state: PresetState, path: SettingPath) -> bool:
    """Return whether a preset has a value at a place, in some context."""
    if state is None or isinstance(state, NpuprofError):
        return False
    return _has_value(state, path) or any(_has_value(there, path) for there, _ in _resolve_scopes(state, path))


def _has_value(state: ResolvedState, path: SettingPath) -> bool:
    return path.key in state.settings and values.find_value(path.key, state.settings[path.key], path.tail)[0]


def _is_same_setting(then: ResolvedState, now: ResolvedState, path: SettingPath) -> bool:
    key, tail, _ = path
    if key not in then.settings or key not in now.settings:
        return key not in then.settings and key not in now.settings
    if not tail:
        return values.is_equivalent_setting(key, then.settings[key], now.settings[key])
    was, value = (values.find_value(key, state.settings[key], tail)[1] for state in (then, now))
    return values.is_same_typed_value(was, value)


def _is_plain_value(state: ResolvedState, key: str) -> bool:
    return isinstance(state.settings.get(key), (str, int))


def _build_change(then: ResolvedState, now: ResolvedState, key: str) -> Change:
    """Return the change of a value without parts; what comparing configs would say, at a fraction of the time."""
    return build_setting_change(key, then.settings[key], now.settings[key], then.origin(key), now.origin(key))


def _restrict_state(state: ResolvedState, key: str) -> Config:
    """Return a config that has one setting only."""
    settings = {key: state.settings[key]} if key in state.settings else {}
    if isinstance(state, KnownSetting):
        return Config(state.config.name, state.config.context, (), settings, state.trace_setting, state.config.resolver)
    return Config(state.name, state.context, (), settings, lambda key: (state.traced_value(key), state.history(key)), state.resolver)
