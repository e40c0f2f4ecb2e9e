"""Verbs that judge: check."""

from __future__ import annotations

from typing import Annotated

import typer

from npuprof.cli.parameters import Cann, Colour, Output, Product, Specs, Store


def check(
    specs: Specs = None,
    cann: Cann = None,
    product: Product = None,
    format_: Annotated[str, typer.Option("--format", help="text, json, sarif or github.")] = "text",
    severity: Annotated[str | None, typer.Option("--severity", help="The least severity to report: info, warning or error.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are not clean either.")] = False,
    store: Store = None,
    output: Output = None,
    color: Colour = "auto",
) -> int:
    """Check presets: all findings of all of them (exit 1 if there are errors)."""
    from npuprof.commands.check import check_presets

    return check_presets(specs or [], store, cann, product, format_, severity, strict, output, color)


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
    app.command()(check)
