"""Variables with key-value pairs, such as PYTORCH_NPU_ALLOC_CONF: their tables and faults."""

from __future__ import annotations

import re
from functools import cache

from npuprof.catalog import find_variable
from npuprof.catalog.records import Variable
from npuprof.catalog.shapes import Schema, Structure, ValueFault, map_schema
from npuprof.document.keys import (
    format_plain_value,
    format_range,
    format_short_value,
    format_toml_value,
)
from npuprof.model import Any, TomlTable, did_you_mean

_SWITCHES = {"true": True, "false": False}
_NUMBER_TYPES: dict[str, tuple[type[int | float], ...]] = {"int": (int,), "float": (int, float)}
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
    example = format_toml_value(_read_value(variable, key, _write_example(rule)))
    return Structure(
        shape=f"a table such as {{ {key} = {example} }}",
        schema=map_schema(_SCALAR, 0),
        parse=lambda text: parse_pairs(variable, text),
        format=lambda table: format_pairs(variable, table),
        faults=lambda table: find_pair_faults(variable, table),
    )


def parse_pairs(variable: Variable, text: str) -> TomlTable | None:
    """Return the table of a text: ``{"max_split_size_mb": 256}``.

    None if an item is not a pair or a key occurs twice.
    """
    table = {}
    items = _split_items(variable, text)
    for index, item in enumerate(items):
        key, pair, value = (part.strip() for part in item.partition(variable.pair))
        if index == 0 and key in variable.first and not pair:
            key, value = variable.first_name, key
        elif not pair or not key:
            return None
        table[key] = _read_value(variable, key, value)
    return table if len(table) == len(items) else None


def format_pairs(variable: Variable, table: TomlTable) -> str:
    """Return the text of a table, in key order; the word without a key comes first."""
    texts = {key: _write_value(variable, key, value) for key, value in table.items()}
    items = []
    if variable.first_name in texts:
        items.append(texts.pop(variable.first_name))
    items += [f"{key}{variable.pair}{text}" for key, text in texts.items()]
    return variable.joined.join(items)


def find_pair_faults(variable: Variable, value: str | TomlTable) -> list[ValueFault]:
    """Return the faults of a text or table of pairs; those of a text have an empty path."""
    if isinstance(value, dict):
        faults = [_find_item_fault(variable, key, item) for key, item in value.items()]
        return [fault for fault in faults if fault is not None]
    text_faults = []
    for index, item in enumerate(_split_items(variable, value)):
        key, pair, text = (part.strip() for part in item.partition(variable.pair))
        if index == 0 and variable.first and not pair and _find_rule(variable, key) is None:
            fault = _find_first_fault(variable, key)
        elif item.strip():
            fault = _find_text_fault(variable, key, text if pair else None)
        else:
            fault = None
        if fault is not None:
            text_faults.append(fault)
    return text_faults


def read_pair(variable: Variable, key: str, value: Any) -> Any:
    """Return the value of a key as the text of the variable has it, also of a table."""
    return _read_value(variable, key, _write_value(variable, key, value))


def is_known_key(variable: Variable, key: str) -> bool:
    """Return whether the catalogue has a key of a variable, or the word without one."""
    return key == variable.first_name or _find_rule(variable, key) is not None


def _find_item_fault(variable: Variable, key: str, value: Any) -> ValueFault | None:
    """Return the fault of an item of a table, or None."""
    rule = list(variable.first) if key == variable.first_name else _find_rule(variable, key)
    if rule is None and (fault := _find_key_fault(variable, key)):
        return fault._replace(path=(key,))
    text = "" if isinstance(value, (dict, list)) else _write_value(variable, key, value)
    if not _is_single_pair(variable, key, text):
        expected = _write_example(rule)
    elif rule is None:
        return None
    else:
        expected = _suggest_value(rule, text)
    if not expected:
        return None

    def format_example(match: re.Match[str]) -> str:
        return format_toml_value(_read_value(variable, key, match[0]))

    return ValueFault(
        (key,),
        f"{key}: {format_short_value(value)} is not accepted",
        f"write {key} = {re.sub(r'^[^ ,]+', format_example, expected)}",
        _describe_effect(variable, rule),
    )


def _is_single_pair(variable: Variable, key: str, text: str) -> bool:
    """Return whether a key and the text of its value are written as one pair."""
    if not text or variable.pair in key:
        return False
    return len(_split_items(variable, f"{key}{variable.pair}{text}")) == 1


def _find_text_fault(variable: Variable, key: str, text: str | None) -> ValueFault | None:
    """Return the fault of a pair in a text, whose value may be missing."""
    rule = _find_rule(variable, key)
    if rule is None:
        return _find_key_fault(variable, key)
    if text is None:
        hint = f"write {key}{variable.pair}{_write_example(rule)}"
        return ValueFault((), f"{key} has no value", hint)
    expected = _suggest_value(rule, text)
    if not expected:
        return None
    what = f"{key}: {format_short_value(text)} is not accepted"
    hint = f"write {key}{variable.pair}{expected}"
    return ValueFault((), what, hint, _describe_effect(variable, rule))


def _find_first_fault(variable: Variable, keyword: str) -> ValueFault | None:
    """Return the fault of the first item of a text, which has no key."""
    if not keyword or keyword in variable.first:
        return None
    what = f"{variable.first_name}: {format_short_value(keyword)} is not accepted"
    return ValueFault((), what, f"write {' or '.join(variable.first)}", variable.otherwise)


def _find_key_fault(variable: Variable, key: str) -> ValueFault | None:
    """Return the fault of an unknown key, if the reader rejects it or it resembles a known one."""
    if variable.unknown == "fails":
        why = "Its reader raises an error for a key that it does not know."
        hint = did_you_mean(key, variable.items, f"known are {', '.join(variable.items)}")
    else:
        why = "The catalogue does not contain it."
        hint = did_you_mean(key, variable.items)
    return ValueFault((), f"unknown key {format_short_value(key)}", hint, why) if hint else None


def _describe_effect(variable: Variable, rule: Any) -> str:
    """Return what the reader does with an unknown keyword; for numbers this is unknown."""
    return "" if isinstance(rule, dict) else variable.otherwise


def _find_rule(variable: Variable, key: str) -> Any:
    """Return the rule of a key: its keywords, or a table with ``kind``, ``min`` and ``max``.

    None for an unknown key.
    """
    rule = variable.items.get(key)
    if rule:
        return rule
    for name, prefix_rule in variable.items.items():
        if name.endswith("*") and key.startswith(name.removesuffix("*")):
            return prefix_rule
    return None


def _read_value(variable: Variable, key: str, text: str) -> Any:
    """Return the TOML value that is written as a text; the text itself if there is none."""
    rule = _find_rule(variable, key)
    has_keywords = isinstance(rule, (list, tuple))
    if has_keywords and text in rule and text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    number_types: tuple[type[int | float], ...] = ()
    if has_keywords or key == variable.first_name:
        number_types = (int,)
    elif rule:
        number_types = _NUMBER_TYPES.get(rule["kind"], ())
    for number_type in number_types:
        try:
            number = number_type(text)
        except ValueError:
            continue
        if str(number) == text:
            return number
    return text


def _write_value(variable: Variable, key: str, value: Any) -> str:
    rule = _find_rule(variable, key)
    text = format_plain_value(value)
    if isinstance(value, bool) and isinstance(rule, (list, tuple)):
        for keyword in rule:
            if keyword.lower() == text:
                return str(keyword)
    return text


def _split_items(variable: Variable, text: str) -> list[str]:
    """Return the pairs of a text; a list in brackets is one value."""
    if "[" not in text:
        return text.split(variable.joined)
    items = []
    start = 0
    for match in re.finditer(rf"\[[^\[\]]*\]|{re.escape(variable.joined)}", text):
        if match[0] == variable.joined:
            items.append(text[start : match.start()])
            start = match.end()
    return [*items, text[start:]]


_NUMBER_PATTERNS = {
    "int": r"[-+]?[0-9]+",
    "float": r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?",
}


def _suggest_value(rule: Any, value: str) -> str:
    """Return an example value for a key, with its range, if the key does not accept a value.

    Else an empty string.
    """
    if not isinstance(rule, dict):
        if value in rule:
            return ""
        same = [keyword for keyword in rule if keyword.lower() == value.lower()]
        return same[0] if same else " or ".join(rule)
    pattern = _NUMBER_PATTERNS.get(rule["kind"])
    low = rule.get("min")
    high = rule.get("max")
    if pattern is None:
        return ""
    if re.fullmatch(pattern, value):
        number = float(value)
        if (low is None or number >= low) and (high is None or number <= high):
            return ""
    if low is None and high is None:
        return _write_example(rule)
    return f"{_write_example(rule)}, or another number: {format_range(low, high)}"


def _write_example(rule: Any) -> str:
    """Return a valid example value."""
    if not isinstance(rule, dict):
        return str(rule[0]) if rule else "VALUE"
    return {"int": str(rule.get("min", 1)), "float": "0.8"}.get(rule["kind"], "VALUE")
