"""A command reads each file of its store once, however many presets, contexts and checks ask for it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from npuprof.report import writing
from support.repositories import Repo
from support.running import Run

PRESETS = {
    "base/common": '[profile]\nabstract = true\nscenario = "training"\n[options]\nhccl_timeout = 1836\n',
    "base/training": '[profile]\nabstract = true\nextends = ["base/common"]\n[options]\niterations_per_loop = 10\n',
    "mixins/fp16": '[profile]\nabstract = true\n[options]\nprecision_mode_v2 = "fp16"\n',
    "bert": '[profile]\nextends = ["base/training", "mixins/fp16"]\n[options]\nenable_exception_dump = 1\nmstune_mode = "2"\n',
    "bert-large": '[profile]\nextends = ["bert"]\n[[override]]\nmatch = { product = "atlas-a3" }\noptions = { hccl_timeout = 3600 }\n',
    "resnet": '[profile]\nextends = ["base/training"]\n[options]\nhccl_timeout = 1904\n',
}
SCRIPT = """import tensorflow as tf
from npu_bridge.npu_init import *
config = tf.ConfigProto()
custom_op = config.graph_options.rewrite_options.custom_optimizers.add()
custom_op.name = "NpuOptimizer"
custom_op.parameter_map["hcom_parallel"].b = True
with tf.Session(config=config) as session:
    session.run(step)
"""
BLOCK = "config = tf.ConfigProto()\n# >>> npuprof bert >>>\n# <<< npuprof <<<\n"
#: What is counted now; an audit hook stays as long as its process.
_opened: list[Counter[tuple[str, bool]]] = []


def _count_open(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened and isinstance(arguments[0], str) and arguments[0].endswith(".toml"):
        _opened[-1][os.path.realpath(arguments[0]), arguments[1] is None] += 1


sys.addaudithook(_count_open)


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch, repo: Repo) -> Iterator[Counter[tuple[str, bool]]]:
    """Count how often files are opened until a command writes: then each is compared with what was read."""
    counts: Counter[tuple[str, bool]] = Counter()
    write = writing.write_wanted_files

    def stop_and_write(wanted: list[writing.Wanted]) -> None:
        _opened.clear()
        write(wanted)

    monkeypatch.setattr(writing, "write_wanted_files", stop_and_write)
    repo.commit(PRESETS)
    yield counts
    _opened.clear()


@pytest.mark.parametrize("words", [
    "show bert", "list --where hccl_timeout>0", "check", "check --fix", "diff --rev HEAD", "set base/training hccl_timeout=1904",
    "set --where hccl_timeout>0 iterations_per_loop=20 --yes", "unset bert enable_exception_dump", "new gpt --extends bert",
    "rename base/training base/train", "migrate --all --cann 9.0.0", "restore bert@HEAD --force", "commit bert -m change",
    "release resnet 1.0.0", "import train.py -o profiles/gpt.toml", "adopt train.py", "inject block.py --all",
])  # fmt: skip
def test_a_preset_is_opened_once(words: str, opens: Counter[tuple[str, bool]], repo: Repo, run: Run) -> None:
    repo.write({"bert": PRESETS["bert"].replace("= 1", "= 2")})
    (repo.folder / "train.py").write_text(SCRIPT, "utf-8")
    (repo.folder / "block.py").write_text(BLOCK, "utf-8")
    _opened.append(opens)
    done = run(*words.split())
    assert done.code in (0, 1), done.err
    restored = {os.path.realpath("profiles/bert.toml")} if words.startswith("restore") else set()  # read, and compared with a commit
    assert {path for (path, _), count in opens.items() if count > 1} == restored, done.err
    assert opens or words.startswith(("import", "release"))
