"""A configuration that is filled and never used: reported, and not carried over as effective."""

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
IMPORTS, _, CONFIGURATIONS = BEGIN.partition("used =")
LOST_ONLY = f"{IMPORTS}{CONFIGURATIONS[CONFIGURATIONS.index('lost =') :]}"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(SESSION, id="a session"),
        pytest.param(f"if flag:\n    pass\n{SESSION}", id="a session after a branch"),
        pytest.param(f"def train():\n    {SESSION}train()\n", id="a session in a function"),
        pytest.param(f"print(lost)\n{SESSION}", id="a print of it"),
    ],
)
def test_a_second_configuration_that_goes_nowhere_is_told_and_left_out(
    end: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": BEGIN + end})
    scanned = run("scan", "train.py")
    assert (
        "train.py:8:1: warning NP823: lost has an entry for the "
        "adapter, and nothing is given lost: tf.Session(...)"
    ) in scanned.out
    made = run("import", "train.py")
    assert made.code == 0
    assert CARRIED in made.out
    assert "NP823" in made.err


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(BARE, id="a session without configuration"),
        pytest.param(
            "other = tf.ConfigProto()\nwith tf.Session(config=other) as sess: pass\n",
            id="a session with another one",
        ),
    ],
)
def test_the_only_configuration_is_carried_over_with_a_remark(
    end: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": LOST_ONLY + end})
    made = run("import", "train.py")
    assert made.code == 0
    assert 'precision_mode = "force_fp16"' in made.out
    assert "NP823" in made.err


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("", id="no session"),
        pytest.param(
            f"{SESSION}configs = [lost]\nfor one in configs:\n    run(one)\n", id="in a list"
        ),
        pytest.param(
            f"{SESSION}pairs = {{'a': lost}}\nfor name, one in pairs.items():\n    run(one)\n",
            id="in a table",
        ),
        pytest.param(
            f"{SESSION}class Job: pass\njob = Job()\njob.config = lost\nrun(job)\n",
            id="in an attribute",
        ),
        pytest.param(f"{SESSION}setattr(job, 'config', lost)\n", id="by setattr"),
        pytest.param(f"{SESSION}make = lambda: tf.Session(config=lost)\n", id="in a lambda"),
        pytest.param(
            f"{SESSION}with tf.Session(config=lost if flag else used) as sess: pass\n",
            id="in a conditional expression",
        ),
        pytest.param(
            f"{SESSION}best = lost or used\nwith tf.Session(config=best) as sess: pass\n",
            id="behind or",
        ),
        pytest.param(f"{SESSION}used.MergeFrom(lost)\n", id="merged into another one"),
        pytest.param(f"{SESSION}def give():\n    yield lost\n", id="yielded"),
        pytest.param(
            f"{SESSION}@dataclass\nclass Job:\n    config: object\nrun(Job(lost))\n",
            id="in a dataclass",
        ),
        pytest.param(
            f"{SESSION}def open_(**more):\n    return tf.Session(config=more['c'])\n"
            "open_(c=lost)\n",
            id="as a keyword",
        ),
    ],
)
def test_a_configuration_that_may_get_somewhere_is_not_told(
    end: str, tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": BEGIN + end})
    assert "NP823" not in run("scan", "train.py").out
