"""The settings of a preset for pages and comparisons: a row per path of a table.

Rows have origins and overridden values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

from npuprof import catalog
from npuprof.catalog import risks, values
from npuprof.compare.changes import Change, compare_configs, find_meta_value
from npuprof.compare.override_scopes import resolve_scopes
from npuprof.compare.spans import shorten_text
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

    Inherited ones are shared in ``inherited``. They are listed by ancestors and key, since presets
    with the same ancestors inherit the same, and by id of their history.
    """
    *ancestors, own = config.lineage
    above = (config.scenario, *[profile.key for profile in ancestors])
    settings = []
    for key in config.ordered_settings():
        setting = inherited.get((above, key)) if not own.touches(key) else None
        if setting is None:
            history = config.history(key)
            setting = inherited.get(id(history)) or Setting(config, key)
            if history and history[-1].origin.document is not own.document:
                # The setting keeps the history, so that its id stays unique.
                inherited[id(history)] = inherited[above, key] = setting
        settings.append(setting)
    return tuple(settings)


def build_rows_of_key(config: Config, key: str, all_traced: Any) -> Iterator[SettingRow]:
    """Yield the paths of one setting with origins, leaf by leaf, from its traced value."""
    for index, (tail, traced) in enumerate(_list_paths(all_traced, ())):
        section, name = catalog.find_record_place(key, tail)
        unit, risk, meaning = _describe_setting(key, name)
        if section == "env" and name in config.declared:
            meaning = config.declared[name].texts["summary"]
        losers = tuple(
            (format_value(value), by) for value, by in origins.find_overridden(config, key, tail)
        )
        authors = tuple(_list_authors(traced))
        # an empty table or list has no element with an origin
        if not authors and (origin := config.origin(key, tail)):
            authors = ((origin, ""),)
        # A table's meaning is written once, unless each of its keys has its own record.
        is_first = index == 0 or catalog.load_sections()[section].dotted
        yield SettingRow(
            keys.format_key_path(key, tail),
            format_value(origins.strip_origins(traced)),
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
    unit, risk = risks.find_unit_and_risk(key, tuple(name.split(".")[1:]))
    return unit, risk, str(catalog.find_record_texts(section, name or plain).get("summary", ""))


def _list_paths(traced: Any, tail: Path) -> list[tuple[Path, Any]]:
    """Return the paths of a value's leaves, lists and empty tables, with their values."""
    if not (isinstance(traced, dict) and traced):
        return [(tail, traced)]
    return [place for name, item in traced.items() for place in _list_paths(item, (*tail, name))]


def _list_authors(traced: Any) -> Iterator[tuple[Origin, str]]:
    """Yield the origins of a value; for a list, each preset with its elements."""
    if isinstance(traced, values.Leaf):
        yield traced.origin, ""
        return
    runs: list[_Run] = []
    for index, item in enumerate(traced):
        # an element that is a table may have several: the first one is cited
        for origin in origins.collect_authors(item)[:1]:
            if runs and _find_author(runs[-1].origin) == _find_author(origin):
                runs[-1] = runs[-1]._replace(last=index)
            else:
                runs.append(_Run(origin, index, index))
    for run in runs:
        if len(runs) == 1:
            yield run.origin, ""
        elif run.first == run.last:
            yield run.origin, f"[{run.first}]"
        else:
            yield run.origin, f"[{run.first}] to [{run.last}]"


class _Run(Record):
    """Successive elements of a list from one author; ``origin`` is that of the first."""

    origin: Origin
    first: int
    last: int


#: What is equal for origins in the same preset, in any lines.
_find_author = attrgetter("file", "revision", "layer")


def format_value(value: object) -> str:
    """Return a value for a page."""
    return shorten_text(keys.format_toml_value(value), limit=_LONGEST_VALUE)


def list_scopes(config: Config) -> Iterator[tuple[str, list[Change]]]:
    """Yield the changes by overrides of a preset and its ancestors, with their context.

    That is a product, a release or a target.
    """
    for scoped_config, scope in resolve_scopes(config, ""):
        if changes := compare_configs(config, scoped_config):
            yield scope, changes


# -- one side of a comparison: equivalent values have equal texts ---------------------------------


def build_compared_fields(config: Config, settings: Iterable[Setting]) -> list[list[Any]]:
    """Return the claims and settings of a preset, and what overrides change, with scopes.

    A row of an override with an empty value means unset.
    """
    head = [*_build_header_rows(config)]
    fields = [build_fields(row) for row in head]
    rows = {row.key: row for row in head}
    for setting in settings:
        fields += setting.fields
        rows |= {row.key: row for row in setting.compared}
    return [*fields, *map(build_fields, _build_override_rows(config, rows))]


def build_fields(row: SettingRow) -> list[Any]:
    """Return a row for a script, without empty fields at the end.

    Fields are key, value, origins, risks, description, unit and scope.
    """
    authors = ", ".join(f"{part} {origin}".lstrip() for origin, part in row.authors)
    fields = [
        row.key,
        escape_controls(row.value),
        escape_controls(authors),
        list(row.risk),
        row.meaning,
        row.unit,
        row.scope,
    ]
    # most rows end with empty fields, in thousands of files
    while not fields[-1]:
        fields.pop()
    return fields


def _build_header_rows(config: Config) -> Iterator[SettingRow]:
    """Yield a row for each claim of a preset: scenario, releases, products."""
    for name in order_claims(config.claims):
        value = find_meta_value(config, name)
        if value is not None and value != []:
            origin = config.find_profile_origin(name)
            key = f"profile.{name}"
            yield SettingRow(
                key,
                format_value(value),
                risk=("compatibility",),
                authors=((origin, ""),) if origin else (),
            )


def _build_compared_setting(
    config: Config, key: str, shown: Iterable[SettingRow]
) -> Iterator[SettingRow]:
    """Yield the rows of a setting in a form that is equal for equivalent values.

    ``shown`` are its rows as written.
    """
    _, risk, _ = _describe_setting(key)
    written = config.traced_value(key)
    traced = values.parse_structured_value(key, written)
    if values.is_unordered(key):
        traced = _sort_leaves(traced)
    rows = shown if traced is written else build_rows_of_key(config, key, traced)
    for row in rows:  # each row of a table has the risk, as rows are compared alone
        yield row if row.risk == risk else row._replace(risk=risk)


def _sort_leaves(traced: Any) -> Any:
    """Return a traced value with its lists of plain values sorted, without equal elements."""
    if isinstance(traced, dict):
        return {name: _sort_leaves(item) for name, item in traced.items()}
    if isinstance(traced, list) and all(
        isinstance(item, values.Leaf) and isinstance(item.value, (str, int)) for item in traced
    ):
        # Of equal elements, the last one stays.
        leaves = {(type(leaf.value).__name__, leaf.value): leaf for leaf in traced}
        return [leaves[rank] for rank in sorted(leaves)]
    return traced


def _build_override_rows(config: Config, plain: dict[str, SettingRow]) -> Iterator[SettingRow]:
    """Yield the rows of each context that overrides match and that differ from the plain ones."""
    for scoped_config, scope in resolve_scopes(config, ""):
        rows = {row.key: row for row in _build_header_rows(scoped_config)}
        for setting in build_settings(scoped_config, {}):
            rows |= {row.key: row for row in setting.compared}
        for row in rows.values():
            if row.key not in plain or row.value != plain[row.key].value:
                yield row._replace(scope=scope)
        for row in plain.values():
            if row.key not in rows:
                yield row._replace(scope=scope, value="", authors=(), losers=())
