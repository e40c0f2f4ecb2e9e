"""Verbs that teach git about presets: git install, uninstall, status."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
