"""The session target against the real ConfigProto of TensorFlow: what a preset says is what the parameter map holds."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog
from npuprof.catalog import values
from npuprof.catalog.values import load_form
from npuprof.store import spec
from support.building import apply_unchecked, characters, config, options, render_unchecked, toml
from support.running import Run, Store

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


def wanted(config: npuprof.Config, folder: str = "") -> dict[str, Any]:
    """Return what the parameter map should hold: the documented text of each structured value, or its file."""
    found = {}
    for name, value in config.options.items():
        option = catalog.find_option(name)
        assert option is not None
        stored = value
        if isinstance(value, (dict, list)):
            structure = load_form(option.structure)
            stored = os.path.join(folder, structure.file) if structure.file else structure.format(value)
        found[name] = (option.field, stored.encode() if option.field == "s" else stored)
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


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Return values an option's field can hold, the odd ones too."""
    option = catalog.find_option(name)
    assert option is not None
    example = catalog.find_record_texts("options", name).get("example")
    known = [*option.choices, *([example] if example is not None else [])]
    kinds = {"b": st.booleans(), "i": st.integers(-(2**63), 2**63 - 1), "s": st.text(characters, max_size=30)}
    hostile = st.sampled_from(
        ["", "'\"", "\\", "\n", '"""', "${x}", "%s{}", "\u2028", "\U0001f600\u202e", "x" * 200, "\x7f\x85\x9b", "#", "\ufeff"]
    )
    drawn = kinds[option.field or "s"]
    if option.field == "s":
        drawn = drawn | hostile
    return drawn | st.sampled_from(known) if known else drawn


@given(st.lists(st.sampled_from(READ), min_size=1, max_size=8, unique=True), st.data())
def test_any_values_come_back(runner: Runner, names: list[str], data: st.DataObject) -> None:
    runner.check(options(**{name: data.draw(values_of(name)) for name in names}))


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


@pytest.mark.parametrize("name", [name for name in EXAMPLES if (form := catalog.find_option(name).structure) and not load_form(form).file])  # type: ignore[union-attr]
def test_the_structured_form_gives_the_documented_text(runner: Runner, name: str) -> None:
    option = catalog.find_option(name)
    assert option is not None
    parsed = load_form(option.structure).parse(EXAMPLES[name])
    assert parsed is not None
    _, stored = read_back(runner.module(options(**{name: parsed})))[name]
    if option.structure == "json":
        assert json.loads(stored) == json.loads(EXAMPLES[name])
    else:
        assert stored.decode().replace(" ", "") == EXAMPLES[name].replace(" ", "")


def test_every_shipped_preset_comes_back(runner: Runner, tmp_path: Path) -> None:
    workspace = spec.Workspace("builtin:", spec.build_context(target="session"))
    seen = 0
    for name in workspace.store.names():
        config = workspace.resolve_spec(name)
        if config.scenario == "offline-inference":
            continue
        folder = str(tmp_path / "out")
        found = read_back(runner.module(config, path=f"{folder}/session.py"))
        assert same(found, wanted(config, folder)), name
        seen += 1
    assert seen >= 14


def test_the_rendered_file_finds_its_sidecars_where_it_stands(runner: Runner, run: Run, store: Store, tmp_path: Path) -> None:
    text = {"options": {"precision_mode_v2": "mixed_float16", "modify_mixlist": {"black-list": {"to-add": ["MatMul", "\u00e4\"'"]}}}}
    store({"a": toml(text)})
    result = run("render", "a", "-o", "deep/out/", "--no-check")
    assert result.code == 0, result.err
    assert sorted(os.listdir("deep/out")) == ["ops_info.json", "session.py"]
    path = str(tmp_path / "deep/out/session.py")
    names: dict[str, Any] = {"__name__": "session", "__file__": path}
    exec(compile(Path(path).read_text(), path, "exec"), names)
    _, stored = read_back(names["session_config"]())["modify_mixlist"]
    assert json.loads(Path(stored.decode()).read_text()) == text["options"]["modify_mixlist"]
    proto = runner.tf.compat.v1.ConfigProto()
    apply_unchecked(npuprof.open_store().resolve("a"), proto, str(tmp_path / "applied"))
    _, stored = read_back(proto)["modify_mixlist"]
    assert stored.decode() == str(tmp_path / "applied/ops_info.json")
    assert json.loads(Path(stored.decode()).read_text()) == text["options"]["modify_mixlist"]


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
@pytest.mark.parametrize("way", ["module", "inline", "applied"])
def test_a_value_that_does_not_fit_is_refused_and_never_bent(runner: Runner, way: str, named: dict[str, Any]) -> None:
    preset = options(deterministic=1, **named)
    proto = runner.tf.compat.v1.ConfigProto()
    with pytest.raises(npuprof.NpuprofError) as caught:
        getattr(runner, way)(preset, proto)
    (finding,) = caught.value.findings
    assert (finding.code, finding.key) == ("NP901", next(iter(named)))
    assert proto == runner.tf.compat.v1.ConfigProto()
