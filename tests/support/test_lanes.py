"""The lanes of the tests, permitted skips, and what no test may do."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.lanes import (
    MAY_BE_SKIPPED,
    TESTS,
    find_excesses,
    format_skips,
    read_durations,
    sum_shares,
)

FILES = sorted(path for path in TESTS.rglob("*.py") if "samples" not in path.parts)
MODULES = {path.relative_to(TESTS).as_posix(): ast.parse(path.read_text()) for path in FILES}


def list_functions(name: str) -> Iterator[ast.FunctionDef]:
    yield from (
        node
        for node in ast.walk(MODULES[name])
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def find_nightly(node: ast.AST) -> list[str]:
    """Return the gate tests that the nightly marks below a node name."""
    calls = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("mark.nightly")
    ]
    return [ast.literal_eval(call.args[0]) for call in calls]


FUNCTIONS = {f"{name}::{node.name}": node for name in MODULES for node in list_functions(name)}
NIGHTLY = {
    name: find_nightly(node)
    for name, node in FUNCTIONS.items()
    if any(map(find_nightly, node.decorator_list))
}


def test_each_nightly_test_names_a_test_of_the_gate() -> None:
    named = [gate for tree in MODULES.values() for gate in find_nightly(tree)]
    assert named
    assert all(gate in FUNCTIONS and gate not in NIGHTLY for gate in named), named


def test_most_tests_have_a_duration_and_those_that_have_one_are_there() -> None:
    durations = read_durations()
    assert not durations.keys() - FUNCTIONS.keys()
    assert len(FUNCTIONS.keys() - durations.keys() - NIGHTLY.keys()) < len(FUNCTIONS) / 10


KEPT = {"a.py::test_x": 60.0, "a.py::test_y": 30.0, "b.py::test_z": 10.0}


@pytest.mark.parametrize(
    ("taken", "files"),
    [
        ({}, []),
        ({"b.py::test_z": 15.0}, []),
        ({"b.py::test_z": 19.0}, ["b.py"]),
        ({"a.py::test_x": 600.0}, []),
        ({"c.py::test_new": 1.4}, []),
        ({"c.py::test_new": 5.0}, ["c.py"]),
    ],
    ids=["nothing", "half more", "much more", "a large file", "a cheap new file", "a new file"],
)
def test_a_file_that_takes_more_than_its_share_of_the_cpu_is_named(
    taken: dict[str, float], files: list[str]
) -> None:
    assert [line.split()[0] for line in find_excesses(KEPT | taken, KEPT)] == files
    assert find_excesses(taken, KEPT) == []  # most tests did not run
    assert sum_shares(KEPT) == {"a.py": 90.0, "b.py": 10.0}


CLOCKS = re.compile(
    r"\b(?:time\.|from time import .*)"
    r"(?:time|monotonic|perf_counter|process_time|thread_time|clock_gettime)(?:_ns)?\b"
    r"|\b(?:getrusage|datetime\.now)\("
)
#: Files that read a clock to wait no longer than a bound. Benchmarks may, too: they print figures.
MAY_READ_CLOCKS = {"support/browsing.py", "support/waiting.py"}


def test_no_test_asserts_on_a_clock() -> None:
    readers = {name for name in MODULES if CLOCKS.search((TESTS / name).read_text())}
    others = {name for name in readers if not name.startswith("bench/")}
    assert others == MAY_READ_CLOCKS
    assert "bench/workplace.py" in readers


def test_no_test_waits_for_a_file_without_end() -> None:
    loops = {
        f"{name}:{node.lineno}": ast.unparse(node.test)
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.While)
    }
    assert len(loops) > 10
    waiting = re.compile(r"exists\(|is_file\(|st_size|poll\(")
    assert [line for line, test in loops.items() if waiting.search(test)] == [], "use wait_for"


#: What tests say that are skipped for a reason that is listed nowhere, and for one that is.
SKIPPED = {
    "unlisted": [
        "def test_x():\n    pytest.skip('no moon tonight')\n",
        "@pytest.mark.skipif(True, reason='no moon tonight')\ndef test_x():\n    pass\n",
        "pytest.importorskip('no_such_module')\n\ndef test_x():\n    pass\n",
    ],
    "listed": [f"def test_x():\n    pytest.skip({next(iter(MAY_BE_SKIPPED.values()))[0]!r})\n"],
}


def run_pytest(folder: Path, ci: str, *flags: str) -> str:
    """Return what pytest prints for the test files of a folder, in these lanes."""
    (folder / "conftest.py").write_text("from support.lanes import *\n")
    flags = ("-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", ".", *flags)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *flags],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("ci", "ended"),
    [("1", "1 failed, 1 skipped, 2 errors"), ("", "4 skipped")],
    ids=["in CI", "elsewhere"],
)
def test_a_skip_without_a_listed_reason_fails_in_ci(ci: str, ended: str, tmp_path: Path) -> None:
    for kind, texts in SKIPPED.items():
        for number, text in enumerate(texts):
            (tmp_path / f"test_{kind}{number}.py").write_text(f"import pytest\n\n{text}")
    printed = run_pytest(tmp_path, ci, "-n", "0")
    assert f" {ended} in " in printed, printed
    assert ("MAY_BE_SKIPPED" in printed) == bool(ci)


@pytest.mark.parametrize(
    ("without", "reasons", "ended"),
    [
        ("", ("zsh is not installed",), "1 failed"),
        ("fish zsh", ("zsh is not installed", "no mksh"), "1 failed, 1 skipped"),
        ("mksh", ("sh is not installed", "no mksh"), "1 failed, 1 skipped"),
        ("munged munge", ("not here: munged, srun",), "1 skipped"),
        ("chromium npm", ("no Chromium on this machine", "no axe-core from npm"), "2 skipped"),
    ],
)
def test_in_ci_only_what_cannot_be_had_may_be_missing(
    without: str,
    reasons: tuple[str, ...],
    ended: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TESTS_WITHOUT", without)
    for number, reason in enumerate(reasons):
        (tmp_path / f"test_{number}.py").write_text(
            f"import pytest\n\ndef test_x():\n    pytest.skip({reason!r})\n"
        )
    printed = run_pytest(tmp_path, "1", "-n", "0")
    assert f"{ended} in " in printed, printed


#: Two tests without zsh, one without a module, and one that root cannot run.
LEFT_OUT = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_shell(number):
    pytest.skip("zsh is not installed")

def test_module():
    pytest.importorskip("no_such_module")

def test_rights():
    pytest.skip("root may write everywhere")

def test_passed():
    pass
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_local_run_ends_with_what_it_left_out(processes: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(LEFT_OUT)
    lines = run_pytest(tmp_path, "", "-n", processes).splitlines()
    assert [line for line in lines if " tests skipped: " in line] == [
        "4 tests skipped: root may write everywhere, no zsh, no no_such_module; "
        "`.ci/run` installs them"
    ]
    assert " tests skipped: " not in run_pytest(tmp_path, "", "-n", processes, "-k", "passed")


def test_a_run_in_ci_does_not_list_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(LEFT_OUT)
    assert " tests skipped: " not in run_pytest(tmp_path, "1", "-n", "0")


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("no Chromium on this machine", "no Chromium; `.ci/run` installs them"),
        ("not here: munged, srun", "no munged, srun; `.ci/run` installs them"),
        ("mpirun is not installed", "no mpirun; `.ci/run` installs them"),
        ("no package index in reach: x", "no package index in reach: x"),
        ("only root can give a folder away", "only root can give a folder away"),
    ],
)
def test_a_reason_that_names_something_missing_is_shortened(reason: str, line: str) -> None:
    assert format_skips([reason]) == f"1 test skipped: {line}"
