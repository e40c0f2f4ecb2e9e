"""The preset flags of a script (``--npu_preset``, ``--npu_set``), for any flag library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npuprof.checks import check_before_export
from npuprof.model import Record, build_usage_error, raise_any, select_errors
from npuprof.resolve.config import Config
from npuprof.store import assignment_arguments, spec


class Flag(Record):
    """One flag: its name, its help, and whether it can be repeated."""

    name: str
    metavar: str
    help: str
    repeated: bool = False


PRESET = Flag(
    "npu_preset",
    "SPEC",
    "The preset for the NPU: NAME, NAME@VERSION, A+B, or a path ending in .toml.",
)
FLAGS = (
    PRESET,
    Flag(
        "npu_set",
        "KEY=VALUE",
        "Set a value of the preset, after everything else; may be repeated.",
        repeated=True,
    ),
    Flag(
        "npu_unset",
        "KEY",
        "Remove a key of the preset, after everything else; may be repeated.",
        repeated=True,
    ),
    Flag("npu_store", "DIR", "The folder with the presets; builtin: for those npuprof ships."),
)


def resolve_choice(
    chosen: Mapping[str, Any],
    cann: str | None = None,
    product: str | None = None,
    versions: Mapping[str, str] | None = None,
    check: bool = True,
) -> Config | None:
    """Return the preset selected by the values of the flags, with its changes.

    None if none was selected.

    Raises NpuprofError; with ``check``, also for errors of the checks. Unknown keys are never
    ignored silently.
    """
    preset = chosen["npu_preset"]
    set_, unset = chosen["npu_set"] or (), chosen["npu_unset"] or ()
    if not preset:
        if set_ or unset:
            flag = "--npu_set" if set_ else "--npu_unset"
            what = f"{flag} changes a preset, and --npu_preset names none"
            raise build_usage_error(what, "name one with --npu_preset", "The values would be lost.")
        return None
    workspace = spec.Workspace(
        chosen["npu_store"], spec.build_context(cann, product, None, versions or {})
    )
    if "-" in preset.split("+"):
        raise build_usage_error(
            "'-' is standard input, which belongs to the script", "name a preset, or a file"
        )
    changes = assignment_arguments.parse_assignments(set_, unset)
    config = workspace.resolve_spec(preset, changes=changes)
    raise_any(select_errors(check_before_export(config) if check else []))
    return config
