"""Edits inside one value of a TOML text, made by tomlkit so that comments and layout stay."""

from __future__ import annotations

from typing import Any

from npuprof.document import keys, parse_toml_value
from npuprof.edit.sequences import find_differing_runs
from npuprof.model import is_same_typed_value

#: tomlkit walks a whole list for each added or removed element: beyond this number of steps, the
#: list is rewritten.
_MAX_STEPS = 1_000_000


def rewrite_value(source: str, old: Any, new: Any) -> str:
    """Return the TOML of a value with only its differences changed."""
    if type(old) is not type(new) or not isinstance(new, (dict, list)):
        return keys.format_toml_value(new)
    from tomlkit.exceptions import TOMLKitError

    # tomlkit writes new lines with "\n" only
    plain = source.replace("\r\n", "\n")
    try:
        written = _edit_value(plain, old, new)
        # tomlkit's result is never trusted: a wrong one would change a value silently
        is_correct = is_same_typed_value(parse_toml_value(written), new)
    except (TOMLKitError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        is_correct = False  # too deep or unsupported by tomlkit
    if not is_correct:  # only the layout is lost
        written = format_long_value(new, "") if "\n" in plain else keys.format_toml_value(new)
    return written.replace("\n", "\r\n") if plain != source else written


def _edit_value(source: str, old: Any, new: Any) -> str:
    """Return the TOML of a list or a table, as edited by tomlkit.

    Raises errors of tomlkit, and of Python in its code.
    """
    document = _parse_value(source)
    _replace_parts(document, "v", old, new)
    written: str = document["v"].as_string()
    if isinstance(new, dict):
        written = _restore_inner_blanks(source, written)
    if "  " in written and "  " not in source:  # a removed key left its blank
        single_spaced = " ".join(written.split("  "))
        if is_same_typed_value(parse_toml_value(single_spaced), new):
            return single_spaced
    return written


def _restore_inner_blanks(before: str, after: str) -> str:
    """Return an inline table with its original blanks at the braces: edits there move them."""
    inside_before = before[1:-1]
    inside_after = after[1:-1].strip(" ")
    if not inside_before.strip(" ") or not inside_after or "\n" in before or "\n" in after:
        return after
    head = inside_before[: len(inside_before) - len(inside_before.lstrip(" "))]
    tail = inside_before[len(inside_before.rstrip(" ")) :]
    return f"{{{head}{inside_after}{tail}}}"


def format_long_value(value: Any, indent: str) -> str:
    """Return a value as TOML, a list with one element per line."""
    if not isinstance(value, list) or len(value) < 2:
        return keys.format_toml_value(value)
    items = "".join(f"{indent}    {keys.format_toml_value(item)},\n" for item in value)
    return f"[\n{items}{indent}]"


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
            elif not is_same_typed_value(old[part], item):
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
        (run.old_start < run.old_end) + run.new_end - run.new_start
        for run in runs
        if not run.has_equal_lengths
    )
    if moves * len(old) > _MAX_STEPS:
        # the caller then writes the value anew
        raise ValueError
    for run in reversed(runs):  # from the end: earlier indices stay valid
        items = new[run.new_start : run.new_end]
        if run.has_equal_lengths:
            for index, item in enumerate(items, run.old_start):
                _replace_parts(node, index, old[index], item)
        else:
            del node[run.old_start : run.old_end]
            for index, item in enumerate(items, run.old_start):
                node.insert(index, _build_item(item))


def _build_item(value: Any) -> Any:
    # by npuprof's own writer, so that added values look like all others
    return _parse_value(keys.format_toml_value(value))["v"]


def _parse_value(source: str) -> Any:
    import tomlkit

    return tomlkit.parse(f"v = {source}\n")
