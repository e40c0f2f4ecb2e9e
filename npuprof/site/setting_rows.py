"""The settings of a preset for pages and comparisons: a row per path of a table.

Rows have origins and overridden values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from npuprof import catalog
from npuprof.catalog import risks, values
from npuprof.compare.changes import Change, compare_configs, find_meta_value
from npuprof.compare.override_scopes import resolve_scopes
from npuprof.document import keys
from npuprof.model import Origin, Path, Record
from npuprof.report.text import escape_controls
from npuprof.resolve import origins
from npuprof.resolve.claims import order_claims
from npuprof.resolve.config import Config

#: The maximum length of a value on a page; the file has the whole value.
_LONGEST_VALUE = 2000


class SettingRow(Record):
    """One effective setting by path; lists are not split.

    ``authors`` are the origins of its value, each with its elements if several wrote one list.
    ``losers`` are the overridden values with their origins. ``scope`` is the context to which the
    row is limited, as ``product atlas-a3``.
    """

    key: str
    setting: str
    value: str
    unit: str = ""
    meaning: str = ""
    risk: tuple[str, ...] = ()
    authors: tuple[tuple[Origin, str], ...] = ()
    losers: tuple[tuple[str, Origin], ...] = ()
    scope: str = ""


class Setting:
    """An effective setting: its ``rows`` by path, and the rows of a comparison (``compared``).

    ``html`` contains the table rows of a preset page, once formatted.
    """

    html = ""

    def __init__(self, config: Config, key: str) -> None:
        self.history = config.history(key)
        self.rows = tuple(build_rows_of_key(config, key, config.traced_value(key)))
        self.compared = tuple(_build_compared_setting(config, key, self.rows))

    @cached_property
    def fields(self) -> list[list[Any]]:
        """The rows of a comparison in the form of ``build_fields``."""
        return [*map(build_fields, self.compared)]


def build_settings(config: Config, inherited: dict[Any, Setting]) -> tuple[Setting, ...]:
    """Return all settings of a preset in catalogue order.

    Inherited ones are shared in ``inherited``.

    They are listed by ancestors and key, since presets with the same ancestors inherit the same,
    and by id of their history.
    """
    own, above, settings = (
        config.lineage[-1],
        (config.scenario, *[profile.key for profile in config.lineage[:-1]]),
        [],
    )
    for key in config.ordered_settings():
        setting = inherited.get((above, key)) if not own.touches(key) else None
        if setting is None:
            history = config.history(key)
            setting = inherited.get(id(history)) or Setting(config, key)
            if history and history[-1].origin.document is not own.document:
                inherited[id(history)] = inherited[above, key] = (
                    setting  # keeping the history keeps its id unique
                )
        settings.append(setting)
    return tuple(settings)


def build_rows_of_key(config: Config, key: str, all_traced: Any) -> Iterator[SettingRow]:
    """Yield the paths of one setting with origins, leaf by leaf, from its traced value."""
    for place, (tail, traced) in enumerate(_list_places(all_traced, ())):
        section, name = catalog.find_record_place(key, tail)
        unit, risk, meaning = _describe_setting(key, name)
        losers = tuple(
            (format_value(value), by) for value, by in origins.find_overruled(config, key, tail)
        )
        authors = tuple(_list_authors(traced))
        if not authors and (origin := config.origin(key, tail)):
            authors = ((origin, ""),)
        shown = format_value(origins.strip_origins(traced))
        name_of_place, is_first = (
            keys.format_key_path(key, tail),
            not place or catalog.load_sections()[section].dotted,
        )
        yield SettingRow(
            name_of_place,
            key,
            shown,
            unit,
            meaning if is_first else "",
            risk if is_first else (),
            authors,
            losers,
        )


@lru_cache(1024)
def _describe_setting(key: str, name: str = "") -> tuple[str, tuple[str, ...], str]:
    """Return unit, risks and description of a setting; ``name`` is its record's name."""
    section, plain = keys.split_section_and_name(key)
    return *risks.find_unit_and_risk(key, tuple(name.split(".")[1:])), str(
        catalog.find_record_texts(section, name or plain).get("summary", "")
    )


def _list_places(traced: Any, tail: Path) -> list[tuple[Path, Any]]:
    """Return the paths of a value's leaves, lists and empty tables, with their values."""
    if isinstance(traced, dict) and traced:
        return [pair for name, item in traced.items() for pair in _list_places(item, (*tail, name))]
    return [(tail, traced)]


def _list_authors(traced: Any) -> Iterator[tuple[Origin, str]]:
    """Yield the origins of a value; for a list, each preset with its elements."""
    if isinstance(traced, values.Leaf):
        yield traced.origin, ""
        return
    origins_by_place = [
        (place, origin)
        for place, item in enumerate(traced)
        for origin in origins.collect_authors(item)[:1]
    ]
    runs = [
        list(run)
        for _, run in groupby(
            origins_by_place, lambda pair: (pair[1].file, pair[1].revision, pair[1].layer)
        )
    ]
    for run in runs:
        first, last = run[0][0], run[-1][0]
        part = "" if len(runs) == 1 else f"[{first}]" if first == last else f"[{first}] to [{last}]"
        yield run[0][1], part


def format_value(value: object) -> str:
    """Return a value for a page."""
    text = keys.format_toml_value(value)
    return (
        text
        if len(text) <= _LONGEST_VALUE
        else f"{text[:_LONGEST_VALUE]}… ({len(text):,} characters)"
    )


def list_scopes(config: Config) -> Iterator[tuple[str, list[Change]]]:
    """Yield the changes by overrides of a preset and its ancestors, with their context.

    That is a product, a release or a target.
    """
    for there, words in resolve_scopes(config, ""):
        if changes := compare_configs(config, there):
            yield words, changes


# -- one side of a comparison: equivalent values have equal texts ---------------------------------


def build_compared_fields(config: Config, settings: Iterable[Setting]) -> list[list[Any]]:
    """Return the claims and settings of a preset, and what overrides change, with scopes.

    A row of an override with an empty value means unset.
    """
    head = [*_build_header_rows(config)]
    overrides = _build_override_rows(
        config,
        {row.key: row for row in (*head, *(row for one in settings for row in one.compared))},
    )
    return [
        *map(build_fields, head),
        *(fields for one in settings for fields in one.fields),
        *map(build_fields, overrides),
    ]


def build_fields(row: SettingRow) -> list[Any]:
    """Return a row for a script, without empty fields at the end.

    Fields are key, value, origins, risks, description, unit and scope.
    """
    authors = ", ".join(f"{part} {origin}".lstrip() for origin, part in row.authors)
    fields: list[Any] = [
        row.key,
        escape_controls(row.value),
        escape_controls(authors),
        list(row.risk),
        row.meaning,
        row.unit,
        row.scope,
    ]
    while not fields[-1]:
        fields.pop()
    return fields


def _build_header_rows(config: Config) -> Iterator[SettingRow]:
    for name in order_claims(config.claims):
        value = find_meta_value(config, name)
        if value is not None and value != []:
            origin = config.find_profile_origin(name)
            key = f"profile.{name}"
            yield SettingRow(
                key,
                key,
                format_value(value),
                risk=("compatibility",),
                authors=((origin, ""),) if origin else (),
            )


def _build_compared_setting(
    config: Config, key: str, shown: Iterable[SettingRow]
) -> Iterator[SettingRow]:
    risk = _describe_setting(key)[1]
    structure = values.find_structure(key)
    written = config.traced_value(key)
    traced = values.parse_structured_value(key, written)
    arranged = _sort_leaves(traced) if structure is not None and structure.unordered else traced
    rows = shown if arranged is written else build_rows_of_key(config, key, arranged)
    yield from (row if row.risk == risk else row._replace(risk=risk) for row in rows)


def _sort_leaves(traced: Any) -> Any:
    if isinstance(traced, dict):
        return {name: _sort_leaves(item) for name, item in traced.items()}
    if isinstance(traced, list) and all(
        isinstance(item, values.Leaf) and isinstance(item.value, (str, int)) for item in traced
    ):
        return list(
            {
                (type(item.value).__name__, item.value): item
                for item in sorted(traced, key=lambda leaf: (type(leaf.value).__name__, leaf.value))
            }.values()
        )
    return traced


def _build_override_rows(config: Config, plain: dict[str, SettingRow]) -> Iterator[SettingRow]:
    for there, scope in resolve_scopes(config, ""):
        compared = (row for one in build_settings(there, {}) for row in one.compared)
        there_by_key = {row.key: row for row in (*_build_header_rows(there), *compared)}
        for row in there_by_key.values():
            if row.key not in plain or row.value != plain[row.key].value:
                yield row._replace(scope=scope)
        for row in plain.values():
            if row.key not in there_by_key:
                yield row._replace(scope=scope, value="", authors=(), losers=())
