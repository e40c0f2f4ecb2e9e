"""What several presets have in common: the settings that are the same in every one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuprof.catalog import values
from npuprof.document import keys

#: A key, and the text of its value.
Pair = tuple[str, str]

#: A base of fewer settings is not worth an ``extends`` in every preset.
_FEWEST_SHARED = 2


def list_pairs(facts: Mapping[str, Any]) -> frozenset[Pair]:
    """Return settings as pairs of key and text, the same for the same value only; what is written as a string is that very string."""
    return frozenset((key, _write_value(key, value)) for key, value in facts.items())


def _write_value(key: str, value: Any) -> str:
    written = keys.format_toml_value(values.build_canonical_value(key, value))
    return f"{written} {value!r}" if isinstance(value, str) else written


def find_shared_pairs(presets: Sequence[frozenset[Pair]]) -> frozenset[Pair]:
    """Return the pairs that every preset has; empty for a single preset, and if a base of these pairs would not be shorter."""
    shared = frozenset.intersection(*presets) if len(presets) > 1 else frozenset()
    return shared if len(shared) >= _FEWEST_SHARED else frozenset()
