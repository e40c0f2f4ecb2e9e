"""What calls inside expressions set: read where they always run, else with the condition."""

from __future__ import annotations

import pytest

from npuprof.scripts.preset import build_drafts
from support.importing import imported

HEAD = "import os, sys\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
MAKE = "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\n"
RUN = "tf.Session(config=config)\n"
SET = "setattr(op.parameter_map['use_off_line'], 'b', True)"
#: Why what an entry had before is not carried over either.
TAKEN = [
    "line 8 sets it again, to what depends on op.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))",
    "depends on op.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))",
]
ENV = {"env.HCCL_CONNECT_TIMEOUT": "600"}


@pytest.mark.parametrize(
    ("line", "settings", "why"),
    [
        ("[setattr(op.parameter_map[k], 'b', True) for k in ('use_off_line',)]", {}, ["the key is computed: depends on the name k"]),
        ("sys.argv and setattr(op.parameter_map['use_off_line'], 'b', True)", {}, ["only if sys.argv"]),
        ("setattr(op.parameter_map['use_off_line'], 'b', True) if sys.argv else None", {}, ["only if sys.argv"]),
        ("put = lambda: setattr(op.parameter_map['use_off_line'], 'b', True)\nput()", {}, [f"only if lambda: {SET} is called"]),
        ("op.parameter_map['use_off_line'].b = True\nop.parameter_map['use_off_line'].CopyFrom(AttrValue(b=False))", {}, TAKEN),
        ("op.parameter_map['x'].__setattr__('b', True)", {}, ["depends on op.parameter_map['x'].__setattr__('b', True)"]),
        ("op.parameter_map.get_or_create('use_off_line').b = True", {}, ["depends on op.parameter_map.get_or_create('use_off_line')"]),
        ("one = op.parameter_map['use_off_line']\none.b = True", {"use_off_line": True}, []),
        ("from x import reset_global_options as reset\nreset().jit_compile = '1'", {}, []),
        ("x.one = op.parameter_map['use_off_line']\nx.one.b = True", {}, ["x.one is a second name of it, which is not followed"]),
        ("setattr(npu.global_options(), 'jit_compile', '1')", {}, ["depends on setattr(npu.global_options(), 'jit_compile', '1')"]),
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
