"""Defaults that differ between releases: what ``option`` prints and a migration lists."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.document.keys import format_toml_value
from support.building import REPOSITORY
from support.running import Run

TABLE = tomllib.loads((Path(__file__).parent / "defaults.toml").read_text("utf-8"))
FRAMEWORKS = ("mindspeed", "torch_npu", "verl", "vllm", "vllm_ascend")


def load(framework: str, name: str) -> dict[str, Any]:
    path = REPOSITORY / "npuprof/catalog/frameworks" / framework / f"{name}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


def find(section: str, name: str) -> Any:
    record = catalog.find_record(section, name)
    assert record is not None
    return record


def is_known(key: str) -> bool:
    """Return whether a key is a setting or a table of settings."""
    section, _, name = key.partition(".")
    return any(
        other == name or other.startswith(f"{name}.") for other in catalog.record_names(section)
    )


def normalize(value: Any) -> str:
    """Return a default as comparable text: switches and numbers in one form."""
    text = {"true": "1", "false": "0"}.get(str(value).lower(), str(value))
    return str(float(text)) if text.replace(".", "", 1).lstrip("-").isdecimal() else text


@pytest.mark.parametrize(
    ("section", "name", "changes"), [row[:3] for row in TABLE["rows"]], ids=lambda part: str(part)
)
def test_a_changed_default_is_known_by_release(
    section: str, name: str, changes: dict[str, Any], run: Run
) -> None:
    record = find(section, name)
    assert list(record.default_since.items()) == list(changes.items())
    axis = releases.find_axis(section, record)
    assert set(changes) <= set(releases.load_releases(axis))
    printed = run("option", f"{section}.{name}").out
    for release, value in changes.items():
        assert f"{format_toml_value(value)} from {axis} {release} on" in printed


@pytest.mark.parametrize(
    ("section", "name"), [row[:2] for row in TABLE["computed"]], ids=lambda part: str(part)
)
def test_a_default_that_is_no_constant_did_not_change(section: str, name: str) -> None:
    assert not find(section, name).default_since


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_changes_are_in_the_order_of_releases_and_end_at_the_default(framework: str) -> None:
    known = list(releases.load_releases(framework))
    by_hand = {
        f"{kind}.{name}": row
        for kind, file in (("env", "variables"), ("settings", "settings"))
        for name, row in load(framework, file).items()
    }
    for key, row in load(framework, "upstream").items():
        if not (changes := row.get("default_since")):
            continue
        assert len(changes) > 1, key
        assert [*changes] == sorted(changes, key=known.index), key
        values = [*map(normalize, changes.values())]
        assert all(one != other for one, other in pairwise(values)), key
        if key.startswith("env."):
            assert {type(value) for value in changes.values()} == {str}, key
        if "default" in by_hand.get(key, {}):
            assert normalize(by_hand[key]["default"]) == values[-1], key


def test_each_value_that_a_successor_takes_otherwise_is_one_of_the_old_name() -> None:
    records = [
        find(section, name)
        for section in ("env", "vllm_ascend")
        for name in catalog.record_names(section)
    ]
    mapped = {row.name: row for row in records if row.successor_values is not None}
    values = {name: row.successor_values for name, row in mapped.items()}
    assert values["VLLM_ASCEND_ENABLE_FLASHCOMM2_OSHARED"] == {"1": ("o_proj",), "0": ()}
    assert values["VLLM_ASCEND_MLP_DOWN_PREFETCH_SIZE"] == {}
    for name, row in mapped.items():
        assert catalog.find_variable(row.replaced_by) or is_known(row.replaced_by), name
        words = {"bool": {"0", "1", "true", "false"}}.get(row.kind, set())
        assert set(row.successor_values) <= words, name


@pytest.mark.parametrize(
    ("key", "successor"),
    [
        ("env.VLLM_ASCEND_ENABLE_MATMUL_ALLREDUCE", "vllm_ascend.enable_matmul_allreduce"),
        (
            "env.VLLM_ASCEND_FLASHCOMM2_PARALLEL_SIZE",
            "vllm_ascend.enable_flashcomm2_parallel_size",
        ),
        ("env.VLLM_ASCEND_ENABLE_PREFETCH_MLP", "vllm_ascend.weight_prefetch_config"),
        ("env.VLLM_ASCEND_MLP_GATE_UP_PREFETCH_SIZE", "vllm_ascend.weight_prefetch_config"),
        ("env.VLLM_ASCEND_MLP_DOWN_PREFETCH_SIZE", "vllm_ascend.weight_prefetch_config"),
        ("env.VLLM_ASCEND_ENABLE_FLASHCOMM2_OSHARED", "vllm_ascend.layer_sharding"),
        (
            "vllm_ascend.sp_threshold",
            "vllm.compilation-config.pass_config.sp_min_token_num",
        ),
        ("vllm_ascend.enable_sparse_c8", "vllm_ascend.enable_sparse_li_c8"),
    ],
)
def test_a_name_that_the_sources_replaced_has_its_successor(key: str, successor: str) -> None:
    record: Any = catalog.find_key_record(key)
    assert record.replaced_by == successor
    assert is_known(successor), "a preset can set it"
