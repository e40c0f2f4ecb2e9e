"""Parameters that many verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.verbs import SPEC

Store = Annotated[
    str | None, typer.Option("--store", metavar="DIR", help="The folder that holds the presets; builtin: for those npuprof ships.")
]
Spec = Annotated[str, typer.Argument(metavar="SPEC", help=SPEC)]
Specs = Annotated[list[str] | None, typer.Argument(metavar="SPEC...", help="Presets; all of the store if none is named.")]
Cann = Annotated[str | None, typer.Option("--cann", metavar="RELEASE", help="The CANN release to resolve for.")]
Product = Annotated[str | None, typer.Option("--product", metavar="PRODUCT", help="The product, or a soc_version, to resolve for.")]
Mixins = Annotated[list[str] | None, typer.Option("--with", metavar="SPEC", help="Lay another preset over it; may be repeated.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a value, after everything else; may be repeated.")]
Unsets = Annotated[list[str] | None, typer.Option("--unset", metavar="KEY", help="Remove a key, after everything else; may be repeated.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, whole or not at all.")]
Colour = Annotated[str, typer.Option("--color", metavar="WHEN", help="auto, always or never.")]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help="text or json.")]
