"""``--npu_preset`` and its companions for a script that parses its command line with argparse.

>>> from argparse import ArgumentParser
>>> parser = ArgumentParser()
>>> add_arguments(parser, preset="bert-training")
>>> arguments = ["--npu_store", "builtin:", "--npu_set", "hccl_timeout=600"]
>>> config = resolve_arguments(parser.parse_args(arguments))
>>> config is not None and config["hccl_timeout"]  # None where no preset is named
600
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from npuprof.integrations.choice import FLAGS, PRESET, resolve_choice
from npuprof.model import NpuprofError
from npuprof.resolve.config import Config


def add_arguments(
    parser: ArgumentParser, preset: str | None = None, store: str | None = None
) -> None:
    """Add the flags to a parser; ``preset`` and ``store`` are their defaults."""
    group = parser.add_argument_group("NPU")
    defaults = {"npu_preset": preset, "npu_store": store}
    for flag in FLAGS:
        names = (f"--{flag.name}", f"--{flag.name.replace('_', '-')}")
        if flag.repeated:
            group.add_argument(
                *names,
                dest=flag.name,
                metavar=flag.metavar,
                action="append",
                default=[],
                help=flag.help,
            )
        else:
            default = defaults[flag.name]
            text = flag.help
            if default and flag is PRESET:
                text = f"{text} Default: {default}.".replace("%", "%%")  # argparse formats help
            group.add_argument(
                *names, dest=flag.name, metavar=flag.metavar, default=default, help=text
            )


def resolve_arguments(
    args: Namespace,
    parser: ArgumentParser | None = None,
    *,
    cann: str | None = None,
    product: str | None = None,
    versions: Mapping[str, str] | None = None,
    check: bool = True,
) -> Config | None:
    """Return the preset selected on the command line, resolved and checked.

    None if none was selected and there is no default.

    Raises NpuprofError with every problem, its place and a hint; with a ``parser``, the script
    exits through its ``error`` instead. ``check=False`` skips the checks.
    """
    try:
        return resolve_choice(vars(args), cann, product, versions, check)
    except NpuprofError as error:
        if parser is None:
            raise
        parser.error(str(error))
