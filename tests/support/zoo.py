"""A model zoo made up by the figures of a real one: how many settings a script has, which, and how many scripts share a configuration."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

#: Options that scripts set together, how often of a hundred, and the values that they give them.
BLOCKS: tuple[tuple[int, dict[str, tuple[Any, ...]]], ...] = (
    (75, {"use_off_line": (True,)}),
    (68, {"precision_mode": ("allow_mix_precision",) * 14 + ("force_fp16",) * 3 + ("allow_fp32_to_fp16", "force_fp32")}),
    (14, {"dynamic_input": (True,), "dynamic_graph_execute_mode": ("lazy_recompile", "lazy_recompile", "dynamic_execute")}),
    (12, {"mix_compile_mode": (True, False)}),
    (12, {"enable_data_pre_proc": (True,)}),
    (9, {"enable_dump_debug": (True,), "dump_path": ("/var/log/npu/dump", "./overflow"), "dump_debug_mode": ("all",)}),
    (8, {"profiling_mode": (True,), "profiling_options": ('{"output":"/var/log/npu/profiling","training_trace":"on"}', "training_trace")}),
    (7, {"enable_dump": (True,), "dump_path": ("/var/log/npu/dump", "./dump"), "dump_step": ("0", "0|5"), "dump_mode": ("all", "output")}),
    (9, {"graph_run_mode": (1, 1, 0)}),
    (7, {"hcom_parallel": (True,)}),
    (6, {"auto_tune_mode": ("RL,GA",)}),
    (5, {"fusion_switch_file": ("./fusion_switch.cfg",)}),
    (4, {"modify_mixlist": ("./ops_info.json",)}),
    (4, {"graph_memory_max_size": (str(26 << 30), str(28 << 30)), "variable_memory_max_size": (str(4 << 30), str(2 << 30))}),
    (4, {"iterations_per_loop": (10, 100, 1000)}),
    (3, {"op_debug_level": (1, 2, 3)}),
    (3, {"hccl_timeout": (600, 1800, 3600)}),
    (2, {"jit_compile": ("false", "auto")}),
    (2, {"deterministic": (1,)}),
)
EXPORTS: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (60, "ASCEND_GLOBAL_LOG_LEVEL", ("3", "3", "1")),
    (25, "HCCL_CONNECT_TIMEOUT", ("600", "600", "1200")),
    (20, "ASCEND_SLOG_PRINT_TO_STDOUT", ("0", "1")),
    (15, "GE_USE_STATIC_MEMORY", ("1",)),
    (15, "TF_CPP_MIN_LOG_LEVEL", ("3",)),
    (10, "NPU_LOOP_SIZE", ("10", "100", "1000")),
    (8, "TE_PARALLEL_COMPILER", ("32",)),
    (6, "DUMP_GE_GRAPH", ("2",)),
)
MODELS = (
    "ResNet50", "VGG16", "BERT", "MobileNetV2", "DeepLabV3", "YOLOv3", "SSD", "UNet", "DenseNet121", "InceptionV4", "GPT2",
    "Transformer", "WideDeep", "DeepFM", "NCF", "DCGAN", "CycleGAN", "ESRGAN", "FaceNet", "CRNN", "CTPN", "Albert", "Electra",
    "TextCNN", "LSTM", "PointNet", "PSPNet", "RefineDet", "FCOS", "SqueezeNet", "ShuffleNet", "EfficientNet", "SENet", "DIEN",
)  # fmt: skip
FILES = ("train",) * 6 + ("main",) * 3 + ("run", "demo", "test", "eval", "run_pretraining", "trainer", "model", "session_helper")


def write_zoo(folder: Path, scripts: int, distinct: int, seed: int = 7) -> int:
    """Write so many scripts with so many configurations; return how many different ones there are in fact."""
    rng = random.Random(seed)
    made: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {}
    while len(made) < distinct:
        kind = rng.choices(("session", "estimator", "options", "shell"), (62, 12, 8, 18))[0]
        found = _pick_exports(rng) if kind == "shell" else _pick_options(rng, len(made))
        if kind == "estimator":
            found.pop("use_off_line", None)  # no argument of NPURunConfig
        if found:
            made.setdefault((kind == "shell", *sorted(found.items(), key=str)), (kind, found))
    pool = list(made.values())
    pool.sort(key=lambda one: len(one[1]))
    used = pool + rng.choices(pool, [1 / (2 + at) for at in range(len(pool))], k=scripts - len(pool))
    for number, (kind, found) in enumerate(used):
        model = f"{MODELS[number % len(MODELS)]}_ID{number // len(MODELS):04d}_for_TensorFlow"
        name = "train_full_1p.sh" if kind == "shell" else f"{rng.choice(FILES)}.py"
        path = (
            folder
            / rng.choice(("cv", "nlp", "recommendation"))
            / model
            / rng.choice(("", "src", "scripts", model.partition("_")[0]))
            / name
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WRITERS[kind](found, rng))
    return len({(kind == "shell", *sorted(found.items(), key=str)) for kind, found in used})


def _pick_options(rng: random.Random, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for share, block in BLOCKS:
        if rng.random() * 100 < share:
            found |= {name: rng.choice(values) for name, values in block.items()}
    if rng.random() < 0.1:  # what only one of them has
        found["dump_path"] = f"/home/user{number}/dump"
    return found


def _pick_exports(rng: random.Random) -> dict[str, Any]:
    return {name: rng.choice(values) for share, name, values in EXPORTS if rng.random() * 100 < share}


def _write_session(found: dict[str, Any], rng: random.Random) -> str:
    lines = ["config = tf.ConfigProto(allow_soft_placement=True)", "op = config.graph_options.rewrite_options.custom_optimizers.add()"]
    lines += ['op.name = "NpuOptimizer"']
    for name, value in found.items():
        if isinstance(value, bool):
            lines.append(f'op.parameter_map["{name}"].b = {value}')
        elif isinstance(value, int):
            lines.append(f'op.parameter_map["{name}"].i = {value}')
        else:
            lines.append(f"op.parameter_map['{name}'].s = tf.compat.as_bytes({value!r})")
    if rng.random() < 0.2:
        lines += ["if FLAGS.profiling:", '    op.parameter_map["profiling_mode"].b = True']
    if rng.random() < 0.2:
        lines.append('op.parameter_map["iterations_per_loop"].i = FLAGS.iterations_per_loop')
    lines += ["config.graph_options.rewrite_options.remapping = RewriterConfig.OFF", "sess = tf.Session(config=config)"]
    body = "\n    ".join(lines)
    return f"import tensorflow as tf\nfrom npu_bridge.npu_init import *\n\n\ndef {rng.choice(('main', 'train'))}():\n    {body}\n"


_DUMP = ("enable_dump", "enable_dump_debug", "dump_path", "dump_step", "dump_mode", "dump_debug_mode")


def _write_estimator(found: dict[str, Any], _: random.Random) -> str:
    dump = {name: value for name, value in found.items() if name in _DUMP}
    given = [f"{name}={value!r}" for name, value in found.items() if name not in (*_DUMP, "profiling_mode", "profiling_options")]
    if dump:
        given.append(f"dump_config=DumpConfig({', '.join(f'{name}={value!r}' for name, value in dump.items())})")
    if "profiling_mode" in found:
        given.append(f"profiling_config=ProfilingConfig(enable_profiling=True, profiling_options={found['profiling_options']!r})")
    return f"from npu_bridge.npu_init import *\n\n\ndef main(_):\n    config = NPURunConfig({', '.join(given)})\n"


def _write_options(found: dict[str, Any], _: random.Random) -> str:
    lines = []
    for name, value in found.items():
        group = "dump_config." if name in _DUMP else "profiling_config." if name.startswith("profiling") else ""
        spelt = {"profiling_mode": "enable_profiling"}.get(name, name)
        lines.append(f"npu.global_options().{group}{spelt} = {value!r}")
    return "import npu_device as npu\n\n" + "\n".join(lines) + "\nnpu.open().as_default()\n"


def _write_shell(found: dict[str, Any], _: random.Random) -> str:
    lines = [f"export {name}={value}" for name, value in found.items()]
    return "\n".join(["#!/bin/bash", "export JOB_ID=10087", "export RANK_SIZE=1", *lines, "nohup python3 train.py &", ""])


WRITERS = {"session": _write_session, "estimator": _write_estimator, "options": _write_options, "shell": _write_shell}
