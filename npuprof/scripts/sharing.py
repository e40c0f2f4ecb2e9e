"""Settings of presets as pairs that are the same for the same value, to tell what presets have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys

#: A key, and the text of its value.
Pair = tuple[str, str]


def list_pairs(facts: Mapping[str, Any]) -> frozenset[Pair]:
    """Return settings as pairs of key and text, the same for the same value only; what is written as a string is that very string."""
    return frozenset((key, _write_value(key, value)) for key, value in facts.items())


def _write_value(key: str, value: Any) -> str:
    written = keys.format_toml_value(values.build_canonical_value(key, value))
    return f"{written} {value!r}" if isinstance(value, str) else written
