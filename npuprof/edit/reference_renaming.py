"""Renames the references to a preset in its store and in ``npuprof.toml``, as new texts."""

from __future__ import annotations

from npuprof import edit
from npuprof.document import Document
from npuprof.edit.paths import PathChange
from npuprof.model import Origin, Path


def rename_references(document: Document, old: str, new: str) -> str:
    """Return the text of a preset with a renamed parent. Raises NpuprofError."""
    changes = [PathChange(path, new) for path, name in _list_parents(document) if name == old]
    return edit.apply_changes(document.text, changes) if changes else document.text


def list_pinned_references(document: Document, old: str) -> list[tuple[Origin, str]]:
    """Return the origins and names of a preset's references to pinned revisions.

    There, the old name stays valid.
    """
    return [
        (Origin(document, path), name)
        for path, name in _list_parents(document)
        if name.startswith(f"{old}@")
    ]


def rename_in_project(document: Document, old: str, new: str) -> str:
    """Return the text of ``npuprof.toml`` with exact references to a preset renamed.

    Raises NpuprofError.
    """
    changes = [
        PathChange((kind, row_index, "presets", index), new)
        for kind in ("rule", "ignore")
        for row_index, row in enumerate(document.data.get(kind, []))
        for index, glob in enumerate(row.get("presets", []))
        if glob == old  # a glob with a wildcard may be meant for other presets
    ]
    return edit.apply_changes(document.text, changes) if changes else document.text


def _list_parents(document: Document) -> list[tuple[Path, str]]:
    table = document.data.get("profile")
    extends = table.get("extends") if isinstance(table, dict) else None
    if not isinstance(extends, list):
        return []
    return [
        (("profile", "extends", index), name)
        for index, name in enumerate(extends)
        if isinstance(name, str)
    ]
