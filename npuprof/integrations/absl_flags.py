"""``--npu_preset`` and its companions for a script with ``absl.flags``, as TensorFlow's own examples have them.

Define them where the script defines its flags, and resolve them once they are parsed, as in ``main``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from absl import flags

from npuprof.integrations.choice import FLAGS, resolve_choice
from npuprof.model import NpuprofError
from npuprof.resolve.config import Config


def define_flags(preset: str | None = None, store: str | None = None, flag_values: Any = None) -> None:
    """Define the flags; ``preset`` and ``store`` are what counts where they are left out.

    ``flag_values`` is an ``absl.flags.FlagValues``, by default the one of the process.
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
            resolve_choice(chosen["npu_preset"], chosen["npu_set"] or (), chosen["npu_unset"] or (), chosen["npu_store"], check=False)
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
    """Return the preset that the parsed flags ask for, resolved and checked; None where none was asked for, and the script has no default.

    A preset that is not there, and what is no ``KEY=VALUE``, absl has refused already as it does any other flag. Raises NpuprofError
    with every problem, its place and a repair, for errors of the checks unless ``check`` is false; and absl's own error where the
    flags are not parsed yet.
    """
    values = flags.FLAGS if flag_values is None else flag_values
    return resolve_choice(values.npu_preset, values.npu_set, values.npu_unset, values.npu_store, cann, product, versions, check)
