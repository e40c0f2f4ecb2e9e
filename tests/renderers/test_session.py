"""The session target against the real ConfigProto of TensorFlow: what a preset says is what the parameter map holds."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import npuprof
from npuprof import catalog
from npuprof.catalog import values
from support.building import apply_unchecked, config, options, render_unchecked

READ = [name for name in catalog.record_names() if (option := catalog.find_option(name)) and option.field]


def read_back(proto: Any) -> dict[str, Any]:
    """Return the parameter map of the one NpuOptimizer entry: field and value by key."""
    rewrite = proto.graph_options.rewrite_options
    (entry,) = [entry for entry in rewrite.custom_optimizers if entry.name == "NpuOptimizer"]
    off = type(rewrite).OFF
    assert (rewrite.remapping, rewrite.memory_optimization) == (off, off)
    found = {}
    for name, attribute in entry.parameter_map.items():
        field = attribute.WhichOneof("value")
        found[name] = (field, getattr(attribute, field) if field else None)
    return found


def wanted(config: npuprof.Config) -> dict[str, Any]:
    """Return what the parameter map should hold: each value in the field of its option."""
    found = {}
    for name, value in config.options.items():
        option = catalog.find_option(name)
        assert option is not None
        found[name] = (option.field, value.encode() if option.field == "s" else value)
    return found


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return values.is_same_typed_value({k: list(v) for k, v in left.items()}, {k: list(v) for k, v in right.items()})


class Runner:
    """Executes rendered text as a user's script would."""

    def __init__(self, tensorflow: Any) -> None:
        from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

        self.tf = tensorflow
        self.rewriter = RewriterConfig

    def module(self, config: npuprof.Config, given: Any = None, path: str = "session.py") -> Any:
        text = render_unchecked(config, "session")
        ast.parse(text, feature_version=(3, 7))
        names: dict[str, Any] = {"__name__": "session", "__file__": path}
        exec(compile(text, path, "exec"), names)
        return names["session_config"](given) if given is not None else names["session_config"]()

    def inline(self, config: npuprof.Config, given: Any = None) -> Any:
        text = render_unchecked(config, "session", inline=True)
        ast.parse(text, feature_version=(3, 7))
        proto = given if given is not None else self.tf.compat.v1.ConfigProto()
        exec(compile(text, "inline", "exec"), {"config": proto, "tf": self.tf, "RewriterConfig": self.rewriter, "__file__": "inline.py"})
        return proto

    def applied(self, config: npuprof.Config, given: Any = None) -> Any:
        proto = given if given is not None else self.tf.compat.v1.ConfigProto()
        assert apply_unchecked(config, proto) is proto
        return proto

    def check(self, config: npuprof.Config) -> None:
        """Assert that every way leads to exactly the preset's parameter map."""
        expected = wanted(config)
        for way in (self.module, self.inline, self.applied):
            found = read_back(way(config))
            assert same(found, expected), (way.__name__, found, expected)


@pytest.fixture(scope="module")
def runner(tensorflow: Any) -> Runner:
    return Runner(tensorflow)


EXAMPLES = {name: text["example"] for name in READ if "example" in (text := catalog.find_record_texts("options", name))}


@pytest.mark.parametrize("name", READ)
def test_each_example_and_choice_comes_back_to_the_byte(runner: Runner, name: str) -> None:
    option = catalog.find_option(name)
    assert option is not None
    stand_in: dict[str, list[Any]] = {"b": [True, False], "i": [0, 7, -1], "s": ["text"]}
    for value in ([EXAMPLES[name]] if name in EXAMPLES else stand_in[option.field or ""]) + list(option.choices):
        config = options(**{name: value})
        runner.check(config)
        field, stored = read_back(runner.module(config))[name]
        assert field == option.field
        assert stored == (value.encode() if isinstance(value, str) else value)


def test_an_applied_config_names_its_sidecar_files_in_the_folder_that_is_given(runner: Runner, tmp_path: Path) -> None:
    lists = {"black-list": {"to-add": ["MatMul", "\u00e4\"'"]}}
    proto = runner.tf.compat.v1.ConfigProto()
    apply_unchecked(options(precision_mode_v2="mixed_float16", modify_mixlist=lists), proto, str(tmp_path / "applied"))
    _, stored = read_back(proto)["modify_mixlist"]
    assert stored.decode() == str(tmp_path / "applied/ops_info.json")
    assert json.loads(Path(stored.decode()).read_text()) == lists


def test_an_entry_that_is_there_is_used_again_and_the_rest_of_the_config_kept(runner: Runner) -> None:
    preset = options(hccl_timeout=7, precision_mode_v2="fp16")
    for way in (runner.module, runner.applied):
        proto = runner.tf.compat.v1.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=3)
        proto.graph_options.rewrite_options.custom_optimizers.add().name = "Other"
        entry = proto.graph_options.rewrite_options.custom_optimizers.add()
        entry.name = "NpuOptimizer"
        entry.parameter_map["hccl_timeout"].s = b"old"
        entry.parameter_map["graph_run_mode"].i = 1
        found = read_back(way(preset, proto))
        assert found == {"hccl_timeout": ("i", 7), "precision_mode_v2": ("s", b"fp16"), "graph_run_mode": ("i", 1)}
        assert [entry.name for entry in proto.graph_options.rewrite_options.custom_optimizers] == ["Other", "NpuOptimizer"]
        assert proto.allow_soft_placement
        assert proto.intra_op_parallelism_threads == 3
        assert read_back(way(preset, proto)) == found, "twice is as once"


def test_an_empty_preset_still_makes_the_entry(runner: Runner) -> None:
    runner.check(config(""))
    assert read_back(runner.module(config(""))) == {}


@pytest.mark.parametrize("way", ["module", "inline", "applied"])
def test_what_no_field_can_hold_is_refused_before_anything_is_changed(runner: Runner, way: str) -> None:
    preset = options(hccl_timeout=7, min_group_size=True, zzz=1)
    proto = runner.tf.compat.v1.ConfigProto()
    with pytest.raises(npuprof.NpuprofError) as caught:
        getattr(runner, way)(preset, proto)
    assert [(finding.code, finding.key) for finding in caught.value.findings] == [("NP901", "min_group_size"), ("NP901", "zzz")]
    assert proto == runner.tf.compat.v1.ConfigProto()


@pytest.mark.parametrize(
    "named",
    [
        {"hccl_timeout": "7"}, {"hccl_timeout": 7.5}, {"hccl_timeout": 2**63}, {"hccl_timeout": [7]}, {"hccl_timeout": True},
        {"hcom_parallel": 1}, {"hcom_parallel": "true"}, {"precision_mode_v2": 3}, {"precision_mode_v2": ["fp16"]},
        {"precision_mode_v2": {"a": 1}}, {"dump_step": ["5-3", []]}, {"dump_step": [1, "2"]}, {"input_shape": {"a": "b"}},
        {"input_shape": {"a;b": [1]}}, {"op_precision_mode": {"ByOpType": 1}}, {"op_precision_mode": {"ByOpType": {"a=b": "x\ny"}}},
        {"profiling_options": {"a": float("nan")}}, {"profiling_options": {"a": float("inf")}}, {"enable_scope_fusion_passes": ["a,b"]},
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_and_never_bent(named: dict[str, Any]) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render_unchecked(options(deterministic=1, **named), "session")
    (finding,) = caught.value.findings
    assert (finding.code, finding.key) == ("NP901", next(iter(named)))
