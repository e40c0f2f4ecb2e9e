"""A profile file in its normal form: one line for each value it sets itself, in the catalogue's order.

Comments, layout and the form a value is written in leave no trace here, so two files that say the same have one
normal form. What a parent sets is not shown: which parents there were at a commit, a single file cannot know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npuprof import catalog
from npuprof.catalog import values
from npuprof.document import keys
from npuprof.document.profile import PROFILE_KEYS
from npuprof.model import SECTIONS


def format_normal_form(data: dict[str, Any]) -> str:
    """Return the normal form of a document."""
    lines: list[str] = []
    for name in dict.fromkeys((*("profile", *SECTIONS, "append", "override"), *sorted(data))):
        if name == "override" and isinstance(data.get(name), list):
            for block in data[name]:
                lines += _format_override_block(block)
        elif name == "append" and isinstance(data.get(name), dict):
            for section in dict.fromkeys((*SECTIONS, *sorted(data[name]))):
                lines += _format_normal_section(("append", section), section, data[name].get(section))
        else:
            lines += _format_normal_section((name,), name, data.get(name))
    return "".join(f"{line}\n" for line in lines)


def _format_override_block(block: Any) -> Iterator[str]:
    if not isinstance(block, dict):
        yield f"override = {keys.format_toml_value(block)}"
        return
    match = block.get("match")
    yield f"override {keys.format_toml_value(dict(sorted(match.items())) if isinstance(match, dict) else match or {})}"
    rest = {name: value for name, value in block.items() if name != "match"}
    yield from (f"    {line}" for line in format_normal_form(rest).splitlines())


def _format_normal_section(path: tuple[str, ...], section: str, table: Any) -> Iterator[str]:
    if table is None:
        return
    if not isinstance(table, dict):
        yield from _format_normal_value(path, table)
        return
    place = {name: index for index, name in enumerate(PROFILE_KEYS)} if section == "profile" else {}
    if section in SECTIONS:
        place = catalog.record_positions(section)
    for name in sorted(table, key=lambda name: (place.get(name, len(place)), name)):
        value = table[name]
        if section in SECTIONS:
            value = _sort_unordered_value(keys.format_full_key(section, name), value)
        yield from _format_normal_value((*path, name), value)


def _sort_unordered_value(key: str, value: Any) -> Any:
    """Return a value in its structured form, lists sorted where their order means nothing."""
    structure = values.find_structure(key)
    value = values.parse_structured_value(key, value)
    if structure is None or not isinstance(value, (dict, list)):
        return value
    return values.build_canonical_value(key, value) if structure.unordered else value


def _format_normal_value(path: tuple[str, ...], value: Any) -> Iterator[str]:
    shown = ".".join(map(keys.format_key_segment, path))
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _format_normal_value((*path, name), item)
    elif isinstance(value, list) and len(value) > 1:
        yield f"{shown} = ["
        yield from (f"    {keys.format_toml_value(item)}," for item in value)
        yield "]"
    else:
        yield f"{shown} = {keys.format_toml_value(value)}"
