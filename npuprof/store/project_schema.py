"""The JSON Schema of ``npuprof.toml``, for editors; it accepts everything that npuprof accepts."""

from __future__ import annotations

import re

from npuprof.catalog.preset_schema import DIALECT, build_code_schema
from npuprof.catalog.shapes import Schema, list_schema, table_schema
from npuprof.catalog.targets import load_target_index
from npuprof.model import SEVERITIES
from npuprof.store.project import TAKEN_NAMES, TEAM_KINDS

_TEXT: Schema = {"type": "string"}
_SOME: Schema = {"type": "string", "pattern": r"\S"}
_LINE: Schema = {"type": "string", "pattern": r"^[^\n]*\S[^\n]*$"}
_NUMBER = r"v?[0-9]{1,9}(?:\.[0-9]{1,9}){0,2}(?:-[0-9A-Za-z.-]+)?"
_BOUND = rf"\s*(?:\^|~|>=|<=|==|=|>|<)?\s*{_NUMBER}\s*"
_GLOB: Schema = {"type": "string", "pattern": r"^[^/?\[\]{}!\\.-][^?\[\]{}!\\]*\.toml$"}
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


def build_project_schema() -> Schema:
    """Return the schema of ``npuprof.toml``."""
    tables = {
        "requires": _describe(
            {"type": "string", "pattern": rf"^(?:\s*\*\s*|{_BOUND}(?:,{_BOUND})*)$"},
            "The npuprof it needs.",
            ">=0.3",
        ),
        "presets": _describe(
            list_schema(_GLOB),
            "Globs of presets outside the store, from this folder.",
            ["jobs/*/preset.toml"],
        ),
        "sources": {
            "type": "object",
            "description": "Stores of other repositories, by the names they have here.",
            "propertyNames": {
                "type": "string",
                # as is_source_name: other prefixes before a colon have another meaning
                "pattern": f"^(?!(?:{_TAKEN})$)[A-Za-z0-9][A-Za-z0-9_-]*$",
            },
            "additionalProperties": _build_source_schema(),
        },
        "axes": {
            "type": "object",
            "description": "Values along which presets vary, by axis.",
            # as find_name_fault: an axis has no other meaning
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "additionalProperties": list_schema({"type": "string", "pattern": "^[^ ,=]+$"}, 1),
        },
        "rule": _describe(
            list_schema(_build_rule_schema()), "Team rules, in addition to npuprof's own."
        ),
        "ignore": _describe(
            list_schema(_build_ignore_schema()),
            "Findings that are accepted, each with its reason.",
        ),
        "variables": {
            "type": "object",
            "description": "Environment variables of the team's own programs.",
            "propertyNames": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            "additionalProperties": _build_variable_schema(),
        },
        "output": _describe(
            list_schema(_build_output_schema()), "The files that npuprof render --all writes."
        ),
    }
    return {
        "$schema": DIALECT,
        "$id": "urn:npuprof:project",
        "title": "npuprof project",
        "description": (
            "npuprof.toml, next to a store of presets: its sources, rules and accepted findings."
        ),
        **table_schema(tables),
    }


def _build_source_schema() -> Schema:
    folder = "The folder of the store there; profiles if omitted."
    keys = {
        "url": _describe(_SOME, "Any git URL: ssh, https, file.", "ssh://git@host/presets.git"),
        "path": _describe(_SOME, folder, "profiles"),
        "rev": _describe(_SOME, "A range over the store's tags vX.Y.Z, or any revision.", "^2.1"),
        "rules": _describe(
            {"type": "boolean"}, "Whether the source's own rules bind the presets here, too."
        ),
        "vendor": _describe(_SOME, "The folder of a copy in this repository.", "vendor/team"),
    }
    return table_schema(keys, ["url"])


def _build_variable_schema() -> Schema:
    number = {"type": "number"}
    keys = {
        "kind": _describe({"enum": [*TEAM_KINDS]}, "The kind of its values."),
        "doc": _describe(_LINE, "What it does.", "picks the backend"),
        "values": _describe(list_schema({"type": "string"}, 1), "The values of an enum."),
        "min": _describe(number, "The least number."),
        "max": _describe(number, "The greatest number."),
    }
    return table_schema(keys, ["kind"])


def _build_output_schema() -> Schema:
    keys = {
        "spec": _describe(_SOME, "The preset, or several joined by +.", "serving+decode"),
        "to": _describe({"enum": [*load_target_index()]}, "The target.", "vllm"),
        "path": _describe(_SOME, "Its file or folder, from this folder.", "deploy/decode"),
        "product": _describe(_SOME, "The product.", "atlas-a3"),
        "cann": _describe(_SOME, "The CANN release.", "9.0.0"),
    }
    # releases of frameworks and values of axes
    return {**table_schema(keys, ["spec", "to", "path"]), "additionalProperties": _SOME}


def _build_rule_schema() -> Schema:
    keys = {
        "code": _describe(
            # codes that begin with NP are npuprof's own
            {"type": "string", "pattern": "^(?![Nn][Pp])[A-Za-z][A-Za-z0-9_-]*$"},
            "Its name among findings.",
            "TEAM-1",
        ),
        "when": _describe(
            _SOME, "Where the rule applies; always by default.", "scenario == 'training'"
        ),
        "require": _describe(
            _SOME,
            "The condition that must be true there; an unset value is not true.",
            "deterministic == 1",
        ),
        "message": _describe(
            _LINE,
            "The message of a finding.",
            "training is repeatable",
        ),
        "severity": _describe(
            {"enum": list(SEVERITIES)}, "The severity of a finding; error if omitted."
        ),
        "presets": _describe(
            list_schema(_NAMES), "Globs of preset names; all presets if omitted.", ["production/*"]
        ),
    }
    return table_schema(keys, ["code", "require"])


def _build_ignore_schema() -> Schema:
    code = build_code_schema()
    keys = {
        "code": {**code, "description": "The code of the findings that are accepted."},
        "reason": _describe(_SOME, "Why they are.", "one device only"),
        "presets": _describe(
            list_schema(_NAMES, 1), "Globs of the names of the presets.", ["production/*"]
        ),
    }
    return table_schema(keys, ["code", "reason", "presets"])


def _describe(schema: Schema, description: str, example: object = None) -> Schema:
    described = {**schema, "description": description}
    if example is not None:
        described["examples"] = [example]
    return described
