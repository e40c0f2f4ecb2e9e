"""What scan says of scripts, and above all where it keeps silent."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from npuprof import __main__
from support.importing import HEAD, TAIL, findings, imported, locate_findings, write
from support.running import Run

P = "custom_op.parameter_map"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f'{P}["precison_mode"].s = b"force_fp32"', "NP201"),
        (f'{P}["no_such_thing_at_all"].b = True', "NP201"),
        (f'{P}["min_group_size"].b = 1', "NP502"),
        (f'{P}["jit_compile"].b = False', "NP802"),
        (f'{P}["deterministic"].b = True', "NP802"),
        (f'{P}["hccl_timeout"].s = b"600"', "NP802"),
        (f'{P}["precision_mode"].b = FLAGS.x', "NP802"),
        (f'{P}["hccl_timeout"].i = 1.5', "NP803"),
        (f'{P}["use_off_line"].b = "True"', "NP803"),
        (f'{P}["use_off_line"] = True', "NP803"),
        (f'{P}["precision_mode"].s = tf.compat.as_bytes("mixed")', "NP203"),
        (f'{P}["graph_run_mode"].i = 2', "NP203"),
        (f'{P}["dump_path"].s = tf.compat.as_bytes("all")', "NP804"),
        (f'{P}["dump_step"].s = tf.compat.as_bytes("1-2-3")', "NP203"),
        (f'{P}["auto_tune_mode"].s = tf.compat.as_bytes("RL,GA")', "NP501"),
        (f'{P}["enable_dump"].b = True', "NP346"),
        (f'{P}["optypelist_for_implmode"].s = tf.compat.as_bytes("Pooling")', "NP311"),
    ],
)
def test_a_defect_is_named_at_its_line(line: str, code: str) -> None:
    said = locate_findings(f"\n{line}\n")
    assert (code, 2) in said
    assert all(other == code or other in ("NP349", "NP501", "NP303") for other, _ in said), said


def test_a_misspelt_key_is_named_with_its_nearest_neighbour() -> None:
    (finding,) = findings(f'{HEAD}{P}["hcom_paralel"].b = True\n{TAIL}')
    assert finding.hint == "did you mean 'hcom_parallel'?"
    assert (finding.severity, finding.line, finding.column) == ("error", 6, 1)


def test_the_hint_of_a_wrong_field_is_the_line_to_write() -> None:
    (finding,) = [
        one
        for one in findings(f'{HEAD}{P}["jit_compile"].b = False\n{TAIL}')
        if one.code == "NP802"
    ]
    assert finding.hint == 'write parameter_map["jit_compile"].s = tf.compat.as_bytes("false")'


def test_a_release_in_which_the_field_was_right_says_nothing() -> None:
    assert not locate_findings(f'{P}["jit_compile"].b = False\n', cann="6.0.1")
    assert locate_findings(f'{P}["jit_compile"].b = False\n', cann="6.3.RC2")


@pytest.mark.parametrize(
    "lines",
    [
        (
            f'{P}["enable_dump"].b = True\nif FLAGS.path:\n'
            f'    {P}["dump_path"].s = tf.compat.as_bytes("/d")\n'
        ),
        f'{P}["enable_dump"].b = FLAGS.dump\n',
        f'{P}["precision_mode"].s = tf.compat.as_bytes("force_fp16")\n',
        f'{P}["session_device_id"].i = 0\n',
        f'{P}[name].s = tf.compat.as_bytes("x")\n',
        'other["precison_mode"].s = b"x"\n',
        (
            'os.environ["ASCEND_HOME"] = "/x"\nos.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "3"\n'
            'os.environ["MY_HCCL"] = "1"\n'
        ),
        f'{P}["enable_dump"].b = True\n{P}[name].s = b"/d"\n',
        "run = NPURunConfig(dump_config=DumpConfig(enable_dump=True, **more))\n",
    ],
)
def test_what_may_be_right_is_passed_over(lines: str) -> None:
    assert locate_findings(lines) == []


def test_settings_that_exclude_each_other_are_seen_across_branches() -> None:
    both = (
        f'{P}["precision_mode_v2"].s = b"origin"\nif FLAGS.a:\n'
        f'    {P}["precision_mode"].s = b"force_fp32"\n'
    )
    assert [code for code, _ in locate_findings(both)] == ["NP301"]
    unknown = (
        f'{P}["precision_mode_v2"].s = b"origin"\n'
        f'{P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.m)\n'
    )
    assert [code for code, _ in locate_findings(unknown)] == ["NP301"]


TF2 = "import npu_device as npu\no = npu.global_options()\n"
SHAPES = "experimental.multi_branches_config"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("o.modify_mixlist = 'a.json'", "NP303"),
        (
            f"o.{SHAPES}.input_shape = 'x:-1'\no.{SHAPES}.dynamic_dims = '1;2'\n"
            f"o.{SHAPES}.dynamic_node_type = '0'\n"
            "o.compile_dynamic_mode = True",
            "NP315",
        ),
        ("o.graph_run_mode = 0\no.enable_small_channel = False", "NP338"),
        ("def run():\n    o.dump_config.enable_dump = True", "NP346"),
        ("if FLAGS.dump:\n    o.dump_config.enable_dump = True", "NP346"),
    ],
)
def test_options_of_tf_2_are_judged_together(lines: str, code: str) -> None:
    assert code in {finding.code for finding in findings(f"{TF2}{lines}\n")}


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--input_shape='scalar:'", ""),
        (
            "--external_weight=true",
            "--external_weight=true is none of 0, 1, 2|write --external_weight=1",
        ),
        (
            "--oo_constant_folding=1",
            "--oo_constant_folding=1 is none of true, false|write --oo_constant_folding=true",
        ),
        ("--deterministic=true", "--deterministic=true is none of 0, 1|write --deterministic=1"),
        (
            "--input_shape=a",
            "--input_shape=a is not in its format|see npuprof option --input_shape",
        ),
        (
            "--op_debug_level=x",
            "--op_debug_level takes a whole number, not x|write one of 0, 1, 2, 3, 4",
        ),
        (
            "--static_model_ops_lower_limit=-2",
            "--static_model_ops_lower_limit=-2 is out of range|write at least -1",
        ),
        (
            "--static_model_ops_lower_limit=x",
            "--static_model_ops_lower_limit takes a whole number, not x|write a whole number",
        ),
        (
            "--raw_ge_options=a.json --raw_ge_options_ignore_unsupported=TRUE",
            (
                "--raw_ge_options_ignore_unsupported takes true or false, not TRUE|write "
                "--raw_ge_options_ignore_unsupported=true"
            ),
        ),
    ],
)
def test_a_flag_is_judged_by_what_atc_takes(flag: str, said: str) -> None:
    line = f"atc --model=a.pb --framework=3 --output=o --soc_version=Ascend910B1 {flag}\n"
    told = [finding for finding in findings(line, "x.sh") if finding.severity != "info"]
    assert [f"{finding.message}|{finding.hint}" for finding in told] == ([said] if said else [])
    assert not any(
        word in finding.why for finding in told for word in ("adapter", "session", "protobuf")
    )


@pytest.mark.parametrize(
    ("flags", "codes"),
    [
        ("--soc_version=Ascend910B1 --status_check=1", ["NP409"]),
        ("--soc_version=Ascend950PR_9599 --precision_mode_v2=mixed_hif8", []),
        ("--soc_version=Ascend910B1 --precision_mode_v2=cube_hif8", ["NP409"]),
        (
            "--soc_version=Ascend310P3 --op_select_implmode=high_precision_for_all",
            ["NP205", "NP501"],
        ),
        ("--soc_version=Ascend910B1 --op_name_map=m --framework=0", ["NP409", "NP409"]),
        ("--soc_version=$CHIP --status_check=1", []),
        ("--soc_version=310P3", ["NP403"]),
        ("--soc_version=Ascend910C", ["NP403"]),
    ],
)
def test_the_chip_of_a_command_line_says_the_product(flags: str, codes: list[str]) -> None:
    line = f"atc --model=a --output=o {flags}\n"
    assert [
        finding.code for finding in findings(line, "x.sh") if finding.severity != "info"
    ] == codes


REMAPPED = HEAD.replace(
    "from npu_bridge.npu_init import *", "from npu_bridge.estimator import npu_ops"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}sess = tf.Session(config=config)\n", ["NP807"]),
        (f"{REMAPPED}def f():\n    return config\n", []),
        (
            REMAPPED
            + TAIL.replace("remapping = RewriterConfig.OFF", "remapping = RewriterConfig.ON"),
            ["NP806"],
        ),
        (f"{REMAPPED}#" + TAIL, ["NP806"]),
    ],
)
def test_rewrites_left_on_are_named_where_nothing_switches_them_off(
    text: str, said: list[str]
) -> None:
    found = findings(text)
    assert [finding.code for finding in found] == said
    shown = [text.split("\n")[finding.line - 1][finding.column - 1 :] for finding in found]
    assert all(rest.startswith(("custom_op", "config", "o")) and "." in rest for rest in shown), (
        shown
    )


def test_the_name_of_the_optimizer_has_to_be_exact() -> None:
    text = f'{HEAD}{P}["use_off_line"].b = True\n{TAIL}'
    assert [
        f.code
        for f in findings(text.replace('"NpuOptimizer"', '"NpuOptimzer"'))
        if f.severity == "error"
    ] == ["NP808"]
    assert not [
        f
        for f in findings(text.replace('"NpuOptimizer"', '"SomeOtherOptimizer"'))
        if f.code == "NP808"
    ]


def test_commented_options_are_notes() -> None:
    text = (
        f'{HEAD}#{P}["use_off_line"].b = True\n#   {P}["dump_path"].s = tf.compat.as_bytes("/x")\n'
        f'"""\n# {P}["x"].b = True\n"""\n{TAIL}'
    )
    assert [(f.code, f.severity, f.line, f.key) for f in findings(text)] == [
        ("NP805", "info", 6, "use_off_line"),
        ("NP805", "info", 7, "dump_path"),
    ]


ESTIMATOR = """\
from npu_bridge.npu_init import *
session_config = tf.ConfigProto()
custom_op = session_config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["mix_compile_mode"].b = True
custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("force_fp32")
custom_op.parameter_map["hcom_parallel"].b = True
config = NPURunConfig(session_config=session_config{more})
"""


def test_settings_that_the_estimator_loses_are_named() -> None:
    lost = [f for f in findings(ESTIMATOR.format(more=""), cann="9.0.0") if f.severity != "info"]
    assert [(f.code, f.key, f.line) for f in lost] == [("NP809", "mix_compile_mode", 5)]
    assert not [
        f for f in findings(ESTIMATOR.format(more=", mix_compile_mode=True")) if f.code == "NP809"
    ]
    old = ESTIMATOR.replace(
        '"hcom_parallel"].b = True', '"enable_data_pre_proc"].b = False'
    ).format(more="")
    assert [f.code for f in findings(old) if f.key == "enable_data_pre_proc"] == ["NP809"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("NPURunConfig(auto_tune_mode='RL,GA')", ["NP812"]),
        ("NPURunConfig(precision_mode='force_fp33')", ["NP203"]),
        ("NPURunConfig(iterations_per_loop=100, save_checkpoints_steps=250)", ["NP384"]),
        ("NPURunConfig(iterations_per_loop=100)", []),
        ("NPURunConfig(dump_config=DumpConfig(enable_dump=True))", ["NP346"]),
        ("NPURunConfig(dump_config=DumpConfig(enable_dump=True, dump_path=FLAGS.p))", []),
        ("NPURunConfig(compress_weight_conf='a')", ["NP809"]),
        ("NPURunConfig(op_debug_level=None, model_dir='x')", []),
        ("DumpConfig(dump_pth='/x')", ["NP812"]),
    ],
)
def test_arguments_of_the_estimator_are_checked(text: str, codes: list[str]) -> None:
    found = [
        f.code
        for f in findings(f"from npu_bridge.npu_init import *\nc = {text}\n")
        if f.severity != "info"
    ]
    assert sorted(found) == sorted(codes)


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        ("npu.global_options().precision_mode = None", "NP202", "omit the line"),
        ("npu.global_options().precision_mode = 'allow_mix_precison'", "NP203", "write one of "),
        (
            "npu.global_options().dump_config.dump_paht = '/x'",
            "NP812",
            "did you mean 'dump_config.dump_path'",
        ),
        ("npu.global_options().dump_config = {}", "NP815", "assign its members one by one"),
        (
            "npu.global_options().topo_sorting_mode, npu.global_options().deterministic = 2, 1",
            "NP203",
            "write one of 0, 1",
        ),
        (
            "from npu_device import global_options as chosen; chosen().topo_sorting_mode = 2",
            "NP203",
            "write one of 0, 1",
        ),
    ],
)
def test_what_the_class_of_tf2_refuses_is_named_with_what_it_takes(
    line: str, code: str, hint: str
) -> None:
    (found,) = [
        one for one in findings(f"import npu_device as npu\n{line}\n") if one.severity == "error"
    ]
    assert (found.code, found.line) == (code, 2)
    assert found.hint.startswith(hint)


@pytest.mark.parametrize(
    ("line", "release", "codes"),
    [
        ("jit_compile = True", "6.0.1", []),
        ("jit_compile = 'auto'", "6.0.1", ["NP203", "NP202"]),
        ("oo_level = 'O1'", "7.0.0", ["NP812"]),
        ("oo_level = 'O1'", "8.0.0", []),
        ("memory_config.static_memory_policy = 4", "6.0.1", ["NP203"]),
        ("memory_config.static_memory_policy = 4", "8.0.0", []),
        ("auto_multistream_parallel_mode = 'LoadBalance:4'", "9.0.0", ["NP203"]),
        ("auto_multistream_parallel_mode = 'LoadBalance:4'", "9.1.0", []),
    ],
)
def test_an_attribute_of_tf2_is_judged_by_the_release_asked_for(
    line: str, release: str, codes: list[str]
) -> None:
    found = findings(f"import npu_device as npu\nnpu.global_options().{line}\n", cann=release)
    assert {one.code for one in found if one.severity == "error"} <= set(codes)
    assert bool(codes) == any(one.severity == "error" for one in found)


@pytest.mark.parametrize(
    ("call", "release", "told"),
    [
        ("NPURunConfig(auto_tune_mode='RL,GA')", "6.0.RC1", []),
        ("NPURunConfig(auto_tune_mode='RL,GA')", None, [("NP812", "error")]),
        ("DynamicInputConfig('a:1,-1', '2;3', 1)", "7.0.0", []),
        ("ProfilingConfig(enable_options=['task_trace'])", None, [("NP812", "error")]),
        ("DynamicInputConfig('a:1,-1', '2;3', 1)", "9.0.0", [("NP819", "error")]),
        ("GraphParallelConfig(enable_graph_parallel=True)", "6.0.1", []),
        ("GraphParallelConfig(enable_graph_parallel=True)", "9.0.0", [("NP819", "error")]),
    ],
)
def test_a_class_is_that_of_the_release_asked_for(
    call: str, release: str | None, told: list[tuple[str, str]]
) -> None:
    requested = {"cann": release} if release else {}
    found = findings(f"from npu_bridge.npu_init import *\nmade = {call}\n", **requested)
    assert [(one.code, one.severity) for one in found if one.code in ("NP812", "NP819")] == told


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("NPURunConfig(enable_dump=True)", "set it in the session_config"),
        ("DumpConfig(profiling_config=make())", "remove it"),
        ("NPURunConfig(dump_config={'enable_dump': True})", "make an object for dump_config"),
        (
            "DynamicInputConfig()",
            (
                "give input_shape and dynamic_dims and "
                "dynamic_node_type and compile_hybrid_mode as well"
            ),
        ),
    ],
)
def test_a_call_that_its_class_refuses_is_mended_by_the_hint(call: str, hint: str) -> None:
    (found,) = [
        one
        for one in findings(f"from npu_bridge.npu_init import *\nmade = {call}\n")
        if one.severity == "error"
    ]
    assert (found.line, found.hint) == (2, hint)


SECOND = re.sub(r"custom_op\b", "other", HEAD).partition("config = tf.ConfigProto()\n")[2]


@pytest.mark.parametrize(
    ("lines", "doubled"),
    [
        (
            "config.graph_options.rewrite_options.custom_optimizers.add().name = 'NpuOptimizer'\n",
            [1],
        ),
        ("config.graph_options.rewrite_options.custom_optimizers.add(name='NpuOptimizer')\n", []),
        (
            (
                "op = "
                "config.graph_options.rewrite_options.custom_optimizers.add(name='NpuOptimizer')\n"
            ),
            [1],
        ),
        (f"if FLAGS.x:\n    {SECOND.replace(chr(10), chr(10) + '    ')}pass\n", [2]),
        (f"config = tf.ConfigProto()\n{SECOND}", []),
        (f"del config.graph_options.rewrite_options.custom_optimizers[:]\n{SECOND}", []),
        (f"def again(config):\n    {SECOND.replace(chr(10), chr(10) + '    ')}pass\n", []),
    ],
)
def test_a_second_entry_of_one_configuration_is_named(lines: str, doubled: list[int]) -> None:
    assert [line for code, line in locate_findings(lines) if code == "NP820"] == doubled


@pytest.mark.parametrize(
    ("lines", "nameless"),
    [
        ("", True),
        ("op.name = 'NpuOptimizer'\n", False),
        ("op.MergeFrom(other)\n", False),
        ("setattr(op, 'name', FLAGS.name)\n", False),
    ],
)
def test_an_entry_with_options_and_without_a_name_is_an_error(lines: str, nameless: bool) -> None:
    made = (
        "import tensorflow as tf\nconfig = tf.ConfigProto()\n"
        "op = config.graph_options.rewrite_options.custom_optimizers.add()\n"
    )
    found = findings(f'{made}{lines}op.parameter_map["use_off_line"].b = True\n')
    assert [one.line for one in found if one.code == "NP808"] == ([3] if nameless else [])


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('["use_off_line"].b = "True"', "write True"),
        ('["hccl_timeout"].i = "600"', "write 600"),
        ('["precision_mode"].s = "force_fp32"', 'write tf.compat.as_bytes("force_fp32")'),
        (
            '["precision_mode"].s = tf.compat.as_text("force_fp16")',
            'write tf.compat.as_bytes("force_fp16")',
        ),
    ],
)
def test_a_value_of_another_type_is_told_as_its_field_takes_it(line: str, hint: str) -> None:
    assert [one.hint for one in findings(f"{HEAD}{P}{line}\n{TAIL}") if one.code == "NP803"] == [
        hint
    ]


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("export SLOG_PRINT_TO_STDOUT=1", ["NP502"]),
        ("export GE_USE_STATIC_MEMORY=1", ["NP501"]),
        ("export ASCEND_GLOBAL_LOG_LEVEL=9", ["NP203"]),
        ("export DUMP_GE_GRAPH = 2", ["NP813"]),
        ("export RANK_ID=$i RANK_SIZE=8 JOB_ID=10087", []),
        ("export DEVICE_ID=$i ASCEND_DEVICE_ID=$i", []),
        ("export ASCEND_HOME=/usr/local/Ascend ASCEND_INSTALL_PATH=/x PATH=$PATH:/x", []),
        (
            (
                "atc --model=x.pb --framework=3 --output=o --soc_version=$S "
                "--precision_mode=force_fp16 --precision_mode_v2=fp16"
            ),
            ["NP912"],
        ),
        ("echo atc --modle=x.pb", []),
        (
            "atc --model=a --framework=3 --output=o --soc_version=$S --modify_mixlist=a.json",
            ["NP303"],
        ),
        (
            "atc --model=a --framework=3 --output=o --soc_version=$S --modify_mixlist=a.json $MORE",
            [],
        ),
    ],
)
def test_shell_scripts_are_checked(line: str, codes: list[str]) -> None:
    assert [
        f.code for f in findings(f"#!/bin/bash\n{line}\n", "x.sh") if f.severity != "info"
    ] == codes


ATC = "atc --framework=5 --model=a.onnx --output=o --soc_version=Ascend310P3 "
MODELS, TORCH = (
    "Ascend/ModelZoo-TensorFlow TensorFlow/built-in/",
    "Ascend/ModelZoo-PyTorch PyTorch/",
)
COMMAND_LINE = "hicann/ge api/atc/cmd_flag_info.cc"


@pytest.mark.parametrize(
    ("line", "codes", "source"),
    [
        (
            "export RANK_ID=npu1p",
            ["NP202"],
            f"{MODELS}cv/image_classification/AlexNet_ID0072_for_TensorFlow/scripts/run_npu_1p.sh:8",
        ),
        (
            "export RANK_ID={RANK_ID}",
            [],
            f"{TORCH}dev/cv/image_classification/InceptionV1_ID1568_for_PyTorch/test/env.sh:40",
        ),
        (
            "export HCCL_IF_IP=x.x.x.x",
            [],
            f"{TORCH}built-in/cv/classification/SimMIM_for_PyTorch/test/run32p_finetune.sh:9",
        ),
        (
            "export ASCEND_DEVICE_ID=0,1,2,3,4,5,6,7",
            ["NP202"],
            f"{TORCH}contrib/cv/others/GAN_Pytorch/test/train_eval_8p.sh:44",
        ),
        (
            "export RANK_SIZE=0",
            [],
            f"{MODELS}cv/detection/NIMA_ID0158_for_TensorFlow/run_npu_1p.sh:35",
        ),
        (
            "export DUMP_GE_GRAPH=0 DUMP_GRAPH_LEVEL=0",
            ["NP203"],
            f"{TORCH}contrib/others/RotatE/test/env_npu.sh:29",
        ),
        (
            "export PROFILING_MODE=FALSE",
            [],
            f"{MODELS}cv/image_classification/ResNext101_ID1577_for_TensorFlow/bin/npu_set_env.sh:17",
        ),
        (
            "export PROFILING_MODE=false PROFILING_OPTIONS=training_trace:task_trace",
            [],
            f"{MODELS}nlp/GPT-3_for_TensorFlow/scripts/run_npu_8p.sh:23",
        ),
        (
            "export ASCEND_SLOG_PRINT_TO_STDOUT=3",
            ["NP203"],
            f"{TORCH}dev/cv/detection/3D_attentionnet_ID0478_for_PyTorch/test/train_full_1p.sh:17",
        ),
        (
            "export TE_PARALLEL_COMPILER=0",
            ["NP203"],
            f"{MODELS}cv/image_classification/ResnetVariant_ID0033_for_TensorFlow/test/train_full_8p.sh:103",
        ),
        (
            "export CM_CHIEF_IP=10.0.0.1 RANK_ID=0",
            [],
            f"{MODELS}cv/image_classification/EfficientNet_B0_ID0009_for_TensorFlow/test/train_performance_32p.sh:107",
        ),
        (
            "export ASCEND_DEVICE_ID=$RANK_ID\nexport DEVICE_ID=$ASCEND_DEVICE_ID",
            [],
            f"{MODELS}audio/WaveGlow_ID0024_for_TensorFlow/test/train_full_8p.sh:143",
        ),
        (
            f"{ATC} --out-nodes='a:0'",
            [],
            "Ascend/ModelZoo-PyTorch ACL_PyTorch/contrib/cv/face/Retinaface/test/pth2om.sh:12",
        ),
        (f"{ATC} -log=error", [], f"{COMMAND_LINE} ReplaceFlagPrefixSingleMinus"),
        (
            f"{ATC} --input_form=ND",
            ["NP209"],
            f"{COMMAND_LINE} ParseCommandLine: getopt_long takes a beginning",
        ),
        (
            f"{ATC} --input_shape='-1,1~2,3;2,-1'",
            [],
            "hicann/ge compiler/api/aclgrph/option_utils.cc ParserShapeRangeByIndex",
        ),
    ],
)
def test_a_line_that_works_for_its_reader_is_no_error(
    line: str, codes: list[str], source: str
) -> None:
    found = [f for f in findings(f"#!/bin/bash\n{line}\n", "x.sh") if f.severity != "info"]
    assert [(f.code, f.severity) for f in found] == [(code, "warning") for code in codes], source


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("export PROFILING_MODE=true PROFILING_OPTIONS=training_trace:task_trace", "NP203"),
        ("export CM_CHIEF_IP=10.0.0.1 RANK_SIZE=8", "NP386"),
        (f"{ATC} --precision=force_fp16", "NP209"),
        (f"{ATC} --input_shape=1,3,224,224", "NP203"),
        (f"{ATC} --input_shape='input:[1~1500,83]'", "NP203"),
    ],
)
def test_a_line_that_its_reader_refuses_stays_an_error(line: str, code: str) -> None:
    found = [f for f in findings(f"#!/bin/bash\n{line}\n", "x.sh") if f.severity != "info"]
    assert [(f.code, f.severity) for f in found] == [(code, "error")]


def test_blanks_between_the_types_of_operators_are_no_error() -> None:
    """hicann/ge OpImplModeConfigParser::InitOpPrecisionModeByImplMode trims each name.

    Ascend/ModelZoo-TensorFlow
    TensorFlow/built-in/recommendation/WideDeep_ID2712_for_TensorFlow/train.py:348 has them.
    """
    lines = (
        f'{P}["op_select_implmode"].s = b"high_precision"\n'
        f'{P}["optypelist_for_implmode"].s = b"Pooling, SoftmaxV2"\n'
    )
    assert {code for code, _ in locate_findings(lines)} == {"NP501"}


def test_the_name_of_a_file_says_nothing_of_its_content() -> None:
    """Ascend/ModelZoo-TensorFlow
    TensorFlow/built-in/recommendation/DIEN_ID3065_for_TensorFlow/fusion_config.txt is a mixlist.
    """
    lines = (
        f'{P}["precision_mode"].s = b"allow_mix_precision"\n'
        f'{P}["modify_mixlist"].s = b"fusion_config.txt"\n'
    )
    assert locate_findings(lines) == []


def test_a_variable_that_nothing_reads_any_more_is_a_warning() -> None:
    """Ascend/ModelZoo-PyTorch .../GLM-10B/tests/env_npu.sh:39."""
    assert [
        (f.code, f.severity, f.line) for f in findings("export PTCOPY_ENABLE=1\n", "env_npu.sh")
    ] == [("NP502", "warning", 1)]


def test_an_attribute_that_is_gone_names_the_release_that_took_it_away() -> None:
    """Ascend/ModelZoo-TensorFlow .../CircleLossMNIST_ID3551_for_TensorFlow2.X/test_class.py:149.

    NpuConfig of that time has it.
    """
    found = findings("import npu_device as npu\nnpu.global_options().auto_tune_mode = 'RL,GA'\n")
    assert [(f.code, f.hint) for f in found] == [
        (
            "NP812",
            "remove the line: CANN 6.0.1 took it away; scan --cann judges by an older release",
        )
    ]


def scan(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, object]]]:
    code = __main__.main(["scan", *words, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)["findings"]


def test_ignored_files_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    bad = f'{HEAD}{P}["precison_mode"].s = b"x"\n'
    write(
        tmp_path,
        {
            "a.py": bad,
            "build/b.py": bad,
            "sub/new.py": bad,
            "sub/.gitignore": "gone.py\n",
            "sub/gone.py": bad,
            ".gitignore": "build/\n",
        },
    )
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    found = {str(f["path"]) for f in scan(capsys, str(tmp_path))[1]}
    assert found == {str(tmp_path / "a.py"), str(tmp_path / "sub/new.py")}
    assert {str(f["path"]) for f in scan(capsys, str(tmp_path / "build/b.py"))[1]} == {
        str(tmp_path / "build/b.py")
    }


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "owned"
    line = f'{P}["dump_path"].s = tf.compat.as_bytes(str(open({str(mark)!r}, "w").write("x")))\n'
    assert "NP203" not in {
        one.code for one in findings(f'{HEAD}import os\nos.system("touch {mark}")\n{line}')
    }
    assert not mark.exists()


def test_entries_of_other_optimizers_are_none_of_ours() -> None:
    text = (
        HEAD.replace("NpuOptimizer", "TensorRTOptimizer")
        + f'{P}["max_batch_size"].i = 4\n{P}["precision_mode"].s = b"FP16"\n'
    )
    assert imported(text).settings == ()
    assert findings(text) == []


def test_the_size_of_memory_may_be_a_product() -> None:
    assert locate_findings(
        f'{P}["graph_memory_max_size"].s = tf.compat.as_bytes("31*1024 * 1024*1024")\n'
    ) == [("NP502", 1)]
    assert ("NP203", 1) in locate_findings(
        f'{P}["graph_memory_max_size"].s = tf.compat.as_bytes("31G")\n'
    )


@pytest.mark.parametrize(
    "words", [["scan"], ["scan", "--format", "sarif"], ["import"]], ids=" ".join
)
def test_a_file_name_that_is_no_text_stops_nothing(
    words: list[str], tmp_path: Path, run: Run
) -> None:
    (tmp_path / os.fsdecode(b"\xff.py")).write_text(
        f'{HEAD}{P}["precison_mode"].s = b"x"\n{P}["hcom_parallel"].b = True\n{TAIL}'
    )
    done = run(words[0], ".", *words[1:])
    assert (done.code, bool(re.search(r"(udcff|%FF)\.py", done.out))) == (
        words[0] == "scan",
        True,
    ), done
    assert run("import", ".", "-o", "out").code == 0
    (made,) = tmp_path.glob("out/**/*.toml")
    assert 'description = "imported from \\\\udcff.py"' in made.read_text()
    assert run("check", made).code == 0


@pytest.mark.parametrize(
    "lines",
    [
        "from npu_device import global_options as go\ngo().{}",
        "from npu_device import global_options as go\no = go()\no.{}",
        "o: object = npu.global_options()\no.{}",
        "(o := npu.global_options())\no.{}",
        "(o := npu.global_options()).{}",
        "if (o := npu.global_options()):\n    o.{}",
        "o, n = npu.global_options(), 3\no.{}",
        "o: object = npu.global_options().dump_config\no.{}",
    ],
)
def test_the_options_of_tf_2_are_known_by_every_name(lines: str) -> None:
    text = f"import npu_device as npu\n{lines.format('enabel_dump = True')}\n"
    assert [(one.code, one.line) for one in findings(text) if one.severity == "error"] == [
        ("NP812", text.count("\n"))
    ]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            (
                "from npu_bridge.npu_init import (NPURunConfig as R,\n    DumpConfig as D)\n"
                "R(dump_config=D(enable_dump=True))"
            ),
            "NP346",
        ),
        (
            (
                "from npu_bridge.npu_init import NPURunConfig as R\n"
                "def R(**given):\n    pass\nR(precison_mode='x')"
            ),
            "",
        ),
        ("from npu_bridge.npu_init import *\nR = NPURunConfig\nR(precison_mode='x')", "NP812"),
        ("import npu_bridge.npu_init as npu\nR = npu.NPURunConfig\nR(precison_mode='x')", "NP812"),
        (
            "from npu_bridge.npu_init import *\nR = NPURunConfig\nR = print\nR(precison_mode='x')",
            "",
        ),
    ],
)
def test_the_classes_are_known_by_every_name(lines: str, code: str) -> None:
    text = f"{lines}\n"
    assert [(one.code, one.line) for one in findings(text) if one.severity == "error"] == [
        (code, text.count("\n"))
    ] * bool(code)


def test_what_is_longer_than_is_followed_is_told(tmp_path: Path, run: Run) -> None:
    calls = "".join(f"f('k{i}')\n" for i in range(202))
    (tmp_path / "a.py").write_text(f"def f(k):\n    op.parameter_map[k].s = 'x'\n{calls}")
    done = run("scan", "a.py")
    assert (done.code, "warning NP801: f() is not looked into" in done.out) == (2, True), done.out
    assert "f() is not looked into" in run("import", "a.py", "--format", "json").out


SET = 'custom_op.parameter_map["hccl_timeout"].i = 1800\n'
LATE = f"{HEAD}{TAIL}{SET}"
NPU_DEVICE = "import npu_device as npu\n"
OPTION = 'npu.global_options().precision_mode = "allow_mix_precision"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (LATE, ["hccl_timeout comes after the session was made (line 8)"]),
        (
            f"{NPU_DEVICE}npu.open().as_default()\n{OPTION}",
            ["precision_mode comes after npu.open() (line 2)"],
        ),
        (f"{NPU_DEVICE}{OPTION}npu.open().as_default()\n", []),
        (f"{HEAD}{TAIL.replace('sess =', 'if FLAGS.first: sess =')}{SET}", []),
        (f"{HEAD}{TAIL}if FLAGS.other:\n    config = make()\n    {SET}", []),
        (f"{HEAD}build(config)\n{SET}", []),  # who knows when it is looked at
        (f"{HEAD}def main():\n    {TAIL.strip().splitlines()[-1]}\n{SET}main()\n", []),
        (f"{HEAD}for step in range(3):\n    sess = tf.Session(config=config)\n    {SET}", []),
    ],
)
def test_a_setting_after_the_last_use_of_its_object_is_told(text: str, told: list[str]) -> None:
    assert [one.message for one in findings(text) if one.code == "NP822"] == told


DEFINED = """\
from absl import flags
flags.DEFINE_string("mode", "allow_mixed_precision", "")
flags.DEFINE_string("right", "allow_mix_precision", "")
flags.DEFINE_string("none", None, "")
flags.DEFINE_string("empty", "", "")
flags.DEFINE_integer("loops", 0, "")
flags.DEFINE_string("timeout", "600", "")
FLAGS = flags.FLAGS
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            f'{P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n',
            'precision_mode = "allow_mixed_precision" is none of',
        ),
        (
            f'{P}["iterations_per_loop"].i = FLAGS.loops\n',
            "iterations_per_loop = 0 is out of range",
        ),
        (
            "NPURunConfig(precision_mode=FLAGS.mode)\n",
            'precision_mode = "allow_mixed_precision" is none of',
        ),
        (f'{P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.right)\n', ""),
        (f'{P}["dump_mode"].s = tf.compat.as_bytes(FLAGS.empty)\n', ""),
        (
            (
                'if FLAGS.mode != "allow_mixed_precision":\n'
                f'    {P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n'
            ),
            "",
        ),
        (f'{P}["hccl_timeout"].i = int(FLAGS.timeout)\n', ""),
        (
            f'def f(mode="mixed"):\n    {P}["precision_mode"].s = tf.compat.as_bytes(mode)\n',
            "",
        ),  # every caller may give another
    ],
)
def test_a_default_of_the_command_line_is_judged(lines: str, told: str) -> None:
    found = [one for one in findings(f"{DEFINED}{HEAD}{lines}{TAIL}") if one.code == "NP203"]
    assert [one.severity for one in found] == ["warning"] * bool(told)
    for one in found:
        assert one.message.startswith(told)
        assert one.message.endswith("; it is the default of the script")
