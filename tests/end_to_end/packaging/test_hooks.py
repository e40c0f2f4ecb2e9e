"""The hooks for pre-commit: the names they pass, and what they report in a repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.scripts.reading.file_kinds import KINDS, detect_named_kind, is_script_candidate
from support.building import REPOSITORY
from support.notebooks import notebook
from support.repositories import ENVIRONMENT, Repo
from support.running import Run

yaml = pytest.importorskip("yaml")
(SCAN,) = (
    hook
    for hook in yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
    if hook["id"] == "npuprof-scan"
)
ENDINGS = sorted({ending for kind in KINDS.values() for ending in kind.endings})
#: A whole name, of each kind that has names, and of some that are none.
NAMES = (
    "Dockerfile",
    "Dockerfile.gpu",
    "Containerfile",
    "Dockerfile.service",
    "my.Dockerfile.txt",
    ".env",
    ".env.local",
    "prod.env.example",
    ".dotenv",
    ".env.fish",
    "environment",
    ".bashrc",
    "launch",
    "LICENSE",
    "a.txt",
    "a.toml",
    "a.",
    ".env.",
)


def is_passed(path: str) -> bool:
    """Return whether pre-commit passes a file to the hook, by its name."""
    return bool(re.search(SCAN["files"], path)) and not re.search(SCAN["exclude"], path)


def is_read(path: str) -> bool:
    return is_script_candidate(path, with_docs=True)


@pytest.mark.parametrize("name", [*ENDINGS, *map(str.upper, ENDINGS), *NAMES])
def test_the_hook_takes_the_names_that_scan_reads(name: str) -> None:
    for path in (name, f"a.b/{name}", f"run{name}", f"a/run{name}", f"{name}x", f"{name}.bak"):
        assert is_passed(path) == is_read(path), path
    if name in ENDINGS:
        (kind,) = (kind for kind in KINDS.values() if name in kind.endings)
        assert is_passed(f"run{name}") == bool(kind.read)


@given(
    st.lists(
        st.sampled_from(
            [
                *ENDINGS,
                ".x",
                ".",
                "-",
                "a",
                "Z",
                "é",
                "Dockerfile",
                "Containerfile",
                "env",
                "dotenv",
            ]
        ),
        min_size=1,
        max_size=5,
    ).map("".join)
)
def test_the_hook_and_scan_agree_on_any_name(name: str) -> None:
    if not name.startswith("..") and name.strip("."):  # which git may have, and nobody writes
        assert is_passed(name) == is_read(name)
        assert is_passed(f"a.sh/{name}") == is_read(f"a.sh/{name}")


FAULT = "export HCCL_CONNECT_TIMEOUT=abc\n"
#: One file with a fault of each kind that scan reads.
FAULTY = {
    "train.py": "import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n",
    "run.sh": FAULT,
    "nb.ipynb": notebook("import os\nos.environ['HCCL_CONNECT_TIMEOUT'] = 'abc'\n"),
    "Dockerfile.gpu": "FROM ubuntu\nENV HCCL_CONNECT_TIMEOUT=abc\n",
    "compose.yaml": (
        "services:\n  train:\n    image: x\n    environment:\n      HCCL_CONNECT_TIMEOUT: abc\n"
    ),
    "ray.json": '{"env": {"HCCL_CONNECT_TIMEOUT": "abc"}}\n',
    "guide.md": f"# Guide\n\n```sh\n{FAULT}```\n",
    ".env.local": "HCCL_CONNECT_TIMEOUT=abc\n",
}
#: Scripts without a suffix, whether they may be executed or not.
NAMELESS = {"launch": f"#!/bin/bash\n{FAULT}", "tools/start": f"#!/usr/bin/env zsh\n{FAULT}"}
#: Files that are passed, or not, and are of no interest.
QUIET = {
    "LICENSE": FAULT,
    "Makefile": "all:\n\texport HCCL_CONNECT_TIMEOUT=abc\n",
    "tsconfig.json": '{"a": 1, // b\n}\n',
    "values.yaml": "a: {{ .Values.b }}\n",
    ".env.fish": FAULT,
    "notes.txt": FAULT,
    "pyproject.toml": "[project]\n",
    "broken.ipynb": "{",
}


def test_there_is_a_faulty_file_of_each_kind() -> None:
    assert {detect_named_kind(name) for name in FAULTY} == {
        name for name, kind in KINDS.items() if kind.read
    }


def write_repository(folder: Path, files: dict[str, str]) -> Repo:
    made = Repo(folder)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    made.git("add", "-A")
    return made


@pytest.mark.skipif(
    not (REPOSITORY / ".git").exists(), reason="pre-commit installs from a git repository"
)
def test_pre_commit_reports_a_faulty_file_of_each_kind_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    made = write_repository(tmp_path / "made", {**FAULTY, **NAMELESS, **QUIET})
    (made.folder / "launch").chmod(0o755)
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(REPOSITORY), "npuprof-scan"]
    # the hook has an environment of its own
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*command, "--all-files", "--color", "never"],
        cwd=made.folder,
        env={**environ, **ENVIRONMENT, "PRE_COMMIT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    found = re.findall(r"^(\S+?):\d+:\d+: (\w+) (NP\d+)", output, re.MULTILINE)
    assert sorted(found) == sorted((name, "error", "NP202") for name in {**FAULTY, **NAMELESS})


def test_files_of_no_interest_are_passed_over_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    right = {name: text.replace("abc", "1800") for name, text in {**FAULTY, **NAMELESS}.items()}
    write_repository(tmp_path / "made", {**right, **QUIET})
    monkeypatch.chdir(tmp_path / "made")
    entry = SCAN["entry"].split()[1:]
    passed = [name for name in {**right, **QUIET} if is_passed(name)]
    assert {"LICENSE", "Makefile", "tsconfig.json"} <= set(passed)
    done = run(*entry, *passed)
    assert (done.code, done.out) == (0, ""), done
    assert f"npuprof: {len(passed)} files scanned: " in done.err
    assert run(*entry, "LICENSE").code == 0
    done = run(*entry, "notes.txt", ".env.fish")
    assert (done.code, done.out) == (0, ""), "no file is left, and the folder is not scanned"
    assert "npuprof: 0 files scanned: " in done.err
    assert run("scan", "tsconfig.json").code == 2, "who names a file is told that it was not read"
