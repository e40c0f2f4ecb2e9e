"""Variables with key-value pairs: tables and texts are equivalent, and are judged alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog
from npuprof.catalog.key_value_pairs import find_pairs_form
from npuprof.catalog.values import build_canonical_value, build_older_canonical_value
from npuprof.checks.variables import find_variable_faults
from npuprof.compare.changes import compare_configs
from npuprof.renderers.environment import collect_env_variables
from support.building import build_store

VARIABLES = [name for name in catalog.record_names("env") if find_pairs_form(name)]


def draw_word(rule: Any) -> st.SearchStrategy[Any]:
    """Return texts that a key takes, in the form that a table reads back."""
    if not isinstance(rule, dict):
        return st.sampled_from(list(rule))
    if rule["kind"] == "int":
        return st.integers(int(rule.get("min", 0)), int(rule.get("max", 10**6))).map(str)
    if rule["kind"] == "float":
        return st.sampled_from(["0.5", "0.85", "1e-3"])
    return st.text("abc/._-", min_size=1, max_size=8)


def test_the_catalogue_has_variables_of_pairs() -> None:
    assert len(VARIABLES) >= 9
    assert {"PYTORCH_NPU_ALLOC_CONF", "CPU_AFFINITY_CONF", "NPU_ASD_CONFIG", "MS_ALLOC_CONF"} <= {
        *VARIABLES
    }


@pytest.mark.parametrize("name", VARIABLES)
@given(data=st.data())
def test_a_text_of_pairs_is_a_table_of_the_same_pairs(name: str, data: st.DataObject) -> None:
    variable, form = catalog.find_variable(name), find_pairs_form(name)
    assert variable is not None
    assert form is not None
    known = {key.replace("*", "0"): rule for key, rule in variable.items.items()}
    chosen = (
        data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1))
        if known
        else ["key"]
    )
    words = {key: data.draw(draw_word(known.get(key, {"kind": "str"}))) for key in chosen}
    first = [data.draw(st.sampled_from(variable.first))] if variable.first else []
    text = variable.joined.join(
        [*first, *(f"{key}{variable.pair}{word}" for key, word in words.items())]
    )
    table = form.parse(text)
    assert list(table) == [variable.first_name] * bool(first) + chosen
    again = form.parse(form.format(table))
    assert again == table
    assert [type(value) for value in again.values()] == [type(value) for value in table.values()]
    assert find_variable_faults(name, text) == find_variable_faults(name, table) == []


class WrongPairCase(NamedTuple):
    name: str
    value: Any
    path: tuple[str, ...]
    what: str
    hint: str


@pytest.mark.parametrize(
    ("name", "value", "path", "what", "hint"),
    [
        WrongPairCase(
            name="PYTORCH_NPU_ALLOC_CONF",
            value={"max_split_size_mb": 1},
            path=("max_split_size_mb",),
            what="max_split_size_mb: 1",
            hint="max_split_size_mb = 21",
        ),
        WrongPairCase(
            name="PYTORCH_NPU_ALLOC_CONF",
            value={"expandable_segmets": True},
            path=("expandable_segmets",),
            what='unknown key "exp',
            hint="'expandable_segments'",
        ),
        WrongPairCase(
            name="PYTORCH_NPU_ALLOC_CONF",
            value={"page_size": {"a": 1}},
            path=("page_size",),
            what="page_size",
            hint="write page_size = ",
        ),
        WrongPairCase(
            name="PYTORCH_NPU_ALLOC_CONF",
            value={"page_size": "1g,a:b"},
            path=("page_size",),
            what="page_size",
            hint="write page_size = ",
        ),
        WrongPairCase(
            name="NPU_ASD_CONFIG",
            value={"enable": "TRUE"},
            path=("enable",),
            what='enable: "TRUE"',
            hint="write enable = true",
        ),
        WrongPairCase(
            name="CPU_AFFINITY_CONF",
            value={"mode": 7},
            path=("mode",),
            what="mode: 7",
            hint="write mode = 0 or 1 or 2",
        ),
    ],
)
def test_a_wrong_pair_of_a_table_is_reported_at_its_key(
    name: str, value: Any, path: tuple[str, ...], what: str, hint: str
) -> None:
    (fault,) = find_variable_faults(name, value)
    assert fault.tail == path
    assert what in fault.message
    assert hint in fault.hint


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("MS_DEV_RUNTIME_CONF", {"a": {}}, "error"),
        ("CPU_AFFINITY_CONF", {"force": [1]}, "error"),
        ("CPU_AFFINITY_CONF", {"force": 2}, "warning"),
        ("PYTORCH_NPU_ALLOC_CONF", {"page_size": "2g"}, "error"),
    ],
)
def test_a_pair_that_no_text_can_hold_is_an_error_whoever_reads_it(
    name: str, value: Any, severity: str
) -> None:
    assert [fault.severity for fault in find_variable_faults(name, value)] == [severity]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3", True),
        ("on,force:1", True),
        ("2", False),
        ("1,force:1", False),
        ("force:1", False),
        ("", False),
    ],
)
def test_a_first_word_of_pairs_is_judged_as_in_a_table(text: str, found: bool) -> None:
    faults = find_variable_faults("CPU_AFFINITY_CONF", text)
    assert [
        (fault.message.startswith("env.CPU_AFFINITY_CONF: mode: "), fault.hint) for fault in faults
    ] == [(True, "write 0 or 1 or 2")] * found


PRESETS = {
    "text": """
[env]
PYTORCH_NPU_ALLOC_CONF = "expandable_segments:True,garbage_collection_threshold:0.8"
CPU_AFFINITY_CONF = "1,npu0:0-1"
""",
    "table": """
[env]
CPU_AFFINITY_CONF = { mode = 1, npu0 = "0-1" }
PYTORCH_NPU_ALLOC_CONF = { expandable_segments = true, garbage_collection_threshold = 0.8 }
""",
    "more": """
[profile]
extends = ["text"]
[env.PYTORCH_NPU_ALLOC_CONF]
expandable_segments = false
max_split_size_mb = 256
""",
}


def test_a_table_and_a_text_of_the_same_pairs_have_one_digest_and_one_export(
    tmp_path: Path,
) -> None:
    store = npuprof.open_store(build_store(tmp_path, PRESETS))
    text, table = store.resolve("text"), store.resolve("table")
    assert text.digest == table.digest
    assert compare_configs(text, table) == []
    exports = [collect_env_variables(config, None, "")[0] for config in (text, table)]
    assert exports[0]["PYTORCH_NPU_ALLOC_CONF"] == exports[1]["PYTORCH_NPU_ALLOC_CONF"]
    assert exports[0]["CPU_AFFINITY_CONF"] == exports[1]["CPU_AFFINITY_CONF"] == "1,npu0:0-1"


def test_a_table_merges_with_an_inherited_text_and_differs_from_it_by_key(tmp_path: Path) -> None:
    store = npuprof.open_store(build_store(tmp_path, PRESETS))
    changes = compare_configs(store.resolve("text"), store.resolve("more"))
    assert {(change.key, change.before, change.after) for change in changes} == {
        ("env.PYTORCH_NPU_ALLOC_CONF.expandable_segments", True, False),
        ("env.PYTORCH_NPU_ALLOC_CONF.max_split_size_mb", None, 256),
    }
    variables, _ = collect_env_variables(store.resolve("more"), None, "")
    assert (
        variables["PYTORCH_NPU_ALLOC_CONF"]
        == "expandable_segments:False,garbage_collection_threshold:0.8,max_split_size_mb:256"
    )


def test_the_canonical_value_of_pairs_is_their_table_and_in_older_forms_their_text() -> None:
    key, text, table = (
        "env.PYTORCH_NPU_ALLOC_CONF",
        "expandable_segments:True",
        {"expandable_segments": True},
    )
    assert [build_canonical_value(key, value) for value in (text, table)] == [table, table]
    assert [build_older_canonical_value(key, value) for value in (text, table)] == [text, text]
