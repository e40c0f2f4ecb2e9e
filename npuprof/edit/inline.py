"""Changes inside one value of a TOML text: tomlkit makes them, so comments and layout inside it stay."""

from __future__ import annotations

import tomllib
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys
from npuprof.edit.layout import Statement
from npuprof.edit.paths import MISSING, assign_at_path
from npuprof.model import Path


def replace_pair_value(row: Statement, tail: Path, value: Any) -> None:
    """Change the value of a pair, or what is at ``tail`` inside it; comments and layout inside it stay."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    start, end = row.value
    source = row.text[start:end]
    wanted = tomllib.loads(f"v = {source}\n")
    assign_at_path(wanted, ("v", *tail), value)
    written = keys.format_toml_value(wanted["v"])
    try:
        document = tomlkit.parse(f"v = {source}\n")
        _change_inside(document, ("v", *tail), value)
        text = document["v"].as_string()
        if values.is_same_typed_value(tomllib.loads(f"v = {text}\n"), wanted):
            written = text
    except (TOMLKitError, tomllib.TOMLDecodeError, AttributeError, KeyError, IndexError, TypeError, ValueError):
        pass  # written anew, its layout is lost but nothing else
    row.text = row.text[:start] + written + row.text[end:]
    row.value = (start, start + len(written))


def _change_inside(node: Any, path: Path, value: Any) -> None:
    for part in path[:-1]:
        if isinstance(node, dict) and part not in node:
            node[part] = _build_tomlkit_item({})
        node = node[part]
    last = path[-1]
    if value is MISSING:
        del node[last]
    elif isinstance(node, list) and last == len(node):
        node.append(_build_tomlkit_item(value))
    elif last in node if isinstance(node, dict) else True:
        _replace_differing_parts(node, last, value)
    else:
        node[last] = _build_tomlkit_item(value)


def _replace_differing_parts(node: Any, name: Any, value: Any) -> None:
    """Replace a value; of tables and lists only what differs, so that comments between the rest stay."""
    old: Any = node[name]
    if isinstance(value, dict) and isinstance(old, dict):
        for part in [part for part in old if part not in value]:
            del old[part]
        for part, item in value.items():
            if part not in old:
                old[part] = _build_tomlkit_item(item)
            elif keys.format_toml_value(old[part].unwrap()) != keys.format_toml_value(item):
                _replace_differing_parts(old, part, item)
    elif isinstance(value, list) and isinstance(old, list):
        plain: Any = old
        from difflib import SequenceMatcher

        before, after = [keys.format_toml_value(item) for item in plain.unwrap()], [keys.format_toml_value(item) for item in value]
        for tag, first, last, start, end in reversed(SequenceMatcher(None, before, after, False).get_opcodes()):
            if tag == "equal":
                continue
            same_size = last - first == end - start
            if not same_size:
                for place in range(last - 1, first - 1, -1):
                    del old[place]
            for step, item in enumerate(value[start:end]):
                if same_size:
                    old[first + step] = _build_tomlkit_item(item)
                else:
                    old.insert(first + step, _build_tomlkit_item(item))
    else:
        node[name] = _build_tomlkit_item(value)


def _build_tomlkit_item(value: Any) -> Any:
    import tomlkit

    return tomlkit.parse(f"v = {keys.format_toml_value(value)}\n")["v"]
