"""A scan of single files of a large tree reads these and what they import, as before a commit."""

from __future__ import annotations

import ast
import gc
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuprof.model import Context, Finding
from npuprof.scripts import steps
from npuprof.scripts.import_resolution import open_modules
from npuprof.scripts.python import imports, parsing
from npuprof.scripts.reading.python_scripts import import_python
from npuprof.scripts.scanning import scan_scripts

ARGUMENTS = """
import argparse

def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--epochs", type=int)
    return parser
"""
TRAIN = """
import os

from package7.module3 import Trainer
from utils.arguments import make_parser

os.environ["HCCL_CONNECT_TIMEOUT"] = "1200"

if __name__ == "__main__":
    args, others = make_parser().parse_known_args()
    Trainer(args, others).run()
"""
LAUNCHES = """
export HCCL_CONNECT_TIMEOUT=1200
torchrun --nproc_per_node 8 train.py --learning-rate 0.1 --of-another-program 4
python train.py --epochs 3
vllm serve model --max-model-len 1024 --tensor-parallel-size 2
python -m torch.distributed.launch pretrain.py --tensor-model-parallel-size 2 --hidden-sise 64
"""
MODULE = """
from package{next}.module0 import Base

class Trainer(Base):
    def run(self):
        return [value for value in range({number})]
"""


@pytest.fixture
def large_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of nearly 5,000 files, which is the current folder."""
    for package in range(99):
        folder = tmp_path / f"package{package}"
        folder.mkdir()
        for number in range(50):
            text = MODULE.format(next=98, number=number)
            (folder / f"module{number}.py").write_text(text)
    for name, text in (
        ("utils/arguments.py", ARGUMENTS),
        ("train.py", TRAIN),
        ("scripts/run.sh", LAUNCHES),
        ("environment.yaml", 'env:\n  HCCL_CONNECT_TIMEOUT: "1200"\n'),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scan(*paths: str) -> list[Finding]:
    return scan_scripts(list(paths), Context(), None, None).findings


def record(
    monkeypatch: pytest.MonkeyPatch, name: str, seen: set[str], top: Path
) -> Callable[..., Any]:
    """Record the paths in a tree with which a function of ``os`` is called."""
    call = getattr(os, name)

    def recorded(path: Any = ".", *others: Any, **named: Any) -> Any:
        full = os.path.abspath(os.fsdecode(path)) if not isinstance(path, int) else ""
        if full == str(top) or full.startswith(f"{top}{os.sep}"):
            seen.add(os.path.relpath(full, top))
        return call(path, *others, **named)

    monkeypatch.setattr(os, name, recorded)
    return recorded


def test_files_of_a_large_tree_are_scanned_without_listing_or_reading_the_others(
    large_tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, opened = set[str](), set[str]()
    for name in ("scandir", "listdir"):
        record(monkeypatch, name, listed, large_tree)
    record(monkeypatch, "open", opened, large_tree)
    assert scan("scripts/run.sh", "train.py", "environment.yaml") == []
    assert {path for path in listed if path.startswith("package")} <= {"package7", "package98"}
    read = {path for path in opened if path.endswith((".py", ".sh", ".yaml"))}
    assert read == {
        "scripts/run.sh",
        "train.py",
        "environment.yaml",
        "utils/arguments.py",
        "package7/module3.py",
        "package98/module0.py",
    }


def test_a_name_in_another_file_of_the_tree_is_no_slip_of_a_scanned_one(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    script = tmp_path / "run.sh"
    script.write_text(
        "torchrun pretrain.py --hidden-size 64 --num-layers 2 --seq-lenght 8 --train-iters 9"
        " --micro-batch-size 1\n"
    )
    assert [each.key for each in scan(str(script))] == ["megatron.seq-lenght"]
    (tmp_path / "other.py").write_text("NAMES = ['seq_lenght']\n")
    assert scan(str(script)) == []


def test_a_file_beyond_the_limit_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "run.sh"
    script.write_text("export HCCL_CONNECT_TIMEOUT=x\n" * 300)
    assert {each.code for each in scan(str(script))} == {"NP202"}
    monkeypatch.setattr(steps, "MOST_STEPS", 20_000)
    assert [each.code for each in scan(str(script))] == ["NP801"]


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 200_000,
        "(" * 50_000 + "a" + ")" * 50_000,
        "echo " + ">a " * 50_000,
        "A=1 " * 30_000 + "torchrun train.py",
        "torchrun " + "$A " * 10_000 + "train.py",
        "".join(f"A{number} = ${number}\n" for number in range(10_000)),
    ],
    ids=["blank lines", "parentheses", "redirections", "assignments", "variables", "no assignment"],
)
def test_long_texts_of_shells_are_read(tmp_path: Path, text: str) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"export HCCL_CONNECT_TIMEOUT=1200\n{text}\n")
    assert {each.code for each in scan(str(script))} <= {"NP801", "NP844"}


def test_the_size_of_cached_modules_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "_MOST_CACHED", 500)
    parsed: list[str] = []
    parse = parsing.parse_python

    def parse_and_note(text: str) -> ast.Module:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(parsing, "parse_python", parse_and_note)
    for number in range(3):
        (tmp_path / f"module{number}.py").write_text(f"VALUE = {number}\n" + "# text\n" * 30)
    modules = open_modules([str(tmp_path)])
    for number in (0, 1, 0, 2, 1):
        modules.begin_script(None)  # type: ignore[arg-type]
        assert modules.load(str(tmp_path / f"module{number}.py")) is not None
    assert len(parsed) == 4, "two of the three modules are kept, those used last"


def test_the_tree_of_a_script_is_freed_by_the_next_one_without_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees: list[weakref.ref[ast.Module]] = []
    parse = parsing.parse_python

    def parse_and_note(text: str) -> ast.Module:
        tree = parse(text)
        trees.append(weakref.ref(tree))
        return tree

    monkeypatch.setattr(parsing, "parse_python", parse_and_note)
    monkeypatch.setattr(imports, "_LARGEST_CACHED", 0)
    modules = imports.Modules()
    text = b"import os\ndef f():\n    os.environ['HCCL_CONNECT_TIMEOUT'] = '1200'\nf()\n"
    gc.collect()
    gc.disable()
    try:
        assert import_python("a.py", text, modules).settings
        import_python("b.py", b"", modules)
        assert trees[0]() is None
    finally:
        gc.enable()
