"""The CI recipes of the page on pull requests: their shell lines run, their reports are read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.building import REPOSITORY
from support.documents import list_blocks, read_blocks
from support.repositories import ENVIRONMENT, Repo
from support.running import Run

yaml = pytest.importorskip("yaml")
PAGE = REPOSITORY / "npuprof/docs/guides/pull-requests.md"
PRESET = (
    '[profile]\ndescription = "base"\nscenario = "training"\n\n[options]\nhccl_timeout = 1836\n'
)
#: A stand-in for the Python of a job: a virtual environment of it has our npuprof, and a pip that
#: only writes down what it is to install.
PYTHON = f"""#!/bin/sh
[ "$1 $2 $3" = "-I -m venv" ] || exec "{sys.executable}" "$@"
mkdir -p "$4/bin" && cd "$4/bin" || exit 1
printf '#!/bin/sh\\nexec "{sys.executable}" -m npuprof "$@"\\n' > npuprof
printf '#!/bin/sh\\necho "$@" >> "$PIP_CALLS"\\n' > pip
chmod +x npuprof pip
"""
Job = Callable[[str], "subprocess.CompletedProcess[str]"]


def read_recipe(path: str) -> Any:
    """Return the content of a recipe of the page by the path in its first line."""
    (text,) = (block.text for block in read_blocks(PAGE.read_text()) if block.path == path)
    return yaml.safe_load(text)


def list_commands(path: str) -> list[str]:
    """Return the shell commands of a recipe."""
    recipe = read_recipe(path)
    if path.startswith(".workflow"):
        ((step,),) = (stage["steps"] for stage in recipe["stages"])
        return list(step["commands"])
    if path.startswith(".gitlab"):
        return list(recipe["scripts"]["script"])
    (job,) = recipe["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A clone, on a branch that changes a preset and adds a script."""
    origin = Repo(tmp_path / "origin")
    origin.commit({"base": PRESET}, "one")
    origin.git("clone", "-q", ".", "../checkout/repo")
    clone = Repo(tmp_path / "checkout/repo", init=False)
    clone.git("checkout", "-q", "-b", "change")
    (clone.folder / "train.sh").write_text("export HCCL_CONNECT_TIMEOUT=1800\n")
    clone.commit({"base": PRESET.replace("1836", "1904")}, "two")
    return clone


@pytest.fixture
def run_lines(repo: Repo, tmp_path: Path) -> Job:
    """Run lines as a job does, in the clone."""
    stand_in = tmp_path / "bin/python3"
    stand_in.parent.mkdir()
    stand_in.write_text(PYTHON)
    stand_in.chmod(0o755)
    environ = {
        **os.environ,
        **ENVIRONMENT,
        "PATH": f"{stand_in.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        "PIP_CALLS": str(tmp_path / "pip"),
    }

    def run_in_clone(lines: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines],
            cwd=repo.folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    return run_in_clone


def break_script(repo: Repo) -> None:
    (repo.folder / "train.sh").write_text("export HCCL_CONNECT_TIMEOUT=abc\n")


@pytest.mark.parametrize("path", [".gitcode/workflows/presets.yml", ".workflow/presets.yml"])
def test_the_jobs_of_other_hosts_show_the_change_and_fail_for_faults(
    path: str, repo: Repo, run_lines: Job, tmp_path: Path
) -> None:
    lines = "\n".join(list_commands(path))
    done = run_lines(lines)
    assert done.returncode == 0, done.stderr
    assert "1836 → 1904" in done.stdout
    assert (tmp_path / "pip").read_text() == "install --quiet git+ADDRESS@COMMIT\n"
    break_script(repo)
    done = run_lines(lines)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("train.sh:1:8: NP202 ")


def test_the_lines_for_any_host_do_the_same(repo: Repo, run_lines: Job) -> None:
    (lines,) = (text for text in list_blocks("guides/pull-requests.md", "sh") if "ADDRESS" in text)
    assert run_lines(lines).returncode == 0
    assert "1836 → 1904" in (repo.folder / "presets.md").read_text()
    repo.write({"base": PRESET.replace("1836", '"x"')})
    assert run_lines(lines).returncode == 1


@pytest.mark.parametrize(
    ("path", "report"),
    [(".github/workflows/scripts.yml", "npuprof.sarif"), (".gitlab/scripts.yml", "npuprof.json")],
)
def test_the_jobs_for_scripts_write_the_report_that_the_next_step_uploads(
    path: str, report: str, repo: Repo, run_lines: Job
) -> None:
    assert report in json.dumps([read_recipe(path)])
    lines = "\n".join(list_commands(path))
    assert run_lines(lines).returncode == 0
    break_script(repo)
    assert run_lines(lines).returncode == 1
    found = json.loads((repo.folder / report).read_text())
    if report.endswith(".sarif"):
        (result,) = found["runs"][0]["results"]
        assert result["ruleId"] == "NP202"
    else:
        (row,) = found
        # what GitLab requires of a code quality report
        assert set(row) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert row["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert row["location"] == {"path": "train.sh", "lines": {"begin": 1}}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-workflows", ".github/workflows/scripts.yml"),
        ("vendor.gitlab-ci", ".gitlab/scripts.yml"),
    ],
)
def test_the_jobs_for_scripts_follow_the_published_schemas(
    schema: str, path: str, tmp_path: Path
) -> None:
    pytest.importorskip("check_jsonschema")
    (text,) = (block.text for block in read_blocks(PAGE.read_text()) if block.path == path)
    (tmp_path / "job.yml").write_text(text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run(
        [*command, str(tmp_path / "job.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_problem_matcher_reads_the_concise_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (matcher,) = (
        json.loads(text)["problemMatcher"][0]
        for text in list_blocks("guides/pull-requests.md", "json")
        if "problemMatcher" in text
    )
    (pattern,) = matcher["pattern"]
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text("\nexport HCCL_BUFFSIZ=200\n")
    Path("lines.sh").write_bytes(b"export HCCL_BUFFSIZE=200\r\npython a.py\r\n")
    Path("npuprof.toml").write_text(
        '[[rule]]\ncode = "TEAM-1"\nrequire = "hccl_timeout == 5"\nmessage = "a: b"\n'
        'severity = "error"\n'
    )
    Path("profiles").mkdir()
    Path("profiles/base.toml").write_text(PRESET)
    found = []
    for verb in (["scan", "run.sh", "lines.sh"], ["check"]):
        done = run(*verb, "--format", "concise")
        for line in [*done.out.splitlines(), *done.err.splitlines()]:
            if match := re.search(pattern["regexp"], line):
                found.append([match[pattern[name]] for name in ("file", "line", "column", "code")])
                assert match[pattern["message"]]
    assert found == [
        ["run.sh", "2", "8", "NP206"],
        ["lines.sh", "1", None, "NP844"],  # about a whole line
        ["profiles/base.toml", "6", "1", "TEAM-1"],
    ]
