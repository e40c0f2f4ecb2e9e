"""What proves that a setting never arrived, and what only looks like it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npuprof.runs.evidence.evidence_files import read_evidence
from npuprof.runs.verdicts import judge_process
from support.logged import INIT, write_block, write_line
from support.logged import write_run as write_least

SKIPPED = write_line("[GEOP] GePlugin global, skip GePlugin init", "geop_npu.cc")
OF_RESOURCE = {"ge.exec.opWaitTimeout": "None"}
#: What nobody set, beside that of every run here.
WAITS = {"ge.exec.opWaitTimeout": "", "op_wait_timeout": ""}
UNSET = {
    "ge.externalWeight": "",
    "external_weight": "",
    "ge.topoSortingMode": "",
    "topo_sorting_mode": "",
    "ge.exec.variable_acc": "",
    "ge.graphSliceMode": "",
}
SET = {"ge.externalWeight": "1", "external_weight": "1"}


def write_run(init: Mapping[str, str] = {}, session: Mapping[str, str] = {}, pid: int = 100) -> str:
    return write_least({**WAITS, **init}, {**UNSET, **session}, pid=pid)


def judge_settings(folder: Path, *texts: str, **options: Any) -> dict[str, tuple[str, str]]:
    for number, text in enumerate(texts):
        (folder / f"{number}.log").write_text(text)
    (process,) = read_evidence([str(folder)]).processes
    return {
        verdict.setting: (verdict.state, verdict.note)
        for verdict in judge_process(options, process)
    }


class LogCase(NamedTuple):
    """A log, a setting of the preset, and the state that the log proves."""

    text: str
    setting: str
    value: Any
    state: str


@pytest.mark.parametrize(
    "case",
    [
        LogCase(text=write_run(), setting="external_weight", value=True, state="absent"),
        LogCase(text=write_run(), setting="hccl_timeout", value=7, state="absent"),
        LogCase(
            text=write_run({}, {"ge.topoSortingMode": "0", "topo_sorting_mode": "0"}),
            setting="topo_sorting_mode",
            value=1,
            state="changed",
        ),
        # it came at another start
        LogCase(
            text=write_run() + write_run({}, SET),
            setting="external_weight",
            value=True,
            state="changed",
        ),
        # it may have come when the engine was running
        LogCase(text=write_run(), setting="op_wait_timeout", value=7, state="changed"),
        # it may have come empty, or as a number
        LogCase(text=write_run(), setting="graph_slice", value="x", state="changed"),
        # it may not have been read
        LogCase(text=write_run(), setting="dump_path", value="/d", state="changed"),
        LogCase(
            text=write_run() + SKIPPED + write_run(),
            setting="external_weight",
            value=True,
            state="absent",
        ),
        LogCase(text=write_run(OF_RESOURCE), setting="external_weight", value=True, state="absent"),
    ],
    ids=lambda case: f"{case.setting}={case.value} {case.state}",
)
def test_only_a_text_that_every_value_has_shows_by_its_lack_that_a_key_never_came(
    case: LogCase,
    tmp_path: Path,
) -> None:
    assert (
        judge_settings(tmp_path, case.text, **{case.setting: case.value})[case.setting][0]
        == case.state
    )


def test_what_only_graphs_have_says_nothing_of_the_start_of_the_engine(tmp_path: Path) -> None:
    """A mode of training gives its graphs a precision of its own."""
    graph = write_block(
        "Graph options: ",
        {"ge.exec.overflow": "1", "ge.exec.precision_mode": "allow_mix_precision"},
        file="geop_npu.cc",
    )
    assert (
        judge_settings(tmp_path, graph, precision_mode="force_fp16")["precision_mode"][0]
        == "cannot tell"
    )
    start = write_line("[GePlugin] graph run mode : 1", "ge_plugin.cc")
    found = judge_settings(
        tmp_path, start + write_run() + graph, precision_mode="allow_mix_precision"
    )
    assert found["precision_mode"][0] == "cannot tell", "the block of the start has no line of it"
    found = judge_settings(tmp_path, start + graph, precision_mode="allow_mix_precision")
    assert found["precision_mode"][0] == "cannot tell", "the block of the start is not there"


EARLY = write_block(
    "init option:", {"ge.deterministic": "1", "ge.graphRunMode": "1"}, file="npu_sys_ctl_ops.cc"
)
STARTED = write_line("[GePlugin] graph run mode : 1", "ge_plugin.cc")
BEGUN = write_line("[GEOP] Begin GeOp initialize.", "geop_npu.cc")
ALREADY = write_line("[GePlugin] Ge has already initialized", "ge_plugin.cc")


def write_operator(started: str, deterministic: str) -> str:
    return started + write_block(
        "init options: ", {**INIT, "ge.deterministic": deterministic}, file="geop_npu.cc"
    )


@pytest.mark.parametrize(
    ("text", "value", "state"),
    [
        pytest.param(
            STARTED + EARLY + write_operator(ALREADY, "0"),
            1,
            "in force",
            id="started early, value of the start",
        ),
        pytest.param(
            STARTED + EARLY + write_operator(ALREADY, "0"),
            0,
            "too late",
            id="started early, value of the operator",
        ),
        pytest.param(STARTED + EARLY, 1, "in force", id="no operator"),
        pytest.param(
            write_operator(STARTED, "0") + ALREADY + EARLY,
            1,
            "too late",
            id="operator started the engine",
        ),
        pytest.param(
            EARLY + STARTED + write_operator(ALREADY, "0"),
            1,
            "cannot tell",
            id="early value before the start",
        ),  # whether it started the engine only lines before it say
        pytest.param(
            EARLY + write_operator(STARTED, "0") + write_operator(ALREADY, "1"),
            1,
            "cannot tell",
            id="another operator later",
        ),
        pytest.param(
            STARTED + EARLY + write_operator("", "0"),
            1,
            "cannot tell",
            id="operator without a start",
        ),
        pytest.param(
            STARTED + BEGUN + write_operator("", "0"),
            0,
            "cannot tell",
            id="begun, operator without a start",
        ),  # somebody started it before this operator
        pytest.param(
            BEGUN + write_operator(STARTED, "0"),
            0,
            "default or set",
            id="operator started with the default",
        ),
        pytest.param(EARLY + write_operator(ALREADY, "0"), 1, "cannot tell", id="no start"),
        pytest.param(EARLY, 1, "cannot tell", id="early value only"),
    ],
)
def test_an_operator_that_starts_the_engine_by_itself_tells_with_what(
    tmp_path: Path, text: str, value: int, state: str
) -> None:
    (tmp_path / "plog-100_1.log").write_text(text)
    found = read_evidence([str(tmp_path)]).processes
    assert [judge_process({"deterministic": value}, process)[0].state for process in found] in (
        [state],
        [] if text == EARLY else [state],
    )


def test_what_init_resource_was_not_given_is_no_other_value_than_the_default(
    tmp_path: Path,
) -> None:
    start = write_block("Init options: ", {"ge.deterministic": "None", "ge.exec.dumpData": "None"})
    (tmp_path / "plog-100_1.log").write_text(
        start + write_line("[GEOP] GePlugin global, skip GePlugin init", "geop_npu.cc")
    )
    (process,) = read_evidence([str(tmp_path)]).processes
    found = judge_process({"deterministic": 0, "dump_data": "stats"}, process)
    assert [verdict.state for verdict in found] == ["cannot tell", "too late"]
