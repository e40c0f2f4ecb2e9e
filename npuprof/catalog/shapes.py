"""Building blocks of structured forms: their record, and JSON Schemas for editors and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from npuprof.model import Any, Path, Record, did_you_mean

Schema = dict[str, "Any"]


class ValueFault(Record):
    """A fault inside a structured value: its path below the value, the message, and the hint."""

    path: Path
    what: str
    hint: str
    why: str = ""


class IgnoredPart(Record):
    """A part of a file that its reader ignores: its line, the message, and the hint."""

    line: int
    what: str
    hint: str


class Structure(Record):
    """One structured form of an option.

    ``shape`` describes the form in words, ``schema`` is the editor schema, which accepts at least
    what the checks accept. ``parse`` returns the structured value of a text, or None if the text
    does not fit; ``format`` writes the text of a valid value; ``faults`` lists the faults of a
    value. ``file`` is the name of the sidecar file for the text, or empty if the option itself
    contains it. ``unordered`` is set if the order of lists means nothing, ``ordered_keys`` if the
    order of table keys matters. ``dropped`` lists what the reader of a file ignores in a text that
    ``parse`` accepts. ``members`` are the names of list positions in
    conditions. ``caveats`` finds suspicious parts of a valid value. A value without faults
    ``is_exact`` where it is always read back as it was written.
    """

    shape: str
    schema: Schema
    parse: Callable[[str], Any]
    format: Callable[[Any], str]
    faults: Callable[[Any], list[ValueFault]]
    file: str = ""
    unordered: bool = False
    ordered_keys: bool = False
    members: tuple[str, ...] = ()
    is_exact: bool = False
    dropped: Callable[[str], Iterable[IgnoredPart]] | None = None
    caveats: Callable[[Any], Iterable[ValueFault]] | None = None


def list_entries(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a table; none for any other value, whose fault is found elsewhere."""
    return value.items() if isinstance(value, dict) else ()


def table_schema(
    properties: Schema, required: list[str] | None = None, description: str = ""
) -> Schema:
    """Return the schema of a table with these keys and no others."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    if description:
        schema["description"] = description
    return schema


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
    schema: Schema = {"type": "object", "additionalProperties": values}
    if low:
        schema["minProperties"] = low
    if names:
        schema["propertyNames"] = {"type": "string", "pattern": f"^{names}$"}
    return schema


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
    """Return whether a value matches a schema of this module: no other keywords are supported."""
    if isinstance(value, int) and not -_MOST < value < _MOST:
        return False
    if "anyOf" in schema:
        return any(fits_schema(value, choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if type(value) not in _TYPES[schema["type"]]:
        return False
    if isinstance(value, (list, dict)):
        unit = "Items" if isinstance(value, list) else "Properties"
        size = len(value)
        if not schema.get(f"min{unit}", 0) <= size <= schema.get(f"max{unit}", size):
            return False
        return all(fits_schema(part.value, part.schema) for part in _list_parts(value, schema))
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return False
        pattern: str | None = schema.get("pattern")
        return pattern is None or re.fullmatch(pattern.strip("^$"), value) is not None
    return bool(value >= schema.get("minimum", value))


class _Part(Record):
    """An element of a list or an entry of a table: its index or key, its value and its schema."""

    key: Any
    value: Any
    schema: Schema


def _list_parts(value: Any, schema: Schema) -> list[_Part]:
    """Return the elements of a list, or the entries of a table, each with its schema."""
    if isinstance(value, list):
        items = schema["items"]
        return [
            _Part(index, item, items[index] if isinstance(items, list) else items)
            for index, item in enumerate(value)
        ]
    known = schema.get("properties", {})
    names = schema.get("propertyNames", {"type": "string"})
    other = schema["additionalProperties"] or _NOTHING
    return [
        _Part(name, item, known.get(name, other) if fits_schema(name, names) else _NOTHING)
        for name, item in value.items()
    ]


def find_form_faults(value: Any, schema: Schema, shape: str, path: Path = ()) -> list[ValueFault]:
    """Return the smallest parts of a value that violate its schema.

    ``shape`` has the noun for the whole, and an example.
    """
    if fits_schema(value, schema):
        return []
    inner = []
    has_parts = isinstance(value, (list, dict)) and type(value) in _TYPES.get(
        schema.get("type", ""), ()
    )
    # the elements of a tuple, with a list of schemas, are only valid together
    if has_parts and not isinstance(schema.get("items"), list):
        for part in _list_parts(value, schema):
            inner += find_form_faults(part.value, part.schema, shape, (*path, part.key))
    if inner:
        return inner
    noun, _, example = shape.partition(", as ")
    if path:
        return [ValueFault(path, f"{value!r} does not fit there", f"write {noun} like {example}")]
    return [ValueFault(path, f"not {noun}", f"write {example}")]


def find_schema_faults(value: Any, schema: Schema, path: Path = ()) -> list[ValueFault]:
    """Return the parts of a value that violate a schema of tables, lists, names and choices."""
    if "enum" in schema:
        if isinstance(value, str) and value in schema["enum"]:
            return []
        known = f"known are {', '.join(map(str, schema['enum']))}"
        hint = did_you_mean(str(value), schema["enum"], known)
        return [ValueFault(path, f"unknown {value!r}", hint)]
    if schema.get("type") == "object":
        return _find_table_faults(value, schema, path)
    if schema.get("type") == "array":
        if not isinstance(value, list):
            return [ValueFault(path, "not a list of names", 'write ["MatMul"]')]
        faults = []
        for index, item in enumerate(value):
            faults += find_schema_faults(item, schema["items"], (*path, index))
        return faults
    if not schema or (isinstance(value, str) and value and "\n" not in value):
        return []
    return [ValueFault(path, f"{value!r} is not a name", "write text in quotes")]


def _find_table_faults(value: Any, schema: Schema, path: Path) -> list[ValueFault]:
    """Return the faults of a table: first its unknown keys, then those inside its values."""
    known = schema.get("properties", {})
    listed = f"its keys are {', '.join(known)}"
    if not isinstance(value, dict):
        hint = listed if known else "write a table: { name = ... }"
        return [ValueFault(path, "not a table", hint)]
    other = schema["additionalProperties"]
    faults = []
    inner = []
    for name, item in value.items():
        if name not in known and other is False:
            hint = did_you_mean(name, known, listed)
            faults.append(ValueFault((*path, name), f"unknown key {name!r}", hint))
        else:
            inner += find_schema_faults(item, known.get(name, other), (*path, name))
    return faults + inner
