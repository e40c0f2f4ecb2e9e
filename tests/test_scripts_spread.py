"""A configuration that several functions fill is one, where each of them always runs; the ways settings go into it are followed."""

# ruff: noqa: E501 (a script is told in a line)

from __future__ import annotations

from typing import Any

import pytest
from importing import imported

from npuprof.scripts.preset import build_drafts

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
        (f"{FILL}def main():\n{MAKE}{OWN}    fill(custom_op)\n", [BOTH]),
        (f"{FILL}def main():\n{MAKE}    op = fill(custom_op)\n{OWN}", [BOTH]),
        (f"{FILL}def main():\n{MAKE}{OWN}    fill(op=custom_op)\n    fill(custom_op)\n", [BOTH]),
        (f"{FILL}def main():\n{MAKE}{OWN}    with scope():\n        fill(custom_op)\n", [BOTH]),
        # a call that may not run, or in a loop, fills perhaps
        (f"{FILL}def main():\n{MAKE}{OWN}    if a:\n        fill(custom_op)\n", [FP16, {"use_off_line": True}]),
        (f"{FILL}def main():\n{MAKE}{OWN}    a and fill(custom_op)\n", [FP16, {"use_off_line": True}]),
        (f"{FILL}def main():\n{MAKE}{OWN}    for i in a:\n        fill(custom_op)\n", [FP16, {"use_off_line": True}]),
        # two objects are two configurations
        (f"{FILL}def one():\n{MAKE}{OWN}    fill(custom_op)\ndef two():\n{MAKE}    fill(custom_op)\n", [FP16, {"use_off_line": True}]),
        # both set the same key, and the order of the lines is not that of the run
        (f"{FILL}def main():\n{MAKE}{ORIGIN}    fill(custom_op)\n",
         [FP16, {"precision_mode": "origin"}]),
        # methods that fill one object, which its class makes without setting anything
        ("class Net:\n    def __init__(self):\n        self.op = tf.ConfigProto().graph_options.rewrite_options.custom_optimizers.add()\n        self.a()\n        self.b()\n"
         "    def a(self):\n        self.op.parameter_map['precision_mode'].s = b'force_fp16'\n    def b(self):\n        self.op.parameter_map['use_off_line'].b = True\nNet()\n",
         [BOTH]),
    ],
)  # fmt: skip
def test_a_configuration_that_several_functions_fill_is_one(text: str, read_as: list[dict[str, Any]]) -> None:
    assert read(text) == read_as
