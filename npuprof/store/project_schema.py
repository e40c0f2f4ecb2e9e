"""The JSON Schema of ``npuprof.toml``, for editors; it accepts everything that npuprof accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from npuprof.catalog.preset_schema import DIALECT, build_code_schema
from npuprof.catalog.shapes import Schema, list_schema, table_schema
from npuprof.catalog.targets import load_target_index
from npuprof.document import parse_toml_value
from npuprof.model import SEVERITIES
from npuprof.store import teamrules
from npuprof.store.project import (
    KEYS,
    OUTPUT_KEYS,
    SOURCE_KEYS,
    TAKEN_NAMES,
    TEAM_KINDS,
    list_variable_keys,
)
from npuprof.store.teamrules import ProjectKey
from npuprof.system import group_pairs

_SOME: Schema = {"type": "string", "pattern": r"\S"}
_LINE: Schema = {"type": "string", "pattern": r"^[^\n]*\S[^\n]*$"}
_NUMBER = r"v?[0-9]{1,9}(?:\.[0-9]{1,9}){0,2}(?:-[0-9A-Za-z.-]+)?"
_BOUND = rf"\s*(?:\^|~|>=|<=|==|=|>|<)?\s*{_NUMBER}\s*"
_GLOB: Schema = {"type": "string", "pattern": r"^[^/?\[\]{}!\\.-][^?\[\]{}!\\]*\.toml$"}
_IDENTIFIER = "^[A-Za-z_][A-Za-z0-9_]*$"
_NAMES: Schema = {
    "type": "string",
    "minLength": 1,
    "not": {"type": "string", "pattern": r"\.toml$"},
}
#: Prefixes before a colon in a reference with another meaning, in any case.
_TAKEN = "|".join(
    re.sub("[a-z]", lambda letter: f"[{letter[0].upper()}{letter[0]}]", name)
    for name in TAKEN_NAMES
)


#: The schemas of values without tables, by the kind of their key.
_KINDS = {
    "a text": _SOME,
    "a list of texts": list_schema(_NAMES),
    "a number": {"type": "number"},
    "true or false": {"type": "boolean"},
}


def build_project_schema() -> Schema:
    """Return the schema of ``npuprof.toml``."""
    output = _build_schema(OUTPUT_KEYS, to={"enum": [*load_target_index()]})
    # releases of frameworks and values of axes
    output["additionalProperties"] = _SOME
    tables = _build_schema(
        KEYS,
        requires={"type": "string", "pattern": rf"^(?:\s*\*\s*|{_BOUND}(?:,{_BOUND})*)$"},
        presets=list_schema(_GLOB),
        # as is_source_name: other prefixes before a colon have another meaning
        sources=_build_named_schema(
            f"^(?!(?:{_TAKEN})$)[A-Za-z0-9][A-Za-z0-9_-]*$", _build_schema(SOURCE_KEYS)
        ),
        # as find_name_fault: an axis has no other meaning
        axes=_build_named_schema(
            _IDENTIFIER, list_schema({"type": "string", "pattern": "^[^ ,=]+$"}, 1)
        ),
        rule=list_schema(
            _build_schema(
                teamrules.KEYS,
                # codes that begin with NP are npuprof's own
                code={"type": "string", "pattern": "^(?![Nn][Pp])[A-Za-z][A-Za-z0-9_-]*$"},
                message=_LINE,
                severity={"enum": list(SEVERITIES)},
            )
        ),
        ignore=list_schema(
            _build_schema(
                teamrules.IGNORE_KEYS, code=build_code_schema(), presets=list_schema(_NAMES, 1)
            )
        ),
        variables=_build_named_schema(_IDENTIFIER, _build_variable_schema()),
        output=list_schema(output),
    )
    return {
        "$schema": DIALECT,
        "$id": "urn:npuprof:project",
        "title": "npuprof project",
        "description": (
            "npuprof.toml, next to a store of presets: its sources, rules and accepted findings."
        ),
        **tables,
    }


def _build_variable_schema() -> Schema:
    """Return the schema of a declared variable: of each kind, with the keys of that kind only."""
    kinds_by_limits = group_pairs((limits, kind) for kind, limits in TEAM_KINDS.items())
    texts = list_schema({"type": "string"}, 1)
    return {
        "anyOf": [
            _build_schema(
                list_variable_keys(kinds[0]), kind={"enum": kinds}, values=texts, doc=_LINE
            )
            for kinds in kinds_by_limits.values()
        ]
    }


def _build_named_schema(names: str, entry: Schema) -> Schema:
    """Return the schema of a table of entries, by names of a pattern."""
    return {
        "type": "object",
        "propertyNames": {"type": "string", "pattern": names},
        "additionalProperties": entry,
    }


def _build_schema(keys: Mapping[str, ProjectKey], **schemas: Schema) -> Schema:
    """Return the schema of a table with some keys; ``schemas`` are narrower than their kinds."""
    described = {}
    for name, key in keys.items():
        schema = schemas.get(name) or _KINDS[key.kind]
        described[name] = {**schema, "description": key.doc}
        if key.kind in _KINDS and "enum" not in schema:
            described[name]["examples"] = [parse_toml_value(key.example.partition(" = ")[2])]
    return table_schema(described, [name for name, key in keys.items() if key.is_required])
