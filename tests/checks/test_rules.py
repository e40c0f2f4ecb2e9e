"""Rules between settings, beyond their own examples: old names of values, equivalent settings."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from support.building import Checkout, build_store, findings


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            (
                "[options]\nstatic_memory_policy = 1\n"
                "graph_max_parallel_model_num = 2\ngraph_run_mode = 0\n"
            ),
            "NP344",
        ),
        (
            (
                "[options]\nstatic_memory_policy = 3\n"
                "graph_max_parallel_model_num = 2\ngraph_run_mode = 0\n"
            ),
            None,
        ),
        ('[options]\naoe_mode = "2"\nstatic_memory_policy = 1\n', "NP3100"),
        ('[options]\naoe_mode = "2"\nstatic_memory_policy = 4\n', "NP3100"),
        ('[options]\naoe_mode = "2"\nstatic_memory_policy = 3\n', None),
        ("[options]\nstatic_memory_policy = 2\n[env]\nAOE_MODE = 2\n", "NP3100"),
        ('[env]\nAOE_MODE = 2\nPROFILING_MODE = "true"\n', "NP3101"),
        ("[options]\nhccl_timeout = 600\n[env]\nHCCL_EXEC_TIMEOUT = 600\n", None),
        ("[options]\nhccl_timeout = 600\n[env]\nHCCL_EXEC_TIMEOUT = 601\n", "NP380"),
        (
            (
                '[env]\nHCCL_OP_RETRY_ENABLE = "L0:0,L1:0,L2:0"\n'
                'HCCL_OP_RETRY_PARAMS = "MaxCnt:3,HoldTime:1,IntervalTime:1"\n'
            ),
            "NP3103",
        ),
        ('[env]\nHCCL_OP_RETRY_ENABLE = "L0:0,L1:0,L2:0"\nHCCL_OP_EXPANSION_MODE = "AIV"\n', None),
        ('[profile]\nscenario = "offline-inference"\n[options]\nquant_dumpable = "1"\n', None),
        ('[options]\nquant_dumpable = "1"\n', "NP352"),
    ],
)
def test_a_rule_sees_each_way_to_say_a_thing(text: str, code: str | None) -> None:
    found = {finding.code for finding in findings(text) if finding.severity != "info"} - {"NP501"}
    assert found == ({code} if code else set())


@pytest.mark.parametrize(
    ("scenario", "why"), [("training", "the adapter abort"), ("offline-inference", "ATC stops")]
)
def test_a_broken_rule_gives_the_reason_of_the_tool_that_enforces_it(
    scenario: str, why: str
) -> None:
    text = f'[profile]\nscenario = "{scenario}"\n[options]\noptypelist_for_implmode = "Pooling"\n'
    (found,) = (finding for finding in findings(text) if finding.code == "NP311")
    assert why in found.why


# -- releases in conditions -----------------------------------------------------------------------

#: Code, condition, requirement and setting of rules that exist only here.
RULES = [
    ("NP990", "hccl_timeout > 100 and cann < '8.5'", "", "hccl_timeout"),
    (
        "NP991",
        "deterministic == 1 and vllm_ascend > '0.9' and vllm_ascend != '0.23'",
        "",
        "deterministic",
    ),
    (
        "NP992",
        "op_debug_level == 1 and product in ('ascend-950', 'atlas-a3') and cann in ('8.1', '9.0')",
        "",
        "op_debug_level",
    ),
    (
        "NP993",
        "env.TASK_QUEUE_ENABLE is set and torch_npu >= '2.9.0.post2'",
        "torch_npu < '26.1'",
        "env.TASK_QUEUE_ENABLE",
    ),
    (
        "NP994",
        "vllm_ascend.refresh == true and cann not in ('9.1.0', '9.2.0') and vllm_ascend >= '0.13'",
        "",
        "vllm_ascend.refresh",
    ),
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a copy of the package with these rules."""
    made = Checkout(tmp_path_factory.mktemp("rules") / "checkout")
    with (made.catalogue / "rules.toml").open("a") as file:
        for code, when, needs, key in RULES:
            file.write(
                f'\n[[rule]]\ncode = "{code}"\nname = "{code.lower()}"\nseverity = "error"\n'
                f'options = ["{key}"]\nwhen = "{when}"\n'
            )
            file.write(f'needs = "{needs}"\n' if needs else "")
            file.write(
                'what = "broken"\nwhy = "W."\nhint = "H"\nenforced = "docs"\n'
                'source = ["a test"]\nbad = ""\ngood = ""\n'
            )
    return made


def find_messages(answer: str, code: str) -> list[str]:
    """Return the messages of a code in an answer."""
    return re.findall(rf" (?:error|warning) {code}: (.*)", answer)


OLD, RANGE = "in CANN 8.0.0 to 8.3.RC1", '[profile]\ncann = ">=8.0,<10"\n'
TIMEOUT, SHORT = "[options]\nhccl_timeout = 200\n", "[options]\nhccl_timeout = 50\n"


def override(match: str, key: str = "hccl_timeout", value: int = 200) -> str:
    return f"[[override]]\nmatch = {{ {match} }}\noptions = {{ {key} = {value} }}\n"


class RuleCase(NamedTuple):
    flags: str
    text: str
    code: str
    expected: str | None


@pytest.mark.parametrize(
    ("flags", "text", "code", "expected"),
    [
        # a selected release, the preset's range, else the newest stable release
        pytest.param(
            *RuleCase(
                flags="--cann 8.0",
                text=TIMEOUT,
                code="NP990",
                expected="broken",
            ),
            id="old CANN requested",
        ),
        pytest.param(
            *RuleCase(
                flags="--cann 8.5",
                text=TIMEOUT,
                code="NP990",
                expected=None,
            ),
            id="new CANN requested",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text=TIMEOUT,
                code="NP990",
                expected=None,
            ),
            id="no release",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text=RANGE + TIMEOUT,
                code="NP990",
                expected=f"broken {OLD}",
            ),
            id="range contains old releases",
        ),
        pytest.param(
            *RuleCase(
                flags="--cann 8.0",
                text=RANGE + TIMEOUT,
                code="NP990",
                expected="broken",
            ),
            id="range, old CANN requested",
        ),
        pytest.param(
            *RuleCase(
                flags="--cann 9.0",
                text=RANGE + TIMEOUT,
                code="NP990",
                expected=None,
            ),
            id="range, new CANN requested",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text='[profile]\ncann = "<8.5"\n' + TIMEOUT,
                code="NP990",
                expected="broken",
            ),
            id="old releases only",
        ),
        # releases are ordered by their axis: 0.10 is later than 0.9
        pytest.param(
            *RuleCase(
                flags="--framework vllm_ascend=0.10.0rc1",
                text="[options]\ndeterministic = 1\n",
                code="NP991",
                expected="broken",
            ),
            id="old vllm_ascend requested",
        ),
        pytest.param(
            *RuleCase(
                flags="--framework vllm_ascend=0.8.5rc1",
                text="[options]\ndeterministic = 1\n",
                code="NP991",
                expected=None,
            ),
            id="vllm_ascend before the rule",
        ),
        pytest.param(
            *RuleCase(
                flags="--framework vllm_ascend=0.23.0",
                text="[options]\ndeterministic = 1\n",
                code="NP991",
                expected=None,
            ),
            id="new vllm_ascend requested",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text="[options]\ndeterministic = 1\n",
                code="NP991",
                expected="broken",
            ),
            id="no vllm_ascend release",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text='[profile.versions]\nvllm_ascend = ">=0.8,<0.11"\n'
                "[options]\ndeterministic = 1\n",
                code="NP991",
                expected="broken with vllm_ascend 0.9.1rc1 to 0.11.0rc3",
            ),
            id="range of vllm_ascend",
        ),
        # overrides
        pytest.param(
            *RuleCase(
                flags="",
                text=RANGE + SHORT + override('cann = ">=8.0,<9"'),
                code="NP990",
                expected=f"broken {OLD}",
            ),
            id="range and override for some releases",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text=SHORT + override('cann = ">=8.0,<9"'),
                code="NP990",
                expected=f"broken {OLD}",
            ),
            id="override for old releases",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text=SHORT + override('cann = ">=8.5"'),
                code="NP990",
                expected=None,
            ),
            id="override for new releases",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text=RANGE + SHORT + override('product = "atlas-a3"'),
                code="NP990",
                expected=f"broken on atlas-a3 {OLD}",
            ),
            id="range and override for a product",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text=SHORT + override('product = "atlas-a3"'),
                code="NP990",
                expected=None,
            ),
            id="override for a product",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text="[options]\ndeterministic = 0\n"
                + override('vllm_ascend = "<0.11"', "deterministic", 1),
                code="NP991",
                expected="broken with vllm_ascend 0.9.1rc1 to 0.11.0rc3",
            ),
            id="override for old vllm_ascend",
        ),
        # products and releases together
        pytest.param(
            *RuleCase(
                flags="",
                text='[profile]\ncann = ">=8.0,<10"\nproducts = ["atlas-a2", "atlas-a3"]\n'
                "[options]\nop_debug_level = 1\n",
                code="NP992",
                expected="broken on atlas-a3 in CANN 8.1.RC1, 9.0.0",
            ),
            id="rule for a product",
        ),
        pytest.param(
            *RuleCase(
                flags="--product atlas-a3",
                text=RANGE + "[options]\nop_debug_level = 1\n",
                code="NP992",
                expected="broken in CANN 8.1.RC1, 9.0.0",
            ),
            id="product requested",
        ),
        pytest.param(
            *RuleCase(
                flags="--product atlas-a3 --cann 9.0",
                text="[options]\nop_debug_level = 1\n",
                code="NP992",
                expected="broken",
            ),
            id="product and release requested",
        ),
        pytest.param(
            *RuleCase(
                flags="--cann 9.0",
                text="[options]\nop_debug_level = 1\n",
                code="NP992",
                expected=None,
            ),
            id="release requested without product",
        ),
        # packages have another numbering
        pytest.param(
            *RuleCase(
                flags="--framework torch_npu=26.1.0",
                text='[env]\nTASK_QUEUE_ENABLE = "1"\n',
                code="NP993",
                expected="broken",
            ),
            id="new torch_npu requested",
        ),
        pytest.param(
            *RuleCase(
                flags="--framework torch_npu=26.0.0",
                text='[env]\nTASK_QUEUE_ENABLE = "1"\n',
                code="NP993",
                expected=None,
            ),
            id="old torch_npu requested",
        ),
        pytest.param(
            *RuleCase(
                flags="",
                text='[profile.versions]\ntorch_npu = ">=7.0"\n[env]\nTASK_QUEUE_ENABLE = "1"\n',
                code="NP993",
                expected="broken with torch_npu 26.1.0 to 26.2.0-beta.1",
            ),
            id="range of torch_npu",
        ),
        # settings of frameworks, one of which has the name of a release axis
        pytest.param(
            *RuleCase(
                flags="--cann 9.0",
                text="[vllm_ascend]\nrefresh = true\n",
                code="NP994",
                expected="broken",
            ),
            id="refresh in CANN 9.0",
        ),
        pytest.param(
            *RuleCase(
                flags="--cann 9.1",
                text="[vllm_ascend]\nrefresh = true\n",
                code="NP994",
                expected=None,
            ),
            id="refresh in CANN 9.1",
        ),
        pytest.param(
            *RuleCase(
                flags="--cann 9.0",
                text="[vllm_ascend]\nrefresh = false\n",
                code="NP994",
                expected=None,
            ),
            id="no refresh",
        ),
    ],
)
def test_a_rule_is_evaluated_for_the_releases_of_a_preset(
    checkout: Checkout, flags: str, text: str, code: str, expected: str | None
) -> None:
    assert find_messages(checkout.start("check", "-", *flags.split(), stdin=text).stdout, code) == [
        expected
    ] * (expected is not None)


def test_presets_with_other_ranges_do_not_share_the_result_of_a_rule(checkout: Checkout) -> None:
    body = TIMEOUT + override('cann = ">=1"', value=50)
    store = build_store(
        checkout.folder,
        {"a": '[profile]\ncann = ">=8.0,<9"\n' + body, "b": '[profile]\ncann = ">=9.0"\n' + body},
    )
    answer = checkout.start("check", "--store", str(store)).stdout
    assert find_messages(answer, "NP990") == [f"broken {OLD} where no release is asked for"]
    assert "a.toml:4:1: warning NP990" in answer


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("", ["NP991"]),
        ("--cann 8.0", ["NP990", "NP991"]),
        ("--cann 9.0", ["NP991"]),
        ("--framework vllm_ascend=0.8.5rc1", []),
        ("--product atlas-a3 --cann 9.0", ["NP991", "NP992"]),
    ],
)
def test_a_rule_is_evaluated_for_the_release_of_a_script(
    checkout: Checkout, flags: str, expected: list[str]
) -> None:
    lines = "".join(
        f"custom_op.parameter_map[{name!r}].i = {value}\n"
        for name, value in (("hccl_timeout", 200), ("deterministic", 1), ("op_debug_level", 1))
    )
    (checkout.folder / "script.py").write_text(
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\nconfig = tf.ConfigProto()\n"
        "custom_op = config.graph_options.rewrite_options.custom_optimizers.add()\n"
        f"custom_op.name = 'NpuOptimizer'\n{lines}"
    )
    answer = checkout.start("scan", "script.py", *flags.split()).stdout
    assert sorted(set(re.findall("NP99[0-9]", answer))) == expected


def test_explain_lists_a_rule_with_releases(checkout: Checkout) -> None:
    assert "NP990: broken" in checkout.run("explain", "-", "hccl_timeout", stdin=TIMEOUT)
