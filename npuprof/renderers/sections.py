"""The sections of a config, and which of them have no place where it is written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from npuprof.document import keys
from npuprof.model import Finding
from npuprof.wording import say_switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

_SECTION_COMMANDS = {"env": "npuprof env", "estimator": "npuprof render --to estimator", "atc": "npuprof render --to atc"}


def config_section(config: Config, name: str) -> dict[str, Any]:
    """Return one section of a config, worked out once for all targets; not to be changed."""
    if "sections" not in config.memo:
        config.memo["sections"] = config.sections()
    found: dict[str, Any] = config.memo["sections"][name]
    return found


def find_left_out_sections(config: Config, written: Collection[str]) -> tuple[Finding, ...]:
    """Return a finding for each section that belongs to other targets than one that has these ``written``."""
    found = {name: [*config_section(config, name)] for name in _SECTION_COMMANDS if name not in written}
    return tuple(
        Finding(
            "NP917",
            f"[{name}] ({', '.join(settings)}) is for {_SECTION_COMMANDS[name]}",
            "This target has no place for it.",
            f"leave out {say_switch('strict', config.resolver.in_python)}, or unset them in an [[override]] for this target",
            config.origin(key := keys.format_full_key(name, settings[0])),
            key,
            (config.name,),
        )
        for name, settings in found.items()
        if settings
    )
