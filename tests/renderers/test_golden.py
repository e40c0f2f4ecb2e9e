"""Every target of a few presets as golden files: ``--update-golden`` rewrites them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import npuprof
from npuprof.model import NpuprofError
from npuprof.renderers.environment import collect_env_variables
from npuprof.renderers.environment_files import FORMATS
from npuprof.renderers.shell import SHELLS, format_export_lines
from support.building import config, render_unchecked

PRESETS = {
    "training": """\
[profile]
description = "One of many things for a training"
scenario = "training"
[options]
precision_mode_v2 = "mixed_float16"
graph_run_mode = 1
iterations_per_loop = 100
enable_data_pre_proc = true
hccl_timeout = 1800
enable_dump = true
dump_path = "/data/dump"
dump_step = [0, "3-5", 10]
profiling_mode = true
profiling_options = { output = "/tmp/profiling", training_trace = "on", \
fp_point = "a", bp_point = "b" }
modify_mixlist = { black-list = { to-add = ["MatMul", "Cast"] } }
experimental_accelerate_train_mode = ["fast", "step", 0.9]
graph_slice = "auto"
[env]
HCCL_EXEC_TIMEOUT = 1800
RANK_ID = { launcher = "rank" }
[estimator]
save_checkpoints_steps = 1000
model_dir = "./model"
""",
    "tf2": """\
[options]
precision_mode_v2 = "mixed_bfloat16"
enable_small_channel = 0
optimization_switch = { PassA = "on", PassB = "off" }
customize_dtypes = { "OpType::Add" = { InputDtype = ["float16", "float16"] } }
dump_path = "/a/path/that/is/so/long/that/the/line/in/the/rendered/code/has/to/be/broken/dump"
""",
    "offline": """\
[profile]
scenario = "offline-inference"
[options]
precision_mode_v2 = "fp16"
input_shape = { data = [1, 224, 224, 3], size = [0] }
external_weight = true
jit_compile = "auto"
op_precision_mode = { ByOpType = { Conv2D = "high_performance" } }
[atc]
model = "./frozen model.pb"
framework = 3
output = "./om/model"
soc_version = "Ascend910B2"
""",
    "awkward": """\
[options]
debug_dir = 'it''s "quoted" \\ $(id) `id` !x %PATH% {} # é 日本 😀'
dump_layer = "tab\\there"
op_debug_config = "line\\nend"
precision_mode = ""
""".replace("''", "\u2019"),
}


def neutral(text: str) -> str:
    """Return a text without npuprof's own version."""
    return text.replace(f"npuprof {npuprof.__version__}:", "npuprof VERSION:")


#: What is accepted: of targets that write each preset alike, that of one.
RENDERED = [
    (name, target)
    for name in PRESETS
    for target in npuprof.TARGETS
    if target not in ("json", "env-loader") or name == "training"
]


@pytest.mark.parametrize(("name", "target"), RENDERED)
def test_a_rendering_is_as_it_was_accepted(
    name: str, target: str, golden: Callable[[str, str], None]
) -> None:
    preset = config(PRESETS[name])
    try:
        texts = {"": neutral(render_unchecked(preset, target))}
        if name in ("training", "awkward") and target not in ("json", "env-loader"):
            texts["-inline"] = neutral(render_unchecked(preset, target, inline=True))
    except NpuprofError as error:  # what a target cannot carry of a preset, it says
        texts = {"": "".join(f"{finding}\n" for finding in error.findings)}
    for form, text in texts.items():
        golden(f"{name}/{target}{form}.txt", text)


@pytest.mark.parametrize("name", ["training", "awkward"])
def test_an_environment_is_as_it_was_accepted(
    name: str, golden: Callable[[str, str], None]
) -> None:
    preset = config(PRESETS[name])
    found, _ = collect_env_variables(preset, {"rank": "3"}.get, "/cache", trusting=True)
    for shell, row in SHELLS.items():
        taken = {key: text for key, text in found.items() if not row.refuses(text)}
        golden(f"{name}/env-{shell}.txt", format_export_lines(row, taken))
    for form, kind in FORMATS.items():
        taken = {key: text for key, text in found.items() if not kind.refuses(key, text)}
        golden(f"{name}/env-{form}.txt", kind.write(preset, taken, {}))
