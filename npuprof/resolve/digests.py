"""Digests: SHA-256 over a canonical, numbered form; equal on every machine.

The digest of a config covers the effective values in one context. The preset digest covers a preset
in all contexts: its layers in order, with their overrides. A change of the canonical form gets a
new number; digests of older forms are recomputed in their own form.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module

from npuprof.catalog import values
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.model import Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The number of the current form.
FORM = 2
#: Types whose equal values are written alike.
_PLAIN = frozenset((str, int, bool))


def compute_digest(settings: dict[str, Any], form: int = FORM) -> str:
    """Return the SHA-256, in hexadecimal, of settings by full key.

    Raises KeyError for an unknown form.
    """
    pairs = [
        (_write_plain_setting if type(value) in _PLAIN else _write_setting)(key, value)
        for key, value in sorted(settings.items())
    ]
    text = {1: "{%s}", 2: '{"form":2,"settings":{%s}}'}[form] % ",".join(pairs)
    return digest_bytes(text.encode())


def _write_setting(key: str, value: Any) -> str:
    canonical = values.build_canonical_value(key, value)
    return f"{_quote_json_string(key)}:{_format_canonical_json(canonical)}"


#: The same, cached: most presets inherit most values; True and 1 differ by their type only.
_write_plain_setting = lru_cache(4096, typed=True)(_write_setting)


def list_digests(settings: dict[str, Any]) -> list[str]:
    """Return the digests of settings in all forms, the current one first.

    Older releases of npuprof wrote another form.
    """
    return [compute_digest(settings, form) for form in range(FORM, 0, -1)]


def compute_preset_digest(lineage: Sequence[Profile]) -> str:
    """Return the SHA-256, in hexadecimal, of a lineage, lowest first: every layer as written.

    Names, descriptions, comments, key order and otherwise empty profiles do not count. Values count
    as written: the catalogue may change with a release, the digest must not.
    """
    layers = ",".join(
        filter(
            None,
            [
                _write_layer(profile) if profile.layer is None else profile.layer
                for profile in lineage
            ],
        )
    )
    abstract = "true" if lineage and lineage[-1].abstract else "false"
    return digest_bytes(f'{{"abstract":{abstract},"form":{FORM},"layers":[{layers}]}}'.encode())


def _write_layer(profile: Profile) -> str:
    """Return the content of a profile as canonical JSON, cached in the profile.

    It is an empty string if there is none.
    """
    content = _describe_layer(profile)
    profile.layer = _format_canonical_json(content) if content else ""
    return profile.layer


def _describe_layer(profile: Profile) -> dict[str, Any]:
    """Return the settings that a profile sets for itself and its dependents.

    Empty parts are left out.
    """
    content = {
        **{
            # the order of products has no meaning, so that it must not change the digest
            name: _sort_values(profile.table[name])
            for name in (*INHERITED_KEYS, "locked")
            if name in profile.table
        },
        **_describe_steps(profile.steps),
        "override": [
            {
                "match": {name: sorted(allowed) for name, allowed in override.match.items()},
                **_describe_steps(override.steps),
            }
            for override in profile.overrides
        ],
    }
    return {name: part for name, part in content.items() if part not in ([], {}, "")}


def _describe_steps(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the unset, set and append operations of a layer."""
    return {
        "unset": sorted(
            {".".join((step.key, *map(str, step.tail))) for step in steps if step.op == "unset"}
        ),
        "set": {step.key: step.value for step in steps if step.op == "set"},
        "append": {step.key: step.value for step in steps if step.op == "append"},
    }


def _sort_values(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sort_values(part) for name, part in value.items()}
    return sorted(map(str, value)) if isinstance(value, list) else value


def _format_canonical_json(value: Any) -> str:
    """Return a value as ASCII JSON with sorted keys and without blanks; dates as tagged objects.

    The same output as ``json.dumps``; importing ``json`` takes longer than writing it.
    """
    if isinstance(value, str):
        return _quote_json_string(value)
    # before int, of which bool is a subclass
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_format_canonical_json, value))}]"
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(
                f"{_quote_json_string(name)}:{_format_canonical_json(value[name])}"
                for name in sorted(value)
            )
            + "}"
        )
    if isinstance(value, (int, float)):
        return repr(value)
    return _format_canonical_json({"$toml": f"{type(value).__name__} {value.isoformat()}"})


def _quote_json_string(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    from json.encoder import encode_basestring_ascii

    return encode_basestring_ascii(text)


def digest_bytes(raw: bytes) -> str:
    """Return a SHA-256.

    OpenSSL is several times faster, but is used only if ``hashlib`` is loaded: loading takes
    longer.
    """
    sha256 = getattr(sys.modules.get("hashlib"), "sha256", None) or _load_built_in_sha256()
    return str(sha256(raw).hexdigest())


@cache
def _load_built_in_sha256() -> Any:
    for name in ("_sha2", "_sha256"):
        try:
            return import_module(name).sha256
        except ImportError:
            continue
    return import_module("hashlib").sha256
