"""Correct lines of public launch scripts and conversions that were once reported as errors.

Each names its reader.
"""

from __future__ import annotations

import pytest

import npuprof
from support.importing import findings

ATC = "atc --model=a.onnx --framework=5 --output=o --soc_version=Ascend310P3"
#: What a script holds, and the codes of what is wrong with it, notes apart.
SCRIPTS: dict[str, tuple[str, list[str]]] = {
    # hicann/ascend-transformer-boost src/kernels/lcal/src/lcal_comm.cpp reads it; MindIE sets it
    # beside that of HCCL
    "a variable of another component": (
        "export LCCL_DETERMINISTIC=1\nexport HCCL_DETERMINISTIC=true\n",
        [],
    ),
    "a variable of ATB": ("export LCCL_PARALLEL=1\nexport ATB_MATMUL_SHUFFLE_K_ENABLE=0\n", []),
    "a slip in a name": ("export HCCL_DETERMINISTC=true\n", ["NP206"]),
    # GE multi_batch_clone_pass.cc: "No need to sort dynamic dims when offline infer"
    "inputs of a conversion in an order of their own": (
        (
            f'{ATC} --input_format=ND --input_shape="ids:1,-1;cache:1,-1,8" '
            '--dynamic_dims="1,64;2,128"\n'
        ),
        [],
    ),
    "sizes of a conversion that are too few": (
        f'{ATC} --input_format=ND --input_shape="ids:1,-1;cache:1,-1,8" --dynamic_dims="1;2"\n',
        ["NP382", "NP382"],
    ),
    # hicann/ge docs/zh/user_guides/atc_tools/CLI_options/--precision_mode_v2.md
    "two precision modes of a conversion": (
        f"{ATC} --precision_mode=force_fp16 --precision_mode_v2=fp16\n",
        ["NP912"],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_shell_scripts_are_judged_as_their_readers_do(name: str) -> None:
    text, codes = SCRIPTS[name]
    found = [finding for finding in findings(text, "x.sh") if finding.severity != "info"]
    assert [finding.code for finding in found] == codes
    assert not any("adapter" in finding.why for finding in found)


SHAPES = (
    "[options]\ninput_shape = { ids = [1, -1], cache = [1, -1, 8] }\n"
    "dynamic_dims = [[1, 64], [2, 128]]\n"
)


@pytest.mark.parametrize(
    ("scenario", "more", "is_reported"),
    [
        ("offline-inference", '[atc]\ninput_format = "ND"\n', False),
        ("online-inference", "dynamic_node_type = 1\n", True),
    ],
)
def test_the_order_of_inputs_counts_where_their_node_type_is_set(
    scenario: str, more: str, is_reported: bool
) -> None:
    preset = npuprof.loads(f'[profile]\nscenario = "{scenario}"\n{SHAPES}{more}')
    assert ("NP383" in {finding.code for finding in npuprof.check(preset)}) is is_reported


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("precision_mode_v2", "bf16", '"mixed_bfloat16"'),
        ("precision_mode_v2", "mixed_fp16", '"mixed_float16" or "fp16"'),
        ("precision_mode_v2", "hf8", '"mixed_hif8" or "cube_hif8"'),
        ("precision_mode", "bf16", '"allow_mix_precision_bf16"'),
        ("precision_mode", "fp32", '"force_fp32"?'),
    ],
)
def test_a_number_type_is_suggested_by_its_meaning(option: str, value: str, meant: str) -> None:
    found = [
        finding
        for finding in npuprof.check(npuprof.loads(f'[options]\n{option} = "{value}"\n'))
        if finding.code == "NP203"
    ]
    assert found[0].hint.startswith(f"did you mean {meant}")


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        (
            "precision_mode_v2",
            "allow_mix_precision",
            'write "mixed_float16", which replaces precision_mode = "allow_mix_precision"',
        ),
        (
            "precision_mode_v2",
            "must_keep_origin_dtype",
            'write "origin", which replaces precision_mode = "must_keep_origin_dtype"',
        ),
        (
            "precision_mode",
            "mixed_float16",
            'write precision_mode_v2 = "mixed_float16" instead of precision_mode',
        ),
    ],
)
def test_a_value_of_the_older_or_newer_option_is_suggested_by_its_name_there(
    option: str, value: str, hint: str
) -> None:
    found = [
        finding
        for finding in npuprof.check(npuprof.loads(f'[options]\n{option} = "{value}"\n'))
        if finding.code == "NP203"
    ]
    assert [(finding.hint, finding.fix) for finding in found] == [(hint, None)]


@pytest.mark.parametrize(
    ("product", "hint", "fixed"),
    [
        (
            "910B",
            (
                "did you mean 'atlas-a2', whose chips begin with Ascend910B, or 'Ascend910B', a "
                "chip of 'atlas-training'?"
            ),
            False,
        ),
        ("310P3", "did you mean 'Ascend310P3', a chip of 'atlas-inference'?", True),
        ("310P", "did you mean 'atlas-inference', whose chips begin with Ascend310P?", False),
        (
            "Ascend310B",
            "did you mean 'atlas-200i-500-a2', whose chips begin with Ascend310B?",
            False,
        ),
        ("910_93", "did you mean 'atlas-a3', whose chips begin with Ascend910_93?", False),
        ("950", "did you mean 'ascend-950', whose chips begin with Ascend950?", False),
        ("Ascend910C", "did you mean 'atlas-a3'?", True),
        (
            "Atlas 800T A2",
            (
                "did you mean 'atlas-a2' or 'atlas-a2-training' "
                "or 'atlas-a2-inference' or 'atlas-200i-500-a2'?"
            ),
            False,
        ),
    ],
)
def test_a_product_that_may_be_two_is_offered_as_both_and_not_changed(
    product: str, hint: str, fixed: bool
) -> None:
    preset = npuprof.loads(
        f'[options]\n[[override]]\nmatch = {{ product = "{product}" }}\n'
        "options = { deterministic = 1 }\n"
    )
    found = [finding for finding in npuprof.check(preset) if finding.code == "NP403"]
    assert [(finding.hint, finding.fix is not None) for finding in found] == [(hint, fixed)]


@pytest.mark.parametrize("lines", ["min_group_size = 5", 'variable_memory_max_size = "16GiB"'])
def test_a_wrong_value_of_a_setting_without_effect_is_told_once_with_one_advice(lines: str) -> None:
    found = [
        finding
        for finding in npuprof.check(npuprof.loads(f"[options]\n{lines}\n"))
        if finding.severity != "info"
    ]
    assert len(found) == 1
    assert found[0].hint == "unset it"
    assert "has no effect" in found[0].why


@pytest.mark.parametrize(
    ("lines", "hint"),
    [
        ("[options]\nop_debug_level = 9", "use op_debug_config, or write one of 0, 1, 2, 3, 4"),
        (
            '[env]\nGE_USE_STATIC_MEMORY = "9"',
            "use the TensorFlow adapter's option static_memory_policy, or "
            'write one of "0", "2", "3", "4"',
        ),
        ("[atc]\ndeterministic = 1", 'write scenario = "offline-inference", or unset it'),
    ],
)
def test_a_wrong_value_of_a_setting_that_should_go_is_an_error_with_that_advice(
    lines: str, hint: str
) -> None:
    found = npuprof.check(npuprof.loads(f'[profile]\nscenario = "training"\n{lines}\n'))
    assert [
        (finding.severity, finding.hint) for finding in found if finding.severity != "info"
    ] == [("error", hint)]


def test_a_public_list_of_debug_modules_is_accepted() -> None:
    # launch scripts of vLLM on Ascend export it; hccl and hcomm, config_log.cc: any case,
    # AIV_OPS_EXC is ignored with a warning
    for value in ("ALG,TASK,RESOURCE,AIV_OPS_EXC", "^aiv_ops_exc", "alg,,task,"):
        assert not findings(f'export HCCL_DEBUG_CONFIG="{value}"\n', "x.sh")
    assert [finding.code for finding in findings("export HCCL_DEBUG_CONFIG=ALG,AIV\n", "x.sh")] == [
        "NP203"
    ]


def test_none_for_a_mode_that_the_class_stores_is_an_error() -> None:
    text = (
        "from npu_bridge.npu_init import *\n"
        "run = NPURunConfig(dump_config=DumpConfig(enable_dump_debug=True, dump_path='/d', {}))\n"
    )
    for mode, codes in (
        ("dump_debug_mode=None", ["NP202"]),
        ("dump_step=None", []),
        ("dump_debug_mode='all'", []),
    ):
        assert [
            finding.code
            for finding in findings(text.format(mode), "x.py")
            if finding.severity == "error"
        ] == codes
