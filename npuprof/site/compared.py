"""One side of a comparison: all in which presets, revisions and runs can differ, told such that what means the same is the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from npuprof.catalog import values
from npuprof.compare.changes import find_meta_value, find_unit_and_risk
from npuprof.compare.scopes import list_override_scopes
from npuprof.document.profile import INHERITED_KEYS
from npuprof.resolve import contexts
from npuprof.resolve.config import Config
from npuprof.site.settings import SettingRow, build_author, build_rows_of_key, format_value


def build_compared_rows(config: Config, known_rows: Iterable[SettingRow] = ()) -> tuple[SettingRow, ...]:
    """Return what a preset is for, its settings, and what these are where an override holds, which the row names (``scope``).

    A row of an override with an empty value says that the setting is not set there. ``known_rows`` are the settings as
    ``build_setting_rows`` told them, where it did.
    """
    plain = [*_build_header_rows(config), *_build_settings(config, known_rows)]
    return (*plain, *_build_override_rows(config, {row.key: row for row in plain}))


def _build_header_rows(config: Config) -> Iterator[SettingRow]:
    for name in INHERITED_KEYS:
        value = find_meta_value(config, name)
        if value is not None and value != []:
            origin = config.find_profile_origin(name)
            key = f"profile.{name}"
            yield SettingRow(key, key, format_value(value), risk=("compatibility",), authors=(build_author(origin),) if origin else ())


def _build_settings(config: Config, known_rows: Iterable[SettingRow] = ()) -> Iterator[SettingRow]:
    known: dict[str, list[SettingRow]] = {}
    for row in known_rows:
        known.setdefault(row.setting, []).append(row)
    for key in config.ordered_settings():
        risk = find_unit_and_risk(key)[1]
        structure = values.find_structure(key)
        if structure is None and key in known:
            yield from (row if row.risk == risk else row._replace(risk=risk) for row in known[key])
            continue
        traced = values.parse_structured_value(key, config.traced_value(key))
        arranged = _sort_leaves(traced) if structure is not None and structure.unordered else traced
        yield from (row._replace(risk=risk) for row in build_rows_of_key(config, key, arranged))


def _sort_leaves(traced: Any) -> Any:
    if isinstance(traced, dict):
        return {name: _sort_leaves(item) for name, item in traced.items()}
    if isinstance(traced, list) and all(isinstance(item, values.Leaf) and isinstance(item.value, (str, int)) for item in traced):
        return list({(type(item.value).__name__, item.value): item for item in sorted(traced, key=_rank_leaf)}.values())
    return traced


def _rank_leaf(leaf: values.Leaf) -> tuple[str, Any]:
    return type(leaf.value).__name__, leaf.value


def _build_override_rows(config: Config, plain: dict[str, SettingRow]) -> Iterator[SettingRow]:
    for context, scope in list_override_scopes((config,)).items():
        there = contexts.resolve_elsewhere(config, context)
        if there is None:
            continue
        there_by_key = {row.key: row for row in (*_build_header_rows(there), *_build_settings(there))}
        for row in there_by_key.values():
            if row.key not in plain or row.value != plain[row.key].value:
                yield row._replace(scope=scope)
        for row in plain.values():
            if row.key not in there_by_key:
                yield row._replace(scope=scope, value="", authors=(), losers=())
