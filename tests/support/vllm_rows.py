"""The keys of vLLM-Ascend with values for them."""

from __future__ import annotations

from functools import reduce
from typing import Any

from npuprof import catalog
from npuprof.catalog import Setting

ROWS = {
    name: row
    for name in catalog.record_names("vllm_ascend")
    if (row := catalog.find_setting("vllm_ascend", name))
}


def sample(row: Setting) -> Any:
    """Return a value that a setting takes, another one than its default."""
    if row.choices:
        return next(choice for choice in row.choices if choice != row.default)
    values = {
        "bool": not row.default,
        "float": 0.5,
        "path": "./map.json",
        "list": [1],
        "str": "text",
    }
    return (
        {"enabled": False}
        if row.kind == "json"
        else values.get(row.kind, max(row.minimum or 0, row.default or 0) + 1)
    )


def nest(name: str, value: Any) -> dict[str, Any]:
    return reduce(lambda inner, part: {part: inner}, reversed(name.split(".")), value)
