"""What is right in public launch scripts and conversions, and was an error here once: each line with who reads it, and how."""

from __future__ import annotations

import pytest
from importing import findings

import npuprof

ATC = "atc --model=a.onnx --framework=5 --output=o --soc_version=Ascend310P3"
#: What a script holds, and the codes of what is wrong with it, notes apart.
SCRIPTS: dict[str, tuple[str, list[str]]] = {
    # hicann/ascend-transformer-boost src/kernels/lcal/src/lcal_comm.cpp reads it; MindIE sets it beside that of HCCL
    "a variable of another component": ("export LCCL_DETERMINISTIC=1\nexport HCCL_DETERMINISTIC=true\n", []),
    "a variable of ATB": ("export LCCL_PARALLEL=1\nexport ATB_MATMUL_SHUFFLE_K_ENABLE=0\n", []),
    "a slip in a name": ("export HCCL_DETERMINISTC=true\n", ["NP206"]),
    # GE multi_batch_clone_pass.cc: "No need to sort dynamic dims when offline infer"
    "inputs of a conversion in an order of their own": (
        f'{ATC} --input_format=ND --input_shape="ids:1,-1;cache:1,-1,8" --dynamic_dims="1,64;2,128"\n', [],
    ),
    "sizes of a conversion that are too few": (
        f'{ATC} --input_format=ND --input_shape="ids:1,-1;cache:1,-1,8" --dynamic_dims="1;2"\n', ["NP382", "NP382"],
    ),
    # hicann/ge docs/zh/user_guides/atc_tools/CLI_options/--precision_mode_v2.md
    "two precision modes of a conversion": (f"{ATC} --precision_mode=force_fp16 --precision_mode_v2=fp16\n", ["NP912"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_shell_scripts_are_judged_as_their_readers_do(name: str) -> None:
    text, codes = SCRIPTS[name]
    found = [finding for finding in findings(text, "x.sh") if finding.severity != "info"]
    assert [finding.code for finding in found] == codes
    assert not any("adapter" in finding.why for finding in found)


SHAPES = "[options]\ninput_shape = { ids = [1, -1], cache = [1, -1, 8] }\ndynamic_dims = [[1, 64], [2, 128]]\n"


@pytest.mark.parametrize(("scenario", "more", "told"), [
    ("offline-inference", '[atc]\ninput_format = "ND"\n', False), ("online-inference", "dynamic_node_type = 1\n", True),
])  # fmt: skip
def test_the_order_of_inputs_counts_where_their_node_type_is_set(scenario: str, more: str, told: bool) -> None:
    preset = npuprof.loads(f'[profile]\nscenario = "{scenario}"\n{SHAPES}{more}')
    assert ("NP383" in {finding.code for finding in npuprof.check(preset)}) is told


def test_a_variable_that_an_option_of_the_adapter_replaces_says_whose_that_is() -> None:
    hints = [finding.hint for finding in findings("export GE_USE_STATIC_MEMORY=1\n", "x.sh")]
    assert hints == ["use the TensorFlow adapter's option static_memory_policy"]
