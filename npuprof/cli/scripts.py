"""Verbs for existing scripts: import, scan, inject, migrate."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
