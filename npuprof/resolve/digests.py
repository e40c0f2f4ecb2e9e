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
from npuprof.document.profile import FORM as FORM
from npuprof.document.profile import INHERITED_KEYS, Profile
from npuprof.document.profile import OLDER_FORM as OLDER_FORM
from npuprof.model import LIST_OPS, Any, Step, TomlTable

#: The forms whose preset digests are compared, newest first.
COMPARED_FORMS = (FORM, OLDER_FORM)
#: Types whose equal values are written alike.
_PLAIN = frozenset((str, int, bool))
#: Types of variables whose text does not depend on the catalogue.
_NUMBERS = frozenset((int, float))


def compute_digest(settings: TomlTable, form: int = FORM) -> str:
    """Return the SHA-256, in hexadecimal, of settings by full key.

    Raises KeyError for an unknown form.
    """
    is_older = form < FORM
    pairs = [
        (_write_plain_setting if type(value) in _PLAIN else _write_setting)(key, value, is_older)
        for key, value in sorted(settings.items())
    ]
    settings_of = '"settings":{%s}}'
    text = {1: "{%s}", 2: '{"form":2,' + settings_of, 3: '{"form":3,' + settings_of}[form]
    return digest_bytes((text % ",".join(pairs)).encode())


def _write_setting(key: str, value: Any, is_older: bool) -> str:
    build = values.build_older_canonical_value if is_older else values.build_canonical_value
    return f"{_quote_json_string(key)}:{_format_canonical_json(build(key, value))}"


#: The same, cached: most presets inherit most values; True and 1 differ by their type only.
_write_plain_setting = lru_cache(4096, typed=True)(_write_setting)


def list_digests(settings: TomlTable) -> list[str]:
    """Return the digests of settings in all forms, the current one first.

    Older releases of npuprof wrote another form.
    """
    return [compute_digest(settings, form) for form in range(FORM, 0, -1)]


def compute_preset_digest(lineage: Sequence[Profile], form: int = 0) -> str:
    """Return the SHA-256, in hexadecimal, of a lineage, lowest first: every layer as written.

    Names, descriptions, comments, key order and otherwise empty profiles do not count. Values count
    as written, numbers of variables as text: the catalogue may change with a release, the digest
    must not. The form is that of the last profile, if it is not given.
    """
    form = form or (lineage[-1].form if lineage else FORM)
    layers = ",".join(filter(None, [_write_layer(profile, form) for profile in lineage]))
    abstract = "true" if lineage and lineage[-1].abstract else "false"
    return digest_bytes(f'{{"abstract":{abstract},"form":{form},"layers":[{layers}]}}'.encode())


def list_preset_digests(lineage: Sequence[Profile]) -> list[str]:
    """Return the preset digests of a lineage in the forms that are compared, newest first."""
    return [compute_preset_digest(lineage, form) for form in COMPARED_FORMS]


def _write_layer(profile: Profile, form: int) -> str:
    """Return the content of a profile as canonical JSON, cached in the profile by form.

    It is an empty string if there is none.
    """
    if form not in profile.layers:
        content = _describe_layer(profile, form)
        # the rules of an older form can give other values
        marked = {"form": profile.form, "layer": content} if profile.form < form else content
        profile.layers[form] = _format_canonical_json(marked) if content else ""
    return profile.layers[form]


def _describe_layer(profile: Profile, form: int) -> TomlTable:
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
        **_describe_steps(profile.steps, form),
        "override": [
            {
                "match": {name: sorted(allowed) for name, allowed in override.match.items()},
                **_describe_steps(override.steps, form),
            }
            for override in profile.overrides
        ],
    }
    return {name: part for name, part in content.items() if part not in ([], {}, "")}


def _describe_steps(steps: Sequence[Step], form: int) -> TomlTable:
    """Return the operations of a layer by kind."""
    described: TomlTable = {
        "unset": sorted(
            {".".join((step.key, *map(str, step.tail))) for step in steps if step.op == "unset"}
        ),
    }
    described |= {op: {} for op in ("set", *LIST_OPS)}
    for step in steps:
        if step.op != "unset":  # a quoted key with dots is one more step of its table
            found, value = described[step.op], _describe_value(step, form)
            found[step.key] = values.merge_values(step.key, found.get(step.key), value)
    # presets that remove nothing keep the digest that they had before there was remove
    if not described["remove"]:
        del described["remove"]
    return described


def _describe_value(step: Step, form: int) -> Any:
    is_text = form > OLDER_FORM and step.key.startswith("env.") and type(step.value) in _NUMBERS
    return str(step.value) if is_text else step.value


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
