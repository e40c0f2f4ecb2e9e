"""A configuration that several functions fill is one, where each of them always runs; the ways settings go into it are followed."""

# ruff: noqa: E501 (a script is told in a line)

from __future__ import annotations

from typing import Any

import pytest

from npuprof.scripts.preset import build_drafts
from support.importing import imported

HEAD = "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
FILL = "def fill(op):\n    op.parameter_map['precision_mode'].s = b'force_fp16'\n"
MAKE = "    config = tf.ConfigProto()\n    custom_op = config.graph_options.rewrite_options.custom_optimizers.add()\n    custom_op.name = 'NpuOptimizer'\n"
OWN = "    custom_op.parameter_map['use_off_line'].b = True\n"
ORIGIN = "    custom_op.parameter_map['precision_mode'].s = b'origin'\n"
FP16: dict[str, Any] = {"precision_mode": "force_fp16"}
BOTH = {**FP16, "use_off_line": True}


def read(text: str) -> list[dict[str, Any]]:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    return sorted((dict(sorted(draft.settings.items())) for draft in drafts if draft.settings), key=str)


def left_out(text: str) -> list[str]:
    return [note.why for draft in build_drafts(imported(HEAD + text, "x.py")) for note in draft.notes]


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        (f"{FILL}def main():\n{MAKE}{OWN}    fill(op=custom_op)\n    fill(custom_op)\n", [BOTH]),
        # a call that is part of an expression, or in a loop
        (f"{FILL}def main():\n{MAKE}{OWN}    if a:\n        fill(custom_op)\n", [{"use_off_line": True}]),
        (f"{FILL}def main():\n{MAKE}{OWN}    for i in a:\n        fill(custom_op)\n", [BOTH]),
        # two objects are two configurations
        (f"{FILL}def one():\n{MAKE}{OWN}    fill(custom_op)\ndef two():\n{MAKE}    fill(custom_op)\n", [BOTH, FP16]),
        # both set the same key, and the order of the lines is not that of the run
        (f"{FILL}def main():\n{MAKE}{ORIGIN}    fill(custom_op)\n", [FP16]),
        (f"def main():\n    def put(key, field, value):\n        setattr(custom_op.parameter_map[key], field, value)\n{MAKE}    put('use_off_line', 'b', True)\n    put('precision_mode', 's', b'force_fp16')\nmain()\n",
         [BOTH]),
        # methods that fill one object, which its class makes without setting anything
        ("class Net:\n    def __init__(self):\n        self.op = tf.ConfigProto().graph_options.rewrite_options.custom_optimizers.add()\n        self.a()\n        self.b()\n"
         "    def a(self):\n        self.op.parameter_map['precision_mode'].s = b'force_fp16'\n    def b(self):\n        self.op.parameter_map['use_off_line'].b = True\nNet()\n",
         [BOTH]),
    ],
)  # fmt: skip
def test_a_configuration_that_several_functions_fill_is_one(text: str, read_as: list[dict[str, Any]]) -> None:
    assert read(text) == read_as


PUT = "def put(op, key, value):\n    op.parameter_map[key].s = tf.compat.as_bytes(value)\n"
CLASS = f"class Net:\n    def session(self, mode):\n{MAKE.replace('    ', '        ')}        self.fill(custom_op, mode)\n        return config\n    def fill(self, op, mode):\n        op.parameter_map['precision_mode'].s = tf.compat.as_bytes(mode)\n"


@pytest.mark.parametrize(
    ("text", "read_as", "why"),
    [
        # what two stars take
        ("def make(**kw):\n    return NPURunConfig(model_dir='/m', **kw)\nmake(precision_mode='force_fp16')\n",
         [{"estimator.model_dir": "/m"}], ["depends on **kw"]),
        ("def make(**kw):\n    return NPURunConfig(model_dir='/m', **kw)\nmake(**FLAGS.a)\n", [{"estimator.model_dir": "/m"}], ["depends on **kw"]),
        # tables made of others
        ("base = {'precision_mode': 'force_fp16', 'hcom_parallel': True}\nNPURunConfig(**{**base, 'hcom_parallel': False})\n", [{**FP16, "hcom_parallel": False}], []),
        ("NPURunConfig(**{**FLAGS.a, 'hcom_parallel': False})\n", [], ["depends on **{**FLAGS.a, 'hcom_parallel': False}"]),
        (f"{CLASS}Net().session(FLAGS.a)\n", [], ["depends on the command line or its parameters (FLAGS.a)"]),
        # one call after the other
        (f"{PUT}def main():\n{MAKE}    for v in ('/a', '/b'):\n        put(custom_op, 'dump_path', v)\nmain()\n", [{"dump_path": "/b"}], ["line 4 sets it to another value, which the preset has"]),
        # a function that is called under a condition, and one under which its object is made as well
        (f"{FILL}def main():\n{MAKE}{OWN}    if a:\n        fill(custom_op)\nmain()\n", [{"use_off_line": True}], ["only if a"]),
        (f"{PUT}def main():\n{MAKE}    if FLAGS.b:\n        pass\n    else:\n        put(custom_op, 'precision_mode', 'force_fp16')\nmain()\n", [], ["only if not (FLAGS.b)"]),
        (f"{PUT}def main():\n{MAKE}    if True:\n        put(custom_op, 'precision_mode', 'force_fp16')\n    else:\n        put(custom_op, 'dump_path', '/d')\nmain()\n",
         [FP16], ["never runs: not (True)"]),
    ],
)  # fmt: skip
def test_settings_are_followed_through_calls_or_told_with_the_reason(text: str, read_as: list[dict[str, Any]], why: list[str]) -> None:
    assert read(text) == read_as
    assert left_out(text) == why
