"""Verbs that judge: check."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Colour, Output, Specs, Store


def check(
    specs: Specs = None,
    cann: Annotated[
        list[str] | None, typer.Option("--cann", metavar="RELEASE", help="The CANN release; several give a support matrix.")
    ] = None,
    product: Annotated[
        list[str] | None, typer.Option("--product", metavar="PRODUCT", help="The product; several give a support matrix.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, json, sarif or github.")] = "text",
    severity: Annotated[
        str | None, typer.Option("--severity", metavar="LEVEL", help="The least to report: info, warning or error.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are not clean either.")] = False,
    store: Store = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """Check presets: all findings at once (exit 1 if there are errors)."""
    canns, products = cann or [], product or []
    if len(canns) > 1 or len(products) > 1:
        from npuprof.commands.matrix import support

        return support(specs or [], store, canns, products, format_, severity, strict, output, color)
    from npuprof.commands.check import check_presets

    return check_presets(specs or [], store, next(iter(canns), None), next(iter(products), None), format_, severity, strict, output, color)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command()(check)
