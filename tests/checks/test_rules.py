"""Rules between settings, next to what their own examples show: old names of a value, other places of the same fact."""

from __future__ import annotations

import pytest

from support.building import findings


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[options]\nstatic_memory_policy = 1\ngraph_max_parallel_model_num = 2\ngraph_run_mode = 0\n", "NP344"),
        ("[options]\nstatic_memory_policy = 3\ngraph_max_parallel_model_num = 2\ngraph_run_mode = 0\n", None),
        ('[options]\naoe_mode = "2"\nstatic_memory_policy = 1\n', "NP3100"),
        ('[options]\naoe_mode = "2"\nstatic_memory_policy = 4\n', "NP3100"),
        ('[options]\naoe_mode = "2"\nstatic_memory_policy = 3\n', None),
        ("[options]\nstatic_memory_policy = 2\n[env]\nAOE_MODE = 2\n", "NP3100"),
        ('[env]\nAOE_MODE = 2\nPROFILING_MODE = "true"\n', "NP3101"),
        ("[options]\nhccl_timeout = 600\n[env]\nHCCL_EXEC_TIMEOUT = 600\n", None),
        ("[options]\nhccl_timeout = 600\n[env]\nHCCL_EXEC_TIMEOUT = 601\n", "NP380"),
        ('[env]\nHCCL_OP_RETRY_ENABLE = "L0:0,L1:0,L2:0"\nHCCL_OP_RETRY_PARAMS = "MaxCnt:3,HoldTime:1,IntervalTime:1"\n', "NP3103"),
        ('[env]\nHCCL_OP_RETRY_ENABLE = "L0:0,L1:0,L2:0"\nHCCL_OP_EXPANSION_MODE = "AIV"\n', None),
        ('[profile]\nscenario = "offline-inference"\n[options]\nquant_dumpable = "1"\n', None),
        ('[options]\nquant_dumpable = "1"\n', "NP352"),
    ],
)  # fmt: skip
def test_a_rule_sees_each_way_to_say_a_thing(text: str, code: str | None) -> None:
    found = {finding.code for finding in findings(text) if finding.severity != "info"} - {"NP501"}
    assert found == ({code} if code else set())
