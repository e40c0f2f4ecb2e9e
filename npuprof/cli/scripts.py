"""Verbs for existing scripts: import, scan, inject, migrate."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Cann, Colour, Output, Product, Store

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]


def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Python scripts, shell scripts, or folders of them.")],
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="toml, json or text.")] = "toml",
    base: Annotated[str | None, typer.Option("--base", metavar="auto", help="Propose a common base and mix-ins for all of them.")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The name of the preset; the file's name otherwise.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PATH", help="A file ending in .toml, or a folder for several presets.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 where a setting could not be carried over.")] = False,
    color: Colour = "auto",
) -> int:
    """Turn existing scripts into presets, without running them."""
    from npuprof.commands.importing import import_files

    return import_files(files, format_, base, name, output, strict, color)


def scan(
    paths: Annotated[list[str] | None, typer.Argument(metavar="PATH...", help="Files and folders; here if none is named.")] = None,
    cann: Cann = None,
    product: Product = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, json, sarif or github.")] = "text",
    severity: Annotated[
        str | None, typer.Option("--severity", metavar="LEVEL", help="The least to report: info, warning or error.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are not clean either.")] = False,
    store: Store = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """Lint scripts in place (exit 1 if there are errors).

    Misspelt keys, wrong fields, bad values, conflicts, what a release does not know, stale blocks.
    """
    from npuprof.commands.scan import scan_paths

    return scan_paths(paths or [], store, cann, product, format_, severity, strict, output, color)


def inject(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The script; with --all a file or folder whose blocks to refresh.")],
    spec: Annotated[str | None, typer.Argument(metavar="SPEC", help="The preset; not needed with --all.")] = None,
    target: Annotated[
        str | None, typer.Option("--to", "-t", metavar="TARGET", help="The target; session in Python, the environment in shell scripts.")
    ] = None,
    line: Annotated[int | None, typer.Option("--line", metavar="N", help="Put a new block before this line.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Refresh every block below FILE.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the blocks are up to date (exit 1 if not).")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over blocks that were edited by hand.")] = False,
    dry_run: DryRun = False,
    cann: Cann = None,
    product: Product = None,
    store: Store = None,
) -> int:
    """Keep a marked block in a script equal to a preset."""
    from npuprof.commands.inject import inject_block

    return inject_block(file, spec, target, line, everywhere, check, force, dry_run, cann, product, store)


def migrate(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A preset of the store, or a path ending in .toml.")],
    cann: Annotated[str, typer.Option("--cann", metavar="RELEASE", help="The CANN release to move to.")],
    product: Product = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text or json.")] = "text",
    dry_run: DryRun = False,
    store: Store = None,
    color: Colour = "auto",
) -> int:
    """Rewrite a preset for another CANN release.

    Lossless steps are made, the rest are findings (exit 1 if any is left to decide).
    """
    from npuprof.commands.migrate import migrate_preset

    return migrate_preset(spec, cann, product, format_, dry_run, store, color)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command("import")(import_)
    app.command()(scan)
    app.command()(inject)
    app.command()(migrate)
