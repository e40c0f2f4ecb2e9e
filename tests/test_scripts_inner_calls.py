"""What comprehensions, conditions inside expressions, generators and lambdas set: read as what they are, or told."""

# ruff: noqa: E501 (a script is told in a line)

from __future__ import annotations

import pytest
from importing import imported

from npuprof.scripts.preset import build_drafts

HEAD = "import os, sys\nimport tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
MAKE = "config = tf.ConfigProto()\nop = config.graph_options.rewrite_options.custom_optimizers.add()\nop.name = 'NpuOptimizer'\n"
RUN = "tf.Session(config=config)\n"
BOTH = {"use_off_line": True, "hcom_parallel": True}
SET = "setattr(op.parameter_map[key], 'b', True)"
ENV = {"env.HCCL_CONNECT_TIMEOUT": "600"}
LAMBDA = "stands in a lambda, whose calls are not followed"
LAZY = "stands in a generator, which something has to go through"


@pytest.mark.parametrize(
    ("line", "settings", "why"),
    [
        (f"[{SET} for key in ('use_off_line', 'hcom_parallel')]", BOTH, []),
        (f"_ = {{{SET} for key in ('use_off_line', 'hcom_parallel')}}", BOTH, []),
        (f"list({SET} for key in ('use_off_line', 'hcom_parallel'))", BOTH, []),
        (f"any({SET} for key in ('use_off_line', 'hcom_parallel'))", BOTH, []),
        (f"all({SET} for key in ('use_off_line', 'hcom_parallel'))", {}, [LAZY, LAZY]),
        (f"({SET} for key in ('use_off_line', 'hcom_parallel'))", {}, [LAZY, LAZY]),
        (f"later = ({SET} for key in ('use_off_line',))", {}, [LAZY]),
        ("[setattr(op.parameter_map[k], f, v) for k, f, v in [('use_off_line', 'b', True), ('hcom_parallel', 'b', True)]]", BOTH, []),
        ("[setattr(op.parameter_map[k], 'b', v) for k, v in {'use_off_line': True, 'hcom_parallel': True}.items()]", BOTH, []),
        (f"[{SET} for key in ('use_off_line', 'hcom_parallel') if key != 'hcom_parallel']", {"use_off_line": True}, []),
        (f"[{SET} for key in ('use_off_line',) if sys.argv]", {}, ["only if sys.argv"]),
        (f"[{SET} for key in sys.argv]", {}, ["the key is computed: depends on the name key"]),
        ("[op.parameter_map[a + b].CopyFrom(AttrValue(b=True)) for a in ('use_',) for b in ('off_line',)]", {"use_off_line": True}, []),
        ("sys.argv and setattr(op.parameter_map['use_off_line'], 'b', True)", {}, ["only if sys.argv"]),
        ("sys.argv or setattr(op.parameter_map['use_off_line'], 'b', True)", {}, ["only if not (sys.argv)"]),
        ("setattr(op.parameter_map['use_off_line'], 'b', True) if sys.argv else None", {}, ["only if sys.argv"]),
        ("put = lambda one: setattr(one.parameter_map['use_off_line'], 'b', True)\nput(op)", {}, [LAMBDA]),
        ("op.parameter_map['use_off_line'].__setattr__('b', True)", {"use_off_line": True}, []),
        ("op.parameter_map.get_or_create('use_off_line').b = True", {"use_off_line": True}, []),
        ("one = op.parameter_map.get_or_create('use_off_line')\none.b = True", {"use_off_line": True}, []),
        ("print(setattr(op.parameter_map['use_off_line'], 'b', True))", {"use_off_line": True}, []),
        ("os.environ['HCCL_CONNECT_TIMEOUT'], count = '600', 1", ENV, []),
        ("[os.environ.__setitem__(k, v) for k, v in (('HCCL_CONNECT_TIMEOUT', '600'),)]", ENV, []),
        ("sys.argv and os.environ.update(HCCL_CONNECT_TIMEOUT='600')", {}, ["only if sys.argv"]),
        ("set_it = lambda: os.putenv('HCCL_CONNECT_TIMEOUT', '600')", {}, [LAMBDA]),
    ],
)  # fmt: skip
def test_what_an_expression_sets_on_its_way_is_read_or_told(line: str, settings: dict[str, object], why: list[str]) -> None:
    drafts = build_drafts(imported(f"{HEAD}{MAKE}{line}\n{RUN}", "x.py"))
    assert {key: value for draft in drafts for key, value in draft.settings.items()} == settings
    assert [note.why for draft in drafts for note in draft.notes] == why


def test_a_lambda_runs_where_it_is_called() -> None:
    text = f"{HEAD}{MAKE}start = lambda: tf.Session(config=config)\nop.parameter_map['use_off_line'].b = True\nstart()\nop.parameter_map['hcom_parallel'].b = True\n"
    [draft] = build_drafts(imported(text, "x.py"))
    assert draft.settings == {"use_off_line": True}
    assert [note.why for note in draft.notes] == ["stands after the session was made (line 7)"]
