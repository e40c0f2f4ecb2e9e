"""Foreign repositories: nothing that they configure is run, and nothing missing is fetched."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.planted import configure_everything, plant_bare_repository
from support.repositories import ENVIRONMENT, Repo
from support.running import Run, expect

LEAF = '[profile]\nextends = ["base@HEAD"]\n[options]\nhccl_timeout = 600\n'
#: Every verb that looks at presets, with a preset ``leaf`` whose parent stands at a revision, and
#: ``base``, which changed.
READING = [
    "list",
    "show leaf",
    "show leaf@HEAD",
    "explain leaf hccl_timeout",
    "check",
    "render leaf@HEAD --to json",
    "env leaf",
    "run leaf -- true",
    "diff base leaf",
    "diff --rev HEAD",
    "diff --rev HEAD~1..HEAD",
    "log base hccl_timeout",
    "blame leaf",
    "commit --dry-run",
    "release base --dry-run",
    "restore base@HEAD~1 --dry-run",
    "set leaf hccl_timeout=900 --dry-run",
    "new other --extends leaf --dry-run",
    "inject script.py leaf --line 1 --dry-run",
    "scan .",
    "git status",
    (
        "git merge-driver -- profiles/base.toml "
        "profiles/base.toml profiles/base.toml profiles/base.toml"
    ),
]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    made = Repo(tmp_path / "clone")
    made.commit(
        {"base": "[options]\nhccl_timeout = 1800\n", "leaf": "[options]\nhccl_timeout = 600\n"}
    )
    made.commit({"base": "[options]\nhccl_timeout = 1836\n", "leaf": LEAF})
    (made.folder / "script.py").write_text("import tensorflow as tf\n")
    monkeypatch.chdir(made.folder)
    for name, value in ENVIRONMENT.items():
        if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER")):
            monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program of the attacker's, which leaves a mark wherever it is started."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{tmp_path}/started'\ncat\n")
    path.chmod(0o755)
    return path


def run_all(run: Run, tmp_path: Path, lines: list[str]) -> None:
    for line in lines:
        if line.startswith("run "):  # becomes the other program
            subprocess.run(
                [sys.executable, "-m", "npuprof", *line.split()], capture_output=True, check=False
            )
        else:
            run(*line.split())
        assert not (tmp_path / "started").exists(), (line, (tmp_path / "started").read_text())


def test_a_repository_that_names_programs_has_none_of_them_run_by_verbs_that_read(
    repo: Repo, program: Path, tmp_path: Path, run: Run
) -> None:
    repo.commit({"base": "[options]\nhccl_timeout = 1837\n"})
    configure_everything(repo, program)
    (repo.folder / "profiles/base.toml").write_text("[options]\nhccl_timeout = 1838\n")
    run_all(run, tmp_path, [line for line in READING if not line.startswith("commit")])


def test_a_store_that_is_a_bare_repository_itself_is_only_a_folder(
    repo: Repo, program: Path, tmp_path: Path, run: Run
) -> None:
    plant_bare_repository(repo.folder / "profiles", program)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "plant")
    run_all(run, tmp_path, READING)
    repo.write({"base": "[options]\nhccl_timeout = 1900\n"})
    assert run("commit", "base").code == 0
    assert run("release", "base", "1.0.0").code == 0
    assert repo.git("tag") == "base/v1.0.0"
    run_all(
        run,
        tmp_path,
        [
            f"{line} --store profiles"
            for line in ("list", "check", "log x", "diff --rev HEAD", "commit")
        ],
    )


def test_a_folder_that_only_looks_like_a_repository_is_none(
    repo: Repo, program: Path, tmp_path: Path, run: Run
) -> None:
    shutil.rmtree(repo.folder / ".git")
    plant_bare_repository(repo.folder, program)
    run_all(run, tmp_path, READING)
    (repo.folder / ".git").mkdir()  # git goes on looking where this is no repository
    run_all(run, tmp_path, READING)
    expect(run("log", "base"), 2, "NP021", "is not in a git repository")


def test_a_partial_clone_answers_from_what_is_there_and_fetches_nothing(
    repo: Repo, program: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    repo.git("clone", "-q", "--no-local", "--filter=blob:none", str(repo.folder), str(clone))
    monkeypatch.chdir(clone)
    for line in ("list", "show leaf", "show leaf@HEAD", "check", "diff --rev HEAD"):
        assert run(*line.split()).code == 0, line
    for line in (
        "show base@HEAD~1",
        "diff base@HEAD~1 base",
        "diff --rev HEAD~1",
        "log base",
        "log base hccl_timeout",
        "blame base",
    ):
        expect(
            run(*line.split()), 2, "git fetch --refetch --no-filter", "missing from the repository"
        )
    subprocess.run(["git", "config", "remote.origin.url", f"ext::{program} %S"], check=True)
    subprocess.run(["git", "config", "protocol.ext.allow", "always"], check=True)
    run_all(run, tmp_path, ["show base@HEAD~1", "log base", "diff --rev HEAD~1"])
    subprocess.run(["git", "config", "remote.origin.url", str(repo.folder)], check=True)
    subprocess.run(["git", "fetch", "-q", "--refetch", "--no-filter"], check=True)
    assert run("show", "base@HEAD~1").code == 0


@pytest.mark.parametrize("kind", ["tree:0", "blob:none"])
def test_a_clone_without_trees_never_says_that_there_were_no_presets(
    repo: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git(
        "clone", "-q", "--no-local", f"--filter={kind}", str(repo.folder), str(tmp_path / "partial")
    )
    monkeypatch.chdir(tmp_path / "partial")
    for line in (
        "show base@HEAD~1",
        "diff --rev HEAD~1",
        "log base",
        "explain base@HEAD~1 hccl_timeout",
    ):
        expect(run(*line.split()), 2, "--refetch")


def test_a_repository_of_somebody_else_is_refused_as_git_does(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    for line in ("show base@HEAD", "log base", "commit"):
        expect(run(*line.split()), 2, "safe.directory")


def test_a_repository_that_cannot_be_read_is_not_called_missing(repo: Repo, run: Run) -> None:
    (repo.folder / ".git/HEAD").unlink()
    done = run("log", "base")
    assert done.code == 2
    assert f"git cannot use {repo.folder}/.git" in done.err
    assert "git init" not in done.err


def test_a_hook_of_another_repository_misleads_neither_reading_nor_writing(
    repo: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo(tmp_path / "other")
    before = other.commit({"base": "[options]\nhccl_timeout = 1\n"})
    for name, value in (
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", "."),
        ("GIT_INDEX_FILE", ".git/index"),
        ("GIT_OBJECT_DIRECTORY", ".git/objects"),
    ):
        monkeypatch.setenv(name, str(other.folder / value))
    repo_head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=other.folder, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert repo_head == before
    repo.write({"base": "[options]\nhccl_timeout = 1900\n"})
    assert run("commit").code == 0
    assert run("release", "base").code == 0
    assert "1900" in run("show", "base@HEAD").out
    assert other.head == before
    assert other.git("tag") == ""
