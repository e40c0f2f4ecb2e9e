"""Variables with key-value pairs, such as PYTORCH_NPU_ALLOC_CONF: conversion to tables, and faults
of pairs.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from npuprof.catalog import find_variable
from npuprof.catalog.records import Variable
from npuprof.catalog.shapes import Schema, Structure, map_schema
from npuprof.document.keys import (
    format_plain_value,
    format_range,
    format_short_value,
    format_toml_value,
)
from npuprof.model import Path, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SWITCHES = {"true": True, "false": False}
_SCALAR: Schema = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}


@cache
def find_pairs_form(name: str) -> Structure | None:
    """Return the structured form of a variable with pairs, a table with a key for each.

    None for any other variable.
    """
    variable = find_variable(name)
    if variable is None or variable.kind != "pairs":
        return None
    key, rule = next(iter(variable.items.items()), ("KEY", None))
    return Structure(
        shape=(
            f"a table such as {{ {key} = "
            f"{format_toml_value(_read_value(variable, key, _write_example(rule)))} }}"
        ),
        schema=map_schema(_SCALAR, 0),
        parse=lambda text: parse_pairs(variable, text),
        format=lambda table: format_pairs(variable, table),
        faults=lambda table: [
            (path, what, hint) for path, what, _, hint in find_pair_faults(variable, table)
        ],
    )


def parse_pairs(variable: Variable, text: str) -> dict[str, Any] | None:
    """Return the table of a text, None if an item is not a pair or a key occurs twice:
    ``{"max_split_size_mb": 256}``.
    """
    table: dict[str, Any] = {}
    items = _split_items(variable, text)
    for place, item in enumerate(items):
        key, pair, value = (part.strip() for part in item.partition(variable.pair))
        if place == 0 and key in variable.first and not pair:
            key, value = variable.first_name, key
        elif not pair or not key:
            return None
        table[key] = _read_value(variable, key, value)
    return table if len(table) == len(items) else None


def format_pairs(variable: Variable, table: dict[str, Any]) -> str:
    """Return the text of a table, in key order; the word without a key comes first."""
    pairs = {key: _write_value(variable, key, value) for key, value in table.items()}
    first = [pairs.pop(variable.first_name)] if variable.first_name in pairs else []
    return variable.joined.join(
        [*first, *(f"{key}{variable.pair}{value}" for key, value in pairs.items())]
    )


def find_pair_faults(
    variable: Variable, value: str | dict[str, Any]
) -> list[tuple[Path, str, str, str]]:
    """Return the faults of a text or table of pairs: the path below the variable (empty in a text),
    message, reason, hint.
    """
    if isinstance(value, dict):
        return [
            ((key,), *fault)
            for key, item in value.items()
            if (fault := _find_item_fault(variable, key, item))
        ]
    faults: list[tuple[Path, str, str, str]] = []
    for place, item in enumerate(_split_items(variable, value)):
        key, pair, text = (part.strip() for part in item.partition(variable.pair))
        if place == 0 and variable.first and not pair and _find_rule(variable, key) is None:
            fault = _find_first_fault(variable, key)
        else:
            fault = (
                _find_text_fault(variable, key, text if pair else None) if item.strip() else None
            )
        faults += [((), *fault)] if fault else []
    return faults


def is_known_key(variable: Variable, key: str) -> bool:
    """Return whether the catalogue has a key of a variable, or the word without one."""
    return key == variable.first_name or _find_rule(variable, key) is not None


def _find_item_fault(variable: Variable, key: str, value: Any) -> tuple[str, str, str] | None:
    """Return the fault of an item of a table: message, reason, hint."""
    rule = list(variable.first) if key == variable.first_name else _find_rule(variable, key)
    if rule is None and (fault := _find_key_fault(variable, key)):
        return fault
    text = "" if isinstance(value, (dict, list)) else _write_value(variable, key, value)
    is_one = (
        bool(text)
        and len(_split_items(variable, f"{key}{variable.pair}{text}")) == 1
        and variable.pair not in key
    )
    if not is_one:
        wanted = _write_example(rule)
    elif rule is None:
        return None
    else:
        wanted = _describe_wanted_value(rule, text)
    example = (
        re.sub(
            r"^[^ ,]+", lambda word: format_toml_value(_read_value(variable, key, word[0])), wanted
        )
        if wanted
        else ""
    )
    return (
        (
            f"{key}: {format_short_value(value)} is not accepted",
            _say_why(variable, rule),
            f"write {key} = {example}",
        )
        if wanted
        else None
    )


def _find_text_fault(variable: Variable, key: str, text: str | None) -> tuple[str, str, str] | None:
    """Return the fault of a pair in a text, whose value may be missing: message, reason, hint."""
    rule = _find_rule(variable, key)
    if rule is None:
        return _find_key_fault(variable, key)
    if text is None:
        return f"{key} has no value", "", f"write {key}{variable.pair}{_write_example(rule)}"
    wanted = _describe_wanted_value(rule, text)
    hint = f"write {key}{variable.pair}{wanted}"
    return (
        (f"{key}: {format_short_value(text)} is not accepted", _say_why(variable, rule), hint)
        if wanted
        else None
    )


def _find_first_fault(variable: Variable, word: str) -> tuple[str, str, str] | None:
    """Return the fault of the first word of a text, which has no key."""
    is_taken = not word or word in variable.first
    what, hint = (
        f"{variable.first_name}: {format_short_value(word)} is not accepted",
        f"write {' or '.join(variable.first)}",
    )
    return None if is_taken else (what, variable.otherwise, hint)


def _find_key_fault(variable: Variable, key: str) -> tuple[str, str, str] | None:
    """Return the fault of an unknown key, if the reader rejects it or it resembles a known one."""
    is_rejected = variable.unknown == "fails"
    hint = did_you_mean(
        key, variable.items, f"known are {', '.join(variable.items)}" if is_rejected else ""
    )
    why = (
        "Its reader raises an error for a key that it does not know."
        if is_rejected
        else "The catalogue does not contain it."
    )
    return (f"unknown key {format_short_value(key)}", why, hint) if hint else None


def _say_why(variable: Variable, rule: Any) -> str:
    """Return what the reader does with an unknown word; for numbers this is unknown."""
    return "" if isinstance(rule, dict) else variable.otherwise


def _find_rule(variable: Variable, key: str) -> Any:
    """Return the rule of a key: its words, or a table with ``kind``, ``min`` and ``max``.

    None for an unknown key.
    """
    beginnings = ((name[:-1], rule) for name, rule in variable.items.items() if name.endswith("*"))
    return variable.items.get(key) or next(
        (rule for beginning, rule in beginnings if key.startswith(beginning)), None
    )


def _read_value(variable: Variable, key: str, text: str) -> Any:
    """Return the TOML value that is written as a text; the text itself if there is none."""
    rule = _find_rule(variable, key)
    is_word = isinstance(rule, (list, tuple))
    if is_word and text in rule and text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    kind_name = "int" if is_word or key == variable.first_name else rule["kind"] if rule else ""
    kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float)}
    for kind in kinds.get(kind_name, ()):
        try:
            if str(kind(text)) == text:
                return kind(text)
        except ValueError:
            continue
    return text


def _write_value(variable: Variable, key: str, value: Any) -> str:
    rule, text = _find_rule(variable, key), format_plain_value(value)
    words = rule if isinstance(value, bool) and isinstance(rule, (list, tuple)) else ()
    return next((word for word in words if word.lower() == text), text)


def _split_items(variable: Variable, text: str) -> list[str]:
    """Return the pairs of a text; a list in brackets is one value."""
    if "[" not in text:
        return text.split(variable.joined)
    matches = re.finditer(rf"\[[^\[\]]*\]|{re.escape(variable.joined)}", text)
    cuts = [match.span() for match in matches if match[0] == variable.joined]
    return [
        text[start:end]
        for (_, start), (end, _) in pairwise([(0, 0), *cuts, (len(text), len(text))])
    ]


def _describe_wanted_value(rule: Any, value: str) -> str:
    """Return an example value for a key, with its range, if the key does not accept a value.

    Else an empty string.
    """
    if not isinstance(rule, dict):
        same = [word for word in rule if word.lower() == value.lower()]
        return "" if value in rule else same[0] if same else " or ".join(rule)
    kind, low, high = rule["kind"], rule.get("min"), rule.get("max")
    if kind not in ("int", "float"):
        return ""
    number = r"[0-9]+" if kind == "int" else r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    is_number = re.fullmatch(f"[-+]?{number}", value) is not None
    if (
        is_number
        and (low is None or float(value) >= low)
        and (high is None or float(value) <= high)
    ):
        return ""
    return _write_example(rule) + (
        f", or another number: {format_range(low, high)}"
        if low is not None or high is not None
        else ""
    )


def _write_example(rule: Any) -> str:
    """Return a valid example value."""
    if not isinstance(rule, dict):
        return str(rule[0]) if rule else "VALUE"
    return {"int": str(rule.get("min", 1)), "float": "0.8"}.get(rule["kind"], "VALUE")
