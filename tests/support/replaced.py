"""Scripts whose settings are replaced by blocks."""

from __future__ import annotations

HEAD = """\
import tensorflow as tf
from npu_bridge.npu_init import *
"""
ENTRY = """\
config = tf.ConfigProto(allow_soft_placement=True)
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
"""
MIXED = 'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")\n'
ON = 'custom_op.parameter_map["use_off_line"].b = True\n'
OFF = "config.graph_options.rewrite_options.remapping = RewriterConfig.OFF\n"
RUN = "with tf.Session(config=config) as sess:\n    sess.run(None)\n"


def indent(text: str, by: str = "    ") -> str:
    return "".join(
        f"{by}{line}" if line.strip() else line for line in text.splitlines(keepends=True)
    )


#: Scripts whose lines a block can stand for, with what must stay of them.
REPLACED: dict[str, tuple[str, str]] = {
    "lines in a row": (f"{HEAD}{ENTRY}{MIXED}{OFF}{RUN}", OFF),
    "in a function": (
        f"{HEAD}def main(_):\n{indent(ENTRY + MIXED + OFF + RUN)}\nmain(None)\n",
        "main(None)",
    ),
    "with tabs": (
        f"{HEAD}def main(_):\n{indent(ENTRY + MIXED + OFF + RUN, chr(9))}\nmain(None)\n",
        "main(None)",
    ),
    "under the main test": (
        f"{HEAD}if __name__ == '__main__':\n{indent(ENTRY + MIXED + OFF + RUN)}",
        "if __name__",
    ),
    "with comments at the ends of lines": (
        (
            f'{HEAD}{ENTRY}custom_op.parameter_map["use_off_line"].b '
            f"= True  # never off: # really\n{MIXED}{OFF}{RUN}"
        ),
        "# never off: # really",
    ),
    "a mark of a comment inside a text": (
        (
            f'{HEAD}{ENTRY}custom_op.parameter_map["dump_path"].s '
            f'= tf.compat.as_bytes("/a#b")  # c\n{OFF}{RUN}'
        ),
        "# c",
    ),
    "a function that is never called, which stays": (
        (
            f"{HEAD}{ENTRY}def fill(op):\n"
            f'    op.parameter_map["use_off_line"].b = True\n{MIXED}{OFF}{RUN}'
        ),
        'op.parameter_map["use_off_line"].b = True',
    ),
    "over several lines": (
        (
            f'{HEAD}{ENTRY}custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes(\n'
            f'    "allow_mix_precision"  # fast\n)\n{OFF}{RUN}'
        ),
        "# fast",
    ),
    "with a backslash": (
        (
            f'{HEAD}{ENTRY}custom_op.parameter_map["precision_mode"].s = \\\n'
            f'    tf.compat.as_bytes("allow_mix_precision")\n{OFF}{RUN}'
        ),
        OFF,
    ),
    "other options of the config between": (
        (
            f"{HEAD}{ENTRY}{MIXED}config.gpu_options.allow_growth = True\n"
            f"{OFF}custom_op.parameter_map['use_off_line'].b = True\n{RUN}"
        ),
        "allow_growth",
    ),
    "a condition that stays": (
        (
            f"{HEAD}{ENTRY}{MIXED}if FLAGS.a:\n"
            f'    custom_op.parameter_map["profiling_mode"].b = True\n{ON}{OFF}{RUN}'
        ),
        "if FLAGS.a:",
    ),
    "a condition that wins over a line": (
        (
            f"{HEAD}{ENTRY}{MIXED}if FLAGS.a:\n"
            '    custom_op.parameter_map["precision_mode"].s '
            f'= tf.compat.as_bytes("force_fp32")\n{OFF}{RUN}'
        ),
        "force_fp32",
    ),
    "a value of the run that stays": (
        (
            f'{HEAD}{ENTRY}{MIXED}custom_op.parameter_map["iterations_per_loop"].i '
            f"= int(FLAGS.a) + 1\n{OFF}{RUN}"
        ),
        "int(FLAGS.a) + 1",
    ),
    "a wrong field that stays": (
        f'{HEAD}{ENTRY}{MIXED}custom_op.parameter_map["jit_compile"].b = True\n{OFF}{RUN}',
        "jit_compile",
    ),
    "a value that is given twice": (
        (
            f'{HEAD}{ENTRY}custom_op.parameter_map["precision_mode"].s '
            f'= b"force_fp32"\n{MIXED}{OFF}{RUN}'
        ),
        OFF,
    ),
    "constants and arithmetic": (
        (
            f"{HEAD}SIZE = 15 * 1024 ** 3\n"
            f'{ENTRY}custom_op.parameter_map["graph_memory_max_size"].s = '
            f"tf.compat.as_bytes(str(SIZE))\n{OFF}{RUN}"
        ),
        "SIZE = 15",
    ),
    "an entry of another name": (
        f"{HEAD}{ENTRY}{MIXED}{OFF}{RUN}".replace("custom_op.", "npu.")
        .replace("custom_op ", "npu ")
        .replace("config", "session_config")
        .replace("(session_config=", "(config="),
        "session_config.graph_options",
    ),
    "an attribute of an object": (
        (
            f"{HEAD}class Net:\n    def __init__(self):\n"
            f"{indent(ENTRY + MIXED + OFF + RUN, ' ' * 8)} "
            "       self.config = config\nNet().config\n"
        )
        .replace("custom_op.", "self.custom_op.")
        .replace("custom_op =", "self.custom_op ="),
        "self.config = config",
    ),
    "a helper that fills the entry": (
        (
            f"{HEAD}def fill(custom_op):\n{indent(MIXED)}    return custom_op\n"
            f"{ENTRY}fill(custom_op)\n{OFF}{RUN}"
        ),
        "fill(custom_op)",
    ),
    "two equal configurations": (
        (
            f"{HEAD}def a():\n{indent(ENTRY + MIXED + OFF + RUN)}def b():\n"
            f"{indent(ENTRY + MIXED + OFF + RUN)}a()\nb()\n"
        ),
        "def b():",
    ),
    "the options of TF 2": (
        'import npu_device as npu\nnpu.global_options().precision_mode = "allow_mix_precision"\n'
        "npu.global_options().dump_config.enable_dump = True\n"
        'npu.global_options().dump_config.dump_path = "/d"\nnpu.open().as_default()\n',
        "npu.open().as_default()",
    ),
    "the options of TF 2 by another name": (
        (
            "import npu_device\noptions = npu_device.global_options()\n"
            'options.graph_run_mode = 1\noptions.jit_compile = "true"\n'
            "npu_device.open().as_default()\n"
        ),
        "options = npu_device.global_options()",
    ),
    "arguments of NPURunConfig": (
        (
            f'{HEAD}run = NPURunConfig(model_dir="/m", precision_mode="allow_mix_precision", '
            "iterations_per_loop=10, hcom_parallel=True)\n"
        ),
        "run = NPURunConfig(",
    ),
    "arguments in lines of their own": (
        f"{HEAD}def make():\n    return NPURunConfig(\n        model_dir=FLAGS.a,\n"
        '        precision_mode="allow_mix_precision",  # fast\n'
        "        session_config=tf.ConfigProto(),\n"
        f"        enable_data_pre_proc=False,\n    )\nmake()\n",
        "# fast",
    ),
    "nested configurations": (
        (
            f'{HEAD}run = NPURunConfig(dump_config=DumpConfig(enable_dump=True, dump_path="/d"), '
            "profiling_config=ProfilingConfig(enable_profiling=False), "
            "save_checkpoints_steps=100)\n"
        ),
        "run = NPURunConfig(",
    ),
    "an argument that is None": (
        (
            f'{HEAD}NPURunConfig(precision_mode="force_fp16", '
            "profiling_config=ProfilingConfig(enable_profiling=False, profiling_options=None))\n"
        ),
        "NPURunConfig(",
    ),
    "a reason that names lines stays": (
        (
            f"{HEAD}def make(**kw):\n    return NPURunConfig(model_dir='/m', **kw)\nprint(1)\n"
            "make(precision_mode='force_fp16')\nmake(precision_mode='origin')\n"
        ),
        "make(precision_mode='origin')",
    ),
    "values in parentheses": (
        (
            f'{HEAD}NPURunConfig(precision_mode=("force_fp16"), hcom_parallel=( # why (\n'
            "    (True)\n  ) , model_dir=FLAGS.a, save_checkpoints_steps=(100))\n"
        ),
        "# why (",
    ),
    "comments inside an argument": (
        (
            f"{HEAD}NPURunConfig(\n    model_dir=FLAGS.a, dump_config=DumpConfig(\n"
            '        enable_dump=True,  # inner\n        dump_path="/d"),\n'
            '    precision_mode="force_fp16")\n'
        ),
        "# inner",
    ),
}
EXPORTS = "export HCCL_CONNECT_TIMEOUT=600\nexport ASCEND_GLOBAL_LOG_LEVEL=3\n"
