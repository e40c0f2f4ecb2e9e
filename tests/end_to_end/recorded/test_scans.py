"""Recordings of scan and import, and the classes of their differences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from end_to_end.recorded import scans

SETTING: dict[str, Any] = {
    "file": "a.py",
    "line": 3,
    "column": 5,
    "surface": "session",
    "key": "hccl_timeout",
    "name": "hccl_timeout",
    "field": "i",
    "value": 600,
    "reason": None,
    "condition": None,
    "scope": "x",
}
DYNAMIC = {"value": None, "reason": "depends on args.t"}
FINDING = {
    "code": "NP203",
    "severity": "error",
    "message": "is no value",
    "path": "a.py",
    "line": 3,
    "column": 5,
    "why": "",
    "hint": None,
}


def recorded(
    *settings: dict[str, Any], findings: tuple[dict[str, Any], ...] = (FINDING,), **options: int
) -> dict[str, Any]:
    """Return a recording of these settings and findings, and of a preset with these options."""
    preset = {"name": "a", "file": "a.py", "scenario": None, "options": options, "left_out": []}
    scan = {
        "exit": 1,
        "stderr": [],
        "answer": {"findings": list(findings), "coverage": {"settings": 1}},
    }
    return {
        "scan": scan,
        "import": {
            "exit": 0,
            "stderr": [],
            "answer": {"settings": list(settings), "presets": [preset]},
        },
    }


BEFORE = recorded(SETTING, hccl_timeout=600)
#: Recordings before and after, and the classes of what is not the same.
TREES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, int]]] = {
    "the same": (BEFORE, BEFORE, {}),
    "a dynamic value": (
        BEFORE,
        recorded(SETTING | DYNAMIC, hccl_timeout=600),
        {"became dynamic": 1},
    ),
    "a static value": (recorded(SETTING | DYNAMIC, hccl_timeout=600), BEFORE, {"became static": 1}),
    "another value": (
        BEFORE,
        recorded(SETTING | {"value": 601}, hccl_timeout=600),
        {"other value": 1},
    ),
    "another condition": (
        BEFORE,
        recorded(SETTING | {"condition": "x"}, hccl_timeout=600),
        {"other details": 1},
    ),
    "another line": (
        BEFORE,
        recorded(SETTING | {"line": 4}, hccl_timeout=600),
        {"lost": 1, "new": 1},
    ),
    "a setting less": (BEFORE, recorded(hccl_timeout=600), {"lost": 1}),
    "a setting more": (
        BEFORE,
        recorded(SETTING, SETTING | {"value": 601}, hccl_timeout=600),
        {"new": 1},
    ),
    "one of two with another value": (
        recorded(SETTING, SETTING | {"value": 7}),
        recorded(SETTING | {"value": 8}, SETTING),
        {"other value": 1},
    ),
    "another order": (
        recorded(SETTING, SETTING | {"value": 7}),
        recorded(SETTING | {"value": 7}, SETTING),
        {"other order": 1},
    ),
    "another value of a preset": (BEFORE, recorded(SETTING, hccl_timeout=601), {"other value": 1}),
    "a value less in a preset": (BEFORE, recorded(SETTING), {"lost": 1}),
    "another message": (
        BEFORE,
        recorded(SETTING, findings=(FINDING | {"message": "x"},), hccl_timeout=600),
        {"other value": 1},
    ),
    "another severity": (
        BEFORE,
        recorded(SETTING, findings=(FINDING | {"severity": "info"},), hccl_timeout=600),
        {"other details": 1},
    ),
    "another code": (
        BEFORE,
        recorded(SETTING, findings=(FINDING | {"code": "NP204"},), hccl_timeout=600),
        {"lost": 1, "new": 1},
    ),
    "another exit code": (
        BEFORE,
        BEFORE | {"scan": BEFORE["scan"] | {"exit": 2}},
        {"other value": 1},
    ),
    "no answer": (
        BEFORE,
        BEFORE | {"scan": BEFORE["scan"] | {"answer": "Traceback"}},
        {"lost": 2, "new": 1},
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_each_difference_of_a_tree_has_its_class(name: str) -> None:
    before, after, expected = TREES[name]
    found = scans.compare_rows(list(scans.list_rows(before)), list(scans.list_rows(after)))
    assert {
        sort: number
        for sort in scans.CLASSES[1:]
        if (number := sum(finding.sort == sort for finding in found))
    } == expected
    report, differs = scans.compare({"tree": before}, {"tree": after})
    assert differs == bool(expected)
    assert all(f"{number} {sort}" in report[0] for sort, number in expected.items())


def test_a_tree_that_one_recording_lacks_is_a_difference() -> None:
    assert scans.compare({"tree": BEFORE}, {}) == (["tree: only in the recording before"], True)


def test_what_scan_and_import_print_of_a_tree_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("export HCCL_BUFFSIZE=200\nexport HCCL_ALGO=$1\n")
    rows = list(scans.list_rows(scans.record_tree(tmp_path, [sys.executable, "-m", "npuprof"])))
    settings = {
        row.name: (row.place, row.value, bool(row.reason))
        for row in rows
        if row.kind == "import settings"
    }
    assert settings["env env.HCCL_BUFFSIZE HCCL_BUFFSIZE"] == ("a.sh:1:8", '"200"', False)
    assert settings["env env.HCCL_ALGO HCCL_ALGO"][2]
