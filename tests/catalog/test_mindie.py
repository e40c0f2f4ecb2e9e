"""The keys of MindIE's config.json against what is recorded of MindIE.

.ci/mindie_parser.py read its parser, and .ci/mindie_judge.py ran its checks on files.
"""

from __future__ import annotations

import json
import tomllib

import pytest

from npuprof.catalog import list_settings_below, load_sections
from support.building import REPOSITORY
from support.mindie_variants import (
    IGNORED,
    SHARES,
    change_file,
    find_faults,
    read_record,
)

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
CONDITIONAL = (
    "layerwiseDisaggregatedDataPort",
    "layerwiseDisaggregatedCrtlPort",
    "maxBatchSize",
    "stageSelectPolicy",
)


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
        # older releases are taken to read what the first one with sources reads
        first = "1.0.0" if release == "3.0.0.beta.1" else release
        assert ROWS[key]["reads"] == f"{first}..", key


@pytest.mark.parametrize("release", RECORDS)
def test_the_compulsory_keys_are_those_of_the_parser_and_of_what_it_reads_later(
    release: str,
) -> None:
    keys = RECORDS[release]["keys"]
    tables = {key.rpartition(".")[0] for key in keys}
    needed = {key for key in keys if keys[key]["compulsory"] and key not in tables}
    listed = {key.replace(".first", "") for key in load_sections()["mindie"].compulsory}
    assert needed <= listed
    assert {key.rpartition(".")[2] for key in listed - needed} == {
        "ModelConfig",
        "distDPServerEnabled",
        "interNodeTLSEnabled",
        "multiNodesInferEnabled",
    }


@pytest.mark.parametrize("release", ["3.0.0.beta.1", "3.0.0"])
def test_what_mindie_accepts_is_no_error_and_most_that_it_refuses_is_found(release: str) -> None:
    data, rows = read_record(release)
    wrong, found, errors = [], 0, 0
    for row in rows:
        faults = find_faults(change_file(data, row["changes"]), release)
        certain = [
            fault for fault in faults if fault.severity == "error" and fault.certainty == "certain"
        ]
        if row["verdict"] == "refused":
            found += bool(faults)
            errors += bool(certain)
        elif row["verdict"] == "accepted":
            wrong += [
                f"{row['changes']}: {fault.code} {fault.message}"
                for fault in certain
                if fault.code not in IGNORED
            ]
    verdicts = [row["verdict"] for row in rows]
    assert not wrong, "\n".join(wrong)
    assert {verdict: verdicts.count(verdict) for verdict in SHARES} == SHARES
    assert found >= 0.85 * SHARES["refused"]
    assert errors >= 0.85 * SHARES["refused"]
