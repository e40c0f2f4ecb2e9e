"""What may be passed over when a script runs, what comes too late, and what only some objects have, is told and is in no preset."""

# ruff: noqa: E501 (a script is told in a line)

from __future__ import annotations

import pytest

from npuprof.scripts.preset import build_drafts
from support.importing import imported

HEAD = "import os, sys, atexit, contextlib, signal\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"  # 3 lines
MAKE = "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\nop.parameter_map['use_off_line'].b = True\n"
PUT = "op.parameter_map['profiling_mode'].b = True\n"
RUN = "tf.Session(config=config)\n"
ENV = "os.environ['HCCL_CONNECT_TIMEOUT'] = '600'\n"
OFF = {"use_off_line"}
BOTH = {"use_off_line", "profiling_mode"}
LATE = "stands after the session was made"
NET = (
    "class Net:\n    def __init__(self, mode='a'):\n        self.config = tf.ConfigProto()\n"
    "        self.op = self.config.graph_options.rewrite_options.custom_optimizers.add()\n        self.op.name = 'NpuOptimizer'\n"
    "        self.op.parameter_map['use_off_line'].b = True\n    def put(self):\n        self.op.parameter_map['profiling_mode'].b = True\n"
)


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def read(text: str) -> tuple[set[str], dict[str, str]]:
    drafts = build_drafts(imported(HEAD + text, "x.py"))
    left = {note.found.key: note.why for draft in drafts for note in draft.notes}
    return {key for draft in drafts for key in draft.settings}, left


def loop(head: str) -> str:
    return f"{MAKE}{head}:\n    {PUT}{RUN}"


def caught(body: str, handler: str = "except ImportError:\n    pass\n") -> str:
    return f"{MAKE}try:\n{indent(body)}{handler}{RUN}"


def early(lines: str) -> str:
    return f"{MAKE}def put(op):\n    print(op)\n{indent(f'{lines}{chr(10)}{PUT}')}put(op)\n{RUN}"


@pytest.mark.parametrize(
    ("text", "held", "why"),
    [
        # in a try
        (caught(PUT), BOTH, ""),
        (caught(f"{PUT}import absent\n"), BOTH, ""),
        (caught(f"import absent\n{PUT}", "except ImportError:\n    sys.exit(1)\n"), BOTH, ""),
        (caught(f"import absent\n{PUT}", "except ImportError:\n    raise\n"), BOTH, ""),
        (caught(f"import absent\n{PUT}", "finally:\n    print(1)\n"), BOTH, ""),
        (f"{MAKE}try:\n    import absent\n    {PUT}    {RUN}except ImportError:\n    pass\n", BOTH, ""),
        (f"try:\n    import absent\n{indent(MAKE + PUT + RUN)}except ImportError:\n    pass\n", BOTH, ""),
        (f"{MAKE}try:\n    try:\n        import absent\n    except ImportError:\n        pass\n    {PUT}except ValueError:\n    pass\n{RUN}", BOTH, ""),
        (f"{MAKE}with tf.Graph().as_default():\n    import absent\n    {PUT}{RUN}", BOTH, ""),
        # in a loop, with or without a turn
        (loop("for _ in range(3)"), BOTH, ""),
        (loop("for one in ('a', 'b')"), BOTH, ""),
        (loop("for one in sorted({'a': 1, 'b': 2}.items())"), BOTH, ""),
        (f"COUNT = 2\n{MAKE}for one in range(COUNT):\n    {PUT}{RUN}", BOTH, ""),
        (f"for one in sys.argv:\n{indent(MAKE + PUT + RUN)}", BOTH, ""),
        (f"{MAKE}for one in []:\n    pass\nelse:\n    {PUT}{RUN}", BOTH, ""),
        # in a function that other code calls
        (f"{MAKE}def put(*_):\n    {PUT}Thread(target=put).start()\n{RUN}", BOTH, ""),
        (f"def main(*_):\n{indent(MAKE + PUT + RUN)}launch_all(main)\n", BOTH, ""),
        # after what may leave the function
        (early("if False:\n    return"), BOTH, ""),
        (early("if len(sys.argv) > 9:\n    sys.exit(1)"), BOTH, ""),
        (early("if len(sys.argv) > 9:\n    raise ValueError"), BOTH, ""),
        (f"def main():\n{indent(f'{MAKE}if len(sys.argv) > 9:{chr(10)}    return{chr(10)}{PUT}{RUN}')}main()\n", BOTH, ""),
        (f"def make():\n{indent(f'{MAKE}if len(sys.argv) > 9:{chr(10)}    return None{chr(10)}{PUT}return config')}tf.Session(config=make())\n", BOTH, ""),
        # in a method
        (f"{NET}one = Net()\none.put()\ntf.Session(config=one.config)\n", BOTH, ""),
        (f"{NET}one = Net()\nother = Net()\none.put()\nother.put()\ntf.Session(config=one.config)\ntf.Session(config=other.config)\n", BOTH, ""),
        # the environment
        (f"{MAKE}{ENV}{RUN}", {"use_off_line", "env.HCCL_CONNECT_TIMEOUT"}, ""),
        (f"{MAKE}{RUN}{ENV}", OFF, f"{LATE} (line 8)"),
        (f"{MAKE}with tf.Session(config=config):\n    {ENV}", OFF, LATE),
        (f"{MAKE}{RUN}os.environ.update(HCCL_CONNECT_TIMEOUT='600')\n", OFF, LATE),
        (f"{MAKE}{RUN}os.environ.setdefault('HCCL_CONNECT_TIMEOUT', '600')\n", OFF, LATE),
        (f"import npu_device as npu\nnpu.global_options().use_off_line = True\nnpu.open()\n{ENV}", OFF, "stands after npu.open() (line 6)"),
        (f"{MAKE}est = tf.estimator.Estimator(config=tf.estimator.RunConfig(session_config=config))\nest.train(fn)\n{ENV}", OFF, "stands after train() ran (line 9)"),
    ],
)  # fmt: skip
def test_what_may_be_passed_over_or_comes_late_is_in_no_preset(text: str, held: set[str], why: str) -> None:
    settings, left = read(text)
    assert settings == held
    told = left.get("profiling_mode", left.get("env.HCCL_CONNECT_TIMEOUT", ""))
    assert why in told if why else not told
