"""What scan reports about imports from files of a script's tree: constants, tables, functions."""

from __future__ import annotations

import ast
import json
import os
import weakref
from typing import TYPE_CHECKING

import pytest

from npuprof.scripts.python import parsing
from npuprof.scripts.python.config_classes import CLASSES
from npuprof.scripts.python.expressions import name_callee
from npuprof.scripts.python.module import Module
from npuprof.scripts.python.parsing import Script
from npuprof.scripts.python.visitor import list_calls
from npuprof.scripts.reading.python_scripts import mentions_python_setting
from support.importing import HEAD, TAIL, write
from support.running import Result, Run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", CLASSES)
def test_each_configuration_class_makes_a_script_worth_parsing(name: str) -> None:
    assert mentions_python_setting(f"import npu\n{name}()\n".encode())


def test_the_tree_of_an_imported_module_is_freed_as_soon_as_it_is_dropped() -> None:
    module = Module(Script("a.py", b"import os\ndef f():\n    return __file__\n"), None)
    module.scope.list_bindings("f")
    tree = weakref.ref(module.tree)
    del module
    assert tree() is None, "a reference cycle would keep it until the next collection"


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("a(b(1), c(), d=e()).f()[g(\n)]; h()", "bceafg"),
        ("[a(x) for x in b()]", "ab"),
        ("x; y()", ""),
        ("{a():\n b()}", "ab"),
        ("a if b() else c", "b"),
        ("a(b=c(), *d())", "dca"),
        ("(a and\n b())", "b"),
        ("lambda: a()", "a"),
        ("f'{a()}'", "a"),
    ],
)
def test_the_calls_of_an_expression_are_listed_innermost_first(line: str, names: str) -> None:
    (statement, *_) = ast.parse(line).body
    assert isinstance(statement, ast.Expr)
    calls = list_calls(statement.value)
    assert "".join(name_callee(call) for call, _ in calls) == names


OPEN = "import tensorflow as tf\nfrom npu_bridge.npu_init import *\n"
UTILS = f"""{OPEN}MODE = "allow_mixed_precision"
RIGHT = "allow_mix_precision"
TIMEOUTS = {{"hccl_timeout": "1800"}}
RUN = dict(precision_mode="mixed", iterations_per_loop=10, mix_compile_mode=True)
def make(mode="allow_mix_precision", dump=None, **more):
    config = tf.ConfigProto()
    op = config.graph_options.rewrite_options.custom_optimizers.add()
    op.name = "NpuOptimizer"
    op.parameter_map["precision_mode"].s = tf.compat.as_bytes(mode)
    if dump:
        op.parameter_map["enable_dump"].b = True
        op.parameter_map["dump_path"].s = tf.compat.as_bytes(dump)
    for key, value in more.items():
        if isinstance(value, bool):
            op.parameter_map[key].b = value
        else:
            op.parameter_map[key].s = tf.compat.as_bytes(value)
    return config
def switch_dump(op):
    op.parameter_map["enable_dump"].b = True
def give_path(op, path):
    op.parameter_map["dump_path"].s = tf.compat.as_bytes(path)
"""
SET = 'custom_op.parameter_map["precision_mode"].s = tf.compat.as_bytes({})\n'


def scan(run: Run, *arguments: str) -> list[str]:
    """Return what is told as ``file:line code``."""
    answer = run("scan", *arguments, "--format", "json")
    return [
        f"{finding['path']}:{finding['line']} {finding['code']}"
        for finding in json.loads(answer.out)["findings"]
        if finding["severity"] != "info"
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            f"from utils import MODE\n{HEAD}{SET.format('MODE')}{TAIL}",
            ["train.py:{last} NP203"],
            id="imported constant",
        ),
        pytest.param(
            f"import utils\n{HEAD}{SET.format('utils.MODE')}{TAIL}",
            ["train.py:{last} NP203"],
            id="constant of an imported module",
        ),
        pytest.param(
            f"import utils\n{HEAD}{SET.format('utils.RIGHT')}{TAIL}", [], id="valid constant"
        ),
        pytest.param(
            'from utils import make\ns = tf.Session(config=make("mixed"))\n',
            ["utils.py:11 NP203"],
            id="function with a wrong argument",
        ),
        pytest.param(
            'from utils import make\ns = tf.Session(config=make("force_fp16", "/dump"))\n',
            [],
            id="function with valid arguments",
        ),
        pytest.param(
            "from utils import make\ns = tf.Session(config=make(FLAGS.mode, FLAGS.dump))\n",
            [],
            id="function with flags",
        ),
        pytest.param(
            f"{OPEN}from utils import RUN\nc = NPURunConfig(**RUN)\n",
            ["train.py:4 NP203", "train.py:4 NP333"],
            id="keyword arguments of a class",
        ),
        pytest.param(
            (
                f"from utils import switch_dump, give_path\n{HEAD}switch_dump(custom_op)\n"
                f'give_path(custom_op, "/d")\n{TAIL}'
            ),
            [],
            id="functions that change the argument",
        ),
        pytest.param(
            (
                "from utils import switch_dump\n"
                f'{HEAD}custom_op.parameter_map["dump_path"].s '
                f'= b"/d"\nswitch_dump(custom_op)\n{TAIL}'
            ),
            [],
            id="function called after a setting",
        ),
    ],
)
def test_a_script_is_judged_with_what_it_imports_from_its_tree(
    lines: str, expected: list[str], tmp_path: Path, run: Run
) -> None:
    write(tmp_path, {"train.py": lines, "utils.py": UTILS})
    last = next(
        (
            number
            for number, line in enumerate(lines.split("\n"), 1)
            if "MODE" in line and "import" not in line
        ),
        0,
    )
    assert scan(run, "train.py") == [line.format(last=last) for line in expected]


def test_what_is_wrong_by_the_words_of_a_call_names_the_call_and_what_is_wrong_in_any_case_does_not(
    tmp_path: Path, run: Run
) -> None:
    script = 'from utils import make\ns = tf.Session(config=make("mixed"))\n'
    write(tmp_path, {"a.py": script, "b.py": script, "utils.py": UTILS})
    (finding,) = json.loads(run("scan", ".", "--format", "json").out)["findings"]
    assert finding["path"] == "utils.py"
    assert finding["line"] == 11
    assert finding["code"] == "NP203"
    assert finding["why"].endswith("The function is called in a.py:2.")
    write(tmp_path, {"utils.py": UTILS.replace("tf.compat.as_bytes(mode)", 'b"mixed"')})
    (finding,) = json.loads(run("scan", ".", "--format", "json").out)["findings"]
    assert finding["path"] == "utils.py"
    assert finding["line"] == 11
    assert "called" not in finding["why"]


def test_files_that_import_each_other_are_read_as_alone_and_parsed_once(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    parse = parsing.parse_python
    monkeypatch.setattr(parsing, "parse_python", lambda text: parsed.append(text) or parse(text))
    files = {
        name: f"from utils import make\ndef {name}(mode):\n    make(mode)\n{name}('mixed')\n"
        for name in ("a", "x")
    }
    write(
        tmp_path,
        {"utils.py": f"{UTILS}import a\n", **{f"{name}.py": text for name, text in files.items()}},
    )
    alone = {line for name in ("a.py", "utils.py", "x.py") for line in scan(run, name)}
    assert alone
    assert len(parsed) == 5
    assert set(scan(run, ".")) == alone
    assert len(parsed) == 8


def test_a_large_tree_is_read_by_several_processes_with_the_same_answer(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npuprof.scripts.scanning._BATCH", 1)
    monkeypatch.setattr("threading.active_count", lambda: 1)  # other tests may have left threads
    forks: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    fault = f"from utils import MODE, make\n{HEAD}{SET.format('MODE')}{TAIL}make('mixed')\n"
    sidecar = 'custom_op.parameter_map["modify_mixlist"].s = tf.compat.as_bytes("ops.json")\n'
    for folder in ("a", "b", "c"):
        write(
            tmp_path / folder,
            {
                "utils.py": UTILS,
                "named.py": f"{HEAD}{sidecar}{TAIL}",
                **{f"train{n}.py": fault for n in range(4)},
            },
        )
    callers = {
        f"{name}{n}.py": f"from {module} import {used}\n{used}('mixed')\n"
        for n in range(4)
        for name, module, used in ("ixm", "jyw")
    }
    circle = {
        "x.py": UTILS.replace("make(", "m(") + "import y\n",
        "y.py": "from x import m\ndef w(mode):\n    return m(mode)\n",
    }
    write(tmp_path / "ring", {**circle, **callers})
    write(tmp_path, {"ops.json": "{"})
    answers: list[tuple[Result, Result]] = []
    for processors in ({0}, {0, 1, 2}):
        monkeypatch.setattr(
            "os.sched_getaffinity", lambda process, processors=processors: processors, raising=False
        )
        answers.append((run("scan", "."), run("scan", ".", "--statistics")))
    assert answers[0] == answers[1]
    assert answers[0][0].out.count("NP203") == 16
    assert len(forks) == 4, "two copies for each of the two commands"
