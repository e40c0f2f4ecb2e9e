"""The flattened profile itself, as TOML or JSON."""

from __future__ import annotations

from collections.abc import Mapping

from npuprof import catalog
from npuprof.document import keys
from npuprof.document.profile import INHERITED_KEYS, Override, Profile
from npuprof.model import SECTIONS, NpuprofError, Step, build_error
from npuprof.renderers import Rendered, Target, add_render_header
from npuprof.renderers.stamp import stamp_json
from npuprof.resolve import apply_layers
from npuprof.resolve.config import Config
from npuprof.resolve.contexts import may_be_asked
from npuprof.resolve.digests import FORM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def build_config_fields(config: Config) -> dict[str, Any]:
    """Return a config as the fields of its JSON form."""
    return {
        "schema": "npuprof.config/1",
        "name": config.name,
        "description": config.description or None,
        "scenario": config.scenario,
        "cann": config.cann,
        "products": list(config.products),
        **({"versions": dict(config.versions)} if config.versions else {}),
        "abstract": config.abstract,
        "lineage": [profile.name for profile in config.lineage],
        "context": config.context.build_fields(),
        "digest": config.digest,
        "preset_digest": config.preset_digest,
        "digest_form": FORM,
        **{
            name: table
            for name, table in config.shared_sections.items()
            if table or not catalog.load_sections()[name].dotted
        },
    }


def collect_profile_head(config: Config) -> dict[str, Any]:
    """Return ``[profile]`` of the flattened profile: its description and inherited keys."""
    head = {
        "description": config.description,
        **{name: config.find_profile_value(name) for name in INHERITED_KEYS},
    }
    return {name: value for name, value in head.items() if value}


def render_json(config: Config, inline: bool) -> Rendered:
    """Return the JSON form."""
    return Rendered(stamp_json(build_config_fields(config)))


def render_toml(config: Config, inline: bool) -> Rendered:
    """Return a profile without parents that resolves to the same settings."""
    tables = {"profile": collect_profile_head(config)}
    tables.update({name: table for name, table in config.shared_sections.items() if table})
    body = format_tables(tables)
    return Rendered(body if inline else add_render_header(config, "toml", f"\n{body}"))


def flatten_config(config: Config) -> str:
    """Return a preset without parents that resolves to the same settings in every context.

    Raises NpuprofError (NP920) if a layer changes a part of what an override below it sets.
    """
    settings: dict[str, Any] = {}
    overrides: list[tuple[Override, list[Step]]] = []
    for profile in config.lineage:
        replaced = {step.key for step in profile.steps if _is_replacing(step)}
        changed = {step.key for step in profile.steps} - replaced
        # in one file, overrides come after all values
        for _, steps in overrides:
            for step in steps:
                if step.key in changed:
                    raise _build_inexact_error(config, profile, step.key)
            steps[:] = [step for step in steps if step.key not in replaced]
        overrides += [(override, [*override.steps]) for override in profile.overrides]
        apply_layers(settings, profile, [("values", profile.steps)], None)
    text = format_tables(build_tables(_collect_flat_head(config, settings), settings))
    for override, steps in overrides:
        if steps and may_be_asked(config, override):
            text += "\n" + format_tables({"[override]": _build_override_table(override, steps)})
    return text


def _is_replacing(step: Step) -> bool:
    """Return whether nothing of a setting's earlier value remains after a step."""
    if step.op == "unset":
        return not step.tail
    return step.op == "set" and not isinstance(step.value, dict)


def _build_inexact_error(config: Config, profile: Profile, key: str) -> NpuprofError:
    what = f"{config.name} does not fit one file: {profile.name} changes a part of {key}"
    why = "An override of a preset below it sets the same key, and would come last in one file."
    hint = "copy it with its parents, without --flat"
    return build_error("NP920", what, why, hint, profile.origin())


def _collect_flat_head(config: Config, settings: dict[str, Any]) -> dict[str, Any]:
    """Return ``[profile]`` of a flattened preset, with what the parents clear, lock and accept."""
    steps = [step for profile in config.lineage for step in profile.steps]
    ignores = [ignore for profile in config.lineage for ignore in profile.ignores]
    table = config.lineage[-1].table
    return {
        **collect_profile_head(config),
        **{name: table.get(name) for name in ("abstract", "owner", "deprecated")},
        # run and env also remove these from the environment of the caller
        "unset": list(
            dict.fromkeys(
                step.key
                for step in steps
                if step.op == "unset" and step.key.startswith("env.") and step.key not in settings
            )
        ),
        "locked": list(dict.fromkeys(key for profile in config.lineage for key in profile.locked)),
        "ignore": [
            {"code": code, "reason": reason}
            for code, reason in {ignore.code: ignore.reason for ignore in ignores}.items()
        ],
    }


def _build_override_table(override: Override, steps: list[Step]) -> dict[str, Any]:
    table: dict[str, Any] = {"match": {axis: list(match) for axis, match in override.match.items()}}
    for step in steps:
        section, name = keys.split_section_and_name(step.key)
        if step.op == "unset":
            path = keys.format_key_path(step.key, step.tail)
            table.setdefault("unset", []).append(path)
        else:
            block = table if step.op == "set" else table.setdefault("append", {})
            block.setdefault(section, {})[name] = step.value
    return table


def build_tables(head: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables of a preset with some settings, without empty ones."""
    tables: dict[str, dict[str, Any]] = {
        "profile": {name: value for name, value in head.items() if value},
        **{section: {} for section in catalog.load_sections()},
    }
    for key, value in settings.items():
        section, name = keys.split_section_and_name(key)
        tables[section][name] = value
    return {name: table for name, table in tables.items() if table}


def format_tables(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables of a preset as TOML, one key per line."""
    lines = []
    for name, table in tables.items():
        lines += [
            "",
            f"[{name}]",
            *(
                f"{keys.format_key_segment(key)} = {keys.format_toml_value(value)}"
                for key, value in table.items()
            ),
        ]
    return "\n".join([*lines[1:], ""])


TARGETS = {
    "toml": Target(
        place=110,
        summary="the flattened preset as TOML",
        file="profile.toml",
        write=render_toml,
        offline=True,
        sections=SECTIONS,
    ),
    "json": Target(
        place=120,
        summary="the flattened preset as JSON",
        file="profile.json",
        write=render_json,
        offline=True,
        sections=SECTIONS,
    ),
}
