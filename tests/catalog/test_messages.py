"""What the message of a program leads to: rules, error codes, and the settings that it names."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.catalog.messages import list_errors_with_message
from npuprof.commands.options import find_settings_of_message
from support.building import REPOSITORY
from support.running import Run

ERRORS = tomllib.loads((REPOSITORY / "npuprof/catalog/error_codes.toml").read_text())["error"]
PASTED = tomllib.loads((REPOSITORY / "tests/support/tables/messages.toml").read_text())["message"]


def list_names(text: str) -> set[str]:
    """Return the settings that a text leads to, as they are printed."""
    found = find_settings_of_message(text)
    if found is None:
        return set()
    assert isinstance(found.forms, dict)
    return {row["name"] for row in found.forms["json"]()["options"]}


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row['issue'][19:]}-{at}") for at, row in enumerate(PASTED)]
)
def test_a_message_of_a_public_issue_leads_to_its_settings(row: dict[str, str]) -> None:
    assert list_names(row["text"]) == set(row["settings"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "RuntimeError: Do not support TASK_QUEUE_ENABLE = 2 during NPU graph capture, please "
            "export TASK_QUEUE_ENABLE=1/0.\n[ERROR] 2026-04-01 (PID:12) ERR00007 PTA not support",
            {"env.TASK_QUEUE_ENABLE", "vllm.compilation-config", "vllm.enforce-eager"},
        ),
        (
            "assert 'expandable_segments:True' not in conf\nAssertionError: Expandable segments "
            "are not compatible with memory pool. Please track https://github.com/pytorch",
            {"vllm.enable-sleep-mode", "env.PYTORCH_NPU_ALLOC_CONF"},
        ),
        (
            "only set hccl_intra_roce_enable, and the val is zero, pls set HCCL_INTRA_PCIE_ENABLE",
            {"env.HCCL_INTRA_ROCE_ENABLE", "env.HCCL_INTRA_PCIE_ENABLE"},
        ),
        ("通信超时", {"env.HCCL_EXEC_TIMEOUT", "env.HCCL_CONNECT_TIMEOUT"}),
        ("训练中出现EI0006错误", {"env.HCCL_CONNECT_TIMEOUT"}),
        ("可能和HCCL_EXEC_TIMEOUT有关", {"env.HCCL_EXEC_TIMEOUT"}),
        ("ei0002", {"env.HCCL_EXEC_TIMEOUT"}),
        ("Unrecognized CachingAllocator option: x", {"env.PYTORCH_NPU_ALLOC_CONF"}),
        ("weight of `enable_shared_expert_dp`", {"vllm_ascend.enable_shared_expert_dp"}),
        ("unrecognized arguments: --insert_op_conf", {"--insert_op_conf"}),
        # the name in a message of an error code, in the forms of several releases
        ("EI0001: Environment variable [HCCL_IF_IP] is invalid. Reason: x.", {"env.HCCL_IF_IP"}),
        (
            "Config_Error_Invalid_Environment_Variable(EI0001): Value 1000 for environment "
            "variable HCCL_RDMA_SL is invalid. Expected value : range[0, 7].",
            {"env.HCCL_RDMA_SL"},
        ),
        ("E10001: Value [x] for parameter [--soc_version] is invalid.", {"--soc_version"}),
        ("E10001: Value [x] for [--soc_version] is invalid.", {"--soc_version"}),
        (
            "E10001: Value 2 for parameter ge.exec.enableDump is invalid. Reason: The value must",
            {"enable_dump"},
        ),
        (
            "E10016: Op name a specified in --out_nodes is not found in the model.",
            {"--out_nodes"},
        ),
        (
            "E10047: --insert_op_conf and --input_shape_range are mutually exclusive.",
            {"--insert_op_conf", "--input_shape_range"},
        ),
        (
            "W40012: Value -2 for parameter ASCEND_MAX_OP_CACHE_SIZE is invalid. The value must",
            {"env.ASCEND_MAX_OP_CACHE_SIZE"},
        ),
        # no answer is better than a wrong one
        ("E10001: Value 2 for parameter ge.exec.unknown is invalid. Reason: x", set()),
        ("E40001: Value /opt for environment variable PATH is invalid when x. Reason: y.", set()),
        ("E10001", set()),
        ("The watchdog timeout is less than or equal to the HCCL execution timeout", set()),
        ("RuntimeError: please set it to a value greater than 1, or disable it", set()),
        ("vLLM-Ascend stops at the start", set()),
        ("aclCompileOpt::ACL_OP_COMPILER_CACHE_DIR, precision_mode", set()),
        ("unexpected keyword argument 'device_type'", set()),
        ("vllm serve --model m --output o --model-name n", set()),
        ("open /opt/HCCL_IF_IP/ACL_OP/x and $HOME/HCCL_IF_IP", set()),
        ("EI00061 XEI0006", set()),
    ],
)
def test_a_text_leads_to_settings_or_to_nothing(text: str, names: set[str]) -> None:
    assert list_names(text) == names


def test_the_name_in_a_text_counts_only_without_rule_and_code() -> None:
    note = "For the accurate stacktrace set ASCEND_LAUNCH_BLOCKING=1.\n"
    assert list_names(note) == {"env.ASCEND_LAUNCH_BLOCKING"}
    assert list_names(f"{note}EI0006: Getting socket times out.") == {"env.HCCL_CONNECT_TIMEOUT"}


# -- rows ------------------------------------------------------------------------------------------


def test_each_error_code_has_one_row() -> None:
    codes = [row["code"] for row in ERRORS if "code" in row]
    assert len(codes) == len(set(codes)) > 70
    assert all(re.fullmatch(r"[EW][A-Z]?\d{4,5}", code) for code in codes)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.get("code") or row["meaning"]) for row in ERRORS]
)
def test_a_row_names_settings_of_the_catalogue_and_its_source(row: dict[str, str]) -> None:
    assert row.get("settings") or re.compile(row["name"]).groups
    for key in row.get("settings", ()):
        assert catalog.find_key_record(key), key
    assert row["source"]
    assert row["meaning"].endswith(".")
    assert len(row["meaning"].split()) <= 25
    if "code" in row:
        release, _, span = row["releases"].partition(" ")
        assert release in releases.load_releases()
        assert span in ("on", "only")
    else:
        assert row.get("messages") or row["terms"]
    for text in (*row.get("messages", ()), *row.get("terms", ()), row.get("code", "")):
        met = {error.meaning for error in list_errors_with_message(text)}
        assert not text or row["meaning"] in met


# -- commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["option", "options"])
def test_an_error_code_is_printed_with_its_settings(verb: str, run: Run) -> None:
    done = run(verb, "EI0006")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "EI0006: A link to another process was not set up in time.",
        "",
        "    releases: 8.5.0 on",
        *[line for line in done.out.splitlines() if line.startswith("    source: hicann/runtime")],
        "",
        "env.HCCL_CONNECT_TIMEOUT  Seconds to wait for other processes while links are set up.",
    ]
    fields = json.loads(run(verb, "EI0006", "--format", "json").out)
    assert fields["schema"] == "npuprof.options/1"
    assert [row["name"] for row in fields["options"]] == ["env.HCCL_CONNECT_TIMEOUT"]
    (error,) = fields["errors"]
    assert error["code"] == "EI0006"
    assert error["settings"] == ["env.HCCL_CONNECT_TIMEOUT"]


def test_a_list_without_error_codes_has_no_field_for_them(run: Run) -> None:
    assert set(json.loads(run("options", "hccl_timeout", "--format", "json").out)) == {
        "schema",
        "options",
    }


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("hccl_timeot", "did you mean 'hccl_timeout'"),
        ("EE1001", "npuprof options lists all"),
        ("wrong value", "npuprof options lists all"),
    ],
)
def test_an_unknown_key_is_an_error_with_its_hint(key: str, hint: str, run: Run) -> None:
    done = run("option", key)
    assert done.code == 2
    assert hint in done.err
