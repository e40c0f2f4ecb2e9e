"""The flattened profile itself, as TOML or JSON."""

from __future__ import annotations

from collections.abc import Mapping

from npuprof import catalog
from npuprof.document import keys
from npuprof.document.profile import INHERITED_KEYS
from npuprof.model import SECTIONS, Any, TomlTable
from npuprof.renderers import Rendered, Target, add_render_header
from npuprof.renderers.stamp import stamp_json
from npuprof.resolve.config import Config
from npuprof.system import drop_empty


def build_config_fields(config: Config) -> TomlTable:
    """Return a config as the fields of its JSON form."""
    return {
        "schema": "npuprof.config/1",
        "name": config.name,
        "description": config.description or None,
        "scenario": config.scenario,
        "cann": config.cann,
        "products": list(config.products),
        **({"versions": dict(config.versions)} if config.versions else {}),
        **({"axes": dict(config.axes)} if config.axes else {}),
        "abstract": config.abstract,
        "lineage": [profile.name for profile in config.lineage],
        "context": config.context.build_fields(),
        "digest": config.digest,
        "preset_digest": config.preset_digest,
        "digest_form": config.form,
        **{
            name: table
            for name, table in config.shared_sections.items()
            if table or not catalog.load_sections()[name].dotted
        },
    }


def collect_profile_head(config: Config) -> TomlTable:
    """Return ``[profile]`` of the flattened profile: its description and inherited keys."""
    return drop_empty(
        {
            "description": config.description,
            **{name: config.find_profile_value(name) for name in INHERITED_KEYS},
        }
    )


def render_json(config: Config, inline: bool) -> Rendered:
    """Return the JSON form."""
    return Rendered(stamp_json(build_config_fields(config)))


def render_toml(config: Config, inline: bool) -> Rendered:
    """Return a profile without parents that resolves to the same settings."""
    tables = {"profile": collect_profile_head(config)}
    tables.update(drop_empty(config.shared_sections))
    body = format_tables(tables)
    return Rendered(body if inline else add_render_header(config, "toml", f"\n{body}"))


def build_tables(head: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, TomlTable]:
    """Return the tables of a preset with some settings, without empty ones."""
    tables = {
        "profile": drop_empty(head),
        **{section: {} for section in catalog.load_sections()},
    }
    for key, value in settings.items():
        section, name = keys.split_section_and_name(key)
        tables[section][name] = value
    return drop_empty(tables)


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
