"""Values that an edit sets and that a preset's own overrides take back: where they count, and where they do not."""

from __future__ import annotations

from typing import Any

from npuprof.catalog import values
from npuprof.document.keys import format_full_key, format_short_value
from npuprof.document.profile import Override, Profile
from npuprof.edit.changed import resolve_apart
from npuprof.model import SECTIONS, NpuprofError
from npuprof.resolve.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.points import Region


def describe_overruled_values(before: Profile, after: Profile) -> list[str]:
    """Return in words which values that are new in a preset have no effect, everywhere or somewhere, by its own overrides."""
    changed = [one for one in _list_changed(before.document.data, after.document.data) if _list_overrides(after, one[0])]
    if not changed:
        return []
    try:
        config = resolve_apart(after)
        return [told for key, value in changed if (told := _describe(config, after, key, value))]
    except NpuprofError:
        return []  # told where it is judged


def _list_changed(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the keys that have another value than before in the preset itself, overrides aside."""
    found = []
    for section in SECTIONS:
        old, new = before.get(section), after.get(section)
        for name, value in new.items() if isinstance(new, dict) else ():
            if not (isinstance(old, dict) and name in old and values.is_same_typed_value(old[name], value)):
                found.append((format_full_key(section, name), value))
    return found


def _list_overrides(profile: Profile, key: str) -> list[tuple[int, Override]]:
    return [(place, override) for place, override in enumerate(profile.overrides) if any(step.key == key for step in override.steps)]


def _describe(config: Config, profile: Profile, key: str, value: Any) -> str:
    from npuprof.resolve.points import ContextMap

    regions = [region for region in ContextMap(config).find_regions([key]) if _is_meant(region, config)]
    overruled = [region for region in regions if not _counts(region.config, profile, key, value)]
    if not overruled:
        return ""
    found = _list_overrides(profile, key)
    who = ", ".join(f"{profile.origin('override', place)}{_describe_match(override)}" for place, override in found)
    by = f"{'an override decides' if len(found) == 1 else 'overrides decide'}"
    where = f"where {by}" if len(overruled) < len(regions) else f"anywhere {profile.name} is meant for, since {by}"
    return f"{key} = {format_short_value(value)} has no effect {where}: {who}"


def _is_meant(region: Region, config: Config) -> bool:
    """Return whether a preset is meant for a region: not for an unknown product, or release, where it names some."""
    return bool(region.products or not config.products) and bool(region.releases or not config.cann)


def _counts(config: Config, profile: Profile, key: str, value: Any) -> bool:
    """Return whether a value of the preset itself is, at least in part, what a context has, or the same is there anyway."""
    from npuprof.resolve import origins

    if key not in config.settings:
        return False
    if values.is_equivalent_setting(key, config.settings[key], value):
        return True
    authors = origins.collect_authors(config.traced_value(key))
    return not authors or any(one.document is profile.document and one.path[:1] != ("override",) for one in authors)


def _describe_match(override: Override) -> str:
    said = ", ".join(f"{name} {' or '.join(texts)}" for name, texts in override.match.items())
    return f" ({said})" if said else ""
