"""The keys of MindIE's config.json against what .ci/mindie_parser.py records of its parser."""

from __future__ import annotations

import json
import tomllib

import pytest

from npuprof.catalog import list_settings_below
from support.building import REPOSITORY

RECORDS = {
    path.stem: json.loads(path.read_text())
    for path in sorted((REPOSITORY / ".ci/upstream/mindie").glob("*.json"))
}
ROWS = tomllib.loads(
    (REPOSITORY / "npuprof/catalog/frameworks/mindie/settings.toml").read_text("utf-8")
)
KINDS = {"string": "str", "bool": "bool", "array": "list", "object": "json"}
#: Keys that the parser reads in another table or by another name than its list of kinds has them.
ELSEWHERE = ("ServerConfig.npuUsageThreshold", "pluginParams", "MultiNodesCtrlPort")
#: Ranges that depend on something else: rules have them.
CONDITIONAL = ("layerwiseDisaggregatedDataPort", "layerwiseDisaggregatedCrtlPort", "maxBatchSize")


@pytest.mark.parametrize("release", RECORDS)
def test_kinds_are_those_of_the_parser(release: str) -> None:
    keys = {
        key: spec["kind"]
        for key, spec in RECORDS[release]["keys"].items()
        if not key.endswith(ELSEWHERE)
    }
    assert len(keys) > 90
    for key, kind in keys.items():
        if key not in ROWS:  # a table has its members' rows
            assert kind == "object"
            assert list_settings_below("mindie", key)
            continue
        row = ROWS[key]
        kinds = {*row.get("kinds", ()), "str" if row["kind"] == "path" else row["kind"]}
        assert KINDS.get(kind, "int") in kinds, key


@pytest.mark.parametrize("release", RECORDS)
def test_ranges_are_those_of_the_parser(release: str) -> None:
    ranges = {
        key: bounds
        for key, bounds in RECORDS[release]["ranges"].items()
        if not key.endswith((*ELSEWHERE, *CONDITIONAL))
    }
    assert len(ranges) > 20
    for key, (low, high) in ranges.items():
        row = ROWS[key]
        choices = row.get("choices") or [row.get("minimum"), row.get("maximum")]
        assert [min(choices), max(choices)] == [low, high], key


def test_a_key_is_read_since_the_first_release_whose_parser_lists_it() -> None:
    listed = {
        key: next(release for release in RECORDS if key in RECORDS[release]["keys"])
        for key in ROWS
        if any(key in record["keys"] for record in RECORDS.values())
    }
    assert len(listed) > 80
    for key, release in listed.items():
        assert ROWS[key]["reads"].startswith(release), key
