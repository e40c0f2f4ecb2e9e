"""Defaults of frameworks that differ in two releases, and what of them concerns a preset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog import build_finding, releases
from npuprof.document import keys
from npuprof.model import Finding, Record
from npuprof.resolve.config import Config


def list_framework_sections() -> list[str]:
    """Return the sections of frameworks, and that of variables: the others have steps."""
    return [each for each in catalog.load_sections() if each not in ("options", "estimator", "atc")]


def get_letter(letters: str, axis: str, release: str) -> str:
    """Return the letter of a release, ``Y`` without letters."""
    return dict(zip(releases.load_releases(axis), letters, strict=False)).get(release, "Y")


def get_default(record: catalog.Entry, axis: str, release: str) -> Any:
    """Return the default of a setting in a release, None if it has none or it is not known."""
    known = releases.load_releases(axis)
    default = getattr(record, "default", None)
    for first, value in getattr(record, "default_since", {}).items():
        if release and known.index(first) <= known.index(release):
            default = value
    return default


class ChangedDefault(Record):
    """A setting whose default differs in two releases, its old default, and what to say of it."""

    path: tuple[str, ...]
    key: str
    before: Any
    message: str
    hint: str

    def concerns(self, sections: Mapping[str, Any]) -> bool:
        """Return whether a configuration omits the setting, and has the group that it is in."""
        table, depth = sections.get(self.path[0]), 1
        while depth < len(self.path) and isinstance(table, Mapping) and self.path[depth] in table:
            table, depth = table[self.path[depth]], depth + 1
        return depth < len(self.path) and depth >= len(self.path) - 1


@cache
def list_changed_defaults(axis: str, since: str, release: str) -> tuple[ChangedDefault, ...]:
    """Return the settings of a framework whose default differs in two releases that read them."""
    return tuple(_iterate_changed_defaults(axis, since, release))


def _iterate_changed_defaults(axis: str, since: str, release: str) -> Iterator[ChangedDefault]:
    for section in list_framework_sections():
        for name in catalog.record_names(section):
            record = catalog.find_record(section, name)
            if record is None or len(getattr(record, "default_since", ())) < 2:
                continue
            if releases.find_axis(section, record) != axis:
                continue
            letters = {get_letter(record.states, axis, each) for each in (since, release)}
            old, new = (get_default(record, axis, each) for each in (since, release))
            if letters == {"Y"} and old != new:
                key = keys.format_full_key(section, name)
                path = keys.find_key_path(key)
                shown, before, now = ".".join(path), *map(keys.format_short_value, (old, new))
                what = f"{shown} is not set, and {axis} {release} changes its default"
                hint = f"set {shown} = {before} to keep it"
                yield ChangedDefault(path, key, old, f"{what}: {before}, then {now}", hint)


def find_changed_defaults(
    config: Config, since: Mapping[str, str], now: Mapping[str, str]
) -> Iterator[tuple[ChangedDefault, Finding]]:
    """Yield the defaults that differ in releases of two moments and that a preset does not set."""
    for axis, release in now.items():
        before = since.get(axis)
        if not before or not _is_used(axis, config):
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
                        "Omitting it now means something else.",
                        change.hint,
                        next(filter(None, origins), None) or config.profile.origin(),
                        change.key,
                        (config.name,),
                    ),
                )


def find_defaults_of_ranges(before: Config | None, after: Config | None) -> tuple[Finding, ...]:
    """Return the defaults that change as a preset is meant for other releases of frameworks."""
    if before is None or after is None or before.versions == after.versions:
        return ()
    since, now = (
        releases.list_selected(
            {
                axis: names[0]
                for axis, spec in config.versions.items()
                if (names := releases.find_releases_in_range(spec, axis))
            }
        )
        for config in (before, after)
    )
    return tuple(finding for _, finding in find_changed_defaults(after, since, now))


def _is_used(axis: str, config: Config) -> bool:
    """Return whether a preset is for a framework: it names releases of it, or sets something."""
    named = [name for name, table in config.sections().items() if table]
    used = {*config.versions, *(catalog.load_sections()[name].axis for name in named)}
    return axis in used or any(
        axis in bases for each in used for bases in releases.load_axis(each).runs_on.values()
    )
