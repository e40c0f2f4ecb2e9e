"""JSON Schema (2020-12) of a profile file, made from the catalogue, for editors to complete and to underline.

It refuses nothing that ``check`` lets pass. What it cannot say (rules between options, releases, what is
inherited) is left to ``check``.
"""

from __future__ import annotations

from typing import Any

from npuprof import catalog
from npuprof.catalog import products, releases, sidecars
from npuprof.catalog.launchers import FACTS
from npuprof.document.profile import MATCH_KEYS, NAMES, PROFILE_KEYS, SWITCH, TEXT
from npuprof.model import SCENARIOS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_profile_schema() -> Schema:
    """Return the schema of a profile file."""
    sections = {
        "options": _build_options_schema(),
        "env": _build_env_schema(),
        "estimator": _build_arguments_schema(),
        "atc": _build_flags_schema(),
    }
    refs = {name: {"$ref": f"#/$defs/{name}"} for name in sections}
    return {
        "$schema": DIALECT,
        "title": "npuprof profile",
        "description": "A preset for Huawei Ascend NPUs: what it is for, whom it extends, and the values it sets.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "profile": {"$ref": "#/$defs/profile"},
            **refs,
            "append": {"$ref": "#/$defs/append"},
            "override": {"type": "array", "items": {"$ref": "#/$defs/override"}},
        },
        "$defs": {
            "profile": _build_profile_table_schema(),
            **sections,
            "append": _build_append_schema(),
            "override": _build_override_schema(refs),
            **_build_common_schemas(),
        },
    }


def _build_common_schemas() -> Schema:
    return {
        "names": _list_schema({"type": "string"}),
        "launcher": _table_schema(
            {"launcher": {"enum": list(FACTS)}}, ["launcher"], "Filled at start, for each process, from the launcher."
        ),
    }


def _build_profile_table_schema() -> Schema:
    kinds: dict[str, Schema] = {TEXT: {"type": "string"}, NAMES: {"$ref": "#/$defs/names"}, SWITCH: {"type": "boolean"}}
    found = {name: {**kinds[key.kind], "description": key.help} for name, key in PROFILE_KEYS.items()}
    found["scenario"] = {"enum": list(SCENARIOS), "description": found["scenario"]["description"]}
    found["cann"]["description"] += f"; known up to {releases.load_releases()[-1]}."
    known = f"{found['products']['description']}: {', '.join(products.product_names())}."
    found["products"] = {**_list_schema({"type": "string"}), "description": known}
    return _table_schema(found)


def _build_append_schema() -> Schema:
    known = {name: catalog.find_option(name) for name in catalog.record_names()}
    listed = {name: _APPENDED | _description_schema("options", name) for name, option in known.items() if option and option.structure}
    free: Schema = {"type": "object"}
    sections = {
        "options": {"type": "object", "properties": listed},
        **dict.fromkeys(("env", "estimator", "atc"), free),
    }
    return {**_table_schema(sections), "description": "What is added to inherited lists instead of replacing them."}


_APPENDED: Schema = {"type": ["array", "object", "string"]}


def _build_override_schema(refs: Schema) -> Schema:
    one = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/names"}]}
    match = {**_table_schema(dict.fromkeys(MATCH_KEYS, one)), "minProperties": 1}
    names = {"$ref": "#/$defs/names"}
    parts = {"match": match, "unset": names, **refs, "append": {"$ref": "#/$defs/append"}}
    return {**_table_schema(parts, ["match"]), "description": "Values that hold only where the match is met."}


def _build_options_schema() -> Schema:
    return _table_schema({name: _build_option_schema(option) for name in catalog.record_names() if (option := catalog.find_option(name))})


def _build_option_schema(option: catalog.Option) -> Schema:
    found = _description_schema("options", option.name)
    if option.default is not None:
        found["default"] = option.default
    if option.deprecated:
        found["deprecated"] = True
    plain = _build_plain_option_schema(option)
    if not option.structure:
        return found | plain
    return {**found, "anyOf": [plain, SHAPES[option.structure]]}


def _build_plain_option_schema(option: catalog.Option) -> Schema:
    """Return what an option takes as text, number or switch."""
    if option.field == "b" or (option.field is None and option.kind == "bool"):
        return {"type": "boolean"}
    whole = option.field == "i"
    if option.choices:
        doubtful = [int(text) if whole else text for text in option.doubtful_values if not whole or text.lstrip("-").isdigit()]
        return {"enum": list(dict.fromkeys((*option.choices, *doubtful)))}
    if whole:
        plain = {"type": "integer", **_bounds_schema(option.minimum, option.maximum)}
        doubts = [int(text) for text in option.doubtful_values if text.lstrip("-").isdigit()]
        return {"anyOf": [plain, {"enum": doubts}]} if doubts and len(plain) > 1 else plain
    if option.kind.startswith("path"):
        return {"type": "string", "minLength": 1}
    if option.pattern and not option.structure:
        patterns = "|".join(f"(?:{pattern})" for pattern in (option.pattern, option.lax_pattern) if pattern)
        return {"type": "string", "pattern": f"^(?:{patterns})$"}
    return {"type": "string"}


def _build_env_schema() -> Schema:
    known = {name: _build_variable_schema(variable) for name in catalog.record_names("env") if (variable := catalog.find_variable(name))}
    text: Schema = {"anyOf": [{"type": ["string", "number"]}, {"$ref": "#/$defs/launcher"}]}
    return {
        "type": "object",
        "properties": known,
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "additionalProperties": text,
    }


def _build_variable_schema(variable: catalog.Variable) -> Schema:
    found = _description_schema("env", variable.name)
    if variable.deprecated:
        found["deprecated"] = True
    if variable.choices:
        numbers = [int(text) for text in variable.choices if text.lstrip("-").isdigit()]
        plain: Schema = {"enum": [*variable.choices, *numbers]}
    elif variable.kind in ("int", "float"):
        number = {"type": "integer" if variable.kind == "int" else "number", **_bounds_schema(variable.minimum, variable.maximum)}
        return {**found, "anyOf": [number, {"type": "string"}, {"$ref": "#/$defs/launcher"}]}
    else:
        plain = {"type": ["string", "number"]}
    return {**found, "anyOf": [plain, {"$ref": "#/$defs/launcher"}]}


def _build_arguments_schema() -> Schema:
    known = [argument for name in catalog.record_names("estimator") if (argument := catalog.find_argument(name))]
    return _table_schema(
        {
            argument.name: _description_schema("estimator", argument.name) | _build_value_schema(argument)
            for argument in known
            if argument.kind != "object"
        }
    )


def _build_flags_schema() -> Schema:
    found: Schema = {}
    for name in catalog.record_names("atc"):
        flag = catalog.find_flag(name)
        assert flag is not None, "the name is of the catalogue"
        found[name] = _description_schema("atc", name) | _build_value_schema(flag)
        if flag.pattern and not flag.choices:
            found[name]["pattern"] = f"^(?:{flag.pattern})$"
        if flag.deprecated:
            found[name]["deprecated"] = True
    return _table_schema(found)


def _build_value_schema(record: catalog.Argument | catalog.Flag) -> Schema:
    if record.choices:
        return {"enum": list(record.choices)}
    kind = {"int": "integer", "bool": "boolean", "float": "number"}.get(record.kind, "string")
    return {"type": kind, **(_bounds_schema(record.minimum, record.maximum) if kind in ("integer", "number") else {})}


def _bounds_schema(low: float | None, high: float | None) -> Schema:
    return {name: bound for name, bound in (("minimum", low), ("maximum", high)) if bound is not None}


def _description_schema(section: str, name: str) -> Schema:
    """Return the description of a setting; its value docs as lines of it."""
    text = catalog.find_record_texts(section, name)
    lines = [" ".join(filter(None, (text.get("summary"), text.get("doc"))))]
    lines += [f"{value}: {meaning}" for value, meaning in text.get("value_docs", {}).items()]
    found: Schema = {"description": "\n".join(filter(None, lines))} if any(lines) else {}
    if (example := text.get("example")) is not None:
        found["examples"] = [example]
    return found


def _table_schema(properties: Schema, required: list[str] | None = None, description: str = "") -> Schema:
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": required} if required else {}) | ({"description": description} if description else {})


def _list_schema(items: Schema, low: int = 0) -> Schema:
    return {"type": "array", "items": items, **({"minItems": low} if low else {})}


def _map_schema(values: Schema, low: int = 1) -> Schema:
    return {"type": "object", "additionalProperties": values, **({"minProperties": low} if low else {})}


_NAME: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_SWITCH: Schema = {"enum": ["on", "off"]}
_MODES: Schema = _map_schema({"enum": list(sidecars.IMPLEMENTATION_MODES)}, 0)
_MOVES: Schema = _table_schema({"to-add": _list_schema(_NAME), "to-remove": _list_schema(_NAME)})
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_SIZE: Schema = {"anyOf": [{"type": "integer", "minimum": -1}, {"type": "string", "pattern": "^[0-9]+~[0-9]+$"}]}

#: The structured form of each structure, by its name in the catalogue.
SHAPES: dict[str, Schema] = {
    "words": _list_schema(_NAME, 1),
    "names": _list_schema(_NAME, 1),
    "ids": _list_schema(_WHOLE, 1),
    "shapes": _map_schema(_list_schema({"type": "integer", "minimum": -1}, 1)),
    "size-profiles": _list_schema(_list_schema(_WHOLE, 1), 1),
    "steps": _list_schema({"anyOf": [_WHOLE, {"type": "string", "pattern": "^[0-9]+-[0-9]+$"}]}, 1),
    "counts": _map_schema(_COUNT),
    "cores": {**_list_schema(_COUNT, 2), "maxItems": 2},
    "node-ranges": {**_list_schema({**_list_schema(_list_schema(_NAME, 1), 2), "maxItems": 2}, 1), "maxItems": 1},
    "acceleration": {
        "type": "array",
        "prefixItems": [{"enum": ["fast", "fast1"]}, {"enum": ["step", "loss"]}, {"type": "number"}],
        "minItems": 2,
        "maxItems": 3,
    },
    "shape-ranges": {**_table_schema({kind: _list_schema(_list_schema(_SIZE), 1) for kind in ("getnext", "data")}), "minProperties": 1},
    "switches": _map_schema(_SWITCH),
    "json": {"type": "object"},
    "mixlist": _table_schema(dict.fromkeys(("black-list", "white-list", "gray-list"), _MOVES)),
    "op-precision": _table_schema({"ByOpType": _MODES, "ByNodeName": _MODES}),
    "custom-dtypes": _map_schema(
        {**_table_schema({side: _list_schema({"type": "string"}) for side in ("InputDtype", "OutputDtype")}), "minProperties": 1}
    ),
    "fusion-switch": _table_schema(
        {
            "Switch": _table_schema({"GraphFusion": _map_schema(_SWITCH, 0), "UBFusion": _map_schema(_SWITCH, 0)}),
            "Priority": {},
            "ExceptionalPassOfO1Level": {},
        }
    ),
    "op-debug": _table_schema(
        {"op_debug_config": _list_schema({"enum": list(sidecars.DEBUG_OPTIONS)}, 1), "op_debug_list": _list_schema(_NAME)}
    ),
    "aoe-config": _table_schema(
        {
            "tune_ops_name": _list_schema(_NAME),
            "tune_ops_type": _list_schema(_NAME),
            "tune_optimization_level": {"enum": ["O1", "O2"]},
            "feature": _list_schema({"enum": ["deeper_opat", "nonhomo_split"]}),
        }
    ),
}
