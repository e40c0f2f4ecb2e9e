"""Verbs that make and change presets: init, new, set, unset; and the schema that editors check them with."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Output, Store

One = Annotated[str, typer.Argument(metavar="SPEC", help="A preset of the store, a path ending in .toml, or - for standard input.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change and write nothing.")]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Write it even if the checks find errors.")]


def init(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to lay it out.")] = ".",
    ci: Annotated[str, typer.Option("--ci", metavar="NAME", help="The CI sample: github, gitlab or none.")] = "github",
    dry_run: DryRun = False,
) -> int:
    """Lay out a store: presets, editor schema, git attributes, CI."""
    from npuprof.commands.init import init_store

    return init_store(folder, ci, dry_run)


def schema(output: Output = None) -> int:
    """Print the JSON Schema of a profile file, for editors."""
    from npuprof.commands.init import print_schema

    return print_schema(output)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new preset.")],
    extends: Annotated[
        list[str] | None, typer.Option("--extends", metavar="NAME", help="A preset it extends; may be repeated, later wins.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="When to use it.")] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="training, online-inference or offline-inference.")
    ] = None,
    abstract: Annotated[bool, typer.Option("--abstract", help="It is only there to be extended.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a value; may be repeated.")] = None,
    dry_run: DryRun = False,
    no_check: NoCheck = False,
    store: Store = None,
) -> int:
    """Write a new preset."""
    from npuprof.commands.edit import new_preset

    head = {"description": description, "scenario": scenario, "abstract": abstract or None}
    return new_preset(name, extends or [], head, set_ or [], store, dry_run, no_check)


def set_(
    spec: One,
    assignments: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="What to set; profile.KEY reaches [profile].")],
    dry_run: DryRun = False,
    no_check: NoCheck = False,
    store: Store = None,
) -> int:
    """Set values in a preset's file; comments, order and layout stay."""
    from npuprof.commands.edit import set_values

    return set_values(spec, assignments, store, dry_run, no_check)


def unset(
    spec: One,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="What to remove; what is inherited is cleared.")],
    dry_run: DryRun = False,
    no_check: NoCheck = False,
    store: Store = None,
) -> int:
    """Remove values from a preset's file, or clear what it inherits."""
    from npuprof.commands.edit import unset_keys

    return unset_keys(spec, keys, store, dry_run, no_check)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command()(init)
    app.command()(new)
    app.command("set")(set_)
    app.command()(unset)
    app.command()(schema)
