"""JSON Schema (2020-12) of a profile file, made from the catalogue, for editors to complete and to underline.

It refuses nothing that ``check`` lets pass. What it cannot say (rules between options, releases, what is
inherited) is left to ``check``.
"""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import products, releases
from npuprof.catalog.launchers import FACTS
from npuprof.catalog.shapes import Schema, list_schema, table_schema
from npuprof.catalog.values import load_form
from npuprof.document.profile import ACCEPTED, MATCH_KEYS, NAMES, PROFILE_KEYS, SWITCH, TEXT
from npuprof.model import SCENARIOS

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
        "names": list_schema({"type": "string"}),
        "launcher": table_schema(
            {"launcher": {"enum": list(FACTS)}}, ["launcher"], "Filled at start, for each process, from the launcher."
        ),
    }


def _build_profile_table_schema() -> Schema:
    some: Schema = {"type": "string", "pattern": "\\S"}
    kinds: dict[str, Schema] = {
        TEXT: {"type": "string"}, NAMES: {"$ref": "#/$defs/names"}, SWITCH: {"type": "boolean"},
        ACCEPTED: list_schema(table_schema({"code": some, "reason": some}, ["code", "reason"])),
    }  # fmt: skip
    found = {name: {**kinds[key.kind], "description": key.help} for name, key in PROFILE_KEYS.items()}
    found["scenario"] = {"enum": list(SCENARIOS), "description": found["scenario"]["description"]}
    found["cann"]["description"] += f"; known up to {releases.load_releases()[-1]}."
    known = f"{found['products']['description']}: {', '.join(products.product_names())}."
    found["products"] = {**list_schema({"type": "string"}), "description": known}
    return table_schema(found)


def _build_append_schema() -> Schema:
    known = {name: catalog.find_option(name) for name in catalog.record_names()}
    listed = {name: _APPENDED | _description_schema("options", name) for name, option in known.items() if option and option.structure}
    free: Schema = {"type": "object"}
    sections = {
        "options": {"type": "object", "properties": listed},
        **dict.fromkeys(("env", "estimator", "atc"), free),
    }
    return {**table_schema(sections), "description": "What is added to inherited lists instead of replacing them."}


_APPENDED: Schema = {"type": ["array", "object", "string"]}


def _build_override_schema(refs: Schema) -> Schema:
    one = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/names"}]}
    match = {**table_schema(dict.fromkeys(MATCH_KEYS, one)), "minProperties": 1}
    names = {"$ref": "#/$defs/names"}
    parts = {"match": match, "unset": names, **refs, "append": {"$ref": "#/$defs/append"}}
    return {**table_schema(parts, ["match"]), "description": "Values that hold only where the match is met."}


def _build_options_schema() -> Schema:
    return table_schema({name: _build_option_schema(option) for name in catalog.record_names() if (option := catalog.find_option(name))})


def _build_option_schema(option: catalog.Option) -> Schema:
    found = _description_schema("options", option.name)
    if option.default is not None:
        found["default"] = option.default
    if option.deprecated:
        found["deprecated"] = True
    plain = _build_plain_option_schema(option)
    if not option.structure:
        return found | plain
    return {**found, "anyOf": [plain, load_form(option.structure).schema]}


def _build_plain_option_schema(option: catalog.Option) -> Schema:
    """Return what an option takes as text, number or switch."""
    if option.field == "b" or (option.field is None and option.kind == "bool"):
        return {"type": "boolean"}
    whole = option.field == "i"
    if option.choices:
        doubtful = [int(text) if whole else text for text in option.doubtful_values if not whole or text.lstrip("-").isdigit()]
        return {"enum": list(dict.fromkeys((*option.choices, *option.tolerated, *doubtful)))}
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
        texts = [*variable.choices, *variable.tolerated]
        plain: Schema = {"enum": [*texts, *(int(text) for text in texts if text.lstrip("-").isdigit())]}
    elif variable.kind in ("int", "float"):
        number = {"type": "integer" if variable.kind == "int" else "number", **_bounds_schema(variable.minimum, variable.maximum)}
        return {**found, "anyOf": [number, {"type": "string"}, {"$ref": "#/$defs/launcher"}]}
    else:
        plain = {"type": ["string", "number"]}
    return {**found, "anyOf": [plain, {"$ref": "#/$defs/launcher"}]}


def _build_arguments_schema() -> Schema:
    known = [argument for name in catalog.record_names("estimator") if (argument := catalog.find_argument(name))]
    return table_schema(
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
    return table_schema(found)


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
