"""What a command loads before it answers: no unneeded module, pattern or child process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from npuprof.system import load_built_part
from support.building import REPOSITORY

_REPORT = """
import re, sys
from re import _compiler
patterns, children, parts, compile_pattern = [], [], [], _compiler.compile

def record_pattern(pattern, flags=0):
    patterns.append(str(pattern))
    return compile_pattern(pattern, flags)

_compiler.compile = record_pattern
def watch(event, details):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.fork"):
        children.append(event)
    elif event == "open" and details[1] == "r" and "/catalog/_built/" in str(details[0]):
        parts.append(details[0].rpartition("/")[2].removesuffix(".marshal"))

sys.addaudithook(watch)
from npuprof.__main__ import main
code = main(sys.argv[1:])
report = {"code": code, "modules": [*sys.modules], "patterns": [*patterns], "children": [*children], "parts": [*parts]}
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
#: What starts processes; no command needs it but the ones that read a history.
STARTING = {"subprocess", "npuprof.system.processes"}
#: A command, the most patterns it compiles (the three of tomli among them), processes it starts and
#: modules of npuprof it loads (those of the built catalogue left out), and what it does not load
#: although others do.
ROWS = [
    (
        "render bert-training",
        3,
        0,
        48,
        {
            *STARTING,
            "heapq",
            "errno",
            "npuprof.resolve.contexts",
            "npuprof.checks.plain_values",
            "npuprof.catalog.key_value_pairs",
            "npuprof.catalog.shapes",
            "npuprof.store.layout",
            "npuprof.store.problems",
            "npuprof.store.sources.lookups",
        },
    ),
    (
        "render bert-training --unset env.ASCEND_GLOBAL_LOG_LEVEL",
        3,
        0,
        45,
        {
            *STARTING,
            "npuprof.checks.meaning",
            "npuprof.catalog.readers",
            "npuprof.checks.variables",
            "npuprof.catalog.execution",
        },
    ),
    (
        "env bert-training",
        3,
        0,
        52,
        {
            *STARTING,
            "shlex",
            "npuprof.catalog.key_value_pairs",
            "npuprof.catalog.shapes",
            "npuprof.system.tree",
        },
    ),
    ("show bert-training", 3, 0, 34, STARTING),
    (
        "option hccl_timeout",
        0,
        0,
        20,
        {*STARTING, "tomli", "datetime", "npuprof.compare", "npuprof.resolve", "npuprof.store"},
    ),
    (
        "list",
        4,
        0,
        38,
        {
            *STARTING,
            "npuprof.store.layout",
            "npuprof.store.sources.lock",
            "npuprof.document.secrets",
        },
    ),
    (
        "check",
        12,
        0,
        71,
        {
            *STARTING,
            "heapq",
            "json",
            "fnmatch",
            "npuprof.store.sources.opening",
            "npuprof.store.sources.lock",
            "npuprof.report.terminal",
            "npuprof.resolve.faults",
            "npuprof.document.secrets",
        },
    ),
    (
        "explain bert-training precision_mode_v2",
        5,
        2,
        50,
        {
            "heapq",
            "shlex",
            "copy",
            "json",
            "bisect",
            "npuprof.checks",
            "npuprof.store.sources.mirror",
            "npuprof.compare.override_scopes",
            "npuprof.resolve.contexts",
            "npuprof.document.positions",
            "npuprof.compare.differences",
            "npuprof.store.versions",
        },
    ),
]
#: A command, and the parts of the built catalogue that it reads.
PARTS = [
    ("render bert-training", {"axes", "env", "options", "rules"}),
    ("explain bert-training precision_mode_v2", {"axes", "options", "rules", "texts"}),
    (
        "render bert-training --unset env.ASCEND_GLOBAL_LOG_LEVEL",
        {"axes", "options", "rules", "texts"},
    ),
    ("option hccl_timeout", {"axes", "options", "rule_texts", "rules", "texts"}),
]


@pytest.fixture(scope="module", autouse=True)
def built_forms() -> None:
    """What the first command after a change builds, and caches for the others."""
    for package, part in (("catalog", "options"), ("renderers", "targets"), ("commands", "verbs")):
        load_built_part(package, part)


def run_and_report(command: str) -> dict[str, Any]:
    words = [sys.executable, "-c", _REPORT, *command.split()]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stderr[done.stderr.index('{"code"') :])
    return report


@pytest.mark.parametrize(("command", "patterns", "children", "most", "absent"), ROWS)
def test_a_command_loads_only_what_its_answer_needs(
    command: str, patterns: int, children: int, most: int, absent: set[str]
) -> None:
    report = run_and_report(command)
    assert report["code"] == 0
    loaded = set(report["modules"])
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert not absent & loaded
    assert len(report["patterns"]) <= patterns, "\n".join(report["patterns"])
    assert len(report["children"]) <= children, report["children"]
    own = [name for name in loaded if re.match(r"npuprof(?!.*(_built|\.checkout$|\.build$))", name)]
    assert 0 < len(own) <= most, own
    sources = {name: Path(str(find_spec(name).origin)).read_text() for name in own}  # type: ignore[union-attr]
    assert not [
        name for name, source in sources.items() if re.search("^(from|import) typing", source, re.M)
    ]


@pytest.mark.parametrize(("command", "parts"), PARTS)
def test_a_command_reads_only_parts_of_the_catalogue_that_its_answer_needs(
    command: str, parts: set[str]
) -> None:
    assert {*run_and_report(command)["parts"]} == parts


def test_help_lists_the_verbs_without_loading_them() -> None:
    run_and_report("--help")  # builds the index of a checkout
    report = run_and_report("--help")
    assert not {"tomli", "npuprof.catalog", "npuprof.store"} & {*report["modules"]}
    verbs = {
        name
        for name in report["modules"]
        if name.startswith("npuprof.commands.") and "framework" not in name
    }
    assert verbs == {"npuprof.commands.git", "npuprof.commands.source"}, (
        "families of verbs, whose purpose is in their package"
    )
