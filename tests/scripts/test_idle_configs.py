"""A configuration that is filled and that nothing is given: told, and not carried over as if it
were in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.importing import write
from support.running import Run

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = """\
import tensorflow as tf
from npu_bridge.npu_init import *
used = tf.ConfigProto()
entry = used.graph_options.rewrite_options.custom_optimizers.add()
entry.name = "NpuOptimizer"
entry.parameter_map["hccl_timeout"].i = 600
lost = tf.ConfigProto()
other_entry = lost.graph_options.rewrite_options.custom_optimizers.add()
other_entry.name = "NpuOptimizer"
other_entry.parameter_map["precision_mode"].s = b"force_fp16"
"""
SESSION = "with tf.Session(config=used) as sess: pass\n"
BARE = "with tf.Session() as sess: pass\n"
CARRIED = (
    "hccl_timeout = 600\n\n# Not carried over:\n"
    '# train.py:10: precision_mode = "force_fp16": nothing is given the configuration of line 7'
)
LOST_ONLY = "".join(BEGIN.splitlines(keepends=True)[:2] + BEGIN.splitlines(keepends=True)[6:])


@pytest.mark.parametrize(
    "end",
    [
        SESSION,
        f"if flag:\n    pass\n{SESSION}",
        f"def train():\n    {SESSION}train()\n",
        f"print(lost)\n{SESSION}",
    ],
)
def test_a_second_configuration_that_goes_nowhere_is_told_and_left_out(
    end: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": BEGIN + end})
    told = run("scan", "train.py")
    assert (
        "train.py:8:1: warning NP823: lost has an entry for the "
        "adapter, and nothing is given lost: tf.Session(...)"
    ) in told.out
    made = run("import", "train.py")
    assert (made.code, CARRIED in made.out, "NP823" in made.err) == (0, True, True)


@pytest.mark.parametrize(
    "end", [BARE, "other = tf.ConfigProto()\nwith tf.Session(config=other) as sess: pass\n"]
)
def test_the_only_configuration_is_carried_over_with_a_remark(
    end: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": LOST_ONLY + end})
    made = run("import", "train.py")
    assert (made.code, 'precision_mode = "force_fp16"' in made.out, "NP823" in made.err) == (
        0,
        True,
        True,
    )


@pytest.mark.parametrize(
    "end",
    [
        "",
        f"{SESSION}configs = [lost]\nfor one in configs:\n    run(one)\n",
        f"{SESSION}pairs = {{'a': lost}}\nfor name, one in pairs.items():\n    run(one)\n",
        f"{SESSION}class Job: pass\njob = Job()\njob.config = lost\nrun(job)\n",
        f"{SESSION}setattr(job, 'config', lost)\n",
        f"{SESSION}make = lambda: tf.Session(config=lost)\n",
        f"{SESSION}with tf.Session(config=lost if flag else used) as sess: pass\n",
        f"{SESSION}best = lost or used\nwith tf.Session(config=best) as sess: pass\n",
        f"{SESSION}used.MergeFrom(lost)\n",
        f"{SESSION}def give():\n    yield lost\n",
        f"{SESSION}@dataclass\nclass Job:\n    config: object\nrun(Job(lost))\n",
        f"{SESSION}def open_(**more):\n    return tf.Session(config=more['c'])\nopen_(c=lost)\n",
    ],
)
def test_a_configuration_that_may_get_somewhere_is_not_told(
    end: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": BEGIN + end})
    assert "NP823" not in run("scan", "train.py").out
