"""What scan reports about scripts, and above all what it does not report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from npuprof.model import Finding
from support.importing import HEAD, TAIL, findings, imported, locate_findings, write
from support.running import Run

P = "custom_op.parameter_map"
#: Unknown names are errors, and deprecated ones warnings, where a release is named.
RELEASE = "9.0.0"


def list_faults(text: str, name: str = "x.py", **requested: str) -> list[Finding]:
    """Return the findings other than notes."""
    return [finding for finding in findings(text, name, **requested) if finding.severity != "info"]


def list_errors(text: str, **requested: str) -> list[Finding]:
    return [finding for finding in findings(text, **requested) if finding.severity == "error"]


def select_code(found: list[Finding], code: str) -> list[Finding]:
    return [finding for finding in found if finding.code == code]


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
        (f'{P}["auto_tune_mode"].s = tf.compat.as_bytes("RL,GA")', "NP502"),
        (f'{P}["enable_dump"].b = True', "NP346"),
        (f'{P}["optypelist_for_implmode"].s = tf.compat.as_bytes("Pooling")', "NP311"),
    ],
)
def test_a_defect_is_named_at_its_line(line: str, code: str) -> None:
    located = locate_findings(f"\n{line}\n")
    assert (code, 2) in located
    codes = {other for other, _ in located}
    assert codes <= {code, "NP349", "NP501", "NP303"}


def test_a_misspelt_key_is_named_with_its_nearest_neighbour() -> None:
    (finding,) = findings(f'{HEAD}{P}["hcom_paralel"].b = True\n{TAIL}', cann=RELEASE)
    assert finding.hint == "did you mean 'hcom_parallel'?"
    assert finding.severity == "error"
    assert finding.line == 6
    assert finding.column == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f'{P}["hcom_paralel"].b = True', "NP201"),
        ("npu.global_options().dump_config.dump_paht = '/x'", "NP812"),
        ("NPURunConfig(precison_mode='x')", "NP812"),
    ],
)
def test_a_misspelt_name_is_an_error_where_a_release_is_named(line: str, code: str) -> None:
    text = f"import npu_device as npu\n{HEAD}{line}\n{TAIL}"
    assert [(found.code, found.severity) for found in findings(text)] == [(code, "warning")]
    assert [(found.code, found.severity) for found in findings(text, cann=RELEASE)] == [
        (code, "error")
    ]


def test_the_hint_of_a_wrong_field_is_the_line_to_write() -> None:
    found = findings(f'{HEAD}{P}["jit_compile"].b = False\n{TAIL}')
    (finding,) = select_code(found, "NP802")
    assert finding.hint == 'write parameter_map["jit_compile"].s = tf.compat.as_bytes("false")'


def test_a_release_in_which_the_field_was_right_says_nothing() -> None:
    assert not locate_findings(f'{P}["jit_compile"].b = False\n', cann="6.0.1")
    assert locate_findings(f'{P}["jit_compile"].b = False\n', cann="6.3.RC2")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            f'{P}["enable_dump"].b = True\nif FLAGS.path:\n'
            f'    {P}["dump_path"].s = tf.compat.as_bytes("/d")\n',
            id="a dump path in a branch",
        ),
        pytest.param(f'{P}["enable_dump"].b = FLAGS.dump\n', id="a switch of the command line"),
        pytest.param(
            f'{P}["precision_mode"].s = tf.compat.as_bytes("force_fp16")\n',
            id="a value without a fault",
        ),
        pytest.param(f'{P}["session_device_id"].i = 0\n', id="an option of the session"),
        pytest.param(f'{P}[name].s = tf.compat.as_bytes("x")\n', id="a computed key"),
        pytest.param('other["precison_mode"].s = b"x"\n', id="another table"),
        pytest.param(
            'os.environ["ASCEND_HOME"] = "/x"\nos.environ["ASCEND_GLOBAL_LOG_LEVEL"] = "3"\n'
            'os.environ["MY_HCCL"] = "1"\n',
            id="other variables",
        ),
        pytest.param(
            f'{P}["enable_dump"].b = True\n{P}[name].s = b"/d"\n',
            id="a computed key after a switch",
        ),
        pytest.param(
            "run = NPURunConfig(dump_config=DumpConfig(enable_dump=True, **more))\n",
            id="unpacked arguments",
        ),
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
        pytest.param(
            "o.modify_mixlist = 'a.json'", "NP303", id="a mixlist without a precision mode"
        ),
        pytest.param(
            f"o.{SHAPES}.input_shape = 'x:-1'\no.{SHAPES}.dynamic_dims = '1;2'\n"
            f"o.{SHAPES}.dynamic_node_type = '0'\n"
            "o.compile_dynamic_mode = True",
            "NP315",
            id="shapes in two modes",
        ),
        pytest.param(
            "o.graph_run_mode = 0\no.enable_small_channel = False",
            "NP338",
            id="small channels in training",
        ),
        pytest.param(
            "def run():\n    o.dump_config.enable_dump = True",
            "NP346",
            id="a dump without a path in a function",
        ),
        pytest.param(
            "if FLAGS.dump:\n    o.dump_config.enable_dump = True",
            "NP346",
            id="a dump without a path in a branch",
        ),
    ],
)
def test_options_of_tf_2_are_judged_together(lines: str, code: str) -> None:
    assert code in {finding.code for finding in findings(f"{TF2}{lines}\n")}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        pytest.param("--input_shape='scalar:'", "", id="a scalar"),
        pytest.param(
            "--external_weight=true",
            "--external_weight=true is none of 0, 1, 2|write --external_weight=1",
            id="a switch for a number",
        ),
        pytest.param(
            "--oo_constant_folding=1",
            "--oo_constant_folding=1 is none of true, false|write --oo_constant_folding=true",
            id="a number for a switch",
        ),
        pytest.param(
            "--deterministic=true",
            "--deterministic=true is none of 0, 1|write --deterministic=1",
            id="another switch for a number",
        ),
        pytest.param(
            "--input_shape=a",
            "--input_shape=a is not in its format|see npuprof option --input_shape",
            id="a shape without dimensions",
        ),
        pytest.param(
            "--op_debug_level=x",
            "--op_debug_level takes a whole number, not x|write one of 0, 1, 2, 3, 4",
            id="a word for a choice",
        ),
        pytest.param(
            "--static_model_ops_lower_limit=-2",
            "--static_model_ops_lower_limit=-2 is out of range|write at least -1",
            id="a number below its range",
        ),
        pytest.param(
            "--static_model_ops_lower_limit=x",
            "--static_model_ops_lower_limit takes a whole number, not x|write a whole number",
            id="a word for a number",
        ),
        pytest.param(
            "--raw_ge_options=a.json --raw_ge_options_ignore_unsupported=TRUE",
            (
                "--raw_ge_options_ignore_unsupported takes true or false, not TRUE|write "
                "--raw_ge_options_ignore_unsupported=true"
            ),
            id="a switch in capitals",
        ),
    ],
)
def test_a_flag_is_judged_by_what_atc_takes(flag: str, message: str) -> None:
    line = f"atc --model=a.pb --framework=3 --output=o --soc_version=Ascend910B1 {flag}\n"
    faults = list_faults(line, "x.sh")
    messages = [f"{finding.message}|{finding.hint}" for finding in faults]
    assert messages == ([message] if message else [])
    reasons = " ".join(finding.why for finding in faults)
    assert not re.search("adapter|session|protobuf", reasons)


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
    faults = list_faults(f"atc --model=a --output=o {flags}\n", "x.sh", cann=RELEASE)
    assert [finding.code for finding in faults] == codes


REMAPPED = HEAD.replace(
    "from npu_bridge.npu_init import *", "from npu_bridge.estimator import npu_ops"
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        pytest.param(
            f"{HEAD}sess = tf.Session(config=config)\n",
            ["NP807"],
            id="a script that does not switch them off",
        ),
        pytest.param(f"{REMAPPED}def f():\n    return config\n", [], id="no session"),
        pytest.param(
            REMAPPED
            + TAIL.replace("remapping = RewriterConfig.OFF", "remapping = RewriterConfig.ON"),
            ["NP806"],
            id="one switched on",
        ),
        pytest.param(f"{REMAPPED}#" + TAIL, ["NP806"], id="one in a comment"),
    ],
)
def test_rewrites_left_on_are_named_where_nothing_switches_them_off(
    text: str, codes: list[str]
) -> None:
    found = findings(text)
    assert [finding.code for finding in found] == codes
    lines = text.split("\n")
    for finding in found:
        code = lines[finding.line - 1][finding.column - 1 :]
        assert code.startswith(("custom_op = config.", "config.")), code


def test_the_name_of_the_optimizer_has_to_be_exact() -> None:
    text = f'{HEAD}{P}["use_off_line"].b = True\n{TAIL}'
    misspelt = text.replace('"NpuOptimizer"', '"NpuOptimzer"')
    assert [finding.code for finding in list_errors(misspelt)] == ["NP808"]
    other = text.replace('"NpuOptimizer"', '"SomeOtherOptimizer"')
    assert not select_code(findings(other), "NP808")


def test_commented_options_are_notes() -> None:
    text = (
        f'{HEAD}#{P}["use_off_line"].b = True\n#   {P}["dump_path"].s = tf.compat.as_bytes("/x")\n'
        f'"""\n# {P}["x"].b = True\n"""\n{TAIL}'
    )
    found = findings(text)
    assert {finding.code for finding in found} == {"NP805"}
    assert {finding.severity for finding in found} == {"info"}
    assert [(finding.line, finding.key) for finding in found] == [
        (6, "use_off_line"),
        (7, "dump_path"),
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
    (lost,) = list_faults(ESTIMATOR.format(more=""), cann="9.0.0")
    assert lost.code == "NP809"
    assert lost.key == "mix_compile_mode"
    assert lost.line == 5
    passed = ESTIMATOR.format(more=", mix_compile_mode=True")
    assert not select_code(findings(passed), "NP809")
    old = ESTIMATOR.replace(
        '"hcom_parallel"].b = True', '"enable_data_pre_proc"].b = False'
    ).format(more="")
    old_findings = [finding for finding in findings(old) if finding.key == "enable_data_pre_proc"]
    assert [finding.code for finding in old_findings] == ["NP809"]


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
    faults = list_faults(f"from npu_bridge.npu_init import *\nc = {text}\n")
    assert [finding.code for finding in faults] == codes


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
    (error,) = list_errors(f"import npu_device as npu\n{line}\n", cann=RELEASE)
    assert error.code == code
    assert error.line == 2
    assert error.hint.startswith(hint)


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
    text = f"import npu_device as npu\nnpu.global_options().{line}\n"
    errors = {error.code for error in list_errors(text, cann=release)}
    assert errors <= set(codes)
    assert bool(errors) == bool(codes)


@pytest.mark.parametrize(
    ("call", "release", "code"),
    [
        pytest.param(
            "NPURunConfig(auto_tune_mode='RL,GA')",
            "6.0.RC1",
            "",
            id="an argument of an old release",
        ),
        pytest.param(
            "NPURunConfig(auto_tune_mode='RL,GA')",
            "9.0.0",
            "NP812",
            id="an argument that is gone",
        ),
        pytest.param(
            "NPURunConfig(auto_tune_mode='RL,GA')",
            None,
            "NP812",
            id="an argument that is gone, without a release",
        ),
        pytest.param(
            "DynamicInputConfig('a:1,-1', '2;3', 1)", "7.0.0", "", id="a class of an old release"
        ),
        pytest.param(
            "ProfilingConfig(enable_options=['task_trace'])",
            "9.0.0",
            "NP812",
            id="an unknown argument",
        ),
        pytest.param(
            "DynamicInputConfig('a:1,-1', '2;3', 1)",
            "9.0.0",
            "NP819",
            id="a class that is gone",
        ),
        pytest.param(
            "GraphParallelConfig(enable_graph_parallel=True)",
            "6.0.1",
            "",
            id="a class of a release before it",
        ),
        pytest.param(
            "GraphParallelConfig(enable_graph_parallel=True)",
            "9.0.0",
            "NP819",
            id="a class without effect",
        ),
    ],
)
def test_a_class_is_that_of_the_release_asked_for(
    call: str, release: str | None, code: str
) -> None:
    requested = {"cann": release} if release else {}
    found = findings(f"from npu_bridge.npu_init import *\nmade = {call}\n", **requested)
    about_class = [finding for finding in found if finding.code in ("NP812", "NP819")]
    assert [finding.code for finding in about_class] == ([code] if code else [])
    assert {finding.severity for finding in about_class} <= {"error" if release else "warning"}


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        pytest.param(
            "NPURunConfig(enable_dump=True)",
            "set it in the session_config",
            id="an option of the session",
        ),
        pytest.param(
            "DumpConfig(profiling_config=make())", "remove it", id="an argument of another class"
        ),
        pytest.param(
            "NPURunConfig(dump_config={'enable_dump': True})",
            "make an object for dump_config",
            id="a table for an object",
        ),
        pytest.param(
            "DynamicInputConfig()",
            (
                "give input_shape and dynamic_dims and "
                "dynamic_node_type and compile_hybrid_mode as well"
            ),
            id="no arguments",
        ),
    ],
)
def test_a_call_that_its_class_refuses_is_mended_by_the_hint(call: str, hint: str) -> None:
    (error,) = list_errors(f"from npu_bridge.npu_init import *\nmade = {call}\n", cann=RELEASE)
    assert error.line == 2
    assert error.hint == hint


_, _, ENTRY = HEAD.partition("config = tf.ConfigProto()\n")
SECOND = re.sub(r"custom_op\b", "other", ENTRY)


@pytest.mark.parametrize(
    ("lines", "doubled"),
    [
        pytest.param(
            "config.graph_options.rewrite_options.custom_optimizers.add().name = 'NpuOptimizer'\n",
            [1],
            id="by name",
        ),
        pytest.param(
            "config.graph_options.rewrite_options.custom_optimizers.add(name='NpuOptimizer')\n",
            [],
            id="by a keyword",
        ),
        pytest.param(
            (
                "op = "
                "config.graph_options.rewrite_options.custom_optimizers.add(name='NpuOptimizer')\n"
            ),
            [1],
            id="by a keyword and a variable",
        ),
        pytest.param(
            f"if FLAGS.x:\n    {SECOND.replace(chr(10), chr(10) + '    ')}pass\n",
            [2],
            id="in a branch",
        ),
        pytest.param(f"config = tf.ConfigProto()\n{SECOND}", [], id="in another configuration"),
        pytest.param(
            f"del config.graph_options.rewrite_options.custom_optimizers[:]\n{SECOND}",
            [],
            id="after the first is deleted",
        ),
        pytest.param(
            f"def again(config):\n    {SECOND.replace(chr(10), chr(10) + '    ')}pass\n",
            [],
            id="in a function",
        ),
    ],
)
def test_a_second_entry_of_one_configuration_is_named(lines: str, doubled: list[int]) -> None:
    assert [line for code, line in locate_findings(lines) if code == "NP820"] == doubled


@pytest.mark.parametrize(
    ("lines", "nameless"),
    [
        pytest.param("", True, id="no name"),
        pytest.param("op.name = 'NpuOptimizer'\n", False, id="a name"),
        pytest.param("op.MergeFrom(other)\n", False, id="a merge"),
        pytest.param("setattr(op, 'name', FLAGS.name)\n", False, id="setattr"),
    ],
)
def test_an_entry_with_options_and_without_a_name_is_an_error(lines: str, nameless: bool) -> None:
    made = (
        "import tensorflow as tf\nconfig = tf.ConfigProto()\n"
        "op = config.graph_options.rewrite_options.custom_optimizers.add()\n"
    )
    found = findings(f'{made}{lines}op.parameter_map["use_off_line"].b = True\n')
    lines_without_name = [finding.line for finding in select_code(found, "NP808")]
    assert lines_without_name == ([3] if nameless else [])


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('["use_off_line"].b = "True"', "write True"),
        ('["hccl_timeout"].i = "600"', "write 600"),
        ('["precision_mode"].s = "force_fp32"', 'write tf.compat.as_bytes("force_fp32")'),
    ],
)
def test_a_value_of_another_type_is_told_as_its_field_takes_it(line: str, hint: str) -> None:
    (finding,) = select_code(findings(f"{HEAD}{P}{line}\n{TAIL}"), "NP803")
    assert finding.hint == hint


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("export SLOG_PRINT_TO_STDOUT=1", ["NP502"]),
        ("export GE_USE_STATIC_MEMORY=1", []),
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
    faults = list_faults(f"#!/bin/bash\n{line}\n", "x.sh")
    assert [finding.code for finding in faults] == codes


@pytest.mark.parametrize(("requested", "severity"), [({}, "info"), ({"cann": RELEASE}, "warning")])
def test_a_deprecated_variable_is_a_warning_where_a_release_is_named(
    requested: dict[str, str], severity: str
) -> None:
    (finding,) = findings("#!/bin/bash\nexport GE_USE_STATIC_MEMORY=1\n", "x.sh", **requested)
    assert finding.code == "NP501"
    assert finding.severity == severity


ATC = "atc --framework=5 --model=a.onnx --output=o --soc_version=Ascend310P3 "
MODELS, TORCH = (
    "Ascend/ModelZoo-TensorFlow TensorFlow/built-in/",
    "Ascend/ModelZoo-PyTorch PyTorch/",
)
COMMAND_LINE = "hicann/ge api/atc/cmd_flag_info.cc"


@pytest.mark.parametrize(
    ("line", "codes", "source"),
    [
        pytest.param(
            "export RANK_ID=npu1p",
            ["NP202"],
            f"{MODELS}cv/image_classification/AlexNet_ID0072_for_TensorFlow/scripts/run_npu_1p.sh:8",
            id="RANK_ID=npu1p",
        ),
        pytest.param(
            "export RANK_ID={RANK_ID}",
            [],
            f"{TORCH}dev/cv/image_classification/InceptionV1_ID1568_for_PyTorch/test/env.sh:40",
            id="RANK_ID in braces",
        ),
        pytest.param(
            "export HCCL_IF_IP=x.x.x.x",
            [],
            f"{TORCH}built-in/cv/classification/SimMIM_for_PyTorch/test/run32p_finetune.sh:9",
            id="HCCL_IF_IP=x.x.x.x",
        ),
        pytest.param(
            "export ASCEND_DEVICE_ID=0,1,2,3,4,5,6,7",
            ["NP202"],
            f"{TORCH}contrib/cv/others/GAN_Pytorch/test/train_eval_8p.sh:44",
            id="a list of devices",
        ),
        pytest.param(
            "export RANK_SIZE=0",
            [],
            f"{MODELS}cv/detection/NIMA_ID0158_for_TensorFlow/run_npu_1p.sh:35",
            id="RANK_SIZE=0",
        ),
        pytest.param(
            "export DUMP_GE_GRAPH=0 DUMP_GRAPH_LEVEL=0",
            ["NP203"],
            f"{TORCH}contrib/others/RotatE/test/env_npu.sh:29",
            id="DUMP_GRAPH_LEVEL=0",
        ),
        pytest.param(
            "export PROFILING_MODE=FALSE",
            [],
            f"{MODELS}cv/image_classification/ResNext101_ID1577_for_TensorFlow/bin/npu_set_env.sh:17",
            id="PROFILING_MODE=FALSE",
        ),
        pytest.param(
            "export PROFILING_MODE=false PROFILING_OPTIONS=training_trace:task_trace",
            [],
            f"{MODELS}nlp/GPT-3_for_TensorFlow/scripts/run_npu_8p.sh:23",
            id="options of profiling that is off",
        ),
        pytest.param(
            "export ASCEND_SLOG_PRINT_TO_STDOUT=3",
            ["NP203"],
            f"{TORCH}dev/cv/detection/3D_attentionnet_ID0478_for_PyTorch/test/train_full_1p.sh:17",
            id="ASCEND_SLOG_PRINT_TO_STDOUT=3",
        ),
        pytest.param(
            "export TE_PARALLEL_COMPILER=0",
            ["NP203"],
            f"{MODELS}cv/image_classification/ResnetVariant_ID0033_for_TensorFlow/test/train_full_8p.sh:103",
            id="TE_PARALLEL_COMPILER=0",
        ),
        pytest.param(
            "export CM_CHIEF_IP=10.0.0.1 RANK_ID=0",
            [],
            f"{MODELS}cv/image_classification/EfficientNet_B0_ID0009_for_TensorFlow/test/train_performance_32p.sh:107",
            id="CM_CHIEF_IP without the others",
        ),
        pytest.param(
            "export ASCEND_DEVICE_ID=$RANK_ID\nexport DEVICE_ID=$ASCEND_DEVICE_ID",
            [],
            f"{MODELS}audio/WaveGlow_ID0024_for_TensorFlow/test/train_full_8p.sh:143",
            id="variables that name each other",
        ),
        pytest.param(
            f"{ATC} --out-nodes='a:0'",
            [],
            "Ascend/ModelZoo-PyTorch ACL_PyTorch/contrib/cv/face/Retinaface/test/pth2om.sh:12",
            id="a flag with a hyphen",
        ),
        pytest.param(
            f"{ATC} -log=error",
            [],
            f"{COMMAND_LINE} ReplaceFlagPrefixSingleMinus",
            id="a flag with one dash",
        ),
        pytest.param(
            f"{ATC} --input_form=ND",
            ["NP209"],
            f"{COMMAND_LINE} ParseCommandLine: getopt_long takes a beginning",
            id="the beginning of a flag",
        ),
        pytest.param(
            f"{ATC} --input_shape='-1,1~2,3;2,-1'",
            [],
            "hicann/ge compiler/api/aclgrph/option_utils.cc ParserShapeRangeByIndex",
            id="shapes by index",
        ),
    ],
)
def test_a_line_that_works_for_its_reader_is_no_error(
    line: str, codes: list[str], source: str
) -> None:
    faults = list_faults(f"#!/bin/bash\n{line}\n", "x.sh")
    assert [finding.code for finding in faults] == codes, source
    assert {finding.severity for finding in faults} <= {"warning"}


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
    (fault,) = list_faults(f"#!/bin/bash\n{line}\n", "x.sh", cann=RELEASE)
    assert fault.code == code
    assert fault.severity == "error"


def test_blanks_between_the_types_of_operators_are_no_error() -> None:
    """hicann/ge OpImplModeConfigParser::InitOpPrecisionModeByImplMode trims each name.

    Ascend/ModelZoo-TensorFlow
    TensorFlow/built-in/recommendation/WideDeep_ID2712_for_TensorFlow/train.py:348 has them.
    """
    lines = (
        f'{P}["op_select_implmode"].s = b"high_precision"\n'
        f'{P}["optypelist_for_implmode"].s = b"Pooling, SoftmaxV2"\n'
    )
    assert {code for code, _ in locate_findings(lines, cann=RELEASE)} == {"NP501"}


def test_the_name_of_a_file_says_nothing_of_its_content() -> None:
    """``fusion_config.txt`` of DIEN_ID3065_for_TensorFlow is a mixlist.

    In TensorFlow/built-in/recommendation of Ascend/ModelZoo-TensorFlow.
    """
    lines = (
        f'{P}["precision_mode"].s = b"allow_mix_precision"\n'
        f'{P}["modify_mixlist"].s = b"fusion_config.txt"\n'
    )
    assert locate_findings(lines) == []


def test_a_variable_that_nothing_reads_any_more_is_a_warning() -> None:
    """Ascend/ModelZoo-PyTorch .../GLM-10B/tests/env_npu.sh:39."""
    (finding,) = findings("export PTCOPY_ENABLE=1\n", "env_npu.sh")
    assert finding.code == "NP502"
    assert finding.severity == "warning"
    assert finding.line == 1


def test_an_attribute_that_is_gone_names_the_release_that_took_it_away() -> None:
    """Ascend/ModelZoo-TensorFlow .../CircleLossMNIST_ID3551_for_TensorFlow2.X/test_class.py:149.

    NpuConfig of that time has it.
    """
    text = "import npu_device as npu\nnpu.global_options().auto_tune_mode = 'RL,GA'\n"
    (finding,) = findings(text)
    assert finding.code == "NP812"
    assert finding.hint == (
        "remove the line: CANN 6.0.1 took it away; scan --cann judges by an older release"
    )


def list_scanned_paths(run: Run, path: Path) -> set[str]:
    """Return the files with findings."""
    answer = json.loads(run("scan", path, "--format", "json").out)
    return {finding["path"] for finding in answer["findings"]}


def test_ignored_files_are_left_out(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
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
    tracked = {str(tmp_path / "a.py"), str(tmp_path / "sub/new.py")}
    assert list_scanned_paths(run, tmp_path) == tracked
    ignored = tmp_path / "build/b.py"
    assert list_scanned_paths(run, ignored) == {str(ignored)}


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    witness = tmp_path / "owned"
    call = f'str(open({str(witness)!r}, "w").write("x"))'
    line = f'{P}["dump_path"].s = tf.compat.as_bytes({call})\n'
    found = findings(f'{HEAD}import os\nos.system("touch {witness}")\n{line}')
    assert not select_code(found, "NP203")
    assert not witness.exists()


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


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are text here")
@pytest.mark.parametrize(
    ("command", "code", "name"),
    [
        ("scan . --cann 9.0.0", 1, "udcff.py"),
        ("scan . --cann 9.0.0 --format sarif", 1, "%FF.py"),
        ("import .", 0, "udcff.py"),
    ],
)
def test_a_file_name_that_is_no_text_stops_nothing(
    command: str, code: int, name: str, tmp_path: Path, run: Run
) -> None:
    (tmp_path / os.fsdecode(b"\xff.py")).write_text(
        f'{HEAD}{P}["precison_mode"].s = b"x"\n{P}["hcom_parallel"].b = True\n{TAIL}'
    )
    done = run(*command.split())
    assert done.code == code, done
    assert name in done.out
    assert run("import", ".", "-o", "out").code == 0
    (made,) = tmp_path.glob("out/**/*.toml")
    assert 'description = "imported from \\\\udcff.py"' in made.read_text()
    assert run("check", made).code == 0


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            "from npu_device import global_options as go\ngo().{}", id="an imported function"
        ),
        pytest.param(
            "from npu_device import global_options as go\no = go()\no.{}",
            id="a variable of an imported function",
        ),
        pytest.param("o: object = npu.global_options()\no.{}", id="an annotated variable"),
        pytest.param("(o := npu.global_options())\no.{}", id="a named expression before"),
        pytest.param("(o := npu.global_options()).{}", id="a named expression"),
        pytest.param(
            "if (o := npu.global_options()):\n    o.{}", id="a named expression in a test"
        ),
        pytest.param("o, n = npu.global_options(), 3\no.{}", id="an unpacked tuple"),
        pytest.param(
            "o: object = npu.global_options().dump_config\no.{}", id="a variable of a group"
        ),
    ],
)
def test_the_options_of_tf_2_are_known_by_every_name(lines: str) -> None:
    text = f"import npu_device as npu\n{lines.format('enabel_dump = True')}\n"
    (error,) = list_errors(text, cann=RELEASE)
    assert error.code == "NP812"
    assert error.line == text.count("\n")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        pytest.param(
            (
                "from npu_bridge.npu_init import (NPURunConfig as R,\n    DumpConfig as D)\n"
                "R(dump_config=D(enable_dump=True))"
            ),
            "NP346",
            id="imported under other names",
        ),
        pytest.param(
            (
                "from npu_bridge.npu_init import NPURunConfig as R\n"
                "def R(**named):\n    pass\nR(precison_mode='x')"
            ),
            "",
            id="a function of that name",
        ),
        pytest.param(
            "from npu_bridge.npu_init import *\nR = NPURunConfig\nR(precison_mode='x')",
            "NP812",
            id="a variable",
        ),
        pytest.param(
            "import npu_bridge.npu_init as npu\nR = npu.NPURunConfig\nR(precison_mode='x')",
            "NP812",
            id="a variable of a module attribute",
        ),
        pytest.param(
            "from npu_bridge.npu_init import *\nR = NPURunConfig\nR = print\nR(precison_mode='x')",
            "",
            id="a variable that is bound again",
        ),
    ],
)
def test_the_classes_are_known_by_every_name(lines: str, code: str) -> None:
    text = f"{lines}\n"
    errors = list_errors(text, cann=RELEASE)
    assert [error.code for error in errors] == ([code] if code else [])
    assert {error.line for error in errors} <= {text.count("\n")}


def test_what_is_longer_than_is_followed_is_told(tmp_path: Path, run: Run) -> None:
    calls = "".join(f"f('k{i}')\n" for i in range(202))
    (tmp_path / "a.py").write_text(f"def f(k):\n    op.parameter_map[k].s = 'x'\n{calls}")
    done = run("scan", "a.py")
    assert done.code == 2, done.out
    assert "warning NP801: f() is not looked into" in done.out
    assert "f() is not looked into" in run("import", "a.py", "--format", "json").out


SET = 'custom_op.parameter_map["hccl_timeout"].i = 1800\n'
LATE = f"{HEAD}{TAIL}{SET}"
NPU_DEVICE = "import npu_device as npu\n"
OPTION = 'npu.global_options().precision_mode = "allow_mix_precision"\n'


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        pytest.param(
            LATE, ["hccl_timeout comes after the session was made (line 8)"], id="after the session"
        ),
        pytest.param(
            f"{NPU_DEVICE}npu.open().as_default()\n{OPTION}",
            ["precision_mode comes after npu.open() (line 2)"],
            id="after npu.open()",
        ),
        pytest.param(f"{NPU_DEVICE}{OPTION}npu.open().as_default()\n", [], id="before npu.open()"),
        pytest.param(
            f"{HEAD}{TAIL.replace('sess =', 'if FLAGS.first: sess =')}{SET}",
            [],
            id="after a conditional session",
        ),
        pytest.param(
            f"{HEAD}{TAIL}if FLAGS.other:\n    config = make()\n    {SET}",
            [],
            id="after another configuration in a branch",
        ),
        pytest.param(
            f"{HEAD}build(config)\n{SET}", [], id="after an unknown use"
        ),  # who knows when it is looked at
        pytest.param(
            f"{HEAD}def main():\n    {TAIL.strip().splitlines()[-1]}\n{SET}main()\n",
            [],
            id="before a function runs",
        ),
        pytest.param(
            f"{HEAD}for step in range(3):\n    sess = tf.Session(config=config)\n    {SET}",
            [],
            id="in a loop",
        ),
    ],
)
def test_a_setting_after_the_last_use_of_its_object_is_told(text: str, messages: list[str]) -> None:
    assert [finding.message for finding in select_code(findings(text), "NP822")] == messages


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
    ("lines", "message"),
    [
        pytest.param(
            f'{P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n',
            'precision_mode = "allow_mixed_precision" is none of',
            id="a wrong text",
        ),
        pytest.param(
            f'{P}["iterations_per_loop"].i = FLAGS.loops\n',
            "iterations_per_loop = 0 is out of range",
            id="a number out of range",
        ),
        pytest.param(
            "NPURunConfig(precision_mode=FLAGS.mode)\n",
            'precision_mode = "allow_mixed_precision" is none of',
            id="an argument of NPURunConfig",
        ),
        pytest.param(
            f'{P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.right)\n', "", id="a right text"
        ),
        pytest.param(
            f'{P}["dump_mode"].s = tf.compat.as_bytes(FLAGS.empty)\n', "", id="an empty text"
        ),
        pytest.param(
            (
                'if FLAGS.mode != "allow_mixed_precision":\n'
                f'    {P}["precision_mode"].s = tf.compat.as_bytes(FLAGS.mode)\n'
            ),
            "",
            id="a value that a test excludes",
        ),
        pytest.param(f'{P}["hccl_timeout"].i = int(FLAGS.timeout)\n', "", id="a text as number"),
        pytest.param(
            f'def f(mode="mixed"):\n    {P}["precision_mode"].s = tf.compat.as_bytes(mode)\n',
            "",
            id="a parameter",
        ),  # every caller may give another
    ],
)
def test_a_default_of_the_command_line_is_judged(lines: str, message: str) -> None:
    found = select_code(findings(f"{DEFINED}{HEAD}{lines}{TAIL}"), "NP203")
    if not message:
        assert not found
        return
    (finding,) = found
    assert finding.severity == "warning"
    assert finding.message.startswith(message)
    assert finding.message.endswith("; it is the default of the script")


@pytest.mark.parametrize(
    "text",
    [
        "141.xx.xx.1",
        "192.168.x.x",
        "10.*.*.1",
        "Your SOCKET IFNAME",
        "SOCKET IFNAME FOR CURRENT NODE",
        "your_ip_here",
        "YOUR_IP",
        "/path/to/file",
        "path_to_log",
        "/home/xxx/log",
        "<master ip>",
        "{master_ip}",
        "TODO",
        "***",
        "...",
        "[卡号]",
        "本机网卡名称",
    ],
)
def test_a_placeholder_is_a_note_and_no_wrong_value(text: str) -> None:
    for name, line in (
        ("x.sh", 'export HCCL_IF_IP="{}"\n'),
        ("x.py", 'import os\nos.environ["HCCL_IF_IP"] = "{}"\n'),
        ("x.env", "HCCL_IF_IP='{}'\n"),
        ("Dockerfile", 'FROM a\nENV HCCL_IF_IP="{}"\n'),
        ("x.yaml", "services:\n  a:\n    image: b\n    environment:\n      HCCL_IF_IP: '{}'\n"),
        ("run.sh", 'atc --model=a.onnx --framework=5 --output="{}" --soc_version="{0}"\n'),
    ):
        found = findings(line.replace("{}", text).replace("{0}", text), name)
        noted = [f for f in found if "is a placeholder" in f.message]
        assert noted, name
        assert {f.severity for f in found} == {"info"}, name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("HCCL_IF_IP", "eth0"),
        ("HCCL_IF_IP", "LOCAL_IP"),
        ("ASCEND_RT_VISIBLE_DEVICES", "0-3"),
        ("HCCL_CONNECT_TIMEOUT", "1800s"),
    ],
)
def test_a_value_of_a_wrong_form_is_no_placeholder(name: str, text: str) -> None:
    assert [f.severity for f in findings(f"export {name}={text}\n", "x.sh")] == ["error"]


def test_a_placeholder_is_not_carried_over() -> None:
    (setting,) = imported("export ASCEND_PROCESS_LOG_PATH=/path/to/log\n", "x.sh").settings
    assert setting.reason == "a placeholder"
    assert setting.value is None
