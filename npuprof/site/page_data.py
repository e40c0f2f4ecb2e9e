"""Data that pages load on demand, as scripts: pages opened as files cannot load anything else."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from npuprof.catalog.code_pages import load_pages
from npuprof.compare.markdown_changes import RISKS
from npuprof.report.text import escape_controls
from npuprof.site.catalogue import find_parts, find_record, list_catalogue_rows, list_parts
from npuprof.site.presets import Preset
from npuprof.system import group_pairs

#: The number of characters of a value that a search examines and shows.
_SEARCHED = 200
_format_json = json.JSONEncoder(separators=(",", ":")).encode
_FOLDER_LIKE_PAGE = re.compile(r"(?<=\.html)/", re.IGNORECASE)


def name_pages(names: Sequence[str]) -> dict[str, str]:
    """Return the path of each preset's page.

    Of names that differ only in case, the later ones get a digest. Folders cannot have the name of
    a page: ``a.html/b`` next to ``a``. No name contains a ``~``.
    """
    paths = {}
    taken = set()
    for name in names:
        # file systems normalise other letters differently
        file_name = _FOLDER_LIKE_PAGE.sub("~/", name) if name.isascii() else _hash(name)
        base = f"presets/{file_name}"
        paths[name] = f"{base}~{_hash(name)}.html" if base.lower() in taken else f"{base}.html"
        # macOS and Windows do not tell names by case
        taken.add(base.lower())
    return paths


def name_data(names: Iterable[str]) -> dict[str, str]:
    """Return the path of the data of each side of a comparison, by name."""
    return {name: f"data/{_hash(name)}.js" for name in names}


def _hash(name: str) -> str:
    return sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


def build_side(name: str, fields: Sequence[list[Any]]) -> bytes:
    """Return the rows of one side of a comparison, from the fields of each."""
    return _write_call("settings", name, fields)


def list_values(fields: Sequence[list[Any]]) -> list[tuple[str, str]]:
    """Return the keys and values of the rows of ``build_side``, without duplicates."""
    return list(dict.fromkeys((row[0], row[1]) for row in fields if len(row) > 1))


def build_index(paths: Mapping[str, str], keys: Container[str]) -> bytes:
    """Return the paths of the data of all sides, the order of risks, and the defaults of keys."""
    known = {row.key: row.default for row in list_catalogue_rows()}
    defaults = {key: default for key, default in known.items() if default and key in keys}
    return _write_call("index", list(paths.items()), list(RISKS), defaults)


def build_catalogue() -> bytes:
    """Return the data about settings and codes for the search page, equal in every site."""
    pages = list(list_parts())
    options = [
        [
            row.key,
            row.summary,
            pages.index(find_parts()[row.key]),
            *sorted({name for _, name in row.spelling if name not in row.key}),
        ]
        for row in list_catalogue_rows()
    ]
    codes = [[page.code, page.title, page.why, page.fix] for page in load_pages().values()]
    return _write_call("catalogue", options, codes, pages)


def build_search(
    presets: Sequence[Preset],
    paths: Mapping[str, str],
    settings: Mapping[str, Sequence[tuple[str, str]]],
) -> bytes:
    """Return the data about presets for the search page: descriptions, values and findings."""
    described = {
        preset.name: escape_controls(preset.head["description"])[:_SEARCHED] for preset in presets
    }
    numbers = {name: number for number, name in enumerate(described)}
    presets_by_value: dict[str, dict[str, list[int]]] = {}
    for name, rows in settings.items():
        for key, value in rows:
            shown = value if len(value) <= _SEARCHED else f"{value[:_SEARCHED]}…"
            presets_by_value.setdefault(key, {}).setdefault(shown, []).append(numbers[name])
    listed = [[name, paths[name], text] for name, text in described.items()]
    values = {
        key: [
            # increasing numbers as differences, which are short
            [value, [now - before for before, now in zip([0, *setting], setting, strict=False)]]
            for value, setting in setters.items()
        ]
        for key, setters in sorted(presets_by_value.items())
    }
    messages = group_pairs(
        (
            (finding.code, escape_controls(finding.message)[:_SEARCHED], finding.severity),
            numbers[preset.name],
        )
        for preset in presets
        for finding in preset.findings
    )
    found = [[*message, names] for message, names in messages.items()]
    return _write_call("presets", listed, values, found)


def count_settings(settings: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, int]:
    """Return the number of presets that set each record of the catalogue, by path."""
    counts: Counter[str] = Counter()
    for rows in settings.values():
        counts.update({find_record(key) for key, _ in rows})
    return counts


def _write_call(function: str, *values: Any) -> bytes:
    written = ",".join(map(_format_json, values))
    # a script and no JSON: pages that are opened as files may not fetch any
    return f"npuprof.{function}({written});\n".encode()
