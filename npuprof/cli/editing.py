"""Verbs that change presets: new, set, unset."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
