"""Building blocks of structured forms: JSON Schemas shared by editors and checks, and the record of
a form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from npuprof.model import Path, Record, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Schema = dict[str, "Any"]

#: A fault inside a structured value: its path below the value, the message, and the hint.
Fault = tuple[Path, str, str]


class Structure(Record):
    """One structured form of an option.

    ``shape`` describes the form in words, ``schema`` is the editor schema, which accepts at least
    what the checks accept. ``parse`` returns the structured value of a text, or None if the text
    does not fit; ``format`` writes the text of a valid value; ``faults`` lists the faults of a
    value. ``file`` is the name of the sidecar file for the text, or empty if the option itself
    contains it. ``unordered`` is set if the order of lists means nothing, ``ordered_keys`` if the
    order of table keys matters. ``dropped`` lists what the reader of a file ignores in a text that
    ``parse`` accepts: line, message, hint. ``members`` are the names of list positions in
    conditions. ``doubt`` finds suspicious parts of a valid value. A value without faults
    ``is_exact`` where it is always read back as it was written.
    """

    shape: str
    schema: Schema
    parse: Callable[[str], Any]
    format: Callable[[Any], str]
    faults: Callable[[Any], list[Fault]]
    file: str = ""
    unordered: bool = False
    ordered_keys: bool = False
    members: tuple[str, ...] = ()
    is_exact: bool = False
    dropped: Callable[[str], Iterable[tuple[int, str, str]]] | None = None
    doubt: Callable[[Any], Iterable[Fault]] | None = None


def list_entries(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a table; none for any other value, whose fault is found elsewhere."""
    return value.items() if isinstance(value, dict) else ()


def table_schema(
    properties: Schema, required: list[str] | None = None, description: str = ""
) -> Schema:
    """Return the schema of a table with these keys and no others."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return (
        schema
        | ({"required": required} if required else {})
        | ({"description": description} if description else {})
    )


def list_schema(items: Schema, low: int = 0) -> Schema:
    """Return the schema of a list with at least ``low`` elements."""
    return {"type": "array", "items": items, **({"minItems": low} if low else {})}


def tuple_schema(items: list[Schema]) -> Schema:
    """Return the schema of a list with these elements, each with its own schema."""
    return {
        "type": "array",
        "items": items,
        "additionalItems": False,
        "minItems": len(items),
        "maxItems": len(items),
    }


def map_schema(values: Schema, low: int = 1, names: str = "") -> Schema:
    """Return the schema of a table with arbitrary keys, at least ``low`` of them.

    ``names`` is a pattern for the keys.
    """
    schema: Schema = {
        "type": "object",
        "additionalProperties": values,
        **({"minProperties": low} if low else {}),
    }
    return schema | (
        {"propertyNames": {"type": "string", "pattern": f"^{names}$"}} if names else {}
    )


NAME: Schema = {"type": "string", "minLength": 1}
WHOLE: Schema = {"type": "integer", "minimum": 0}
COUNT: Schema = {"type": "integer", "minimum": 1}
DIMENSION: Schema = {"type": "integer", "minimum": -1}
SWITCH: Schema = {"enum": ["on", "off"]}

#: The maximum of numbers in structured values; no number of CANN is larger.
_MOST = 10**18
_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
#: The schema that accepts nothing.
_NOTHING: Schema = {"enum": []}


def fits_schema(value: Any, schema: Schema) -> bool:
    """Return whether a value matches a schema of numbers, texts, choices, and lists or tables of
    these.
    """
    if isinstance(value, int) and not -_MOST < value < _MOST:
        return False
    if "anyOf" in schema:
        return any(fits_schema(value, choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if type(value) not in _TYPES[schema["type"]]:
        return False
    if isinstance(value, (list, dict)):
        low, high = (
            ("minItems", "maxItems")
            if isinstance(value, list)
            else ("minProperties", "maxProperties")
        )
        fits = schema.get(low, 0) <= len(value) <= schema.get(high, len(value))
        return fits and all(
            fits_schema(item, inner) for _, item, inner in _list_parts(value, schema)
        )
    if isinstance(value, str):
        pattern: str | None = schema.get("pattern")
        return len(value) >= schema.get("minLength", 0) and (
            pattern is None or re.fullmatch(pattern.strip("^$"), value) is not None
        )
    return bool(value >= schema.get("minimum", value))


def _list_parts(value: Any, schema: Schema) -> list[tuple[Any, Any, Schema]]:
    """Return the elements of a list, or the entries of a table, each with its path and schema."""
    if isinstance(value, list):
        items = schema["items"]
        return [
            (index, item, items[index] if isinstance(items, list) else items)
            for index, item in enumerate(value)
        ]
    known, names = schema.get("properties", {}), schema.get("propertyNames", {"type": "string"})
    other = schema["additionalProperties"] or _NOTHING
    return [
        (name, item, known.get(name, other) if fits_schema(name, names) else _NOTHING)
        for name, item in value.items()
    ]


def find_form_faults(value: Any, schema: Schema, shape: str, path: Path = ()) -> list[Fault]:
    """Return the smallest parts of a value that violate its schema.

    ``shape`` has the noun for the whole, and an example.
    """
    if fits_schema(value, schema):
        return []
    has_parts = isinstance(value, (list, dict)) and type(value) in _TYPES.get(
        schema.get("type", ""), ()
    )
    parts = (
        _list_parts(value, schema)
        if has_parts and not isinstance(schema.get("items"), list)
        else []
    )
    noun, _, example = shape.partition(", as ")
    what = f"{value!r} does not fit there" if path else f"not {noun}"
    inner = [
        fault
        for name, item, part in parts
        for fault in find_form_faults(item, part, shape, (*path, name))
    ]
    return inner or [(path, what, f"write {noun} like {example}" if path else f"write {example}")]


def find_schema_faults(value: Any, schema: Schema, path: Path = ()) -> list[Fault]:
    """Return the parts of a value that violate a schema of tables, lists, names and choices, each
    with a hint.
    """
    if "enum" in schema:
        known = ", ".join(map(str, schema["enum"]))
        fits = isinstance(value, str) and value in schema["enum"]
        return (
            []
            if fits
            else [
                (
                    path,
                    f"unknown {value!r}",
                    did_you_mean(str(value), schema["enum"], f"known are {known}"),
                )
            ]
        )
    if schema.get("type") == "object":
        known, inner = schema.get("properties", {}), schema["additionalProperties"]
        listed = f"its keys are {', '.join(known)}"
        if not isinstance(value, dict):
            return [(path, "not a table", listed if known else "write a table: { name = ... }")]
        unknown = [name for name in value if name not in known and inner is False]
        faults: list[Fault] = [
            ((*path, name), f"unknown key {name!r}", did_you_mean(name, known, listed))
            for name in unknown
        ]
        parts = [
            (name, item, known.get(name, inner))
            for name, item in value.items()
            if name not in unknown
        ]
    elif schema.get("type") == "array":
        if not isinstance(value, list):
            return [(path, "not a list of names", 'write ["MatMul"]')]
        faults, parts = [], [(index, item, schema["items"]) for index, item in enumerate(value)]
    else:
        is_name = not schema or (isinstance(value, str) and value and "\n" not in value)
        return [] if is_name else [(path, f"{value!r} is not a name", "write text in quotes")]
    return faults + [
        fault
        for name, item, inner in parts
        for fault in find_schema_faults(item, inner, (*path, name))
    ]
