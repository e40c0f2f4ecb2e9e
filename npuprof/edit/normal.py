"""The normal form of a profile file: one line for each value it sets, in a fixed order.

Comments, layout and the form of values do not matter, so two files with equal content have the same
normal form. Inherited values are not included: a single file does not identify its parents at a
commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.document import keys
from npuprof.edit.merge import find_setting_key
from npuprof.model import LIST_OPS, TomlTable
from npuprof.system import is_list_of, join_lines


def format_normal_form(data: TomlTable) -> str:
    """Return the normal form of a document."""
    order = dict.fromkeys(
        ["profile", *catalog.load_sections(), *LIST_OPS, "override", *sorted(data)]
    )
    return join_lines(
        line for name in order if name in data for line in _format_value((name,), data[name])
    )


def _format_value(path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Yield the lines of a value; for a table, one per key."""
    shown = ".".join(map(keys.format_key_segment, path))
    if key := find_setting_key(path):
        value = _sort_unordered_value(key, value)
    if path == ("override",) and is_list_of(dict, value):
        for block in value:
            yield from _format_override(block)
    elif isinstance(value, dict) and value:
        for name in sorted(value):
            yield from _format_value((*path, name), value[name])
    elif isinstance(value, list) and len(value) > 1:
        yield f"{shown} = ["
        yield from (f"    {keys.format_toml_value(item)}," for item in value)
        yield "]"
    else:
        yield f"{shown} = {keys.format_toml_value(value)}"


def _format_override(block: TomlTable) -> Iterator[str]:
    """Yield the lines of an override: its match, then its keys, indented."""
    match = block.get("match", {})
    # the order of a match has no meaning, but that of overrides has: they are not sorted
    if isinstance(match, dict):
        match = dict(sorted(match.items()))
    yield f"override {keys.format_toml_value(match)}"
    rest = {name: item for name, item in block.items() if name != "match"}
    yield from (f"    {line}" for line in format_normal_form(rest).splitlines())


def _sort_unordered_value(key: str, value: Any) -> Any:
    """Return a value in structured form, unordered lists sorted."""
    value = values.parse_structured_value(key, value)
    is_sorted = values.is_unordered(key) and isinstance(value, (dict, list))
    return values.build_canonical_value(key, value) if is_sorted else value
