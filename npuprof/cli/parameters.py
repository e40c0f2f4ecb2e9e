"""Parameters that many verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

Store = Annotated[str | None, typer.Option("--store", help="The folder that holds the presets; builtin: for those npuprof ships.")]
Spec = Annotated[str, typer.Argument(help="A preset: NAME, A+B, a path ending in .toml, or - for standard input.")]
Specs = Annotated[list[str] | None, typer.Argument(help="Presets; all of the store if none is named.")]
Cann = Annotated[str | None, typer.Option("--cann", help="The CANN release to resolve for.")]
Product = Annotated[str | None, typer.Option("--product", help="The product, or a soc_version, to resolve for.")]
Mixins = Annotated[list[str] | None, typer.Option("--with", help="Lay another preset over it; may be repeated.")]
Sets = Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, after everything else; may be repeated.")]
Unsets = Annotated[list[str] | None, typer.Option("--unset", help="Remove a key, after everything else; may be repeated.")]
Output = Annotated[str | None, typer.Option("--output", "-o", help="Write to this file, whole or not at all.")]
Colour = Annotated[str, typer.Option("--color", help="auto, always or never.")]
Format = Annotated[str, typer.Option("--format", help="text or json.")]
