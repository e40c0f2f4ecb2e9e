"""What a command loads before it answers: no module, pattern or child process that its answer does not need."""

from __future__ import annotations

import json
import re
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
    "typer", "click", "rich", "git", "deepdiff", "tomlkit", "yaml", "jsonschema", "inspect", "dataclasses", "tempfile", "shutil", "pathlib",
}  # fmt: skip
#: What starts processes; no command needs it but the ones that read a history.
STARTING = {"subprocess", "npuprof.system.processes"}
#: A command, the most patterns it compiles (the four of tomllib among them), processes it starts and modules of npuprof it loads (those of
#: the built catalogue left out), and what it does not load although others do.
ROWS = [
    ("render bert-training", 4, 0, 46, {*STARTING, "heapq", "errno", "npuprof.resolve.contexts", "npuprof.checks.arguments",
        "npuprof.catalog.pairs", "npuprof.catalog.shapes", "npuprof.catalog._built.variables", "npuprof.store.layout"}),
    ("env bert-training", 4, 0, 52, {*STARTING, "shlex", "npuprof.catalog.pairs", "npuprof.catalog.shapes", "npuprof.system.tree"}),
    ("show bert-training", 4, 0, 34, STARTING),
    ("option hccl_timeout", 0, 0, 17, {*STARTING, "tomllib", "datetime", "npuprof.compare", "npuprof.resolve", "npuprof.store"}),
    ("list", 7, 0, 37, {*STARTING, "npuprof.store.layout", "npuprof.store.sources.lock", "npuprof.document.secrets"}),
    ("check", 36, 0, 68, {*STARTING, "heapq", "npuprof.store.sources.reading", "npuprof.store.sources.lock"}),
    ("explain bert-training precision_mode_v2", 13, 2, 53, {"heapq", "shlex", "copy", "npuprof.checks", "npuprof.store.sources.mirror"}),
]  # fmt: skip


def run_and_report(command: str) -> dict[str, Any]:
    words = [sys.executable, "-c", _REPORT, *command.split()]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stderr[done.stderr.index('{"code"') :])
    return report


@pytest.mark.parametrize(("command", "patterns", "children", "most", "absent"), ROWS)
def test_a_command_loads_only_what_its_answer_needs(command: str, patterns: int, children: int, most: int, absent: set[str]) -> None:
    report = run_and_report(command)
    assert report["code"] == 0
    loaded = set(report["modules"])
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert not absent & loaded
    assert len(report["patterns"]) <= patterns, "\n".join(report["patterns"])
    assert len(report["children"]) <= children, report["children"]
    own = [name for name in loaded if re.match(r"npuprof(?!.*(_built|\.checkout$|\.build$))", name)]
    assert 0 < len(own) <= most, own


def test_help_lists_the_verbs_without_loading_them() -> None:
    report = run_and_report("--help")
    assert not {"tomllib", "npuprof.catalog", "npuprof.store"} & {*report["modules"]}
    verbs = {name for name in report["modules"] if name.startswith("npuprof.commands.") and "framework" not in name}
    assert verbs == {"npuprof.commands.git", "npuprof.commands.source"}, "families of verbs, whose purpose is in their package"
