"""Variables and flags: their formats, and what one product family or one release takes."""

from __future__ import annotations

import json

import pytest

from support.building import findings

OFFLINE = '[profile]\nscenario = "offline-inference"\n'


def list_codes(text: str) -> set[str]:
    """Return the codes of errors and warnings, except those about who may set a variable."""
    return {finding.code for finding in findings(text) if finding.severity != "info"} - {
        "NP501",
        "NP602",
        "NP603",
    }


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("CM_CHIEF_IP", ["10.0.0.1", "fe80::1"], ["10.0.0.256", "chief"]),
        ("JOB_ID", ["job-1_a"], ["job 1"]),
        ("ASCEND_MODULE_LOG_LEVEL", ["GE=0:RUNTIME=1"], ["GE=5", "GE:0"]),
        ("OP_NO_REUSE_MEM", ["a/b,MatMul"], ["a b"]),
        (
            "HCCL_ALGO",
            ["level0:NA;level1:ring", "allreduce=level0:NA;level1:ring/allgather=level1:NHR"],
            ["level1:rings", "ring"],
        ),
        (
            "HCCL_OP_RETRY_PARAMS",
            ["MaxCnt:3,HoldTime:5000,IntervalTime:60000"],
            ["MaxCnt:11,HoldTime:1,IntervalTime:1", "MaxCnt:3"],
        ),
        (
            "HCCL_DFS_CONFIG",
            ["cluster_heartbeat:on,task_monitor_interval:7200000"],
            ["cluster_heartbeat:yes", "heartbeat:on"],
        ),
        ("HCCL_HOST_SOCKET_PORT_RANGE", ["auto", "60000-60031,61000"], ["any"]),
        ("HCCL_SOCKET_IFNAME", ["eth", "^=eth0", "=eth0,eth1"], ["eth 0"]),
        ("HCCL_RDMA_TC", ["132", "0"], ["130"]),
        (
            "PROFILING_OPTIONS",
            [json.dumps({"output": "/tmp", "task_time": "on"})],
            ["training_trace", '{"task_time": "no"}'],
        ),
    ],
)
def test_a_variable_has_the_format_of_its_page(name: str, good: list[str], bad: list[str]) -> None:
    needed = {  # a variable that the other one requires
        "HCCL_OP_RETRY_PARAMS": "HCCL_OP_RETRY_ENABLE = 'L0:0,L1:1,L2:0'\n",
        "PROFILING_OPTIONS": "PROFILING_MODE = 'true'\n",
    }
    codes = {
        text: list_codes(f"[env]\n{name} = '{text}'\n{needed.get(name, '')}")
        for text in (*good, *bad)
    }
    assert {text for text, found in codes.items() if not found} == set(good)
    assert {text for text, found in codes.items() if found == {"NP203"}} == set(bad)


@pytest.mark.parametrize(
    ("product", "line", "code"),
    [
        ("atlas-a2", "AOE_MODE = 1", "NP409"),
        ("atlas-a2", "AOE_MODE = 2", None),
        ("atlas-a2", "HCCL_OP_EXPANSION_MODE = 'CCU_MS'", "NP409"),
        ("ascend-950", "HCCL_OP_EXPANSION_MODE = 'CCU_MS'", None),
        ("ascend-950", "ASCEND_DUMP_SCENE = 'aic_err_detail_dump'", "NP409"),
        ("atlas-a2", "HCCL_RDMA_TIMEOUT = 21", "NP410"),
        ("atlas-training", "HCCL_RDMA_TIMEOUT = 21", None),
        ("atlas-a2", "HCCL_RDMA_TIMEOUT = 20", None),
        ("atlas-a2", f"HCCL_RDMA_TIMEOUT = '{20:019}'", None),
        ("atlas-a2", f"HCCL_RDMA_TIMEOUT = '{20:020}'", "NP410"),
        ("atlas-training", "HCCL_EXEC_TIMEOUT = 0", "NP410"),
        ("atlas-a3", "HCCL_EXEC_TIMEOUT = 0", None),
        ("ascend-950", "HCCL_ALGO = 'level0:NA;level1:ring'", "NP409"),
        ("ascend-950", "HCCL_ALGO = 'level1:NHR'", None),
    ],
)
def test_a_value_is_judged_for_the_product(product: str, line: str, code: str | None) -> None:
    found = list_codes(f'[profile]\nproducts = ["{product}"]\n[env]\n{line}\n') - {"NP370"}
    assert found == ({code} if code else set())


@pytest.mark.parametrize(
    ("cann", "value", "code"),
    [
        (">=8.0", "L1:1,L2:0", "NP412"),
        (">=8.0", "L0:0,L1:1,L2:0", None),
        (">=8.0", "L0:0,L2:0,L1:1", None),
        (">=8.0", "L0:0,L2:0,L0:1", "NP412"),
        (">=8.3.RC1", "L1:1,L2:0", None),
        ("", "L1:1,L2:0", "NP412"),
        (">=8.3.RC1", "L1:1,L2:1", None),
        (">=8.0", "L1:2", "NP203"),
        (">=9.0", "L0:0, L1:1, L2:0", None),
    ],
)
def test_repeating_collectives_is_written_as_the_releases_ask(
    cann: str, value: str, code: str | None
) -> None:
    claim = f'[profile]\ncann = "{cann}"\n' if cann else ""
    assert (
        code in list_codes(f"{claim}[env]\nHCCL_OP_RETRY_ENABLE = '{value}'\n")
        if code
        else not list_codes(f"{claim}[env]\nHCCL_OP_RETRY_ENABLE = '{value}'\n")
    )


@pytest.mark.parametrize(
    ("product", "line", "code"),
    [
        ("atlas-a2", "framework = 0", "NP409"),
        ("atlas-inference", "framework = 0", None),
        ("atlas-a2", "mode = 30", "NP409"),
        ("atlas-a2", "output_type = 'HIF8'", "NP409"),
        ("atlas-a2", "output_type = 'node:0:HIF8'\nout_nodes = 'node:0'", "NP409"),
        ("ascend-950", "output_type = 'HIF8'", None),
        ("atlas-a2", "cluster_config = './c.json'", "NP409"),
        ("ipv350", "virtual_type = 1", "NP409"),
        ("atlas-a2", "virtual_type = 1", None),
    ],
)
def test_a_flag_is_judged_for_the_product(product: str, line: str, code: str | None) -> None:
    text = f'{OFFLINE}products = ["{product}"]\n[atc]\n{line}\n'
    assert list_codes(text) == ({code} if code else set())


@pytest.mark.parametrize(
    ("product", "count", "code"),
    [("atlas-a2", 100, None), ("atlas-a2", 101, "NP381"), ("ascend-950", 256, None)],
)
def test_a_flag_has_as_many_sizes_as_the_product_takes(
    product: str, count: int, code: str | None
) -> None:
    sizes = ",".join(map(str, range(1, count + 1)))
    shape = "[options]\ninput_shape = { data = [-1, 3] }\n"
    assert list_codes(
        f'{OFFLINE}products = ["{product}"]\n{shape}[atc]\ndynamic_batch_size = "{sizes}"\n'
    ) == ({code} if code else set())


def test_a_flag_that_no_product_supports_says_so() -> None:
    text = (
        '[profile]\nscenario = "offline-inference"\nproducts = ["atlas-a2"]\n[atc]\n'
        'cluster_config = "/c.json"\n'
    )
    assert [finding.hint for finding in findings(text)] == [
        "no product supports it so far: unset it"
    ]


def test_releases_that_read_an_option_are_told_without_those_between_that_do_not() -> None:
    [finding] = [
        finding
        for finding in findings('[profile]\ncann = "6.0.1"\n[options]\nauto_tune_mode = "RL"\n')
        if finding.code == "NP404"
    ]
    assert finding.why.startswith("It is read by CANN 20.1 to 6.0.RC1, 6.3.RC1 on; ")
    assert finding.hint == "unset it there, or narrow cann"


@pytest.mark.parametrize(
    ("scenario", "product", "expected"),
    [
        ("training", "atlas-inference", ["there is no training on atlas-inference"]),
        ("online-inference", "atlas-inference", []),
        ("training", "atlas-a2", []),
        ("training", "Ascend310P3", ["there is no training on atlas-inference"]),
        ("training", "atlas-200i-500-a2", ["there is no training on atlas-200i-500-a2"]),
        (
            "online-inference",
            "atlas-200i-500-a2",
            ["there is no online-inference on atlas-200i-500-a2"],
        ),
        (
            "online-inference",
            "atlas-200-300-500",
            ["there is no online-inference on atlas-200-300-500"],
        ),
        ("offline-inference", "atlas-200i-500-a2", []),
    ],
)
def test_a_scenario_that_a_product_is_not_there_for_is_told(
    scenario: str, product: str, expected: list[str]
) -> None:
    found = findings(f'[profile]\nscenario = "{scenario}"\nproducts = ["{product}"]\n')
    assert [finding.message for finding in found if finding.code == "NP414"] == expected
