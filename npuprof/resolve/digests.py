"""Digests: SHA-256 over a canonical form that has a number, the same on every machine.

The digest of a config says what is in force in one context. The preset digest says what a preset is, whatever the
context: its layers in their order, each with its overrides. What a later npuprof writes in another form has another
number; what an older one wrote is computed anew in its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from npuprof.catalog import values
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.model import Step

#: The number of the form that is written now.
FORM = 2


def compute_digest(settings: dict[str, Any], form: int = FORM) -> str:
    """Return the SHA-256, in hexadecimal, of settings by full key. Raises KeyError for a form that there is not."""
    canonical = {key: values.build_canonical_value(key, value) for key, value in settings.items()}
    return _hash_text(_format_canonical_json({1: canonical, 2: {"form": 2, "settings": canonical}}[form]))


def list_digests(settings: dict[str, Any]) -> list[str]:
    """Return the digests of settings in all forms that there are, that of now first: what an older npuprof wrote names another."""
    return [compute_digest(settings, form) for form in range(FORM, 0, -1)]


def compute_preset_digest(lineage: Sequence[Profile]) -> str:
    """Return the SHA-256, in hexadecimal, of a lineage, lowest first: every layer as it is written.

    Names, descriptions, comments and the order of keys do not count, nor a profile that says nothing else. Values do as
    they are written: what the catalogue knows of an option changes with its releases, and the digest does not.
    """
    layers = ",".join([text for profile in lineage if (text := _write_layer(profile))])
    abstract = "true" if lineage and lineage[-1].abstract else "false"
    return _hash_text(f'{{"abstract":{abstract},"form":{FORM},"layers":[{layers}]}}')


def _write_layer(profile: Profile) -> str:
    """Return what a profile says as canonical JSON, an empty text where it says nothing: written once for all that it is a layer of."""
    if profile.layer is None:
        content = _describe_layer(profile)
        profile.layer = _format_canonical_json(content) if content else ""
    return profile.layer


def _describe_layer(profile: Profile) -> dict[str, Any]:
    """Return what a profile says for itself and its heirs, without the parts it leaves out."""
    content = {
        **{name: _sort_texts(profile.table[name]) for name in (*INHERITED_KEYS, "locked") if name in profile.table},
        **_describe_steps(profile.steps),
        "override": [
            {"match": {name: sorted(wanted) for name, wanted in override.match.items()}, **_describe_steps(override.steps)}
            for override in profile.overrides
        ],
    }
    return {name: part for name, part in content.items() if part not in ([], {}, "")}


def _describe_steps(steps: Sequence[Step]) -> dict[str, Any]:
    """Return what a layer clears, sets and appends."""
    return {
        "unset": sorted({".".join((step.key, *map(str, step.tail))) for step in steps if step.op == "unset"}),
        "set": {step.key: step.value for step in steps if step.op == "set"},
        "append": {step.key: step.value for step in steps if step.op == "append"},
    }


def _sort_texts(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, list) else value


def _hash_text(text: str) -> str:
    return str(load_sha256()(text.encode()).hexdigest())


def _format_canonical_json(value: Any) -> str:
    """Return a value as JSON in ASCII, keys sorted, without blanks; dates as objects that say so.

    What ``json.dumps`` would write; importing ``json`` takes longer than writing it.
    """
    if isinstance(value, str):
        return _quote_json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_format_canonical_json, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote_json_string(name)}:{_format_canonical_json(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, (int, float)):
        return repr(value)
    return _format_canonical_json({"$toml": f"{type(value).__name__} {value.isoformat()}"})


def _quote_json_string(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    from json.encoder import encode_basestring_ascii

    return encode_basestring_ascii(text)


@cache
def load_sha256() -> Any:
    """Return the hash without OpenSSL where the interpreter has it so: importing ``hashlib`` takes longer."""
    from importlib import import_module

    for name in ("_sha2", "_sha256"):
        try:
            return import_module(name).sha256
        except ImportError:
            continue
    return import_module("hashlib").sha256
