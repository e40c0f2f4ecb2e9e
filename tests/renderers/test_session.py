"""The session target against TensorFlow's ConfigProto: its parameter map has the values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog
from npuprof.renderers import load_target
from support.building import apply_unchecked, options, render_unchecked
from support.recorders import execute, parameter_map

READ = [
    name
    for name in catalog.record_names()
    if (option := catalog.find_option(name)) and option.field
]


def call_module(preset: npuprof.Config, proto: Any) -> Any:
    """Fill a ConfigProto by the function of the rendered module."""
    return execute(render_unchecked(preset, "session"))["session_config"](proto)


@pytest.fixture(scope="module")
def build_proto(tensorflow: Any) -> Callable[..., Any]:
    return tensorflow.compat.v1.ConfigProto  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", READ)
def test_each_example_and_choice_comes_back_to_the_byte(
    build_proto: Callable[..., Any], name: str
) -> None:
    option, texts = catalog.find_option(name), catalog.find_record_texts("options", name)
    assert option is not None
    stand_in: dict[str, list[Any]] = {"b": [True, False], "i": [0, 7, -1], "s": ["text"]}
    samples = [texts["example"]] if "example" in texts else stand_in[option.field or ""]
    for value in (*samples, *option.choices):
        stored = value.encode() if isinstance(value, str) else value
        for way in (call_module, apply_unchecked):
            assert parameter_map(way(options(**{name: value}), build_proto())) == {
                name: (option.field, stored)
            }


def test_an_applied_config_names_its_sidecar_files_in_the_folder_that_is_given(
    build_proto: Callable[..., Any], tmp_path: Path
) -> None:
    lists = {"black-list": {"to-add": ["MatMul", "\u00e4\"'"]}}
    preset = options(precision_mode_v2="mixed_float16", modify_mixlist=lists)
    _, stored = parameter_map(apply_unchecked(preset, build_proto(), str(tmp_path / "applied")))[
        "modify_mixlist"
    ]
    assert stored.decode() == str(tmp_path / "applied/ops_info.json")
    assert json.loads(Path(stored.decode()).read_text()) == lists


@pytest.mark.parametrize("way", [call_module, apply_unchecked])
def test_an_entry_that_is_there_is_used_again_and_the_rest_of_the_config_kept(
    way: Callable[..., Any], build_proto: Callable[..., Any]
) -> None:
    preset = options(hccl_timeout=7, precision_mode_v2="fp16")
    proto = build_proto(allow_soft_placement=True, intra_op_parallelism_threads=3)
    entries = proto.graph_options.rewrite_options.custom_optimizers
    entries.add().name = "Other"
    entry = entries.add()
    entry.name = "NpuOptimizer"
    entry.parameter_map["hccl_timeout"].s = b"old"
    entry.parameter_map["graph_run_mode"].i = 1
    for _ in range(2):  # twice is as once
        assert way(preset, proto) is proto
        assert parameter_map(proto) == {
            "hccl_timeout": ("i", 7),
            "precision_mode_v2": ("s", b"fp16"),
            "graph_run_mode": ("i", 1),
        }
        assert [entry.name for entry in entries] == ["Other", "NpuOptimizer"]
        assert proto.allow_soft_placement is True
        assert proto.intra_op_parallelism_threads == 3


@pytest.mark.parametrize("way", [call_module, apply_unchecked])
def test_what_no_field_can_hold_is_refused_before_anything_is_changed(
    way: Callable[..., Any], build_proto: Callable[..., Any]
) -> None:
    proto = build_proto()
    with pytest.raises(npuprof.NpuprofError) as caught:
        way(options(hccl_timeout=7, min_group_size=True, zzz=1), proto)
    assert [(finding.code, finding.key) for finding in caught.value.findings] == [
        ("NP901", "min_group_size"),
        ("NP901", "zzz"),
    ]
    assert proto == build_proto()


@pytest.mark.parametrize(
    "named",
    [
        {"hccl_timeout": "7"},
        {"hccl_timeout": 7.5},
        {"hccl_timeout": 2**63},
        {"hccl_timeout": [7]},
        {"hccl_timeout": True},
        {"hcom_parallel": 1},
        {"hcom_parallel": "true"},
        {"precision_mode_v2": 3},
        {"precision_mode_v2": ["fp16"]},
        {"precision_mode_v2": {"a": 1}},
        {"dump_step": ["5-3", []]},
        {"dump_step": [1, "2"]},
        {"input_shape": {"a": "b"}},
        {"input_shape": {"a;b": [1]}},
        {"op_precision_mode": {"ByOpType": 1}},
        {"op_precision_mode": {"ByOpType": {"a=b": "x\ny"}}},
        {"profiling_options": {"a": float("nan")}},
        {"profiling_options": {"a": float("inf")}},
        {"enable_scope_fusion_passes": ["a,b"]},
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_never_bent(named: dict[str, Any]) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render_unchecked(options(deterministic=1, **named), "session")
    (finding,) = caught.value.findings
    assert finding.code == "NP901"
    assert finding.key == next(iter(named))


def test_lines_for_an_existing_entry_import_os_for_the_path_of_a_sidecar_file_only() -> None:
    target = load_target("session")
    plain = target.render_onto(options(deterministic=1), "entry")
    assert 'entry.parameter_map["deterministic"].i = 1\n' in plain.text
    assert "import os" not in plain.text
    lists = {"black-list": {"to-add": ["MatMul"]}}
    text = target.render_onto(options(modify_mixlist=lists), "entry").text
    assert text.index("import os\n") < text.index("os.path")
