"""The command line: each verb's parameters, a module for each family. What the verbs do is in ``commands``."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from npuprof import __version__

app = typer.Typer(
    name="npuprof",
    help="Presets for Huawei Ascend NPUs: written once, checked, compared, rendered everywhere.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: The families of verbs, in the order of the help.
FAMILIES = ("inspecting", "editing", "checking", "exporting", "versions", "scripts", "git")


def run(words: list[str]) -> int:
    """Run the words as a command; return the exit code. Usage errors are printed by Typer and give 2."""
    try:
        result = app(args=words, prog_name="npuprof", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except Exception as error:
        show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
        if show is None or code is None:
            raise
        show()
        return int(code)
    return result if isinstance(result, int) else 0


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"npuprof {__version__}")
        raise typer.Exit


@app.callback()
def _npuprof(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Presets for Huawei Ascend NPUs: written once, checked, compared, rendered everywhere."""


for _family in FAMILIES:
    import_module(f"npuprof.cli.{_family}").register(app)
