"""Rows that people wrote agree with what the sources of frameworks contain (``upstream.toml``)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog

FRAMEWORKS = Path(str(catalog.__file__)).parent / "frameworks"
#: Kinds that a row may state more exactly than a source, whose texts and numbers say less.
FINER = {"path", "pairs", "json", "list"}
LOOSE = {"str", "json", "list"}


def load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def list_pairs() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the rows by hand and from sources, by framework and key."""
    pairs = {}
    for folder in sorted(FRAMEWORKS.iterdir()):
        generated = load(folder / "upstream.toml")
        for file, kind in (("variables.toml", "env"), ("settings.toml", "settings")):
            for name, row in load(folder / file).items():
                if found := generated.get(f"{kind}.{name}"):
                    pairs[f"{folder.name} {name}"] = (row, found)
    return pairs


PAIRS = list_pairs()


def normalize(value: Any) -> str:
    """Return a default as comparable text: switches and numbers in one form."""
    text = str(value).strip("\"'").lower()
    text = {"true": "1", "false": "0"}.get(text, text)
    try:
        return str(float(text))
    except ValueError:
        return text


def test_most_rows_have_a_counterpart_in_the_sources() -> None:
    assert len(PAIRS) > 600
    assert sum("default" in row and "default" in found for row, found in PAIRS.values()) > 150


@pytest.mark.parametrize(("row", "found"), PAIRS.values(), ids=PAIRS.keys())
def test_a_row_agrees_with_the_sources_or_says_how_it_differs(
    row: dict[str, Any], found: dict[str, Any]
) -> None:
    if "doubt" in row:
        return
    if "default" in row and "default" in found:
        assert normalize(row["default"]) == normalize(found["default"])
    kind = row.get("kind", found.get("kind"))  # rows by hand may leave it to the sources
    kinds = {kind, found.get("kind", kind)}
    assert len(kinds) == 1 or kinds & (FINER | LOOSE) or kinds == {"bool", "int"}
    if "choices" in row and "choices" in found:
        assert set(map(str, row["choices"])) == set(map(str, found["choices"]))


@pytest.mark.parametrize("name", sorted({key.partition(" ")[0] for key in PAIRS}))
def test_a_row_says_at_which_release_it_was_checked(name: str) -> None:
    described = load(FRAMEWORKS / name / "framework.toml")
    if "generated" in described:
        return  # rows by hand have only what the generated ones lack
    listed = described["upstream"].get("releases") or described["releases"]
    with_source = {release for release, row in listed.items() if row.keys() & {"ref", "refs"}}
    checked = {
        key: row.get("checked") for key, (row, _) in PAIRS.items() if key.partition(" ")[0] == name
    }
    assert checked
    assert set(checked.values()) <= with_source
