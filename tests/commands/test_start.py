"""What a command loads before it answers: no module, pattern or child process that its answer does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from support.building import REPOSITORY

_REPORT = """
import re, sys
from re import _compiler
patterns, children, compile_pattern = [], [], _compiler.compile

def record_pattern(pattern, flags=0):
    patterns.append(str(pattern))
    return compile_pattern(pattern, flags)

_compiler.compile = record_pattern
sys.addaudithook(lambda event, _: children.append(event) if event in ("subprocess.Popen", "os.posix_spawn", "os.fork") else None)
from npuprof.__main__ import main
code = main(sys.argv[1:])
report = {"code": code, "modules": [*sys.modules], "patterns": [*patterns], "children": [*children]}
import json
json.dump(report, sys.stderr)
"""
#: What takes long to import, and no plain answer needs.
HEAVY = {
    "typer",
    "click",
    "rich",
    "git",
    "deepdiff",
    "tomlkit",
    "yaml",
    "jsonschema",
    "inspect",
    "dataclasses",
    "tempfile",
    "shutil",
    "pathlib",
}
#: A command, how many patterns it compiles, the four of tomllib among them, and how many processes it starts.
ROWS = [
    ("render bert-training", 4, 0),
    ("env bert-training", 4, 0),
    ("show bert-training", 4, 0),
    ("option hccl_timeout", 0, 0),
    ("list", 7, 0),
    ("check", 36, 0),
    ("diff bert-training resnet-inference-fp16", 10, 0),
    ("explain bert-training precision_mode_v2", 13, 2),
]  # fmt: skip
#: A command, and what it does not load although others do.
ABSENT = [
    ("render bert-training", {"heapq", "fnmatch", "bisect", "errno", "npuprof.resolve.contexts", "npuprof.checks.arguments"}),
    (
        "render bert-training",
        {"npuprof.catalog.pairs", "npuprof.catalog.shapes", "npuprof.catalog.launchers", "npuprof.catalog._built.variables"},
    ),
    ("render bert-training", {"npuprof.store.layout", "npuprof.store.around", "npuprof.system.tree"}),
    ("env bert-training", {"shlex", "npuprof.catalog.pairs", "npuprof.catalog.shapes", "npuprof.system.tree"}),
    ("option hccl_timeout", {"tomllib", "datetime", "npuprof.compare", "npuprof.resolve", "npuprof.store"}),
    ("list", {"npuprof.store.layout", "npuprof.store.sources.lock", "npuprof.store.sources.urls", "npuprof.document.secrets"}),
    ("check", {"heapq", "npuprof.store.sources.reading", "npuprof.store.sources.lock", "npuprof.store.sources.urls"}),
    ("explain bert-training precision_mode_v2", {"heapq", "shlex", "copy", "npuprof.checks", "npuprof.document.policy"}),
    ("explain bert-training precision_mode_v2", {"npuprof.store.sources.mirror", "npuprof.system.tree"}),
    ("--help", {"tomllib", "npuprof.catalog", "npuprof.store"}),
]
#: A command, and how many modules of npuprof it loads, those of the built catalogue left out.
MODULES = [
    ("render bert-training", 46),
    ("env bert-training", 52),
    ("show bert-training", 34),
    ("option hccl_timeout", 17),
    ("list", 37),
    ("check", 68),
    ("explain bert-training precision_mode_v2", 53),
]


def run_and_report(command: str) -> dict[str, Any]:
    words = [sys.executable, "-c", _REPORT, *command.split()]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stderr[done.stderr.index('{"code"') :])
    return report


@pytest.mark.parametrize(("command", "patterns", "children"), ROWS)
def test_a_command_loads_only_what_its_answer_needs(command: str, patterns: int, children: int) -> None:
    report = run_and_report(command)
    assert report["code"] == 0
    assert not HEAVY & {name.partition(".")[0] for name in report["modules"]}
    assert len(report["patterns"]) <= patterns, "\n".join(report["patterns"])
    assert len(report["children"]) <= children, report["children"]


@pytest.mark.parametrize(("command", "absent"), ABSENT)
def test_a_command_does_not_load_what_only_others_need(command: str, absent: set[str]) -> None:
    assert not absent & {*run_and_report(command)["modules"]}


@pytest.mark.parametrize(("command", "most"), MODULES)
def test_a_command_loads_no_more_modules_than_it_did(command: str, most: int) -> None:
    loaded = [name for name in run_and_report(command)["modules"] if name.partition(".")[0] == "npuprof"]
    own = [name for name in loaded if "_built" not in name and not name.endswith((".checkout", ".build"))]
    assert len(own) <= most, own


@pytest.mark.parametrize("command", [row[0] for row in ROWS if row[0].partition(" ")[0] not in ("diff", "explain")])
def test_a_command_without_history_does_not_load_what_starts_processes(command: str) -> None:
    assert not {"subprocess", "npuprof.system.processes"} & {*run_and_report(command)["modules"]}


def test_help_lists_the_verbs_without_loading_them() -> None:
    report = run_and_report("--help")
    verbs = {name for name in report["modules"] if name.startswith("npuprof.commands.") and "framework" not in name}
    assert verbs == {"npuprof.commands.git", "npuprof.commands.source"}, "families of verbs, whose purpose is in their package"
