"""Undocumented spellings that readers of variables and ATC flags accept, each with its source."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog.readers import NOT_FOUND
from npuprof.checks.setting_values import find_setting_faults
from support.building import REPOSITORY

FILES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (REPOSITORY / "npuprof/catalog/readers.toml").read_text()
)
READERS = {name: file for file, readers in FILES.items() for name in readers}
SECTIONS = {"env": catalog.find_variable, "atc": catalog.find_flag}
HABITS: dict[str, set[Any]] = {
    "any_case": {True},
    "blanks": {"all", "around", "behind"},
    "trailing": {",", ";", ":"},
    "number": {True},
    "part_name": {r"[^:;\s]+:"},
}


#: Variables of CANN whose reader nobody found: three of documented pages, the others of names
#: without one.
NOT_FOUND_IN_CANN = 25


def list_named() -> dict[tuple[str, str], str]:
    """Return the reader of each row with listed values or a form, empty if it has none."""
    found = {}
    for section, find in SECTIONS.items():
        for name in catalog.record_names(section):
            record: Any = find(name)
            if (record.choices or record.pattern or record.reader) and not getattr(
                record, "parsed_as", ""
            ):
                found[section, name] = record.reader
    return found


def test_every_row_with_listed_values_or_a_form_names_its_reader() -> None:
    named = list_named()
    assert [
        row for row, reader in named.items() if reader != NOT_FOUND and reader not in READERS
    ] == []
    assert READERS.keys() <= set(named.values()), "a reader of nothing"
    described = [
        name
        for (section, name), reader in named.items()
        if reader == NOT_FOUND and section == "env"
    ]
    of_cann = [
        name
        for name in described
        if (record := catalog.find_variable(name)) and record.framework == "cann"
    ]

    assert len(of_cann) <= NOT_FOUND_IN_CANN


def test_every_reader_has_one_source_and_known_habits() -> None:
    assert len(READERS) == sum(map(len, FILES.values()))
    for source, readers in FILES.items():
        repository, path = source.split()
        assert repository.count("/") == 1, source
        assert "." in path.rpartition("/")[2], source
        for name, habits in readers.items():
            assert all(value in HABITS[habit] for habit, value in habits.items()), name


@pytest.mark.parametrize(
    ("key", "taken", "refused", "source"),
    tomllib.loads(Path(__file__).with_name("taken.toml").read_text())["rows"],
)
def test_what_a_reader_takes_is_no_finding_and_what_it_refuses_is_an_error(
    key: str, taken: list[str], refused: list[str], source: str
) -> None:
    section, name = key.split(".")
    record: Any = SECTIONS[section](name)
    assert record.reader in source
    assert READERS[record.reader] in source
    assert {text: find_setting_faults(key, text) for text in taken} == {text: [] for text in taken}
    assert {
        text: [fault.severity for fault in find_setting_faults(key, text)] for text in refused
    } == {text: ["error"] for text in refused}


def test_a_case_that_no_known_reader_refuses_is_a_note_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flag = catalog.find_flag("host_env_os")
    assert flag is not None
    monkeypatch.setattr(catalog, "find_flag", lambda _: flag._replace(reader=NOT_FOUND))
    for key, noted, refused in (
        ("atc.host_env_os", "Linux", "windows"),
        ("env.REPEAT_TUNE", "true", "on"),
    ):
        assert [fault.severity for fault in find_setting_faults(key, noted)] == ["info"]
        assert [fault.severity for fault in find_setting_faults(key, refused)] == ["error"]
