"""The lanes of the tests: what stands for the nightly ones, what may be skipped, and what the tests are not to do."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lanes import MAY_BE_SKIPPED, read_durations

TESTS = Path(__file__).parent
FILES = sorted(TESTS.glob("test_*.py"))
MODULES = {path.name: ast.parse(path.read_text()) for path in (*FILES, *TESTS.glob("[!t]*.py"))}


def list_functions(name: str) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(MODULES[name]) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def find_nightly(node: ast.AST) -> list[str]:
    """Return the gate tests that the nightly marks below a node name."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("mark.nightly")]
    return [ast.literal_eval(call.args[0]) for call in calls]


FUNCTIONS = {f"{path.name}::{node.name}": node for path in FILES for node in list_functions(path.name)}
NIGHTLY = {name: find_nightly(node) for name, node in FUNCTIONS.items() if any(map(find_nightly, node.decorator_list))}


def test_each_nightly_test_names_a_test_of_the_gate() -> None:
    named = [gate for path in FILES for gate in find_nightly(MODULES[path.name])]
    assert named
    assert all(gate in FUNCTIONS and gate not in NIGHTLY for gate in named), named


def test_few_tests_are_nightly() -> None:
    assert len(NIGHTLY) <= len(FUNCTIONS) / 10


def test_most_tests_have_a_duration_and_those_that_have_one_are_there() -> None:
    durations = read_durations()
    assert not durations.keys() - FUNCTIONS.keys()
    assert len(FUNCTIONS.keys() - durations.keys() - NIGHTLY.keys()) < len(FUNCTIONS) / 10


#: Clocks that tests do not assert on. What the processor's time is good for, ``growth`` measures.
CLOCKS = {"time.time", "time.monotonic", "time.perf_counter", "time.process_time", "time.thread_time"}


@pytest.mark.parametrize("name", [path.name for path in FILES])
def test_no_test_asserts_on_a_clock(name: str) -> None:
    timed = {
        target.id
        for node in ast.walk(MODULES[name])
        if isinstance(node, ast.Assign) and any(clock in ast.unparse(node.value) for clock in CLOCKS)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.Assert):
            read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            assert not any(clock in ast.unparse(node.test) for clock in CLOCKS), ast.unparse(node)
            assert not read & timed, ast.unparse(node)


@pytest.mark.parametrize("name", MODULES)
def test_no_test_waits_for_a_file_without_end(name: str) -> None:
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.While) and re.search(r"exists\(|is_file\(|st_size|poll\(", ast.unparse(node.test)):
            pytest.fail(f"{name}:{node.lineno}: use wait_for")


#: What a test file says, whether CI is to be told, and how many tests fail.
SKIPS = [
    ("import pytest\n\ndef test_x():\n    pytest.skip('no moon tonight')\n", "1", 1),
    ("import pytest\n\n@pytest.mark.skipif(True, reason='no moon tonight')\ndef test_x():\n    pass\n", "1", 1),
    ("import pytest\npytest.importorskip('no_such_module')\n\ndef test_x():\n    pass\n", "1", 1),
    ("import pytest\n\ndef test_x():\n    pytest.skip('no moon tonight')\n", "", 0),
    (f"import pytest\n\ndef test_x():\n    pytest.skip({next(iter(MAY_BE_SKIPPED.values()))[0]!r})\n", "1", 0),
]


@pytest.mark.parametrize(("text", "ci", "code"), SKIPS)
def test_a_skip_without_a_listed_reason_fails_in_ci(text: str, ci: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(text)
    (tmp_path / "conftest.py").write_text("from lanes import *\n")
    environ = {**os.environ, "PYTHONPATH": str(TESTS), "CI": ci}
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "-n", "0", "test_x.py"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert ("MAY_BE_SKIPPED" in done.stdout) == bool(code)
