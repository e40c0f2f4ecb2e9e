"""Verbs of versions: diff, log, blame, commit, release, restore."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the verbs of this family."""
