"""Verbs of versions: diff, log, blame, commit, release, restore."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Cann, Colour, Format, Output, Product, Store

Preset = Annotated[str, typer.Argument(metavar="SPEC", help="A preset of the store: NAME or NAME@REV.")]


def diff(
    specs: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC...", help="Presets: one, two, or more for a matrix; with --rev names to restrict to."),
    ] = None,
    rev: Annotated[
        str | None, typer.Option("--rev", metavar="REVS", help="A..B, A...B (from where B left A), or A against the work tree.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, markdown, html or json.")] = "text",
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
    """Show what differs, resolved, between presets or revisions."""
    from npuprof.commands.diff import Form, diff_presets

    form = Form(format_, stat, name_only, all_, raw, exit_code, output, color)
    return diff_presets(specs or [], rev, store, cann, product, form)


def log(
    spec: Preset,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="Only the commits that changed this key, or a place inside a value.")
    ] = None,
    number: Annotated[int | None, typer.Option("--number", "-n", metavar="N", min=1, help="Stop after so many commits.")] = None,
    format_: Format = "text",
    store: Store = None,
    cann: Cann = None,
    product: Product = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """List the commits that changed what a preset resolves to.

    Changes of its parents count; newest first.
    """
    from npuprof.commands.log import log_preset

    return log_preset(spec, key, store, cann, product, number, format_, output, color)


def blame(
    spec: Preset,
    format_: Format = "text",
    store: Store = None,
    cann: Cann = None,
    product: Product = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """Show a preset resolved, each value with the commit that wrote it."""
    from npuprof.commands.log import blame_preset

    return blame_preset(spec, store, cann, product, format_, output, color)


def commit(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Only the files of these presets.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="The first line; what changed follows it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the message, commit nothing.")] = False,
    store: Store = None,
) -> int:
    """Commit the profile files, once they are free of errors.

    Nothing else is committed; the message says what they change.
    """
    from npuprof.commands.commit import commit_presets

    return commit_presets(names or [], message, dry_run, store)


def release(
    spec: Annotated[str, typer.Argument(metavar="NAME", help="A preset of the store.")],
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="The number; proposed from the changes if none is given.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which number and why, tag nothing.")] = False,
    store: Store = None,
) -> int:
    """Release a preset: an annotated tag NAME/vX.Y.Z.

    It is put at the last commit, and holds the digest and what changed since the last release.
    """
    from npuprof.commands.release import release_preset

    return release_preset(spec, version, dry_run, store)


def restore(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A preset of the store at a revision: NAME@REV.")],
    resolved: Annotated[bool, typer.Option("--resolved", help="Write a flat preset that resolves as it did then.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the file, write nothing.")] = False,
    store: Store = None,
    cann: Cann = None,
    product: Product = None,
    output: Output = None,
) -> int:
    """Write a preset back as it was: NAME@REV."""
    from npuprof.commands.restore import restore_preset

    return restore_preset(spec, resolved, dry_run, store, cann, product, output)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command()(diff)
    app.command()(log)
    app.command()(blame)
    app.command()(commit)
    app.command()(release)
    app.command()(restore)
