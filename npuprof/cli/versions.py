"""Verbs of versions: diff, log, blame, commit, release, restore."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Cann, Colour, Output, Product, Store


def diff(
    specs: Annotated[
        list[str] | None, typer.Argument(help="Presets: one, two, or more for a matrix; with --rev names to restrict to.")
    ] = None,
    rev: Annotated[str | None, typer.Option("--rev", help="A..B, A...B (from where B left A), or A against the work tree.")] = None,
    format_: Annotated[str, typer.Option("--format", help="text, markdown, html or json.")] = "text",
    stat: Annotated[bool, typer.Option("--stat", help="Only the number of changes of each preset.")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Only the names of presets that differ.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="What is the same as well, and every setting of new presets.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Compare the files as they are written, inheritance aside.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where anything differs.")] = False,
    store: Store = None,
    cann: Cann = None,
    product: Product = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """Show what differs between presets, or between two states of the store, as it resolves."""
    from npuprof.commands.diff import Form, diff_presets

    form = Form(format_, stat, name_only, all_, raw, exit_code, output, color)
    return diff_presets(specs or [], rev, store, cann, product, form)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command()(diff)
