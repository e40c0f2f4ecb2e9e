"""Edits inside one value of a TOML text, made by tomlkit so that comments and layout stay."""

from __future__ import annotations

from typing import Any

from npuprof.catalog import values
from npuprof.document import keys, parse_toml_value
from npuprof.edit.sequences import find_differing_runs

#: tomlkit walks a whole list for each added or removed element: beyond this number of steps, the
#: list is rewritten.
_MAX_STEPS = 1_000_000


def rewrite_value(source: str, old: Any, new: Any) -> str:
    """Return the TOML of a value with only its differences changed."""
    if type(old) is not type(new) or not isinstance(new, (dict, list)):
        return keys.format_toml_value(new)
    from tomlkit.exceptions import TOMLKitError

    plain = source.replace("\r\n", "\n")
    written = ""
    try:
        document = _parse_value(plain)
        _replace_parts(document, "v", old, new)
        written = document["v"].as_string()
        written = _keep_edges(plain, written) if isinstance(new, dict) else written
        if (
            "  " in written
            and "  " not in plain
            and values.is_same_typed_value(
                parse_toml_value(single := " ".join(written.split("  "))), new
            )
        ):
            written = single  # a removed key left its blank
        good = values.is_same_typed_value(parse_toml_value(written), new)
    except (TOMLKitError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        good = False  # too deep or unsupported by tomlkit: only the layout is lost
    if not good:
        written = format_long_value(new, "") if "\n" in plain else keys.format_toml_value(new)
    return written.replace("\n", "\r\n") if plain != source else written


def _keep_edges(before: str, after: str) -> str:
    """Return an inline table with its original blanks at the braces: edits there move them."""
    inside = before[1:-1]
    if not inside.strip(" ") or not after[1:-1].strip(" ") or "\n" in before or "\n" in after:
        return after
    head, tail = inside[: len(inside) - len(inside.lstrip(" "))], inside[len(inside.rstrip(" ")) :]
    return f"{{{head}{after[1:-1].strip(' ')}{tail}}}"


def format_long_value(value: Any, indent: str) -> str:
    """Return a value as TOML, a list with one element per line."""
    if not isinstance(value, list) or len(value) < 2:
        return keys.format_toml_value(value)
    return "".join(
        ["[\n", *(f"{indent}    {keys.format_toml_value(item)},\n" for item in value), f"{indent}]"]
    )


def _replace_parts(node: Any, name: Any, old: Any, new: Any) -> None:
    """Replace a value of ``node``.

    In tables and lists, only the differing parts, to keep comments.
    """
    if isinstance(new, dict) and isinstance(old, dict):
        for part in old:
            if part not in new:
                del node[name][part]
        for part, item in new.items():
            if part not in old:
                node[name][part] = _build_item(item)
            elif not values.is_same_typed_value(old[part], item):
                _replace_parts(node[name], part, old[part], item)
    elif isinstance(new, list) and isinstance(old, list):
        _replace_elements(node[name], old, new)
    else:
        node[name] = _build_item(new)


def _replace_elements(node: Any, old: list[Any], new: list[Any]) -> None:
    """Replace the differing elements, in place if their number is unchanged."""
    runs = find_differing_runs(
        [*map(keys.format_toml_value, old)], [*map(keys.format_toml_value, new)]
    )
    moves = sum(
        (first < end) + stop - start
        for first, end, start, stop in runs
        if end - first != stop - start
    )
    if moves * len(old) > _MAX_STEPS:
        raise ValueError
    for first, end, start, stop in reversed(runs):
        in_place = end - first == stop - start
        if not in_place:
            del node[first:end]
        for place, item in enumerate(new[start:stop], first):
            if in_place:
                _replace_parts(node, place, old[place], item)
            else:
                node.insert(place, _build_item(item))


def _build_item(value: Any) -> Any:
    return _parse_value(keys.format_toml_value(value))["v"]


def _parse_value(source: str) -> Any:
    import tomlkit

    return tomlkit.parse(f"v = {source}\n")
