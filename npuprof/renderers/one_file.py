"""A preset with all its parents as the text of one preset, for every context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npuprof.document import keys
from npuprof.document.profile import Override
from npuprof.model import Step, TomlTable, build_error
from npuprof.renderers.flattened import build_tables, collect_profile_head, format_tables
from npuprof.resolve import apply_layers
from npuprof.resolve.config import Config
from npuprof.resolve.contexts import may_be_asked


def flatten_config(config: Config) -> str:
    """Return a preset without parents that resolves to the same settings in every context.

    Raises NpuprofError (NP920) if a layer changes a part of what an override below it sets.
    """
    settings: TomlTable = {}
    overrides: list[tuple[Override, list[Step]]] = []
    for profile in config.lineage:
        replaced = {step.key for step in profile.steps if _is_replacing(step)}
        # in one file, overrides come after all values
        for _, steps in overrides:
            steps[:] = [step for step in steps if step.key not in replaced]
            if parts := {step.key for step in profile.steps}.intersection(s.key for s in steps):
                what = f"{config.name} does not fit one file: {profile.name} changes a part of"
                why = "An override of a parent sets it too, and would come last in one file."
                hint = "copy the preset without --flat"
                raise build_error("NP920", f"{what} {', '.join(sorted(parts))}", why, hint)
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


def _collect_flat_head(config: Config, settings: Mapping[str, Any]) -> TomlTable:
    """Return ``[profile]`` of a flattened preset, with what all layers clear, lock and accept."""
    head = {**config.lineage[-1].table, **collect_profile_head(config), "extends": None}
    unset: dict[str, None] = {}
    locked: dict[str, None] = {}
    accepted: TomlTable = {}
    for profile in config.lineage:
        # run and env also remove these from the environment of the caller
        unset |= {s.key: None for s in profile.steps if s.op == "unset" and s.key[:4] == "env."}
        locked |= dict.fromkeys(profile.locked)
        accepted |= {table["code"]: table for table in profile.table.get("ignore", ())}
    head["unset"] = [key for key in unset if key not in settings]
    return head | {"locked": list(locked), "ignore": list(accepted.values())}


def _build_override_table(override: Override, steps: list[Step]) -> TomlTable:
    table: TomlTable = {"match": {axis: list(match) for axis, match in override.match.items()}}
    for step in steps:
        section, name = keys.split_section_and_name(step.key)
        if step.op == "unset":
            table.setdefault("unset", []).append(keys.format_key_path(step.key, step.tail))
        else:
            block = table if step.op == "set" else table.setdefault(step.op, {})
            block.setdefault(section, {})[name] = step.value
    return table
