"""What CI runs on a pull request: the scripts of the samples, run for real against a recorder of the web API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from building import REPOSITORY
from repositories import ENVIRONMENT, Repo

pytestmark = pytest.mark.slow

yaml = pytest.importorskip("yaml")
TEMPLATES = REPOSITORY / "npuprof/templates"
MARKER = "<!-- npuprof: presets -->"
BASE = '[profile]\ndescription = "base"\nscenario = "training"\n\n[options]\nhccl_timeout = 1836\n'

#: A recorder in the place of GitHub's client: it keeps one comment in a file and refuses writing if told to.
GH = """#!/usr/bin/env bash
kept=$FOLDER/comment
echo "$@" >> "$FOLDER/calls"
case "$*" in
  *--paginate*) [ -e "$kept" ] && grep -q '^<!-- npuprof: presets -->' "$kept" && echo 42; exit 0 ;;
esac
[ -z "$READ_ONLY" ] || exit 1
for word in "$@"; do case "$word" in body=@*) cp "${word#body=@}" "$kept" ;; esac; done
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "repo")
    made.commit({"base": BASE, "leaf": '[profile]\nextends = ["base"]\n'}, "one")
    made.git("checkout", "-q", "-b", "change")
    made.commit({"base": BASE.replace("1836", "1904")}, "two")
    return made


def environment(tmp_path: Path, repo: Repo, **more: str) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "gh").write_text(GH)
    (folder / "gh").chmod(0o755)
    (folder / "npuprof").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m npuprof "$@"\n')
    (folder / "npuprof").chmod(0o755)
    (folder / "python").unlink(missing_ok=True)
    (folder / "python").write_text(f'#!/bin/sh\n[ "$1 $2" = "-m pip" ] && exit 0\nexec "{sys.executable}" "$@"\n')
    (folder / "python").chmod(0o755)
    return {**os.environ, **ENVIRONMENT, "PATH": f"{folder}:{os.environ['PATH']}", "FOLDER": str(tmp_path), **more}


def steps() -> dict[str, Any]:
    action = yaml.safe_load((TEMPLATES / "github-action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    return {step.get("name", step.get("uses")): step for step in action["runs"]["steps"]}


def github(tmp_path: Path, repo: Repo, step: str, base: str = "main", **more: str) -> subprocess.CompletedProcess[str]:
    """Run one step of the action as a runner would."""
    given = {
        "STORE": "profiles",
        "BASE": base,
        "NUMBER": "7",
        "HEAD": "HEAD",
        "PAGES": "https://github.com/team/presets",
        "GH_TOKEN": "none",
        "GITHUB_REPOSITORY": "team/presets",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        **more,
    }
    wanted = steps()[step]
    assert set(wanted.get("env", {})) <= set(given) | {"INSTALL"}
    script = tmp_path / "step.sh"
    script.write_text(wanted["run"])
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(words, cwd=repo.folder, env=environment(tmp_path, repo, **given), capture_output=True, text=True, check=False)


COMMENT = "Comment on what changes"


def test_the_comment_is_made_once_and_then_kept_up_to_date(tmp_path: Path, repo: Repo) -> None:
    done = github(tmp_path, repo, COMMENT)
    assert done.returncode == 0, done.stderr
    comment = (tmp_path / "comment").read_text()
    assert comment.startswith(f"{MARKER}\n")
    assert "hccl_timeout" in comment
    assert "1904" in comment
    assert "-X POST repos/team/presets/issues/7/comments" in (tmp_path / "calls").read_text()
    repo.commit({"base": BASE.replace("1836", "1972")}, "three")
    assert github(tmp_path, repo, COMMENT).returncode == 0
    assert "1972" in (tmp_path / "comment").read_text()
    assert "-X PATCH repos/team/presets/issues/comments/42" in (tmp_path / "calls").read_text()
    assert (tmp_path / "calls").read_text().count("POST") == 1


def test_where_no_preset_changes_nothing_new_is_said(tmp_path: Path, repo: Repo) -> None:
    done = github(tmp_path, repo, COMMENT, base="change")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "comment").exists()
    assert MARKER in (tmp_path / "summary").read_text()


def test_a_comment_that_is_there_is_renewed_when_the_change_is_gone(tmp_path: Path, repo: Repo) -> None:
    (tmp_path / "comment").write_text(f"{MARKER}\nold")
    assert github(tmp_path, repo, COMMENT, base="change").returncode == 0
    assert "old" not in (tmp_path / "comment").read_text()


def test_a_token_that_may_only_read_does_not_fail_the_run(tmp_path: Path, repo: Repo) -> None:
    done = github(tmp_path, repo, COMMENT, READ_ONLY="1")
    assert done.returncode == 0
    assert "::notice::" in done.stdout
    assert "1904" in (tmp_path / "summary").read_text()


def test_a_comparison_that_fails_fails_the_run(tmp_path: Path, repo: Repo) -> None:
    assert github(tmp_path, repo, COMMENT, base="nowhere").returncode == 2


def test_the_check_annotates_and_fails(tmp_path: Path, repo: Repo) -> None:
    assert github(tmp_path, repo, "Check all presets").returncode == 0
    repo.write({"base": BASE.replace("hccl_timeout", "hccl_timout")})
    done = github(tmp_path, repo, "Check all presets")
    assert done.returncode == 1
    assert "::error file=profiles/base.toml,line=6" in done.stdout


def test_nothing_an_event_holds_is_pasted_into_a_script() -> None:
    for step in steps().values():
        assert "${{" not in step.get("run", "")


def test_workflows_are_valid_and_may_do_no_more_than_they_need() -> None:
    for path in (TEMPLATES / "github-workflow.yml", REPOSITORY / ".github/workflows/presets.yml"):
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
        assert set(workflow[True]) == {"pull_request", "push"}, "never pull_request_target"
        assert workflow["jobs"]["review"]["steps"][0]["with"]["fetch-depth"] == 0


class Notes(BaseHTTPRequestHandler):
    """GitLab's notes, as far as the sample uses them."""

    kept: list[dict[str, Any]] = []
    calls: list[str] = []

    def do_GET(self) -> None:
        first, second = self.kept[:1], self.kept[1:]
        page = first if "page=1" in self.path.partition("&")[2] else second
        self.reply(page, "2" if page is first and second else "")

    def do_POST(self) -> None:
        note = {"id": len(self.kept) + 1, "body": self.body()}
        self.kept.append(note)
        self.reply(note)

    def do_PUT(self) -> None:
        note = next(note for note in self.kept if note["id"] == int(self.path.rpartition("/")[2]))
        note["body"] = self.body()
        self.reply(note)

    def body(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def reply(self, answer: Any, page: str = "") -> None:
        assert self.headers["PRIVATE-TOKEN"] == "secret"
        self.calls.append(f"{self.command} {self.path.partition('?')[0]}")
        self.send_response(200)
        self.send_header("x-next-page", page)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def gitlab() -> Iterator[str]:
    Notes.kept, Notes.calls = [{"id": 1, "body": "looks good"}], []
    with HTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api/v4"
        server.shutdown()


def merge_request(tmp_path: Path, repo: Repo, api: str, **more: str) -> subprocess.CompletedProcess[str]:
    job = yaml.safe_load((TEMPLATES / "gitlab-ci.yml").read_text())["presets"]
    given = {
        "CI_API_V4_URL": api,
        "CI_PROJECT_ID": "3",
        "CI_PROJECT_URL": "https://gitlab.example.org/team/presets",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repo.git("rev-parse", "main"),
        "STORE": job["variables"]["STORE"],
        **more,
    }
    script = "set -eo pipefail\n" + "\n".join(job["script"])
    return subprocess.run(
        ["bash", "-c", script], cwd=repo.folder, env=environment(tmp_path, repo, **given), capture_output=True, text=True, check=False
    )


def test_the_gitlab_sample_keeps_one_note(tmp_path: Path, repo: Repo, gitlab: str) -> None:
    for number in ("1904", "1972"):
        repo.write({"base": BASE.replace("1836", number)})
        repo.commit(message=number)
        done = merge_request(tmp_path, repo, gitlab, NPUPROF_TOKEN="secret")
        assert done.returncode == 0, done.stderr
        assert len(Notes.kept) == 2
        assert Notes.kept[1]["body"].startswith(f"{MARKER}\n")
        assert number in Notes.kept[1]["body"]
    notes = "/api/v4/projects/3/merge_requests/5/notes"
    assert [call for call in Notes.calls if not call.startswith("GET")] == [f"POST {notes}", f"PUT {notes}/2"]


def test_without_a_token_the_gitlab_sample_only_prints(tmp_path: Path, repo: Repo, gitlab: str) -> None:
    done = merge_request(tmp_path, repo, gitlab)
    assert done.returncode == 0, done.stderr
    assert "1904" in done.stdout
    assert Notes.calls == []


def test_the_pre_commit_hook_checks_the_whole_store(tmp_path: Path, repo: Repo) -> None:
    hook = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())[0]
    assert hook["pass_filenames"] is False
    words = [sys.executable, "-m", *hook["entry"].split()]
    assert subprocess.run(words, cwd=repo.folder, capture_output=True, check=False).returncode == 0
    repo.write({"base": BASE.replace("hccl_timeout", "hccl_timout")})
    done = subprocess.run(words, cwd=repo.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "leaf" in done.stdout, "heirs that no commit touched are named"
