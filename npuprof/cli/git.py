"""Verbs that teach git about presets: git install, uninstall, status; hidden, what git then calls."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Format, Output, Store

Global = Annotated[bool, typer.Option("--global", help="For all repositories of this user, not only this one.")]
_RAW = {"ignore_unknown_options": True, "help_option_names": []}


def install(global_: Global = False, store: Store = None) -> int:
    """Set up the drivers: diff, textconv, three-way merge.

    The attributes that call them go to .gitattributes; with --global to the user's own.
    """
    from npuprof.commands.git import install_drivers

    return install_drivers(global_, store)


def uninstall(global_: Global = False, store: Store = None) -> int:
    """Take the drivers and the attributes away again."""
    from npuprof.commands.git import uninstall_drivers

    return uninstall_drivers(global_, store)


def status(store: Store = None, format_: Format = "text", output: Output = None) -> int:
    """Say what of it is set up (exit 1 if anything is missing)."""
    from npuprof.commands.git import show_status

    return show_status(store, format_, output)


def textconv(file: Annotated[str, typer.Argument()]) -> int:
    """Print the normal form of a preset's file."""
    from npuprof.commands.drivers import textconv

    return textconv(file)


def diff_driver(words: Annotated[list[str] | None, typer.Argument()] = None) -> int:
    """Print what differs between two versions of a preset's file."""
    from npuprof.commands.drivers import diff_driver

    return diff_driver(words or [])


def merge_driver(
    base: Annotated[str, typer.Argument()],
    ours: Annotated[str, typer.Argument()],
    theirs: Annotated[str, typer.Argument()],
    path: Annotated[str, typer.Argument()],
    size: Annotated[int, typer.Argument()] = 7,
) -> int:
    """Merge two versions of a preset's file into ``ours``."""
    from npuprof.commands.drivers import merge_driver

    return merge_driver(base, ours, theirs, path, size)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    family = typer.Typer(name="git", help="Teach git to diff and merge presets.", no_args_is_help=True, rich_markup_mode=None)
    family.command()(install)
    family.command()(uninstall)
    family.command()(status)
    family.command(hidden=True, context_settings=_RAW)(textconv)
    family.command("diff-driver", hidden=True, context_settings=_RAW)(diff_driver)
    family.command("merge-driver", hidden=True, context_settings=_RAW)(merge_driver)
    app.add_typer(family)
