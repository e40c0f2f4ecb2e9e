"""A preset under another name: what refers to it in the presets of its store and in ``npuprof.toml``, as new texts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

from npuprof.catalog import values
from npuprof.document import Document, parse_document
from npuprof.document.positions import Positions
from npuprof.edit.paths import assign_at_path
from npuprof.model import Finding, NpuprofError, Origin, Path


def replace_strings(document: Document, places: Mapping[Path, str]) -> Document:
    """Return a document with the strings at some places replaced; their quotes and all else stay. Raises NpuprofError."""
    if not places:
        return document
    text = document.text
    positions = Positions(text)
    expected = deepcopy(document.data)
    result = text
    for (start, end), path in sorted(((positions.find_string(path), path) for path in places), reverse=True):
        quote = text[start] * 3 if text.startswith(text[start] * 3, start) and end - start >= 6 else text[start]
        result = f"{result[:start]}{quote}{places[path]}{quote}{result[end:]}"
        assign_at_path(expected, path, places[path])
    with suppress(NpuprofError):  # what is new may need an escape
        renamed = parse_document(document.name, document.source, result)
        if values.is_same_typed_value(renamed.data, expected):
            return renamed
    why = "An edit is read again before it is written; this one would have changed something else."
    raise NpuprofError([Finding("NP921", "a name cannot be replaced where it stands", why, "make this change by hand")])


def rename_references(document: Document, old: str, new: str) -> Document:
    """Return a preset with a parent under its new name. Raises NpuprofError."""
    return replace_strings(document, {path: new for path, name in _list_parents(document) if name == old})


def list_pinned_references(document: Document, old: str) -> list[Origin]:
    """Return where a preset extends another as it was at a revision: there it has its old name."""
    return [Origin(document, path) for path, name in _list_parents(document) if name.startswith(f"{old}@")]


def rename_in_project(document: Document, old: str, new: str) -> str:
    """Return the text of ``npuprof.toml`` with what names a preset exactly under its new name. Raises NpuprofError."""
    places: dict[Path, str] = {path: new for path, glob in _list_globs(document) if glob == old}
    return replace_strings(document, places).text


def _list_parents(document: Document) -> list[tuple[Path, str]]:
    table = document.data.get("profile")
    extends = table.get("extends") if isinstance(table, dict) else None
    listed = enumerate(extends) if isinstance(extends, list) else ()
    return [(("profile", "extends", index), name) for index, name in listed if isinstance(name, str)]


def _list_globs(document: Document) -> list[tuple[Path, str]]:
    return [
        ((kind, index, "presets", place), glob)
        for kind in ("rule", "ignore")
        for index, row in enumerate(_list_tables(document.data.get(kind)))
        for place, glob in enumerate(_list_texts(row.get("presets")))
    ]


def _list_tables(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _list_texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
