"""Rendered code, executed: against TensorFlow's ConfigProto, and stand-ins of the adapter."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import npuprof
from npuprof import catalog, renderers
from npuprof.catalog import Option
from npuprof.catalog.values import encode_field_value
from npuprof.resolve.config import Config
from support import recorders
from support.building import apply_unchecked, config, render_unchecked, toml
from support.recorders import ADAPTERS_OWN, LEAVES, adapter, execute, parameter_map, read_fields
from support.running import Run, Store

PYTHON = [name for name in npuprof.TARGETS if renderers.load_target(name).file.endswith(".py")]
#: The targets whose ``session_config`` sets every option.
WHOLE = ["session", "session-migrated", "init-resource", "estimator-migrated", "keras"]
READ = [
    name
    for name in catalog.record_names()
    if (option := catalog.find_option(name)) and option.field
]


def record(name: str) -> Option:
    option = catalog.find_option(name)
    assert option is not None
    return option


def sample(name: str) -> Any:
    """Return a value that an option is documented to take."""
    option = record(name)
    if option.choices:
        return option.choices[0]
    if option.surface_values and option.field != "b":
        words = next(iter(option.surface_values.values()))
        return int(next(iter(words))) if option.field == "i" else next(iter(words))
    example = catalog.find_record_texts("options", name).get("example")
    if example is not None:
        return example
    return {"b": True, "i": max(1, option.minimum or 0), "s": "some text"}[option.field or "b"]


def values(option: Option) -> st.SearchStrategy[Any]:
    """Return values of the type an option takes, sensible or not."""
    if option.field == "b":
        return st.booleans()
    if option.field == "i":
        return st.integers(-(2**63), 2**63 - 1)
    hostile = [
        "",
        "'\"",
        "\\",
        "\n",
        '"""',
        "${x}",
        "%s{}",
        "\u2028",
        "\U0001f600\u202e",
        "x" * 200,
        "\x7f\x85\x9b",
        "#",
        "\ufeff",
    ]
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=120) | st.sampled_from(
        [str(sample(option.name)), *hostile]
    )


settings = st.lists(st.sampled_from(READ), unique=True, max_size=8).flatmap(
    lambda names: st.fixed_dictionaries({name: values(record(name)) for name in names})
)


def expect_parameter_map(preset: Config) -> dict[str, tuple[str, Any]]:
    """Return the parameter map that a preset without sidecar files stands for."""
    found = {}
    for name, value in preset.options.items():
        field = record(name).field
        assert field is not None
        stored = encode_field_value(name, value)
        found[name] = (field, stored.encode() if field == "s" else stored)
    return found


def format_with_black(source: str) -> str:
    import black

    return black.format_str(source, mode=black.FileMode())


@pytest.mark.parametrize("target", PYTHON)
def test_rendered_code_is_python_3_7_and_black_has_nothing_to_change(target: str) -> None:
    names = [
        name
        for name in READ
        if record(name).spelling.get("run_config" if target == "estimator" else "global_options")
    ]
    if target not in ("estimator", "global-options"):
        names = READ
    lost = (
        ("job", "task_index", "use_off_line", "compress_weight_conf", "graph_slice")
        if target == "estimator"
        else ()
    )
    preset = config(toml({"options": {name: sample(name) for name in names if name not in lost}}))
    for inline in (False, True):
        source = render_unchecked(preset, target, inline=inline)
        ast.parse(source, feature_version=(3, 7))
        assert format_with_black(source) == source


def test_long_values_are_broken_where_black_breaks_them() -> None:
    for length in range(60, 90):
        source = render_unchecked(
            config(toml({"options": {"dump_path": "x" * length}})), "global-options"
        )
        assert format_with_black(source) == source, length


@given(settings)
def test_every_target_of_tf_1_sets_exactly_what_the_preset_sets(
    tensorflow: Any, options: dict[str, Any]
) -> None:
    preset = config(toml({"options": options}))
    with adapter(tensorflow):
        made = [execute(render_unchecked(preset, target))["session_config"]() for target in WHOLE]
        made.append(run_bare_lines(tensorflow, preset))
    made.append(apply_unchecked(preset, tensorflow.compat.v1.ConfigProto()))
    assert made
    for found in made:
        assert parameter_map(found) == expect_parameter_map(preset)
        rewrite = found.graph_options.rewrite_options
        assert rewrite.remapping == 2
        assert rewrite.memory_optimization == 2


def test_migrated_targets_hand_their_config_to_the_adapter(tensorflow: Any) -> None:
    preset = config(toml({"options": {"precision_mode": "allow_mix_precision"}}))
    wanted = {"precision_mode": ("s", b"allow_mix_precision")}
    with adapter(tensorflow) as journal:
        found = execute(render_unchecked(preset, "session-migrated"))["session_config"]()
        assert journal.names() == ["npu_config_proto"]
        assert parameter_map(found) == wanted
        assert found.allow_soft_placement
    with adapter(tensorflow) as journal:
        session = execute(render_unchecked(preset, "keras"))["keras_session"]()
        assert journal.names()[0] == "set_keras_session_npu_config"
        assert parameter_map(session.config) == wanted
        assert session.config.graph_options.rewrite_options.memory_optimization == 2
    with adapter(tensorflow) as journal:
        module = execute(render_unchecked(preset, "init-resource"))
        with pytest.raises(SystemExit, match=r"^0$"), module["npu_resource"]():
            raise SystemExit(0)  # as app.run does
        assert journal.names()[-2:] == ["shutdown_resource", "close_session"]
        assert parameter_map(journal.last("init_resource")) == wanted


def run_bare_lines(tensorflow: Any, preset: Config) -> Any:
    """Run the bare lines of a session where all that they name is there.

    Return the config that they set.
    """
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

    bridge, proto = vars(sys.modules["npu_bridge.npu_init"]), tensorflow.compat.v1.ConfigProto()
    names = {
        **bridge,
        "tf": sys.modules["tensorflow"],
        "RewriterConfig": RewriterConfig,
        "config": proto,
    }
    execute(render_unchecked(preset, "session", inline=True), names=names)
    return proto


def test_the_migrated_estimator_refuses_an_argument_run_config_has_not() -> None:
    preset = config(toml({"estimator": {"horovod_mode": True}}))
    with pytest.raises(npuprof.NpuprofError) as caught:
        render_unchecked(preset, "estimator-migrated")
    assert [finding.key for finding in caught.value.findings] == ["estimator.horovod_mode"]


def test_initialize_system_repeats_what_counts_there_and_shuts_down(tensorflow: Any) -> None:
    options = {
        "precision_mode": "allow_mix_precision",
        "enable_dump": True,
        "dump_path": "/d",
        "deterministic": 1,
        "hcom_parallel": True,
        "iterations_per_loop": 10,
        "modify_mixlist": "/m.json",
    }
    preset = config(toml({"options": options}))
    with adapter(tensorflow) as journal:
        module = execute(render_unchecked(preset, "initialize-system"))
        session, shutdown = module["initialize_system"]()
        session.run(shutdown)
        session.close()
        assert journal.calls[1:] == [("run", "initialize"), ("run", "shutdown"), ("close", None)]
        assert set(parameter_map(session.config)) == {
            "precision_mode",
            "enable_dump",
            "dump_path",
            "deterministic",
        }
    with adapter(tensorflow) as journal:
        module = execute(render_unchecked(preset, "initialize-system"))
        with pytest.raises(KeyError), module["initialized_system"]():
            raise KeyError
        assert journal.calls[1:] == [("run", "initialize"), ("run", "shutdown"), ("close", None)]
    rendered = renderers.load_target("initialize-system").write(preset, False)
    assert any("hcom_parallel" in note and "iterations_per_loop" in note for note in rendered.notes)


def test_what_initialize_system_leaves_to_training_is_noted() -> None:
    later = {"hcom_parallel": True, "iterations_per_loop": 10}
    target = renderers.load_target("initialize-system")
    both = target.write(config(toml({"options": later})), False)
    assert both.notes == ("iterations_per_loop, hcom_parallel count in the session that trains",)
    one = target.write(config(toml({"options": {"hcom_parallel": True}})), False)
    assert one.notes == ("hcom_parallel counts in the session that trains",)


# -- estimator ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in catalog.record_names() if "run_config" in record(name).spelling]
)
def test_every_estimator_argument_reaches_the_parameter_map(tensorflow: Any, name: str) -> None:
    option = record(name)
    for value in option.choices or (sample(name),):
        options = {name: value}
        if option.spelling["run_config"].startswith("dynamic_input_config"):
            options = {
                "input_shape": "data:1,-1",
                "dynamic_dims": "2;4",
                "dynamic_node_type": 1,
                **options,
            }
        if name == "profiling_options":
            options["profiling_mode"] = True
        if name in ("work_path", "distribute_config"):
            options["aoe_mode"] = "2"
        preset = config(toml({"options": options}))
        if name == "compress_weight_conf":
            with pytest.raises(npuprof.NpuprofError, match="cannot be carried"):
                render_unchecked(preset, "estimator")
            continue
        source = render_unchecked(preset, "estimator")
        assert format_with_black(source) == source
        with adapter(tensorflow):
            found = read_fields(execute(source)["run_config"]())
        if "dynamic_dims" in found:
            options.setdefault("compile_hybrid_mode", 0)
        assert {key: (type(item), item) for key, item in found.items()} == {
            key: (type(item), item) for key, item in options.items()
        }


SIZES = {"input_shape": "data:1,-1", "dynamic_dims": "2;4", "dynamic_node_type": 1}


class HybridCase(NamedTuple):
    cann: str | None
    named: str
    is_written: bool
    is_reported: bool


@pytest.mark.parametrize(
    ("cann", "named", "is_written", "is_reported"),
    [
        HybridCase(
            cann="7.0.0",
            named=">=6.0",
            is_written=False,
            is_reported=False,
        ),
        HybridCase(
            cann=None,
            named="<=7.0.RC1",
            is_written=False,
            is_reported=False,
        ),
        HybridCase(
            cann="9.0.0",
            named=">=7.0",
            is_written=True,
            is_reported=False,
        ),
        HybridCase(
            cann=None,
            named=">=9.0",
            is_written=True,
            is_reported=False,
        ),
        HybridCase(
            cann=None,
            named=">=8.0",
            is_written=True,
            is_reported=True,
        ),
        HybridCase(
            cann="8.0.0",
            named=">=8.0",
            is_written=True,
            is_reported=True,
        ),
    ],
)
def test_releases_without_hybrid_compilation_are_not_given_its_argument(
    cann: str | None, named: str, is_written: bool, is_reported: bool
) -> None:
    preset = npuprof.loads(toml({"profile": {"cann": named}, "options": SIZES}), cann=cann)
    rendered = renderers.load_target("estimator").write(preset, False)
    assert ("compile_hybrid_mode=0" in rendered.text) is is_written
    assert (
        any("compile_hybrid_mode" in finding.message for finding in rendered.findings)
        is is_reported
    )


def test_a_lone_compile_hybrid_mode_goes_through_session_config_and_imports_nothing_unused() -> (
    None
):
    rendered = renderers.load_target("estimator").write(
        config("options.compile_hybrid_mode = 0\n"), False
    )
    assert 'custom_op.parameter_map["compile_hybrid_mode"].i = 0' in rendered.text
    assert "DynamicInputConfig" not in rendered.text


def test_a_value_that_the_estimator_always_writes_goes_through_session_config() -> None:
    source = render_unchecked(config("options.use_off_line = true\n"), "estimator")
    assert 'custom_op.parameter_map["use_off_line"].b = True' in source
    assert "use_off_line=" not in source


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"use_off_line": False}, "use_off_line"),
        ({"job": "worker"}, "job"),
        ({"task_index": 1}, "task_index"),
        ({"compress_weight_conf": "/c"}, "compress_weight_conf"),
        ({"input_shape": "data:1,-1"}, "input_shape"),
        ({"compile_hybrid_mode": 1}, "compile_hybrid_mode"),
    ],
)
def test_what_the_estimator_would_lose_is_an_error(options: dict[str, Any], key: str) -> None:
    with pytest.raises(npuprof.NpuprofError) as caught:
        render_unchecked(config(toml({"options": options})), "estimator")
    (finding,) = caught.value.findings
    assert finding.severity == "error"
    assert finding.key == key
    assert finding.why


# -- TF 2 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in catalog.record_names() if "global_options" in record(name).spelling]
)
def test_every_leaf_of_tf_2_takes_the_value_or_it_is_refused(tensorflow: Any, name: str) -> None:
    path = record(name).spelling["global_options"]
    choices = LEAVES[path][0]
    carried = 0
    for value in record(name).choices or (sample(name),):
        preset = config(toml({"options": {name: value}}))
        try:
            source = render_unchecked(preset, "global-options")
        except npuprof.NpuprofError:
            assert choices is not None
            assert str(value) not in map(str, choices)
            continue
        with adapter(tensorflow) as journal:
            execute(source)["open_npu"](3)
            assert journal.names() == ["open", "as_default"]
            (assigned,) = journal.last("open").items()
        assert assigned[0] == path
        carried += 1
    assert carried


def test_every_leaf_with_a_twin_in_tf_1_is_spelled() -> None:
    spelled = {record(name).spelling.get("global_options") for name in catalog.record_names()}
    only_there = {
        "overflow_flag",
        "execute_times",
        "experimental.graph_memory_optimize_config.recompute",
    }
    assert ADAPTERS_OWN[1] - spelled == only_there


def test_every_argument_of_the_estimator_is_spelled_or_holds_others() -> None:
    spelled = {
        record(name).spelling.get("run_config", "").rpartition(".")[2]
        for name in catalog.record_names()
    }
    spelled |= set(catalog.record_names("estimator"))
    left = {argument for _, argument in ADAPTERS_OWN[0] if argument not in spelled}
    assert left == {*recorders.NESTED, "train_distribute", "eval_distribute", "recompute"}


def test_an_option_without_a_place_names_the_targets_that_have_one() -> None:
    preset = config(toml({"options": {"iterations_per_loop": 10, "in_out_pair_flag": False}}))
    with pytest.raises(npuprof.NpuprofError) as caught:
        render_unchecked(preset, "global-options")
    assert [finding.key for finding in caught.value.findings] == [
        "in_out_pair_flag",
        "iterations_per_loop",
    ]
    assert "session" in caught.value.findings[0].hint
    assert "estimator" in caught.value.findings[1].hint
    assert "set_npu_loop_size" in caught.value.findings[1].why


# -- what has no place in a target ----------------------------------------------------------------

EVERYTHING = """
[options]
precision_mode_v2 = "fp16"
[env]
HCCL_CONNECT_TIMEOUT = 1800
[estimator]
save_checkpoints_steps = 1000
[atc]
soc_version = "Ascend910B2"
framework = 3
model = "a.pb"
output = "a"
"""


@pytest.mark.parametrize("target", renderers.load_target_index())
def test_each_section_is_written_or_said_to_be_left_out(
    target: str, store: Store, run: Run
) -> None:
    store({"all": EVERYTHING})
    result = run("render", "all", "--to", target, "--no-check")
    assert result.code == 0, result.err
    values = {
        "env": "HCCL_CONNECT_TIMEOUT",
        "estimator": "save_checkpoints_steps",
        "atc": "soc_version",
    }
    assert values
    for section, name in values.items():
        read_by_the_code = (target, section) == ("env-loader", "env")
        assert (name in result.out or read_by_the_code) != (
            f"left out: [{section}] (" in result.err
        ), section
    left_out = "left out: [" in result.err
    strict = run("render", "all", "--to", target, "--no-check", "--strict")
    assert (strict.code, "NP917" in strict.err) == ((2, True) if left_out else (0, False))
    rendered = renderers.load_target(target).render(config(EVERYTHING))
    assert bool(rendered.left_out) == left_out


def test_what_an_environment_and_a_block_leave_out_is_said(
    store: Store, run: Run, tmp_path: Path
) -> None:
    store({"all": EVERYTHING})
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/bash\n")
    for arguments in (
        ("env", "all"),
        ("env", "all", "--format", "json"),
        ("inject", script, "all"),
    ):
        result = run(*arguments, *(["--no-check"] if arguments[0] == "env" else []))
        assert result.code == 0, result.err
        assert (
            "left out: [estimator] (save_checkpoints_steps) is for npuprof render --to estimator"
            in result.err
        )
        assert "left out: [env]" not in result.err
    for arguments in (("env", "all"), ("run", "all")):
        strict = run(
            *arguments, "--no-check", "--strict", *(["--", "true"] if arguments[0] == "run" else [])
        )
        assert strict.code == 2
        assert strict.err.count("NP917") == 2


# -- sidecar files, notes, headers ----------------------------------------------------------------

MIXLIST = """\
[options]
precision_mode_v2 = "mixed_float16"
[options.modify_mixlist]
black-list = { to-add = ["MatMul", "Cast"] }
"""


@pytest.mark.parametrize(
    "target",
    [name for name in PYTHON if name not in ("env-loader", "initialize-system", "torch-npu")],
)
def test_code_finds_its_sidecar_files_from_anywhere(
    tensorflow: Any, target: str, store: Store, run: Run, tmp_path: Path
) -> None:
    store({"mixed": MIXLIST})
    assert run("render", "mixed", "--to", target, "-o", tmp_path / "out").code == 0
    file = tmp_path / "out" / renderers.load_target(target).file
    source = file.read_text()
    assert format_with_black(source) == source
    with adapter(tensorflow) as journal:
        module = execute(source, str(file))
        if target == "estimator":
            path = read_fields(module["run_config"]())["modify_mixlist"]
        elif target == "global-options":
            module["open_npu"]()
            path = journal.last("open")["modify_mixlist"]
        else:
            path = parameter_map(module["session_config"]())["modify_mixlist"][1].decode()
    assert json.loads(Path(path).read_text()) == {"black-list": {"to-add": ["MatMul", "Cast"]}}
    assert run("render", "mixed", "--to", target, "--check", file).code == 0
    (tmp_path / "out" / "ops_info.json").write_text("{}")
    assert run("render", "mixed", "--to", target, "--check", file).code == 1


def test_a_hook_that_the_script_must_add_is_said_in_the_code_and_as_a_finding() -> None:
    preset = config(
        toml(
            {
                "options": {
                    "experimental_accelerate_train_mode": "fast|loss|1.05",
                    "iterations_per_loop": 10,
                }
            }
        )
    )
    for target in ("session", "estimator", "estimator-migrated", "keras"):
        rendered = renderers.load_target(target).write(preset, False)
        assert "TellMeStepOrLossHook(loss=..., final_loss=...)" in rendered.text
        assert "NP905" in [finding.code for finding in rendered.findings]
    codes = [
        finding.code for finding in renderers.load_target("session").write(preset, False).findings
    ]
    assert codes == ["NP905", "NP906"]


def test_the_loader_does_not_depend_on_the_preset(store: Store, run: Run, tmp_path: Path) -> None:
    store({"a": "[options]\ndeterministic = 1\n", "b": "[options]\ndeterministic = 0\n"})
    file = tmp_path / "loader.py"
    assert run("render", "a", "--to", "env-loader", "-o", file).code == 0
    assert run("render", "b", "--to", "env-loader", "--check", file).code == 0
    file.write_text(file.read_text() + "# mine\n")
    assert run("render", "a", "--to", "env-loader", "--check", file).code == 1


def test_the_loader_reads_back_what_env_exports(tensorflow: Any, store: Store, run: Run) -> None:
    sample_of = {
        name: sample(name)
        for name in READ
        if not record(name).structure or isinstance(sample(name), str)
    }
    store({"all": toml({"options": sample_of})})
    environ = json.loads(run("env", "all", "--format", "json", "--no-check").out)["env"]
    source = run("render", "all", "--to", "env-loader", "--no-check").out
    with adapter(tensorflow):
        load = execute(source)["session_config"]
        assert parameter_map(load(environ=environ)) == expect_parameter_map(
            config(toml({"options": sample_of}))
        )
        with pytest.warns(UserWarning, match="NPUPROF_PRECISION_MOD$"):
            found = load(
                environ={
                    "NPUPROF_PRECISION_MOD": "1",
                    "NPUPROF_STORE": "x",
                    "NPUPROF_HCCL_TIMEOUT": "600",
                }
            )
        assert parameter_map(found) == {"hccl_timeout": ("i", 600)}
        for name, text in (
            ("NPUPROF_HCCL_TIMEOUT", "long"),
            ("NPUPROF_ENABLE_DUMP", "2"),
            ("NPUPROF_ENABLE_DUMP", ""),
        ):
            with pytest.raises(ValueError, match=name):
                load(environ={name: text})
