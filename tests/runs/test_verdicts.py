"""Verdicts on settings by logs that are written for each case, with known truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npuprof.catalog.wire import list_tf2_standing_keys, load_wires
from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.log_values import Verdict
from npuprof.runs.verdicts import judge_process
from support.logged import (
    INIT,
    SESSION,
    write_block,
    write_dump,
    write_engine_line,
    write_line,
    write_run,
    write_tf2_block,
    write_tf2_line,
)


def judge(
    folder: Path, text: str | bytes, name: str = "run.log", **options: Any
) -> dict[str, Verdict]:
    """Return the verdicts on the one process of a log."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogateescape"))
    found = read_evidence([str(path)]).processes
    assert len(found) == 1
    return {verdict.setting: verdict for verdict in judge_process(options, found[0])}


def judge_one(
    folder: Path, text: str | bytes, setting: str, value: Any, name: str = "run.log"
) -> str:
    return judge(folder, text, name, **{setting: value})[setting].state


MIXLIST = {"black-list": {"to-add": ["Cast"]}}
MODES = {"ge.exec.precision_mode": "force_fp16", "precision_mode": "force_fp16"}
V2 = {"ge.exec.precision_mode_v2": "fp16", "precision_mode_v2": "fp16"}


class LogCase(NamedTuple):
    """A log, a setting of the preset, and the state that the log proves."""

    text: str
    setting: str
    value: Any
    state: str


@pytest.mark.parametrize(
    "case",
    [
        LogCase(
            text=write_run({**MODES, **V2}),
            setting="precision_mode",
            value="force_fp16",
            state="changed",
        ),
        LogCase(
            text=write_run({**MODES, **V2}),
            setting="precision_mode_v2",
            value="fp16",
            state="in force",
        ),
        LogCase(
            text=write_run(), setting="precision_mode", value="force_fp16", state="cannot tell"
        ),
        LogCase(
            text=write_run({"ge.deterministic": "True"}),
            setting="profiling_mode",
            value=False,
            state="default or set",
        ),
        # a text that opens a bracket went on in lines that are lost, also where a preset has no
        # more than is left
        LogCase(
            text=write_run({"ge.exec.profilingOptions": '{"output":"/p"}'}),
            setting="profiling_options",
            value='{"output":"/p"}',
            state="in force",
        ),
        LogCase(
            text=write_run({"ge.exec.profilingOptions": '{"output":"/p",'}),
            setting="profiling_options",
            value='{"output":"/p",',
            state="cannot tell",
        ),
        # in a place that GE gets twice both have to say so
        LogCase(
            text=write_run(
                {"ge.exec.hcclExecuteTimeOut": "7"}, {"ge.exec.hcclExecuteTimeOut": "7"}
            ),
            setting="hccl_timeout",
            value=7,
            state="in force",
        ),
        LogCase(
            text=write_run({"ge.exec.hcclExecuteTimeOut": "7"}),
            setting="hccl_timeout",
            value=7,
            state="cannot tell",
        ),
        LogCase(
            text=write_run({}, {"ge.exec.enableDump": "1", "ge.exec.dumpPath": "/d"}),
            setting="dump_path",
            value="/d",
            state="in force",
        ),
        LogCase(
            text=write_run({}, {"ge.exec.enableDump": "1", "ge.exec.dumpPath": "/d"}),
            setting="dump_path",
            value="/d/",
            state="in force",
        ),
        LogCase(
            text=write_run({}, {"ge.exec.enableDump": "1", "ge.exec.dumpPath": "/real/d"}),
            setting="dump_path",
            value="/d",
            state="cannot tell",
        ),
        LogCase(
            text=write_run({}, {"ge.exec.enableDump": "1", "ge.exec.dumpPath": "/real/d\n\x01E {"}),
            setting="dump_path",
            value="/d",
            state="cannot tell",
        ),
        LogCase(
            text=write_run({}, {"ge.exec.enableDump": "1", "ge.exec.dumpPath": "/" + "d" * 2000}),
            setting="dump_path",
            value="/d",
            state="cannot tell",
        ),
        LogCase(text=write_run(), setting="dump_path", value="/d", state="changed"),
        LogCase(text=write_run(), setting="dump_mode", value="output", state="default or set"),
        LogCase(
            text=write_run({}, {"ge.exec.input_fusion_size": "33554432"}),
            setting="input_fusion_size",
            value=99999999,
            state="cannot tell",
        ),
        LogCase(text=write_run(), setting="fp_point", value="x", state="cannot tell"),
        LogCase(text=write_run(), setting="in_out_pair", value="((1,2))", state="cannot tell"),
        LogCase(text=write_run(), setting="use_off_line", value=True, state="default or set"),
        LogCase(text=write_run(), setting="use_off_line", value=False, state="changed"),
        LogCase(
            text=write_run({}, {"ge.exec.modify_mixlist": "/a/ops_info.json"}),
            setting="modify_mixlist",
            value=MIXLIST,
            state="cannot tell",
        ),
        LogCase(text=write_run(), setting="no_such_option", value=1, state="cannot tell"),
    ],
    ids=lambda case: f"{case.setting}={case.value} {case.state}",
)
def test_blocks_of_2026_prove_a_value_or_that_nobody_set_it(
    case: LogCase,
    tmp_path: Path,
) -> None:
    assert judge_one(tmp_path, case.text, case.setting, case.value) == case.state


def test_a_warning_shows_that_a_line_of_the_block_is_lost(tmp_path: Path) -> None:
    block = fill_block({"ge.exec.precision_mode_v2": "fp16"}, "TF 2 2026-07")
    warned = write_tf2_line("Unrecognized graph engine option op_debug_level:1", "W")
    assert judge_states(tmp_path, write_tf2_block(block), op_debug_level=1) == [["absent"]]
    assert judge_states(tmp_path, write_tf2_block(block) + warned, op_debug_level=1) == [
        ["cannot tell"]
    ]
    others = write_tf2_line(
        "Unrecognized graph engine option deterministic:0", "W"
    )  # as when a session is made: not all are there
    assert judge_states(tmp_path, write_tf2_block(block) + others, op_debug_level=1) == [
        ["cannot tell"]
    ]


def test_a_start_that_is_not_in_the_log_leaves_what_it_was_given_open(tmp_path: Path) -> None:
    text = write_line("[GePlugin] Ge has already initialized", "ge_plugin.cc") + write_block(
        "Session options: ", {**SESSION, "ge.hcomParallel": "0"}
    )
    found = judge(tmp_path, text, deterministic=1, hcom_parallel=False)
    assert found["deterministic"].state == "cannot tell"
    assert found["hcom_parallel"].state == "in force"
    assert found["deterministic"].tell == "ASCEND_HOST_LOG_FILE_NUM=1000"


def write_old(
    init: dict[str, str],
    session: dict[str, str],
    started: str = "[GePlugin] Initialize ge success.",
    **more: Any,
) -> str:
    text = write_line(started, "ge_plugin.cc", **more) if started else ""
    text += write_block("init options:", {**INIT, **init}, file="geop_npu.cc", **more)
    return text + write_block(
        "session options:", {**SESSION, **session}, file="geop_npu.cc", **more
    )


DROPPED = "[GePlugin] Ge has already initialized"


@pytest.mark.parametrize(
    ("text", "value", "state"),
    [
        pytest.param(
            write_old({"ge.deterministic": "1"}, {}, old=True),
            1,
            "in force",
            id="old block that started the engine",
        ),
        pytest.param(
            write_old({"ge.deterministic": "1"}, {}),
            1,
            "in force",
            id="block that started the engine",
        ),
        pytest.param(
            write_old({}, {}) + write_old({"ge.deterministic": "1"}, {}, DROPPED),
            1,
            "too late",
            id="second block, dropped",
        ),
        pytest.param(
            write_old({"ge.deterministic": "1"}, {}, old=True)
            + write_old({}, {}, DROPPED, old=True),
            1,
            "in force",
            id="old block, then one dropped",
        ),
        pytest.param(
            write_old({"ge.deterministic": "1"}, {}, DROPPED, old=True),
            1,
            "cannot tell",
            id="old block, dropped",
        ),
        pytest.param(
            write_old({"ge.deterministic": "1"}, {}, "", old=True),
            1,
            "cannot tell",
            id="old block without the line of the start",
        ),
    ],
)
def test_a_block_that_every_operator_writes_counts_where_it_started_the_engine(
    tmp_path: Path, text: str, value: Any, state: str
) -> None:
    assert judge_one(tmp_path, text, "deterministic", value) == state


def test_sessions_that_may_be_of_several_processes_have_to_agree(tmp_path: Path) -> None:
    """On a screen the adapter of 2020 named no process.

    One of two ranks may have set what the other has not.
    """
    lines = ["[GEOP] variable_acceleration :", "[GEOP] variable_acceleration :0"]
    named = "".join(write_line(line, "session_manager.cc", old=True) for line in lines)
    assert judge_one(tmp_path, named, "variable_format_optimize", False) == "in force"
    console = "".join(
        f"2021-06-22 02:57:12.348048: I tf_adapter/util/session_manager.cc:862] {line}\n"
        for line in lines
    )
    assert judge_one(tmp_path, console, "variable_format_optimize", False) == "cannot tell"


def test_the_engine_has_the_last_word(tmp_path: Path) -> None:
    warnings = "".join(
        write_engine_line(f"GE option: {key}, value: {text}.", "GEInitializeImpl")
        for key, text in sorted({**INIT, **MODES}.items())
    )
    assert judge_one(tmp_path, warnings, "precision_mode", "force_fp16") == "in force"
    assert (
        judge_one(
            tmp_path, write_run({**MODES, "ge.deterministic": "1"}) + warnings, "deterministic", 1
        )
        == "changed"
    )
    long = write_engine_line("GE option: op_debug_config, value: " + "x" * 800, "GEInitializeImpl")
    assert judge_one(tmp_path, long, "op_debug_config", "x" * 800) == "cannot tell"
    assert judge_one(tmp_path, long, "op_debug_config", "y") == "changed"


TF2 = {
    "ge.deterministic": "0",
    "ge.graphRunMode": "1",
    "ge.exec.precision_mode_v2": "fp16",
    "ge.oo.constantFolding": "true",
    "ge.optimizationSwitch": "p:offforbidden_close_pass:on",
}


def fill_block(texts: Mapping[str, str], generation: str = "TF 2 2026-07") -> dict[str, str]:
    """Return a block with all that an adapter always sends."""
    return {**dict.fromkeys(list_tf2_standing_keys(generation), "0"), **texts}


def write_warnings(**more: str | None) -> str:
    """Return the warnings of what only sessions have, as they come before the block.

    None for one that is lost.
    """
    always = [
        wire.tf2["leaf"]
        for wire in load_wires().values()
        if {"session", "unset"} <= wire.tf2.keys() and "global" not in wire.tf2
    ]
    sent = {**dict.fromkeys(always, "0"), **more}
    return "".join(
        write_tf2_line(f"Unrecognized graph engine option {leaf}:{sent[leaf]}", "W")
        for leaf in sorted(sent)
        if sent[leaf] is not None
    )


def test_a_line_that_is_lost_anywhere_leaves_it_open_whether_another_was(tmp_path: Path) -> None:
    block = write_tf2_block(fill_block(TF2))
    incomplete = write_warnings(enable_dump=None)
    assert judge_one(tmp_path, write_warnings() + block, "op_debug_level", 1) == "absent"
    assert judge_one(tmp_path, block, "op_debug_level", 1) == "absent"
    assert judge_one(tmp_path, incomplete + block, "op_debug_level", 1) == "cannot tell"
    lost_lines = write_tf2_block(TF2)
    assert judge_one(tmp_path, write_warnings() + block, "dump_layer", "a") == "absent"
    assert judge_one(tmp_path, write_warnings() + lost_lines, "dump_layer", "a") == "cannot tell"


@pytest.mark.parametrize(
    ("setting", "value", "state"),
    [
        ("precision_mode_v2", "fp16", "in force"),
        ("precision_mode", "force_fp16", "cannot tell"),
        ("deterministic", 0, "default or set"),
        ("deterministic", 1, "changed"),
        ("optimization_switch", "p:off", "changed"),
        ("hcom_parallel", False, "in force"),
        ("jit_compile", "auto", "default or set"),
        ("jit_compile", "true", "changed"),
        ("oo_constant_folding", True, "default or set"),  # in words, where the option is a number
        ("enable_dump", False, "cannot tell"),
        ("use_off_line", True, "cannot tell"),
    ],
)
def test_tensorflow_2_tells_of_the_block_and_of_warnings(
    tmp_path: Path, setting: str, value: Any, state: str
) -> None:
    warned = write_warnings(hcom_parallel="0", jit_compile="auto", enable_dump=None)
    assert judge_one(tmp_path, warned + write_tf2_block(fill_block(TF2)), setting, value) == state


ATTRIBUTES = {
    "_" + name: ""
    for name in (
        "op_debug_config",
        "debug_dir",
        "dump_layer",
        "soc_config",
        "work_path",
        "topo_sorting_mode",
        "quant_dumpable",
        "input_shape",
        "hccl_timeout",
        "op_wait_timeout",
        "resource_config_path",
        "graph_slice",
        "insert_op_file",
        "fusion_switch_file",
        "dump_step",
        "op_precision_mode",
        "modify_mixlist",
        "customize_dtypes",
        "logical_device_id",
        "distribute_config",
        "HCCL_algorithm",
        "compile_dynamic_mode",
    )
} | {
    "_in_out_pair": "((1, 2))",
    "_local_rank_id": "3",
    "_frozen_variable": "0",
    "_precision_mode": "force_fp16",
    "_hcom_parallel": "0",
}


@pytest.mark.parametrize(
    ("setting", "value", "state"),
    [
        ("local_rank_id", 3, "in force"),
        ("hcom_parallel", False, "in force"),
        ("job", "worker", "absent"),
        ("no_such_option", 1, "absent"),
        # what the adapter read is not what the engine was started with
        ("precision_mode", "force_fp16", "cannot tell"),
        ("precision_mode_v2", "fp16", "cannot tell"),
        # an attribute that is empty, as where nobody set it
        ("compile_dynamic_mode", False, "default or set"),
        ("export_compile_stat", 1, "cannot tell"),
    ],
)
def test_a_graph_dump_proves_what_the_adapter_read(
    tmp_path: Path, setting: str, value: Any, state: str
) -> None:
    assert (
        judge_one(tmp_path, write_dump(ATTRIBUTES), setting, value, "BeforeSubGraph_0.pbtxt")
        == state
    )


def test_a_dump_that_is_cut_off_proves_no_absence(tmp_path: Path) -> None:
    text = write_dump(ATTRIBUTES, end='node {\n  name: "d"\n  attr {\n')
    assert judge_one(tmp_path, text, "job", "worker", "a.pbtxt") == "cannot tell"


def test_log_and_dump_of_one_process_show_what_was_lost_on_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "log" / "extra-info" / "graph" / "100_0"
    folder.mkdir(parents=True)
    (folder / "BeforeSubGraph_0.pbtxt").write_text(write_dump(ATTRIBUTES))
    logs = tmp_path / "log" / "debug" / "plog"
    logs.mkdir(parents=True)
    (logs / "plog-100_20260304050607008.log").write_text(
        write_run({"ge.exec.precision_mode": "force_fp32"})
    )
    (process,) = read_evidence([str(tmp_path / "log")]).processes
    (found,) = judge_process({"precision_mode": "force_fp16"}, process)
    assert found.state == "too late"
    assert found.found == ("force_fp32",)


def judge_states(folder: Path, text: str, **options: Any) -> list[list[str]]:
    (folder / "run.log").write_text(text)
    return [
        [verdict.state for verdict in judge_process(options, process)]
        for process in read_evidence([str(folder / "run.log")]).processes
    ]


def test_a_block_of_tensorflow_2_without_its_end_proves_no_absence(tmp_path: Path) -> None:
    text = write_tf2_block({**TF2, "ge.hcomParallel": "1"})
    end = write_tf2_line("Start graph engine succeed")
    for cut in (
        text.removesuffix(end),
        text.removesuffix(end) + write_tf2_line("another"),
        text.removesuffix(end) + end[:-9],
    ):
        assert judge_states(tmp_path, cut, op_debug_config="/a", deterministic=1) == [
            ["cannot tell", "changed"]
        ]


@pytest.mark.parametrize("generation", ["TF 2 2026-07", "TF 2 2023-12"])
def test_a_block_of_tensorflow_2_that_has_lost_a_line_proves_no_absence(
    tmp_path: Path, generation: str
) -> None:
    block = fill_block({"ge.exec.precision_mode_v2": "fp16"}, generation)
    assert judge_states(tmp_path, write_tf2_block(block), op_debug_level=1) == [["absent"]]
    cases = [*list_tf2_standing_keys(generation)]
    assert cases
    for lost in cases:
        torn = write_tf2_block({key: text for key, text in block.items() if key != lost})
        assert judge_states(tmp_path, torn, op_debug_level=1, precision_mode_v2="fp16") == [
            ["cannot tell", "in force"]
        ]


def test_a_block_of_tensorflow_2_that_is_cut_does_not_say_what_a_warning_means(
    tmp_path: Path,
) -> None:
    """Adapters with one map warn of what they reject, those with two of what goes to sessions.

    The beginning of a block is no sign of either.
    """
    warned = write_tf2_line("Unrecognized graph engine option input_fusion_size:1800", "W")
    old, new = (
        fill_block({"ge.debugDir": "/d"}, name) for name in ("TF 2 2023-12", "TF 2 2026-07")
    )
    lines = write_tf2_block(old).splitlines(True)
    found = {
        judge_states(tmp_path, warned + "".join(lines[:end]), input_fusion_size=1800)[0][0]
        for end in range(len(lines) + 1)
    }
    assert found == {"cannot tell", "absent"}
    lines = write_tf2_block(new).splitlines(True)
    found = {
        judge_states(tmp_path, warned + "".join(lines[:end]), input_fusion_size=1800)[0][0]
        for end in range(len(lines) + 1)
    }
    assert found == {"cannot tell", "in force"}


def test_of_several_runs_in_one_log_it_is_not_known_which_one_warned(tmp_path: Path) -> None:
    block = write_tf2_block(fill_block(TF2))
    with_layer, without_layer = write_warnings(dump_layer="a") + block, write_warnings() + block
    assert judge_states(tmp_path, with_layer, dump_layer="a") == [["in force"]]
    for text in (
        with_layer + without_layer,
        without_layer + with_layer,
        write_warnings(dump_layer="a") + without_layer + block,
    ):
        assert {state for (state,) in judge_states(tmp_path, text, dump_layer="a")} == {
            "cannot tell"
        }


@pytest.mark.parametrize(("value", "state"), [(0, "changed"), (1, "default or set")])
def test_tensorflow_2_forces_small_channels_for_inference(
    tmp_path: Path, value: int, state: str
) -> None:
    always = write_tf2_line(f"Unrecognized graph engine option enable_small_channel:{value}", "W")
    text = always + write_tf2_block({**TF2, "ge.graphRunMode": "0"})
    assert judge_one(tmp_path, text, "enable_small_channel", value) == state
