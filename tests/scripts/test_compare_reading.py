"""The comparison of how scripts are read before and after a change: a small tree reads as it was recorded, and losses are found."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import compare_reading

SCRIPTS = Path(__file__).parent / "samples"


@pytest.fixture(scope="module")
def dump() -> compare_reading.Dump:
    """What the scripts made up for tests read as."""
    found = compare_reading.dump_tree(SCRIPTS)
    assert len(found["settings"]) > 60
    return found


@pytest.mark.accepted
def test_the_scripts_made_up_for_tests_read_as_they_were_recorded(dump: compare_reading.Dump, golden: Callable[[str, str], None]) -> None:
    golden("reading.json", json.dumps(dump, indent=0, sort_keys=True) + "\n")


def test_a_dump_compared_with_itself_is_the_same(dump: compare_reading.Dump) -> None:
    for kinds in compare_reading.compare_dumps(dump, dump).values():
        assert {kind for kind, keys in kinds.items() if keys} == {"same"}


def test_what_became_of_each_setting_is_told_apart(dump: compare_reading.Dump, tmp_path: Path) -> None:
    after = deepcopy(dump)
    constant = [key for key, row in dump["settings"].items() if row["value"] is not None]
    other, dynamic, lost = constant[:3]
    after["settings"][other]["value"] = "another"
    after["settings"][dynamic]["value"] = None
    after["settings"]["made.py:1:session:new#1"] = after["settings"].pop(lost)
    found = compare_reading.compare_dumps(dump, after)["settings"]
    assert [found[kind] for kind in ("other value", "became dynamic", "lost", "new")] == [
        [other],
        [dynamic],
        [lost],
        ["made.py:1:session:new#1"],
    ]
    paths = [tmp_path / name for name in ("before.json", "after.json")]
    for path, one in zip(paths, (dump, after), strict=True):
        path.write_text(json.dumps(one))
    assert compare_reading.main(["compare", *map(str, paths)]) == 1
    assert compare_reading.main(["compare", str(paths[0]), str(paths[0])]) == 0
