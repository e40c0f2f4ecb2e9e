"""The published schema of a record: what programs that read records, or write them, can rely on."""

from __future__ import annotations

from typing import Any

from npuprof.model import SCENARIOS
from npuprof.runs.records import SCHEMA

_TEXT = {"type": "string"}
_MAY_BE_TEXT = {"type": ["string", "null"]}
_COUNT = {"type": ["integer", "null"], "minimum": 0}
_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def build_record_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record of a run."""
    origin = _build_object(
        {"profile": _TEXT, "path": _TEXT, "line": _COUNT, "column": _COUNT, "layer": _TEXT, "revision": _MAY_BE_TEXT}, ("profile", "path")
    )
    setting = _build_object(
        {
            "key": {"type": "string", "minLength": 1},
            "value": {"description": 'as TOML has it; what JSON has no form for is {"$toml": TEXT}', "not": {"type": "null"}},
            "origins": {"type": "array", "items": origin, "description": "who set it, the winner first"},
        },
        ("key", "value"),
    )
    source = _build_object({"name": _TEXT, "url": _TEXT, "version": _MAY_BE_TEXT, "commit": _MAY_BE_TEXT}, ("name", "url"))
    profile = _build_object(
        {
            "name": _TEXT,
            "path": _TEXT,
            "layer": {"enum": ["preset", "source", "personal"]},
            "commit": _MAY_BE_TEXT,
            "dirty": {
                "type": ["boolean", "null"],
                "description": "whether the file was another than the commit has; null: nobody can tell",
            },
            "repository": _TEXT,
            "source": {"anyOf": [source, _TEXT]},
        },
        ("name", "path", "layer"),
    )
    fields = {
        "schema": {"const": SCHEMA},
        "npuprof": {"type": "string", "description": "the npuprof that wrote it"},
        "by": {"enum": ["run", "env-loader"], "description": "who wrote it: npuprof run, or the function in the script"},
        "state": {
            "enum": ["running", "ended", "not started", "loaded"],
            "description": "running: it still runs, or was killed together with who kept the record",
        },
        "asked": {"type": "object", "description": "what stood on the command line: spec, with, set, unset, cann, product, store"},
        "preset": _build_object(
            {
                "name": _TEXT,
                "description": _MAY_BE_TEXT,
                "scenario": {"enum": [*SCENARIOS, None]},
                "cann": _MAY_BE_TEXT,
                "products": {"type": ["array", "null"], "items": _TEXT},
                "digest": _DIGEST,
                "preset_digest": _DIGEST,
                "digest_form": {"type": "integer"},
            },
            ("name",),
        ),
        "context": _build_object({"cann": _TEXT, "product": _TEXT, "text": _TEXT}, ()),
        "profiles": {"type": "array", "items": profile, "description": "the files that took part, lowest first"},
        "command": _build_object(
            {
                "program": _TEXT,
                "script": {**_MAY_BE_TEXT, "description": "the first argument that was a file"},
                "digest": {**_DIGEST, "description": "SHA-256 of the JSON list of the arguments"},
                "arguments": {"type": "array", "items": _TEXT, "description": "only with --record-args, redacted by their names"},
            },
            ("program", "script", "digest"),
        ),
        "settings": {"type": "array", "items": setting},
        "environment": {
            "type": "object",
            "additionalProperties": _TEXT,
            "description": "the variables that the preset or the catalogue names, as the command got them; no others",
        },
        "hidden": {"type": "array", "items": _TEXT, "description": "what is not told, as it may log somebody in"},
        "process": _build_object(
            {
                "pid": _COUNT, "host": _TEXT, "rank": _COUNT, "local_rank": _COUNT, "world_size": _COUNT, "job": _MAY_BE_TEXT,
                "folder": _TEXT,
            },
            ("pid", "host", "rank"),
        ),
        "start": {"type": "string", "format": "date-time"},
        "end": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "exit": {
            "anyOf": [
                {"type": "null"},
                _build_object({"code": {**_COUNT, "maximum": 255}, "signal": _MAY_BE_TEXT}, ("code", "signal")),
            ]
        },
    }  # fmt: skip
    fields["proof"] = _build_object({"code": {"enum": [0, 1, 2]}, "log": _TEXT}, ("code", "log"))
    required = ("schema", "npuprof", "by", "state", "preset", "settings", "environment", "process", "start")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('.', ':').replace('/', ':')}",
        "title": "npuprof record of a run",
        **_build_object(fields, required),
    }


def _build_object(properties: dict[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema of an object; a later npuprof may say more in it."""
    return {"type": "object", "properties": properties, "required": list(required)}
