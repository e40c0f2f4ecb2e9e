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

from npuprof.model import Record
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
report = {"code": code, "modules": [*sys.modules], "patterns": [*patterns]}
report |= {"children": [*children], "parts": [*parts]}
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
    "typing",
}
#: What starts processes; no command needs it but the ones that read a history.
STARTING = {"subprocess", "npuprof.system.processes"}


class Limits(Record):
    """A command and the most that it may load; ``absent`` are modules that other commands load.

    The patterns include the three of tomli, the modules are npuprof's without the built catalogue.
    """

    command: str
    patterns: int
    children: int
    modules: int
    absent: set[str]


ROWS = [
    Limits(
        command="render bert-training",
        patterns=3,
        children=0,
        modules=50,
        absent={
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
    Limits(
        command="render bert-training --unset env.ASCEND_GLOBAL_LOG_LEVEL",
        patterns=3,
        children=0,
        modules=47,
        absent={
            *STARTING,
            "npuprof.checks.meaning",
            "npuprof.catalog.readers",
            "npuprof.checks.variables",
            "npuprof.catalog.execution",
        },
    ),
    Limits(
        command="env bert-training",
        patterns=3,
        children=0,
        modules=54,
        absent={
            *STARTING,
            "shlex",
            "npuprof.catalog.key_value_pairs",
            "npuprof.catalog.shapes",
            "npuprof.system.tree",
        },
    ),
    Limits(
        command="render vllm-serving --to vllm",
        patterns=13,
        children=0,
        modules=60,
        absent={*STARTING, "npuprof.document.positions", "npuprof.report.findings"},
    ),
    Limits(
        command="env vllm-serving",
        patterns=5,
        children=0,
        modules=59,
        absent={*STARTING, "json", "shlex", "npuprof.document.positions"},
    ),
    Limits(
        command="show bert-training",
        patterns=3,
        children=0,
        modules=35,
        absent=STARTING,
    ),
    Limits(
        command="option hccl_timeout",
        patterns=0,
        children=0,
        modules=20,
        absent={
            *STARTING,
            "tomli",
            "datetime",
            "npuprof.compare",
            "npuprof.resolve",
            "npuprof.store",
        },
    ),
    Limits(
        command="list",
        patterns=4,
        children=0,
        modules=45,
        absent={
            *STARTING,
            "npuprof.store.layout",
            "npuprof.store.sources.lock",
            "npuprof.document.secrets",
        },
    ),
    Limits(
        command="check",
        patterns=13,
        children=0,
        modules=81,
        absent={
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
    Limits(
        command="explain bert-training precision_mode_v2",
        patterns=6,
        children=2,
        modules=51,
        absent={
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
    Limits(
        command="diff builtin:bert-training builtin:resnet50-training",
        patterns=5,
        children=0,
        modules=72,
        absent={
            "npuprof.checks.accepted",
            "npuprof.compare.json_changes",
            "npuprof.store.sources.lookups",
            "npuprof.store.teamrules",
            "npuprof.system.tree",
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
    (
        "env vllm-serving",
        {"axes", "env", "frameworks", "options", "reads", "rules", "vllm", "vllm_ascend"},
    ),
    ("option hccl_timeout", {"axes", "options", "rule_texts", "rules", "texts"}),
]


@pytest.fixture(scope="module", autouse=True)
def built_forms() -> None:
    """What the first command after a change builds, and caches for the others."""
    for package, part in (("catalog", "options"), ("renderers", "targets"), ("commands", "verbs")):
        load_built_part(package, part)


def run_and_report(command: str) -> dict[str, Any]:
    arguments = [sys.executable, "-c", _REPORT, *command.split()]
    done = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stderr[done.stderr.index('{"code"') :])
    return report


@pytest.mark.parametrize("limits", ROWS, ids=lambda limits: limits.command)
def test_a_command_loads_only_what_its_answer_needs(limits: Limits) -> None:
    report = run_and_report(limits.command)
    assert report["code"] == 0
    loaded = set(report["modules"])
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert not limits.absent & loaded
    assert len(report["patterns"]) <= limits.patterns, "\n".join(report["patterns"])
    assert len(report["children"]) <= limits.children, report["children"]
    own = [name for name in loaded if re.match(r"npuprof(?!.*(_built|\.checkout$|\.build$))", name)]
    assert 0 < len(own) <= limits.modules, own
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
