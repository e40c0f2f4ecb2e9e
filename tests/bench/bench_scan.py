"""Times of ``scan`` relative to CPython's own parser on the same files.

Run ``python tests/bench/bench_scan.py [--keep]``.

Two collections of 2,000 scripts each: one where a third sets NPU options, as in a model collection,
and one where all of them do, so that no quick test spares the parsing. Printed are ratios, by
folder and with each file named, which has to tell of every file whether it can be read, and the
peak of memory.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measured import Row, keep_figures

NUMBER = 2_000
_NPUPROF = [sys.executable, "-m", "npuprof"]

_NPU = """\
def make_config(args):
    config = tf.ConfigProto(allow_soft_placement=True)
    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
    custom_op.name = "NpuOptimizer"
    custom_op.parameter_map["use_off_line"].b = True
    custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
    if args.profiling:
        custom_op.parameter_map["profiling_mode"].b = True
        options = '{{"output":"/tmp/p{0}"}}'
        custom_op.parameter_map["profiling_options"].s = tf.compat.as_bytes(options)
    custom_op.parameter_map["hccl_timeout"].i = {0} + 600
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    return config
"""
_LAYER = """\
def layer_{0}(inputs, filters={0}, training=True, name=None):
    with tf.variable_scope(name or "layer_{0}"):
        x = tf.layers.conv2d(inputs, filters, (3, 3), padding="same", use_bias=False)
        x = tf.layers.batch_normalization(x, momentum=0.9, epsilon=1e-5, training=training)
        if filters % 2 == 0 and training:
            x = tf.nn.dropout(x, keep_prob=0.5 + 0.01 * {0})
        outputs = [tf.nn.relu(x) for _ in range({0} % 4 + 1)]
        return {{"output": outputs[0], "size": (x.shape[1], x.shape[2]), "scale": x * 2 + 1}}


"""


def script(number: int, npu: bool) -> str:
    layers = "".join(_LAYER.format(number * 7 + layer) for layer in range(8 + number % 17))
    head = (
        "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n\n\n"
        if npu
        else "import tensorflow as tf\n\n\n"
    )
    return head + layers + (_NPU.format(number) if npu else "")


def best(command: list[str], rounds: int = 3) -> tuple[float, int]:
    """Return the least processor time of a command in seconds, and its peak of memory in KiB."""
    times = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


_AST = """
import ast, pathlib, sys, warnings
warnings.simplefilter("ignore")
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        pass
"""


def measure_tree(folder: str, npuprof: str) -> list[Row]:
    """Return the rows of a folder of real files.

    They compare ``scan`` of an installed npuprof with ``ast.parse`` of the Python files.
    """
    count = len(list(Path(folder).rglob("*.py")))
    what = f"scan of a tree with {count:,} Python files / ast.parse of them"
    scan, parse = [npuprof, "scan", folder], [sys.executable, "-c", _AST, folder]
    by_clock = _time_best(scan) / _time_best(parse)
    cores = os.sched_getaffinity(0)
    # Busy cores slow each other down: one core is used, and the commands take turns on it.
    os.sched_setaffinity(0, {max(cores)})
    turns = [(best(scan, 1), best(parse, 1)) for _ in range(4)]
    os.sched_setaffinity(0, cores)
    by_processor = min(seconds for (seconds, _), _ in turns) / min(
        seconds for _, (seconds, _) in turns
    )
    return [
        Row(f"{what}, by the clock", by_clock, 1.3),
        Row(f"{what}, by processor time", by_processor, 1.3),
    ]


def _time_best(command: list[str]) -> float:
    """Return the least time of three runs in seconds."""
    return min(_time_command(command) for _ in range(3))


def _time_command(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    kept: list[Row] = []
    for title, share in (("a third of them set options", 3), ("all of them set options", 1)):
        with tempfile.TemporaryDirectory() as folder:
            for number in range(NUMBER):
                path = Path(folder, f"m{number // 50}", f"s{number}.py")
                path.parent.mkdir(exist_ok=True)
                path.write_text(script(number, number % share == 0))
            files = [str(path) for path in sorted(Path(folder).rglob("*.py"))]
            scan, peak = best([*_NPUPROF, "scan", folder])
            named, _ = best([*_NPUPROF, "scan", *files])
            parsed, _ = best([sys.executable, "-c", _AST, folder])
        lines = (0.6, 1.0) if share > 1 else (None, None)
        kept.append(
            Row(
                f"scan of {NUMBER:,} scripts in a folder, {title} / ast.parse of them",
                scan / parsed,
                lines[0],
            )
        )
        kept.append(
            Row(
                f"scan of {NUMBER:,} scripts, each named, {title} / ast.parse of them",
                named / parsed,
                lines[1],
            )
        )
        ratio = (
            f"{scan / parsed:.2f} times ast.parse ({scan:.2f} s, {parsed:.2f} s), each file named "
            f"{named / parsed:.2f} times"
        )
        print(f"scan of {NUMBER} scripts, {title}: {ratio}, peak {peak / 1024:.0f} MiB")
    keep_figures("scan", kept)


if __name__ == "__main__":
    main()
