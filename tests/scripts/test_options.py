"""Options of TensorFlow 2 wherever they are created: in a function, an attribute, another file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.importing import write
from support.running import Run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import npu_device as npu\n"


def scan(run: Run, *arguments: str) -> list[str]:
    """Return the findings as ``file:line code``."""
    answer = run("scan", *arguments, "--format", "json")
    return [
        f"{finding['path']}:{finding['line']} {finding['code']}"
        for finding in json.loads(answer.out)["findings"]
    ]


def chain_names(length: int) -> str:
    """Return a script that passes the options from name to name, and sets one of the last name."""
    links = "".join(f"o{i} = o{i - 1}\n" for i in range(1, length))
    return f"o0 = npu.global_options()\n{links}o{length - 1}.foo = 1\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        pytest.param(
            "def get():\n    return npu.global_options()\nget().foo = 1\n",
            ["train.py:4 NP812"],
            id="returned by a function",
        ),
        pytest.param(
            "def get():\n    o = npu.global_options()\n    return o\nmine = get()\nmine.foo = 1\n",
            ["train.py:6 NP812"],
            id="returned through a variable",
        ),
        pytest.param(
            "def get(): return npu.global_options().experimental\nget().foo = 1\n",
            ["train.py:3 NP812"],
            id="a member returned by a function",
        ),
        pytest.param(
            (
                "class A:\n    def __init__(self):\n        self.o = npu.global_options()\n"
                "    def go(self):\n        self.o.foo = 1\n"
            ),
            ["train.py:6 NP812"],
            id="attribute of an object",
        ),
        pytest.param(
            (
                "class A:\n    def a(self):\n"
                "        self.o = npu.global_options()\n    def b(self):\n"
                "        self.o = B()\n    def go(self):\n        self.o.foo = 1\n"
            ),
            [],
            id="attribute with two values",
        ),
        pytest.param(
            "o = npu.global_options()\no = object()\no.foo = 1\n", [], id="variable with two values"
        ),
        pytest.param(
            "def get(again):\n    return get(again)\nget(1).foo = 1\nnpu.global_options()\n",
            [],
            id="function that calls itself",
        ),
    ],
)
def test_what_stands_for_the_options_in_one_file_is_known(
    lines: str, found: list[str], tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": f"{HEAD}{lines}"})
    assert scan(run, "train.py") == found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (chain_names(9), ["train.py:11 NP812"]),
        (chain_names(10), []),
        ("npu.global_options()\na.o = b.o\nb.o = a.o\na.o.foo = 1\n", []),
    ],
    ids=["a chain of the greatest length", "a longer one", "a circle"],
)
def test_names_of_the_options_are_followed_to_a_depth(
    lines: str, found: list[str], tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": f"{HEAD}{lines}"})
    assert scan(run, "train.py") == found


def test_a_finding_in_a_shared_file_is_told_once_and_accepted_there(
    tmp_path: Path, run: Run
) -> None:
    script = "from cfg import setup\nsetup()\n"
    helper = (
        f"{HEAD}def setup(mode='fp17'):\n    npu.global_options().precision_mode = mode{{note}}\n"
    )
    write(tmp_path, {"a.py": script, "b.py": script, "cfg.py": helper.format(note="")})
    assert scan(run, ".") == ["cfg.py:3 NP203"]
    assert scan(run, "a.py", "./b.py") == ["cfg.py:3 NP203"]
    write(tmp_path, {"cfg.py": helper.format(note="  # npuprof: ignore[NP203] tried out")})
    for arguments in (["."], ["a.py"], ["a.py", "cfg.py"]):
        answer = run("scan", *arguments)
        assert answer.code == 0
        assert "1 finding accepted" in answer.err or "1 accepted" in answer.err
        assert scan(run, *arguments) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.yaml", "model: m\ntensor-parallel-size: 2\ngpu-memory-utilization: 92{note}\n"),
        (
            "config.json",
            '{{"model": "m", "tensor_parallel_size": 2, "gpu_memory_utilization": 92}}',
        ),
    ],
)
def test_a_finding_in_a_configuration_is_told_once_and_accepted_there(
    file: str, text: str, tmp_path: Path, run: Run
) -> None:
    serve = f"vllm serve m --config {file}\n"
    write(tmp_path, {"a.sh": serve, "b.sh": serve, file: text.format(note="")})
    (found,) = scan(run, "a.sh")
    assert scan(run, ".") == scan(run, "a.sh", "b.sh", file) == [found]
    if file == "config.yaml":
        write(tmp_path, {file: text.format(note="  # npuprof: ignore[NP203] tried out")})
        assert scan(run, ".") == scan(run, "a.sh") == []
