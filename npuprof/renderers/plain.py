"""The flattened profile itself, as TOML or JSON."""

from __future__ import annotations

from typing import Any

from npuprof.document import keys
from npuprof.model import SECTIONS
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import document, section
from npuprof.report import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config


def as_dict(config: Config) -> dict[str, Any]:
    """Return a config as the fields of its JSON form."""
    return {
        "schema": "npuprof.config/1",
        "name": config.name,
        "description": config.description or None,
        "scenario": config.scenario,
        "cann": config.cann,
        "products": list(config.products),
        "abstract": config.abstract,
        "lineage": [profile.name for profile in config.lineage],
        "context": {name: value for name, value in config.context._asdict().items() if value},
        "digest": config.digest,
        **{name: section(config, name) for name in SECTIONS},
    }


def json(config: Config, inline: bool) -> Rendered:
    """Return the JSON form."""
    return Rendered(dump(as_dict(config)))


def toml(config: Config, inline: bool) -> Rendered:
    """Return a profile without parents that resolves to the same settings."""
    head = {"description": config.description, "scenario": config.scenario, "cann": config.cann, "products": list(config.products)}
    tables = {"profile": {name: value for name, value in head.items() if value}}
    tables.update({name: found for name in SECTIONS if (found := section(config, name))})
    lines = (
        f"[{name}]\n" + "".join([f"{keys.segment(key)} = {keys.toml(value)}\n" for key, value in table.items()])
        for name, table in tables.items()
    )
    body = "\n".join(lines)
    return Rendered(body if inline else document(config, "toml", f"\n{body}"))


TARGETS = {
    "toml": Target("the flattened profile as TOML", "profile.toml", toml),
    "json": Target("the flattened profile as JSON", "profile.json", json),
}
