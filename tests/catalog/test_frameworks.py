"""Variables of frameworks: how their readers parse a text, by the sources of each row."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.execution import find_value_execution, is_known_variable, list_option_calls
from npuprof.checks.scope import find_scope_faults
from npuprof.checks.setting_values import find_setting_faults
from npuprof.checks.view import Fault, Scope
from support.building import REPOSITORY
from support.running import Run

NAMES = catalog.record_names("env")
RECORDS = {name: record for name in NAMES if (record := catalog.find_variable(name))}
READS = tomllib.loads((REPOSITORY / "npuprof/catalog/reads.toml").read_text())
#: The files of each framework whose sources were read, by stem.
FILES = {
    upstream.parent.name: {
        path.stem: tomllib.loads(path.read_text()) for path in upstream.parent.glob("*.toml")
    }
    for upstream in (REPOSITORY / "npuprof/catalog/frameworks").glob("*/upstream.toml")
}

#: By the way in which a switch is read: texts that come to what they say, and texts that come to
#: something else.
SWITCHES: dict[str, tuple[list[str], list[str]]] = {
    "strtol flag": (["1", "0", "01", "false", "off", ""], ["true", "on", "True", "yes"]),
    "strtol 0 or 1": (["1", "0", "false"], ["true", "on", "yes"]),
    "int == 1": (["1", "0", "false"], ["true", "on"]),
    "bool int": (["1", "0"], ["true", "false", "on", "off", "True"]),
    "0 or 1": (["1", "0"], ["true", "false", "on"]),
    "c10d bool": (["1", "y", "YES", "True", "0", "n", "FALSE"], ["on", "off", "enable"]),
    "only 1": (["1", "0", "false", "off"], ["true", "True", "on", "yes"]),
    "only 0": (["0", "1", "true"], ["false", "off", "no"]),
    "only True": (["True", "False", "0", "off"], ["true", "1", "on"]),
    "only true": (["true", "false", "0"], ["True", "1", "on"]),
    "true": (["true", "TRUE", "True", "false", "0"], ["1", "on", "yes"]),
    "1 true": (["1", "true", "TRUE", "0", "no"], ["on", "yes"]),
    "1 true lower": (["1", "true", "0", "False"], ["True", "on", "yes"]),
    "1 true True": (["1", "true", "True", "0"], ["TRUE", "on"]),
    "1 true y": (["1", "True", "y", "0"], ["on", "yes"]),
    "1 true yes": (["1", "True", "yes", "off"], ["on"]),
    "1 true yes on y": (["1", "True", "yes", "on", "Y", "0"], ["enable"]),
    "0 false off": (["0", "False", "OFF", "1", "on"], ["no", "disable"]),
    "0 false False": (["0", "false", "False", "1"], ["off", "no", "FALSE"]),
    "not empty": (["1", "true", ""], ["0", "False", "off"]),
    "present": (["1", "on"], ["0", "false"]),
    "exact words": (["true", "false"], ["1", "0", "True"]),
}
ROWS = [
    (name, text, is_right)
    for name, record in RECORDS.items()
    if record.parsed_as in SWITCHES
    for is_right in (True, False)
    for text in SWITCHES[record.parsed_as][not is_right]
    if text not in record.choices or is_right
]


@pytest.mark.parametrize("framework", FILES)
@pytest.mark.parametrize("kind", ["env", "settings"])
def test_a_row_leaves_to_the_sources_which_releases_read_it(framework: str, kind: str) -> None:
    files = FILES[framework]
    rows = files.get({"env": "variables"}.get(kind, kind), {})
    generated = {name: files["upstream"].get(f"{kind}.{name}", {}) for name in rows}
    compared = [name for name in rows if generated[name]]
    dated = ("reads", "deprecated")
    twice = [
        f"{name}: {field}"
        for name in compared
        for field in dated
        if field in rows[name] and field in generated[name]
    ]
    assert twice == []
    assert kind == "settings" or len(compared) > 2 or "variables" not in files


def find_faults(name: str, text: str) -> list[Fault]:
    return [
        fault for fault in find_setting_faults(f"env.{name}", text) if fault.severity == "error"
    ]


def test_each_way_of_reading_is_described_used_and_judged() -> None:
    used = {record.parsed_as for record in RECORDS.values() if record.parsed_as}
    assert used == READS.keys()
    assert {name for name, row in READS.items() if "others" in row} == SWITCHES.keys()
    assert len(ROWS) > 400
    assert sum(record.framework != "cann" for record in RECORDS.values()) > 450


@pytest.mark.parametrize(("name", "text", "is_right"), ROWS)
def test_a_switch_is_wrong_where_its_reader_takes_it_for_the_opposite(
    name: str, text: str, is_right: bool
) -> None:
    faults = find_faults(name, text)
    if is_right:
        assert faults == []
        return
    assert [fault.code for fault in faults] == ["NP203"]
    assert faults[0].why
    assert faults[0].hint.startswith(("write ", "unset it"))
    if faults[0].fix is not None:
        assert find_faults(name, str(faults[0].fix.value)) == [], (
            "what is suggested is wrong itself"
        )


@pytest.mark.parametrize("name", ["CUDA_DEVICE_MAX_CONNECTIONS", "RANK", "MASTER_PORT"])
def test_a_number_with_another_text_affects_what_is_executed(name: str) -> None:
    assert find_value_execution(name, "8") == ""
    assert find_value_execution(name, "8; touch x") != ""
    assert find_value_execution(name, "a[$(touch x)]") != ""


def test_a_number_of_any_length_is_read_as_one() -> None:
    assert find_faults("ASCEND_LAUNCH_BLOCKING", "0" * 6000) == []
    assert [
        fault.severity for fault in find_setting_faults("env.PER_STREAM_QUEUE", "9" * 6000)
    ] == ["warning"]
    assert (
        len(
            find_faults(
                "PYTORCH_NPU_ALLOC_CONF",
                f"max_split_size_mb:{'9' * 6000},garbage_collection_threshold:{'9' * 400}",
            )
        )
        == 1
    )


#: Values that public scripts and reports have and that their readers take for something else, fail
#: on or ignore.
MISREAD = [
    ("TASK_QUEUE_ENABLE", "on", "turns the queue off"),
    ("MULTI_STREAM_MEMORY_REUSE", "true", "counts as 0"),
    ("TORCH_HCCL_ASYNC_ERROR_HANDLING", "on", ""),
    ("OOM_SNAPSHOT_ENABLE", "yes", ""),
    ("STREAMS_PER_DEVICE", "16", "becomes 32"),
    ("ACL_OP_COMPILER_CACHE_MODE", "on", "enable"),
    ("HCCL_EVENT_TIMEOUT", "forever", "counts as 0"),
    ("TORCH_HCCL_TRACE_BUFFER_SIZE", "many", ""),
    ("ACL_DEVICE_SYNC_TIMEOUT", "none", ""),
    ("VLLM_ASCEND_ENABLE_NZ", "true", ""),
    ("PYTORCH_NPU_ALLOC_CONF", "expandable_segment:True", ""),
    ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:true", ""),
    ("PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:10", ""),
    ("PYTORCH_NPU_ALLOC_CONF", "garbage_collection_threshold:1.5", ""),
    ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments", ""),
    ("PYTORCH_NPU_ALLOC_CONF", "page_size:2g", ""),
    # Config::IsEnable and Config::InitVariable in src/atb/utils/config.cpp of
    # hicann/ascend-transformer-boost, branch of CANN 8.3.RC1
    ("ATB_OPSRUNNER_SETUP_CACHE_ENABLE", "true", "as off"),
    ("ATB_HOST_TILING_BUFFER_BLOCK_NUM", "64", "nearer end"),
    ("ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", "2048", "nearer end"),
    ("NPU_ASD_UPPER_THRESH", "1000000", "two numbers"),
    ("NPU_ASD_SIGMA_THRESH", "100000,2", "two numbers"),
    ("TORCH_NPU_DEVICE_CAPABILITY", "8", "major.minor"),
]


@pytest.mark.parametrize(("name", "text", "why"), MISREAD)
def test_a_value_that_a_reader_misreads_is_an_error_that_says_what_it_does(
    name: str, text: str, why: str
) -> None:
    (fault,) = find_faults(name, text)
    assert why in fault.why
    assert fault.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True"),
        ("PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:64,page_size:1g"),
        (
            "PYTORCH_NPU_ALLOC_CONF",
            "garbage_collection_threshold:0.95, roundup_power2_divisions:[256:1,512:2,>:4]",
        ),
        ("CPU_AFFINITY_CONF", "1"),
        ("CPU_AFFINITY_CONF", "1,npu0:0-1,npu1:2-5,force:1"),
        ("TASK_QUEUE_ENABLE", "2"),
        ("NPU_ASD_CONFIG", "enable:true,with_checksum:true"),
        ("MS_ALLOC_CONF", "enable_vmm:True,vmm_align_size:2MB"),
        ("HCCL_EVENT_TIMEOUT", "0"),
        ("TORCH_NPU_LOGS", "+all"),
        ("ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", "2"),
        ("ATB_OPSRUNNER_SETUP_CACHE_ENABLE", "0"),
        ("ATB_HOST_TILING_BUFFER_BLOCK_NUM", "128"),
        ("ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", "1024"),
        ("ATB_CONTEXT_WORKSPACE_RING", "1"),
        ("NPU_ASD_UPPER_THRESH", "1000000,10000"),
        ("NPU_ASD_SIGMA_THRESH", "100000.0, 3"),
        ("TORCH_NPU_DEVICE_CAPABILITY", "9.0"),
    ],
)
def test_a_value_of_the_documentation_is_no_finding(name: str, text: str) -> None:
    assert find_setting_faults(f"env.{name}", text) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            "garbage_collection_threshold:" + "1" * 200_000 + "x",
            "is not accepted",
            id="a number of 200,000 digits",
        ),
        pytest.param(
            "roundup_power2_divisions:" + "[" * 200_000 + ",k:1",
            "unknown key",
            id="200,000 open brackets",
        ),
    ],
)
def test_a_hostile_list_of_pairs_is_read_in_one_pass(text: str, why: str) -> None:
    assert any(
        why in fault.why or why in fault.message
        for fault in find_setting_faults("env.PYTORCH_NPU_ALLOC_CONF", text)
    )


@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        (
            "garbage_collection_threshold:often",
            "",
            "write garbage_collection_threshold:0.8, or another number: 0 to 1",
        ),
        ("max_split_size_mb:7", "", "write max_split_size_mb:21, or another number: at least 21"),
        ("max_split_size_mb", "", "write max_split_size_mb:21"),
        (
            "expandable_segments:true",
            "Switches accept exactly True or False.",
            "write expandable_segments:True",
        ),
        (
            "page_siz:1g",
            "Its reader raises an error for a key that it does not know.",
            "did you mean 'page_size'?",
        ),
    ],
)
def test_a_fault_in_a_list_of_pairs_says_why_and_what_to_write(
    text: str, why: str, hint: str
) -> None:
    (fault,) = find_setting_faults("env.PYTORCH_NPU_ALLOC_CONF", text)
    assert fault.code == "NP203"
    assert fault.why.startswith(why)
    assert bool(fault.why) == bool(why)
    assert fault.hint == hint


def list_releases_that_read(name: str) -> list[str]:
    record = RECORDS[name]
    known = releases.load_releases(releases.find_axis("env", record))
    pairs = zip(record.states, known, strict=True)
    return [release for letter, release in pairs if letter == "Y"]


def is_dead(name: str) -> bool:
    """Return whether neither of the two newest stable lines reads a variable, nor a later one."""
    axis = releases.find_axis("env", RECORDS[name])
    known = releases.load_releases(axis)
    newest, lines = releases.find_stable_lines(axis)
    alive = {*lines, *known[known.index(newest) :]}
    states = RECORDS[name].states
    return bool(states) and all(states[known.index(release)] == "." for release in alive)


DEAD = [name for name in RECORDS if is_dead(name)]


@pytest.mark.parametrize("name", DEAD)
def test_a_variable_that_nothing_reads_any_more_names_the_last_release_that_reads_it(
    name: str,
) -> None:
    (fault,) = find_scope_faults(Scope(None, (), ()), f"env.{name}", "1")
    assert fault.code == "NP502"
    assert fault.severity == "warning"
    reading = list_releases_that_read(name)
    said = f" that reads it is {reading[-1]}." if reading else "No release of "
    assert said in fault.why
    assert fault.hint.startswith(("use ", "from ", "unset it"))
    assert len(DEAD) > 50
    assert {RECORDS[name].framework for name in DEAD} >= {"mindspore", "mindie", "vllm_ascend"}


@pytest.mark.parametrize(
    ("name", "meant", "severity"),
    [
        ("TASK_QUEUE_ENABEL", "TASK_QUEUE_ENABLE", "error"),
        ("VLLM_ASCEND_ENABLE_MLAP", "VLLM_ASCEND_ENABLE_MLAPO", "error"),
        ("LCCL_DETERMINSTIC", "LCCL_DETERMINISTIC", "error"),
        ("HCCL_DETERMINISITIC", "HCCL_DETERMINISTIC", "warning"),
        ("ASCEND_RT_VISIBLE_DEVICE", "ASCEND_RT_VISIBLE_DEVICES", "warning"),
        ("ASCEBD_RT_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "warning"),
        ("GLOBAL_ASCEND_LOG_LEVEL", "ASCEND_GLOBAL_LOG_LEVEL", "warning"),
        ("HCCL__BUFFSIZE", "HCCL_BUFFSIZE", "warning"),
    ],
)
def test_a_misspelt_name_is_an_error_only_where_all_names_are_known(
    name: str, meant: str, severity: str
) -> None:
    (fault,) = find_setting_faults(f"env.{name}", "1")
    assert fault.code == "NP206"
    assert fault.severity == severity
    assert meant in fault.hint


@pytest.mark.parametrize("name", sorted(list_option_calls()))
def test_a_variable_that_is_an_option_of_a_function_is_a_warning_with_the_call(name: str) -> None:
    assert name not in RECORDS
    (fault,) = find_setting_faults(f"env.{name}", "1")
    assert fault.code == "NP206"
    assert fault.severity == "warning"
    assert f"{name} is an option of" in fault.message
    assert name in fault.hint


@pytest.mark.parametrize(
    "name",
    [
        "GRAPH_OP_RUN",
        "MS_ENABLE_GE",
        "MS_HCCL_CM_INIT",
        "MINDSPORE_OP_INFO_PATH",
    ],
)
def test_a_variable_that_only_older_pages_of_mindspore_have_is_known_and_unchecked(
    name: str,
) -> None:
    assert is_known_variable(name)
    assert name not in RECORDS
    assert find_setting_faults(f"env.{name}", "1") == []


def test_a_misspelt_name_is_reported_also_where_the_right_one_is_set(
    run: Run, tmp_path: Any
) -> None:
    (tmp_path / "both.sh").write_text("export HCCL_BUFF_SIZE=1\nexport HCCL_BUFFSIZE=200\n")
    (found,) = json.loads(run("scan", "--format", "json", tmp_path).out)["findings"]
    assert found["code"] == "NP206"
    assert found["line"] == 1
