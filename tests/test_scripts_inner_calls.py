"""What calls inside expressions set: read where they always run, else with the condition."""

from __future__ import annotations

import pytest
from importing import imported

from npuprof.scripts.preset import build_drafts

HEAD = "import os, sys\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
MAKE = "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\n"
RUN = "tf.Session(config=config)\n"
SET = "setattr(op.parameter_map['use_off_line'], 'b', True)"
ENV = {"env.HCCL_CONNECT_TIMEOUT": "600"}


@pytest.mark.parametrize(
    ("line", "settings", "why"),
    [
        ("[setattr(op.parameter_map[k], 'b', True) for k in ('use_off_line',)]", {}, ["the key is computed: depends on the name k"]),
        ("sys.argv and setattr(op.parameter_map['use_off_line'], 'b', True)", {}, ["only if sys.argv"]),
        ("setattr(op.parameter_map['use_off_line'], 'b', True) if sys.argv else None", {}, ["only if sys.argv"]),
        ("put = lambda: setattr(op.parameter_map['use_off_line'], 'b', True)\nput()", {}, [f"only if lambda: {SET} is called"]),
        ("op.parameter_map['use_off_line'].__setattr__('b', True)", {"use_off_line": True}, []),
        ("op.parameter_map.get_or_create('use_off_line').b = True", {"use_off_line": True}, []),
        ("one = op.parameter_map.get_or_create('use_off_line')\none.b = True", {"use_off_line": True}, []),
        ("print(setattr(op.parameter_map['use_off_line'], 'b', True))", {"use_off_line": True}, []),
        ("old = os.environ.setdefault('HCCL_CONNECT_TIMEOUT', '600')", ENV, []),
        ("os.environ['HCCL_CONNECT_TIMEOUT'], count = '600', 1", ENV, []),
        ("sys.argv and os.putenv('HCCL_CONNECT_TIMEOUT', '600')", {}, ["only if sys.argv"]),
    ],
)  # fmt: skip
def test_what_an_expression_sets_on_its_way_is_read_or_told(line: str, settings: dict[str, object], why: list[str]) -> None:
    drafts = build_drafts(imported(f"{HEAD}{MAKE}{line}\n{RUN}", "x.py"))
    assert {key: value for draft in drafts for key, value in draft.settings.items()} == settings
    assert [note.why for draft in drafts for note in draft.notes] == why
