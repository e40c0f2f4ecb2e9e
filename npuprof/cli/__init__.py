"""The command line: each verb's parameters, a module for each family. What the verbs do is in ``commands``."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from npuprof.model import __version__

#: The families of verbs, in the order of the help; making all of them takes longer than most verbs.
FAMILIES: dict[str, tuple[str, ...]] = {
    "inspecting": ("list", "show", "explain", "options", "option", "rule"),
    "editing": ("init", "new", "set", "unset", "schema"),
    "checking": ("check",),
    "exporting": ("render", "env", "run"),
    "versions": ("diff", "log", "blame", "commit", "release", "restore"),
    "scripts": ("import", "scan", "inject", "migrate"),
    "git": ("git",),
}


def application(verb: str | None = None) -> typer.Typer:
    """Return the application with the family of one verb, or with all where the verb is not known."""
    app = typer.Typer(
        name="npuprof",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_npuprof)
    for family in [name for name, verbs in FAMILIES.items() if verb in verbs] or FAMILIES:
        import_module(f"npuprof.cli.{family}").register(app)
    return app


def run(words: list[str]) -> int:
    """Run the words as a command; return the exit code. Usage errors are printed by Typer and give 2."""
    try:
        result = application(words[0] if words else None)(args=words, prog_name="npuprof", standalone_mode=False)
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


def _npuprof(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Presets for Huawei Ascend NPUs: written once, checked, compared, rendered everywhere."""
