"""The JSON Schema (draft 7, as TOML editors support) of a preset, made from the catalogue.

It accepts every preset that ``check`` calls clean. Rules between options, releases and inheritance
are left to ``check``.
"""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import code_pages, products, releases, targets
from npuprof.catalog.record_schemas import (
    LAUNCHER,
    build_appended_schema,
    build_argument_schema,
    build_description,
    build_launcher_schema,
    build_option_schema,
    build_product_schema,
    build_value_schema,
    build_variable_schema,
)
from npuprof.catalog.records import NONE_DECLARED, TeamVariables
from npuprof.catalog.shapes import Schema, list_schema, table_schema
from npuprof.document.profile import (
    ACCEPTED,
    MATCH_KEYS,
    NAMES,
    PROFILE_KEYS,
    RELEASES,
    SWITCH,
    TEXT,
    VALUES,
)
from npuprof.model import FRAMEWORK_SECTIONS, LIST_OPS, SCENARIOS, Axes

#: Taplo (Even Better TOML) and Schema Store support no later draft: they ignore unknown keywords of
#: 2020-12.
DIALECT = "http://json-schema.org/draft-07/schema#"
_RELEASE = (
    r"[0-9]+(?:\.[0-9]+){0,2}(?:\.[Rr][Cc][0-9]+)?"
    r"(?:[.-]?(?:[Aa][Ll][Pp][Hh][Aa]|[Bb][Ee][Tt][Aa])[0-9]*)?"
)
_VERSION = r"[vV]?[0-9]+(?:\.[0-9]+){0,2}(?:[.-]?(?:[Rr][Cc]|[Pp][Oo][Ss][Tt])[0-9]*)?"
_SEGMENT = "[A-Za-z0-9_][A-Za-z0-9._-]*"
#: An element of ``extends``: a preset, optionally of another store, optionally at a version or
#: revision.
_REFERENCE: Schema = {
    "type": "string",
    "pattern": rf"^(?:[A-Za-z0-9][A-Za-z0-9_-]*:)?{_SEGMENT}(?:/{_SEGMENT})*(?:@\S.*)?$",
    "not": {"type": "string", "pattern": r"^[^@]*\.toml(?:@|$)"},
}
_SOME: Schema = {"type": "string", "pattern": r"\S"}


def build_profile_schema(
    axes: Axes | None = None, declared: TeamVariables = NONE_DECLARED
) -> Schema:
    """Return the schema of a profile file of a store that declares these axes and variables."""
    sections = {name: _build_section(section) for name, section in catalog.load_sections().items()}
    sections["env"]["properties"] |= {
        name: {"description": variable.texts["summary"], **build_variable_schema(variable)}
        for name, variable in declared.items()
    }
    refs = {name: {"$ref": f"#/definitions/{name}"} for name in (*sections, *LIST_OPS)}
    values = {name: {"enum": list(known)} for name, known in (axes or {}).items()}
    return {
        "$schema": DIALECT,
        "$id": "urn:npuprof:profile",
        "title": "npuprof profile",
        "description": "A preset for Huawei Ascend NPUs: its purpose, its parents and its values.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "profile": {"$ref": "#/definitions/profile"},
            **refs,
            "override": list_schema({"$ref": "#/definitions/override"}),
        },
        "definitions": {
            "profile": _build_profile_table_schema(values),
            **sections,
            "append": _build_elements_schema(
                "Values to append to inherited lists instead of replacing them."
            ),
            "remove": _build_elements_schema("Elements to take out of inherited lists."),
            "override": _build_override_schema(refs, values),
            "keys": _build_keys_schema(),
            "code": build_code_schema(),
            "product": build_product_schema(),
            "release-range": _build_range_schema(_RELEASE),
            "version-range": _build_range_schema(_VERSION),
            "launcher": build_launcher_schema(),
        },
    }


def _build_range_schema(version: str) -> Schema:
    """Return the schema of a range over versions that match a pattern."""
    clause = rf"\s*(?:[<>=!]=|[<>])?\s*{version}\s*"
    return {"type": "string", "pattern": f"^{clause}(?:,{clause})*$"}


def _list_framework_ranges() -> dict[str, Schema]:
    """Return the schema of a release range for each framework, by name."""
    return {name: {"$ref": "#/definitions/version-range"} for name in releases.list_frameworks()}


def build_code_schema() -> Schema:
    """Return the schema of a code whose findings can be accepted: npuprof's or a team's."""
    codes = catalog.load_built_part("severities")
    known = [code for code in codes if not code_pages.find_acceptance_fault(code)]
    return {"anyOf": [{"enum": known}, {**_SOME, "not": {"type": "string", "pattern": "^NP"}}]}


def _build_profile_table_schema(values: dict[str, Schema]) -> Schema:
    keys: Schema = {"$ref": "#/definitions/keys"}
    accepted = table_schema(
        {"code": {"$ref": "#/definitions/code"}, "reason": _SOME}, ["code", "reason"]
    )
    kinds = {
        TEXT: {"type": "string"},
        NAMES: list_schema({"type": "string"}),
        SWITCH: {"type": "boolean"},
        ACCEPTED: list_schema(accepted),
        RELEASES: table_schema(
            {"cann": {"$ref": "#/definitions/release-range"}, **_list_framework_ranges()}
        ),
        VALUES: table_schema({name: list_schema(value, 1) for name, value in values.items()}),
    }
    closer: dict[str, Schema] = {
        "scenario": {"enum": list(SCENARIOS)},
        "cann": {"$ref": "#/definitions/release-range"},
        "products": list_schema({"$ref": "#/definitions/product"}),
        "extends": list_schema(_REFERENCE),
        "unset": list_schema(keys),
        "locked": list_schema({"allOf": [keys, _build_known_key_schema()]}),
    }
    properties = {
        name: {**closer.get(name, kinds[key.kind]), "description": key.help}
        for name, key in PROFILE_KEYS.items()
    }
    properties["cann"]["description"] += f"; known up to {releases.load_releases()[-1]}."
    properties["products"]["description"] += (
        f": {', '.join(products.product_names())}; or a chip, as Ascend910B2."
    )
    return {
        **table_schema(properties),
        "description": "Metadata of the preset: its purpose and its parents.",
    }


def _build_keys_schema() -> Schema:
    """Return the schema of a setting key.

    Editors suggest the catalogue's keys; other keys are allowed, as a parent may contain one.
    """
    return {
        "anyOf": [
            {"enum": _list_keys()},
            {"type": "string", "pattern": "^\\s*(?:[A-Za-z0-9_-]|'[^'\\n]*'|\"[^\\n]*\")"},
        ]
    }


def _build_known_key_schema() -> Schema:
    """Return the schema of a known key: an option, or any name of another section."""
    return {
        "anyOf": [
            {"enum": list(catalog.record_names())},
            {"type": "string", "pattern": "[.'\"\\s]"},
        ]
    }


def _list_keys() -> list[str]:
    return [
        section.format_key(name)
        for section in catalog.load_sections().values()
        for name in section.names
    ]


def _build_elements_schema(description: str) -> Schema:
    listed = {
        option.name: schema
        for option in catalog.list_records(catalog.Option)
        if (schema := build_appended_schema(option)) is not None
    }
    none = {**table_schema({}), "description": "Nothing here is a list."}
    sections = {**dict.fromkeys(catalog.load_sections(), none), "options": table_schema(listed)}
    sections |= {name: {"type": "object"} for name in FRAMEWORK_SECTIONS}
    return {**table_schema(sections), "description": description}


def _build_override_schema(refs: Schema, values: dict[str, Schema]) -> Schema:
    axes: Schema = {
        "product": {"$ref": "#/definitions/product"},
        "cann": {"$ref": "#/definitions/release-range"},
        "scenario": {"enum": list(SCENARIOS)},
        "target": {"enum": list(targets.list_target_names())},
    }
    axes = {**{key: axes[key] for key in MATCH_KEYS}, **_list_framework_ranges(), **values}
    match = {
        **table_schema({key: {"anyOf": [axis, list_schema(axis)]} for key, axis in axes.items()}),
        "minProperties": 1,
    }
    names = list_schema({"$ref": "#/definitions/keys"})
    parts = {"match": match, "unset": names, **refs}
    return {
        **table_schema(parts, ["match"]),
        "description": "Values that hold only where the match is met.",
    }


def _build_section(section: catalog.Section) -> Schema:
    """Return the schema of a section, with a table for each group of settings.

    Without objects that only a script can create.
    """
    if section.name == "env":
        return _build_env_schema(section.description)
    schema = {**table_schema({}), "description": section.description}
    if section.launch:
        fields = {"": schema["properties"], **{name: {} for name in section.names}}
        for each in catalog.list_records(catalog.Setting, section.name):
            group, _, leaf = each.name.rpartition(".")
            built = build_argument_schema(section.name, each, fields[each.name])
            _find_fields(fields, group)[leaf] = built
        if section.is_exact:
            del schema["additionalProperties"]
        return {**schema, "patternProperties": {r"\.": True}}
    for name in section.names:
        *groups, leaf = name.split(".")
        properties = schema["properties"]
        for group in groups:
            table = properties.setdefault(group, table_schema({}))
            if table.get("type") == "array":
                table = table.setdefault("items", table_schema({}))
            properties = table["properties"]
        record = section.find(name)
        if isinstance(record, catalog.Option):
            properties[leaf] = build_option_schema(record)
        elif isinstance(record, catalog.Setting) and (
            kind := {"json": "object", "list": "array"}.get(record.kind)
        ):
            properties[leaf] = {**build_description(section.name, name), "type": kind}
        elif record is not None and record.kind != "object":
            properties[leaf] = build_value_schema(section.name, record)
    return schema


def _find_fields(fields: dict[str, Schema], group: str) -> Schema:
    """Return the schemas of the fields of a table, which is added if it has no record."""
    if group not in fields:
        fields[group] = {}
        above, _, leaf = group.rpartition(".")
        table = {"type": "object", "properties": fields[group]}
        _find_fields(fields, above)[leaf] = table
    return fields[group]


def _build_env_schema(description: str) -> Schema:
    known = {
        variable.name: build_variable_schema(variable)
        for variable in catalog.list_records(catalog.Variable, "env")
    }
    filled_in = "|".join(
        (*catalog.PROVENANCE_VARIABLES, *(name.upper() for name in catalog.record_names()))
    )
    return {
        "type": "object",
        "description": description,
        "properties": known,
        "patternProperties": {f"^NPUPROF_(?:{filled_in})$": False},
        "propertyNames": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "additionalProperties": {"anyOf": [{"type": "string"}, {"type": "number"}, LAUNCHER]},
    }
