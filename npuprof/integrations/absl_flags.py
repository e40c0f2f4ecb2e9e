"""``--npu_preset`` and related flags for scripts that use ``absl.flags``.

Define the flags where the script defines its own, and resolve them after parsing, as in ``main``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from absl import flags

from npuprof.integrations.choice import FLAGS, resolve_choice
from npuprof.model import NpuprofError
from npuprof.resolve.config import Config


def define_flags(
    preset: str | None = None, store: str | None = None, flag_values: Any = None
) -> None:
    """Define the flags; ``preset`` and ``store`` are their defaults.

    ``flag_values`` is an ``absl.flags.FlagValues``, by default the global one.
    """
    values = flags.FLAGS if flag_values is None else flag_values
    defaults = {"npu_preset": preset, "npu_store": store}
    for flag in FLAGS:
        if flag.repeated:
            flags.DEFINE_multi_string(flag.name, [], flag.help, flag_values=values)
        else:
            flags.DEFINE_string(flag.name, defaults[flag.name], flag.help, flag_values=values)

    def exists(chosen: dict[str, Any]) -> bool:
        try:
            # the checks need the release, which only resolve_flags knows
            resolve_choice(chosen, check=False)
        except NpuprofError as error:
            raise flags.ValidationError(str(error)) from None
        return True

    flags.register_multi_flags_validator([flag.name for flag in FLAGS], exists, flag_values=values)


def resolve_flags(
    flag_values: Any = None,
    *,
    cann: str | None = None,
    product: str | None = None,
    versions: Mapping[str, str] | None = None,
    check: bool = True,
) -> Config | None:
    """Return the preset selected by the parsed flags, resolved and checked.

    None if none was selected and there is no default.

    absl itself rejects unknown presets and values that are not ``KEY=VALUE``. Raises NpuprofError
    with every problem, its place and a hint; unless ``check`` is false, also for errors of the
    checks. Raises absl's error if the flags are not parsed yet.
    """
    values = flags.FLAGS if flag_values is None else flag_values
    return resolve_choice(
        {flag.name: getattr(values, flag.name) for flag in FLAGS}, cann, product, versions, check
    )
