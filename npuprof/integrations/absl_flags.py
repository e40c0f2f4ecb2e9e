"""``--npu_preset`` and its companions for a script with ``absl.flags``, as TensorFlow's own examples have them.

Define them where the script defines its flags, and resolve them once they are parsed, as in ``main``.
"""

from __future__ import annotations

from typing import Any

from npuprof.integrations.choice import FLAGS, resolve_choice
from npuprof.resolve.config import Config


def define_flags(preset: str | None = None, store: str | None = None, flag_values: Any = None) -> None:
    """Define the flags; ``preset`` and ``store`` are what counts where they are left out.

    ``flag_values`` is an ``absl.flags.FlagValues``, by default the one of the process.
    """
    from absl import flags

    values = flags.FLAGS if flag_values is None else flag_values
    defaults = {"npu_preset": preset, "npu_store": store}
    for flag in FLAGS:
        if flag.repeated:
            flags.DEFINE_multi_string(flag.name, [], flag.help, flag_values=values)
        else:
            flags.DEFINE_string(flag.name, defaults[flag.name], flag.help, flag_values=values)


def resolve_flags(flag_values: Any = None, *, cann: str | None = None, product: str | None = None) -> Config | None:
    """Return the preset that the parsed flags ask for, resolved; None where none was asked for, and the script has no default.

    Raises NpuprofError with every problem, its place and a repair; and absl's own error where the flags are not parsed yet.
    """
    from absl import flags

    values = flags.FLAGS if flag_values is None else flag_values
    return resolve_choice(values.npu_preset, values.npu_set, values.npu_unset, values.npu_store, cann, product)
