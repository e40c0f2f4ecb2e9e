"""Configurations that one line makes several times, and copies of them: each has its own preset, and what a class inherits is its own."""

# ruff: noqa: E501 (a script is told in a line)

from __future__ import annotations

from typing import Any

import pytest
from importing import imported

from npuprof.scripts.preset import build_drafts

HEAD = "import copy\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
MAKE = "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\nop.parameter_map['use_off_line'].b = True\n"
NET = (
    "class Net:\n    def __init__(self):\n        self.config = tf.ConfigProto()\n"
    "        self.op = self.config.graph_options.rewrite_options.custom_optimizers.add()\n        self.op.name = 'NpuOptimizer'\n"
    "        self.op.parameter_map['use_off_line'].b = True\n"
)
PUT = "    def put(self):\n        self.op.parameter_map['profiling_mode'].b = True\n"
HOOK = "        self.hook()\n    def hook(self):\n        self.op.parameter_map['hcom_parallel'].b = True\n"
OFF: dict[str, Any] = {"use_off_line": True}
PROFILED = {**OFF, "profiling_mode": True}
HCOM = {**OFF, "hcom_parallel": True}
DEF = "def make():\n" + "".join(f"    {line}\n" for line in f"{MAKE}return config, op".splitlines())
COPY = "other = tf.ConfigProto()\nother.CopyFrom(config)\n"
MORE = "second = other.graph_options.rewrite_options.custom_optimizers[0]\nsecond.parameter_map['profiling_mode'].b = True\n"
RUN_BOTH = "tf.Session(config=config)\ntf.Session(config=other)\n"


def heir(name: str, body: str, base: str = "Net") -> str:
    return f"class {name}({base}):\n    {body}\n"


def own(what: str, before: str = "pass") -> str:
    return f"def hook(self):\n        {before}\n        self.op.parameter_map['{what}'].b = True"


def use(*names: str) -> str:
    return "".join(f"tf.Session(config={name}().config)\n" for name in names)


@pytest.mark.parametrize(
    ("text", "presets"),
    [
        # objects of one class
        (f"{NET}{PUT}one, other = Net(), Net()\nother.put()\ntf.Session(config=one.config)\ntf.Session(config=other.config)\n", {"x-line-14": OFF, "x-line-15": PROFILED}),
        (f"{NET}{PUT}def train():\n    net = Net()\n    net.put()\n    tf.Session(config=net.config)\ndef test():\n    tf.Session(config=Net().config)\ntrain()\ntest()\n", {"x-train": PROFILED, "x-test": OFF}),
        (f"{NET}{PUT}one, other = Net(), Net()\none.put()\nother.put()\ntf.Session(config=one.config)\ntf.Session(config=other.config)\n", {"x": PROFILED}),
        (f"{DEF}config, op1 = make()\nother, op2 = make()\nop2.parameter_map['profiling_mode'].b = True\n{RUN_BOTH}", {"x-line-13": OFF, "x-line-14": PROFILED}),
        # methods that a class writes anew, and those that it calls all the same
        (f"{NET}{HOOK}{heir('One', own('profiling_mode'))}{use('One')}", {"x": PROFILED}),
        (f"{NET}{HOOK}{heir('One', own('profiling_mode'))}{use('One', 'Net')}", {"x-one": PROFILED, "x-net": HCOM}),
        (f"{NET}{HOOK}{heir('One', own('profiling_mode', 'super().hook()'))}{use('One')}", {"x": {**PROFILED, **HCOM}}),
        (f"{NET}{HOOK}{heir('One', own('profiling_mode', 'super(One, self).hook()'))}{use('One')}", {"x": {**PROFILED, **HCOM}}),
        (f"{NET}{HOOK}{heir('One', own('profiling_mode', 'Net.hook(self)'))}{use('One')}", {"x": {**PROFILED, **HCOM}}),
        (f"{NET}{HOOK}{heir('One', 'def hook(self): pass')}{use('One')}", {"x": OFF}),
        (f"{NET}{HOOK}{heir('One', 'def hook(self): pass')}{heir('Two', 'pass')}{use('One', 'Two')}", {"x-one": OFF, "x-two": HCOM}),
        (f"{NET}{HOOK}{heir('One', own('profiling_mode'))}{heir('Deep', 'pass', 'One')}{use('Deep')}", {"x": PROFILED}),
        (f"class Hooks:\n    {own('profiling_mode')}\n{NET.replace('Net:', 'Net(Hooks):')}        self.hook()\n{use('Net')}", {"x": PROFILED}),
        # copies
        (f"{MAKE}{COPY}{MORE}{RUN_BOTH}", {"x-line-12": OFF, "x-line-13": PROFILED}),
        (f"{MAKE}{COPY.replace('CopyFrom', 'MergeFrom')}{MORE}{RUN_BOTH}", {"x-line-12": OFF, "x-line-13": PROFILED}),
        (f"{MAKE}other = copy.deepcopy(config)\n{MORE}{RUN_BOTH}", {"x-line-11": OFF, "x-line-12": PROFILED}),
        (f"{MAKE}other = tf.ConfigProto.FromString(config.SerializeToString())\n{MORE}{RUN_BOTH}", {"x-line-11": OFF, "x-line-12": PROFILED}),
        (f"{MAKE}{COPY}{MORE}tf.Session(config=other)\n", {"x": PROFILED}),
        (f"{MAKE}other = tf.ConfigProto()\nother.graph_options.CopyFrom(config.graph_options)\n{MORE}{RUN_BOTH}", {"x-line-12": OFF, "x-line-13": PROFILED}),
        (f"{MAKE}def extend(base):\n    other = tf.ConfigProto()\n    other.CopyFrom(base)\n    {MORE.replace(chr(10), chr(10) + '    ')}return other\ntf.Session(config=config)\ntf.Session(config=extend(config))\n", {"x-line-14": OFF, "x-line-15": PROFILED}),
        (f"{MAKE}{COPY}op.parameter_map['profiling_mode'].b = True\n{RUN_BOTH}", {"x": OFF}),
    ],
)  # fmt: skip
def test_each_object_has_what_it_is_given(text: str, presets: dict[str, dict[str, Any]]) -> None:
    assert {draft.name: draft.settings for draft in build_drafts(imported(HEAD + text, "x.py")) if draft.settings} == presets


def test_a_run_config_has_the_object_that_it_is_given() -> None:
    text = f"{DEF}one, op1 = make()\nother, op2 = make()\nop2.parameter_map['profiling_mode'].b = True\nNPURunConfig(session_config=other, hcom_parallel=True)\ntf.Session(config=one)\n"
    found = [draft.settings for draft in build_drafts(imported(HEAD + text, "x.py")) if draft.settings]
    assert found == [{**PROFILED, **HCOM}, OFF]


def test_a_method_that_others_take_the_place_of_is_told() -> None:
    text = f"{NET}{HOOK}{heir('One', own('profiling_mode'))}{use('One')}"
    assert [note.why for draft in build_drafts(imported(HEAD + text, "x.py")) for note in draft.notes] == [
        "One.hook() takes the place of Net.hook(), so this never runs"
    ]


GET = (
    "def get(mode, train=True, wait=None):\n"
    + "".join(f"    {line}\n" for line in MAKE.splitlines())
    + "    op.parameter_map['precision_mode'].s = tf.compat.as_bytes(mode)\n    if train:\n        op.parameter_map['graph_run_mode'].i = 1\n"
    + "    else:\n        op.parameter_map['graph_run_mode'].i = 0\n    if wait:\n        op.parameter_map['hccl_timeout'].i = wait\n    return config\n"
)
TRAIN = {**OFF, "precision_mode": "force_fp16", "graph_run_mode": 1}
TEST = {**OFF, "precision_mode": "force_fp32", "graph_run_mode": 0, "hccl_timeout": 7}
BOTH = "tf.Session(config=get('force_fp16'))\ntf.Session(config=get('force_fp32', train=False, wait=7))\n"


@pytest.mark.parametrize(
    ("text", "presets"),
    [
        (BOTH, [TRAIN, TEST]),
        ("def main():\n" + "".join(f"    {line}\n" for line in BOTH.splitlines()) + "main()\n", [TRAIN, TEST]),
        ("a = get('force_fp16')\nb = get('force_fp32', False, 7)\ntf.Session(config=b)\ntf.Session(config=a)\n", [TEST, TRAIN]),
        ("tf.Session(config=get('force_fp16'))\ntf.Session(config=get('force_fp16'))\n", [TRAIN]),
        ("for mode in ('force_fp16', 'force_fp32'):\n    tf.Session(config=get(mode))\n", [OFF]),  # one call, two objects
        ("config = get('force_fp16')\nif FLAGS.test:\n    config = get('force_fp32', False)\ntf.Session(config=config)\n", [OFF]),
        (
            "tf.Session(config=get(FLAGS.mode))\ntf.Session(config=get('force_fp32', False, 7))\n",
            [{**OFF, "graph_run_mode": 1}, {k: v for k, v in TEST.items() if k != "precision_mode"}],
        ),
    ],
)
def test_each_call_of_a_function_makes_a_configuration_of_its_own(text: str, presets: list[dict[str, Any]]) -> None:
    drafts = build_drafts(imported(f"{HEAD}{GET}{text}"))
    assert [draft.settings for draft in drafts] == presets


def test_what_one_entry_is_given_by_several_calls_is_not_told_apart() -> None:
    fill = "def fill(op, wait):\n    op.parameter_map['hccl_timeout'].i = wait\n"
    (draft,) = build_drafts(imported(f"{HEAD}{fill}{MAKE}fill(op, 1)\nfill(op, 2)\ntf.Session(config=config)\n"))
    assert draft.settings == OFF
    assert [note.why for note in draft.notes] == ["depends on the parameter wait of fill(); the calls here give 1, 2"]
