"""What a script sets too late, or never: reported with the reason, and not in its preset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npuprof.scripts.preset import build_drafts
from support.importing import imported
from support.running import Run

HEAD = "import tensorflow as tf\nimport copy, threading\nfrom npu_bridge.npu_init import *\n"
ENTRY = (
    "custom_op = config.graph_options.rewrite_options.custom_optimizers.add()\n"
    'custom_op.name = "NpuOptimizer"\n'
)
MADE = f"config = tf.ConfigProto()\n{ENTRY}"
ONE = 'custom_op.parameter_map["use_off_line"].b = True\n'
TWO = 'custom_op.parameter_map["hcom_parallel"].b = True\n'
RUN = "sess = tf.Session(config=config)\n"
FILL = 'def fill(op):\n    op.parameter_map["hcom_parallel"].b = True\n'
NPU = "import npu_device as npu\nnpu.global_options().use_off_line = True\n"
LATE = "npu.global_options().hcom_parallel = True\n"
BOTH = {"use_off_line", "hcom_parallel"}


def indent(text: str) -> str:
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))


def draft_options(text: str) -> tuple[set[str], dict[str, str]]:
    """Return the options of the presets that a script makes, and why others are left out."""
    return describe_drafts(build_drafts(imported(text)))


def describe_drafts(drafts: list[Any]) -> tuple[set[str], dict[str, str]]:
    keys: set[str] = set()
    reasons: dict[str, str] = {}
    for draft in drafts:
        keys.update(draft.settings)
        for note in draft.notes:
            key = note.setting.key
            reasons[key] = f"{reasons.get(key, '')}{note.why}; "
    return keys, reasons


def move_to_self(text: str) -> str:
    return (
        text.replace("config", "self.config")
        .replace("self.config=", "config=")
        .replace("custom_op", "self.op")
        .replace("(tf.self.", "(tf.")
    )


#: Scripts that set use_off_line before their session, and hcom_parallel as named, with the reason.
LATER = {
    "in the session": (
        f"{MADE}{ONE}with tf.Session(config=config) as sess:\n    {TWO}",
        "comes after the session was made (line 8)",
    ),
    "after an estimator has trained": (
        (
            f"{MADE}{ONE}run = tf.estimator.RunConfig(session_config=config)\n"
            f"est = tf.estimator.Estimator(config=run)\nest.train(fn)\n{TWO}"
        ),
        "comes after train() ran (line 10)",
    ),
    "after a session in a with": (
        f"{MADE}{ONE}with tf.Graph().as_default():\n    {RUN}{TWO}",
        "comes after the session was made (line 9)",
    ),
    "after the device was opened": (
        f"{NPU}npu.open().as_default()\n{LATE}",
        "comes after npu.open() (line 6)",
    ),
    "in a function that only such a function calls": (
        f"{MADE}{FILL}def more():\n    fill(custom_op)\n{ONE}{RUN}",
        "fill() is used nowhere",
    ),
    "and deletes the parameter": (
        f'{MADE}{TWO}{ONE}del custom_op.parameter_map["hcom_parallel"]\n{RUN}',
        "the script takes it back",
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_what_comes_too_late_is_taken_back_or_never_runs_is_not_carried_over(name: str) -> None:
    text, reason = LATER[name]
    keys, reasons = draft_options(HEAD + text)
    assert keys == {"use_off_line"}
    assert reason in reasons["hcom_parallel"]


#: Scripts that look like these, and have both options in force.
IN_TIME = {
    "after a session that is made at times": f"{MADE}{ONE}if FLAGS.a:\n    {RUN}{TWO}",
    "after a session that a lambda makes": (
        f"{MADE}{ONE}start = lambda: tf.Session(config=config)\n{TWO}start()\n"
    ),
    "after a session, for another of the same settings": (
        f"{MADE}{ONE}{RUN}{TWO}other = tf.ConfigProto()\n"
        "other.CopyFrom(config)\ntf.Session(config=other)\n"
    ),
    "and is cleared after the session": f"{MADE}{ONE}{TWO}{RUN}config.Clear()\n",
    "and the parameters were cleared before": (
        f"{MADE}custom_op.parameter_map.clear()\n{ONE}{TWO}{RUN}"
    ),
    "in methods": (
        "class Net:\n    def __init__(self):\n"
        f"{indent(indent(move_to_self(MADE + ONE)))}        self.more()\n"
        f"        {move_to_self(RUN)}    def more(self):\n        {move_to_self(TWO)}Net()\n"
    ),
    "by a method that a framework calls": (
        "class Hook(tf.train.SessionRunHook):\n    def begin(self):\n"
        f"{indent(indent(MADE + ONE + TWO + RUN))}if __name__ == '__main__':\n    train(Hook())\n"
    ),
}


@pytest.mark.parametrize("name", IN_TIME)
def test_what_is_in_force_is_carried_over_whatever_stands_around(name: str) -> None:
    keys, reasons = draft_options(HEAD + IN_TIME[name])
    assert keys == BOTH, reasons


@pytest.mark.parametrize(
    "line",
    [
        '{"a": HUGE}.items()',
        'for k, v in {"jit_compile": HUGE}.items():\n    op.parameter_map[k].i = v',
        "(HUGE).parameter_map['x'].i = HUGE",
        "config[HUGE] = HUGE",
        "f[HUGE].g(config)",
        "global_options()[HUGE].jit_compile = 'x'",
        "NPURunConfig(dump_config=objects[HUGE].dump)",
        "if __name__ == '__main__':\n    run[HUGE](config)",
    ],
)
def test_a_number_of_thousands_of_digits_stops_no_reading(
    line: str, tmp_path: Path, run: Run
) -> None:
    head = (
        "import npu_bridge\nop = config.graph_options.rewrite_options.custom_optimizers.add()\n"
        "op.name = 'NpuOptimizer'\n"
    )
    line = line.replace("HUGE", "0x" + "f" * 5000)
    (tmp_path / "a.py").write_text(
        f"{head}op.parameter_map['hccl_timeout'].i = 600\n{line}\n"
        "sess = tf.Session(config=config)\n"
    )
    (tmp_path / "profiles").mkdir()
    made, scanned, adopted = run("import", "a.py"), run("scan", "a.py"), run("adopt", "a.py")
    assert "hccl_timeout = 600" in made.out
    assert "NP831" not in made.out + made.err
    assert "NP831" not in scanned.out + scanned.err
    assert "NP831" not in adopted.out + adopted.err
