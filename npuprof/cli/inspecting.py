"""Verbs that look: list, show, explain, options, option, rule."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Cann, Colour, Format, Mixins, Output, Product, Sets, Spec, Store, Unsets


def list_(
    store: Store = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show who extends whom.")] = False,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="COND", help="Only presets whose resolved values meet a condition, such as 'hccl_timeout > 1800'."),
    ] = None,
    versions: Annotated[bool, typer.Option("--versions", help="List the released versions instead.")] = False,
    format_: Format = "text",
    output: Output = None,
) -> int:
    """List the presets of the store."""
    if versions:
        from npuprof.commands.log import list_versions

        return list_versions(store, format_, output)
    from npuprof.commands.listing import list_presets

    return list_presets(store, tree, where, format_, output)


def show(
    spec: Spec,
    origin: Annotated[bool, typer.Option("--origin", help="Say of each value where it was set.")] = False,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="toml or json.")] = "toml",
    store: Store = None,
    cann: Cann = None,
    product: Product = None,
    mixin: Mixins = None,
    set_: Sets = None,
    unset: Unsets = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """Show a preset resolved."""
    from npuprof.commands.show import Asked, show_preset

    return show_preset(Asked(spec, store, cann, product, mixin or [], set_ or [], unset or []), origin, format_, output, color)


def explain(
    spec: Spec,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key: an option, env.NAME, or a place inside a value.")],
    format_: Format = "text",
    store: Store = None,
    cann: Cann = None,
    product: Product = None,
    mixin: Mixins = None,
    set_: Sets = None,
    unset: Unsets = None,
    output: Output = None,
) -> int:
    """Explain one value: who set it, whom it overruled, what it means."""
    from npuprof.commands.explain import explain_key
    from npuprof.commands.show import Asked

    return explain_key(Asked(spec, store, cann, product, mixin or [], set_ or [], unset or []), key, format_, output)


def options(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="Words to look for in names and summaries.")] = None,
    format_: Format = "text",
    output: Output = None,
) -> int:
    """List the catalogue: options, environment variables, ATC flags."""
    from npuprof.commands.reference import list_options

    return list_options(query, format_, output)


def option(
    key: Annotated[str, typer.Argument(metavar="KEY", help="An option, an environment variable, or an ATC flag with its dashes.")],
    format_: Format = "text",
    output: Output = None,
) -> int:
    """Show everything the catalogue knows of one option."""
    from npuprof.commands.reference import show_option

    return show_option(key, format_, output)


def rule(
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="The code of a finding; all codes if none is given.")] = None,
    format_: Format = "text",
    output: Output = None,
) -> int:
    """Explain the code of a finding, with an example of each kind."""
    from npuprof.commands.reference import show_rule

    return show_rule(code, format_, output)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command("list")(list_)
    app.command()(show)
    app.command()(explain)
    app.command()(options)
    app.command(context_settings={"ignore_unknown_options": True})(option)  # an ATC flag is a key, not an option of ours
    app.command()(rule)
