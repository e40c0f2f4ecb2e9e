"""Texts of key-value pairs, such as PYTORCH_NPU_ALLOC_CONF: what is wrong with one by the ``items`` of its variable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from npuprof.catalog import Variable
from npuprof.model import did_you_mean


def find_pair_faults(variable: Variable, text: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the pairs of a text, and what to write."""
    for place, item in enumerate(_split_items(variable, text)):
        key, pair, value = (part.strip() for part in item.partition(variable.pair))
        if not item.strip() or (place == 0 and item.strip() in variable.first):
            continue
        rule = variable.items.get(key) or next((rule for name, rule in variable.items.items() if fnmatchcase(key, name)), None)
        if rule is None:
            hint = did_you_mean(key, variable.items, "")
            if hint or variable.unknown == "fails":
                yield f"unknown key {key!r}", hint or f"known are {', '.join(variable.items)}"
        elif not pair:
            yield f"{key} has no value", f"write {key}{variable.pair}{_write_example(rule)}"
        elif hint := _find_value_hint(rule, value):
            yield f"{key}{variable.pair}{value} is not accepted", f"write {key}{variable.pair}{hint}"


def _split_items(variable: Variable, text: str) -> list[str]:
    """Return the pairs of a text; a list in brackets is one value."""
    found = re.finditer(rf"\[[^\[\]]*\]|{re.escape(variable.joined)}", text)
    cuts = [match.span() for match in found if match[0] == variable.joined]
    return [text[start:end] for (_, start), (end, _) in pairwise([(0, 0), *cuts, (len(text), len(text))])]


def _find_value_hint(rule: Any, value: str) -> str:
    """Return what a key takes if it does not take a value, else an empty text."""
    if not isinstance(rule, dict):
        same = [word for word in rule if word.lower() == value.lower()]
        return "" if value in rule else same[0] if same else " or ".join(rule)
    kind, low, high = rule["kind"], rule.get("min"), rule.get("max")
    if kind not in ("int", "float"):
        return ""
    number = r"[0-9]+" if kind == "int" else r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    if re.fullmatch(f"[-+]?{number}", value) is None:
        return f"a {'whole number' if kind == 'int' else 'number'}"
    if (low is not None and float(value) < low) or (high is not None and float(value) > high):
        return f"a number, {low} or more" if high is None else f"a number from {low} to {high}"
    return ""


def _write_example(rule: Any) -> str:
    return str(rule.get("min", "VALUE")) if isinstance(rule, dict) else str(rule[0])
