"""The options under the graph engine's own keys: the file for ATC's ``--raw_ge_options``."""

from __future__ import annotations

from functools import cache
from typing import Any

from npuprof import catalog
from npuprof.catalog.wire import find_wire, write_text
from npuprof.document.keys import format_plain_value
from npuprof.model import Finding
from npuprof.renderers import (
    Rendered,
    Target,
    build_render_finding,
    collect_sidecars,
    encode_fitting_value,
    reject_lost_options,
)
from npuprof.renderers.atc import encode_flag
from npuprof.renderers.stamp import ENGINE_LEVELS, ENGINE_OPTIONS
from npuprof.report.json_text import format_json_answer
from npuprof.resolve.config import Config
from npuprof.system import drop_empty

_NO_KEY = "The graph engine has no key for it: only the TensorFlow adapter reads it."


def render_ge(config: Config, inline: bool) -> Rendered:
    """Return the JSON file of the options by level, all values as text.

    Raises NpuprofError for an option without a key.
    """
    levels: dict[str, dict[str, str]] = {level: {} for level in ENGINE_LEVELS}
    lost = {}
    engine_keys = {}
    for name, value in config.shared_sections["options"].items():
        option = catalog.find_option(name)
        if option is None:
            lost[name] = ""
            continue
        # ATC always works so, without the option
        if option.is_always("atc", value):
            continue
        level, key = _find_engine_key(name)
        text = _format_engine_text(config, option, value) if key else None
        if text is None:
            lost[name] = "ATC does not take this value." if key else _NO_KEY
            continue
        engine_keys[name] = key
        levels[level][key] = text
    reject_lost_options(config, lost, "ge")
    fields = {ENGINE_OPTIONS: drop_empty(levels)}
    findings = []
    for name, key in engine_keys.items():
        findings += _find_hindrances(config, name, key)
    sidecars = dict(collect_sidecars(config).values())
    return Rendered(format_json_answer(fields), sidecars, findings=tuple(findings))


@cache
def _find_engine_key(name: str) -> tuple[str, str]:
    """Return the level and key of an option in the graph engine; empty strings if it has none."""
    texts = catalog.find_record_texts("options", name)
    return texts.get("ge_level", ""), texts.get("ge_option", "")


def _format_engine_text(config: Config, option: catalog.Option, value: Any) -> str | None:
    """Return a value as ATC reads it, by the option's flag if it has one.

    None if it has no text.
    """
    sidecars = collect_sidecars(config)
    if option.name in sidecars:
        return sidecars[option.name][0]
    if "atc" in option.spelling:
        carried, written = encode_flag(config, option, value, "ge")
        return format_plain_value(written) if carried else None
    wire = find_wire(option.name)
    if wire is None:
        return None
    return write_text(wire.form, encode_fitting_value(config, option, value, "ge"))


def _find_hindrances(config: Config, name: str, key: str) -> list[Finding]:
    """Return why ATC may not accept an option: an unknown key, or a file with a relative path."""
    sidecars = collect_sidecars(config)
    if name in sidecars:
        file, _ = sidecars[name]
        what = f"{key} names {file} without a folder"
        why = "ATC looks for it in the folder where it is started."
        hint = "start atc in the folder of the file"
        return [build_render_finding(config, "NP910", name, what, why, hint)]
    option = catalog.find_option(name)
    if option is None or "atc" in option.spelling:
        return []
    what = f"ATC may not know {key}, the key of {name}"
    why = (
        "It takes keys of options that it has a flag for, and stops at others; programs of the "
        "engine's own API take them."
    )
    hint = "unset it for ATC; with --raw_ge_options_ignore_unsupported=true ATC goes on without it"
    return [build_render_finding(config, "NP910", name, what, why, hint)]


TARGETS = {
    "ge": Target(
        place=88,
        summary="the JSON file for ATC's `--raw_ge_options`",
        file="ge_options.json",
        write=render_ge,
        offline=True,
    ),
}
