"""``undo``: the last edit taken back, whatever verb made it; nobody's work is lost, and a killed one can be gone on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repositories import Repo
from test_report_writing import CALLS, RENAMING, fail_at, start

Run = Callable[..., Any]
BASE = '[profile]\ndescription = "base"\nscenario = "training"\ncann = ">=8.0"\n\n[options]\n# why\nhccl_timeout = "1h"\n'
OLD = '[profile]\ndescription = "old"\ncann = ">=8.0"\n\n[options]\nprecision_mode = "allow_mix_precision"\n'
SCRIPT = "#!/bin/bash\n# >>> npuprof old >>>\n# <<< npuprof <<<\n"
EDITS = {
    "set": ("set", "old", "hccl_timeout=600"),
    "unset": ("unset", "old", "precision_mode"),
    "new": ("new", "team/deep/fresh", "--extends", "old"),
    "check --fix": ("check", "base", "--fix"),
    "migrate": ("migrate", "old", "--cann", "9.0.0"),
    "inject": ("inject", "run.sh", "old"),
    "restore": ("restore", "old@HEAD"),
    "import -o": ("import", "env.sh", "-o", "profiles/made"),
}


@pytest.fixture
def project(repo: Repo) -> Path:
    repo.commit({"base": BASE, "old": OLD.replace("old", "older")})
    repo.git("tag", "x")
    (repo.folder / "run.sh").write_text(SCRIPT)
    (repo.folder / "env.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\n")
    repo.commit({"old": OLD})
    return repo.folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if ".git" not in path.parts and path.is_file()}


@pytest.mark.parametrize("verb", EDITS)
def test_an_edit_is_undone_and_made_again(verb: str, project: Path, run: Run) -> None:
    words = [word if verb != "restore" else word.replace("HEAD", "x") for word in EDITS[verb]]
    before = content(project)
    folders = {path for path in project.rglob("*") if path.is_dir() and ".git" not in path.parts}
    assert run(*words).code in (0, 1)
    after = content(project)
    assert after != before
    tried = run("undo", "--dry-run")
    assert content(project) == after
    assert "would undo: " in tried.err
    done = run("undo")
    assert (done.code, done.out) == (0, tried.out)
    assert done.out.startswith("--- ")
    assert f"undid: {words[0]}" in done.err
    assert content(project) == before
    assert {path for path in project.rglob("*") if path.is_dir() and ".git" not in path.parts} == folders
    assert run("undo").code == 0
    assert content(project) == after


def test_there_is_nothing_to_undo_at_first(project: Path, run: Run) -> None:
    said = run("undo")
    assert said.code == 2
    assert "NP926" in said.err


def test_a_dry_run_and_a_refused_edit_are_no_edits(project: Path, run: Run) -> None:
    run("set", "old", "hccl_timeout=600")
    run("set", "old", "hccl_timeout=700", "--dry-run")
    assert run("set", "old", "precision_mode=nonsense").code == 2
    run("show", "old", "-o", "shown.toml")
    assert "hccl_timeout=600" in run("undo").err
    assert (project / "profiles" / "old.toml").read_text() == OLD


def test_an_edit_that_cannot_be_written_leaves_the_one_before_it(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("set", "old", "hccl_timeout=600")

    def fail(*given: object, **folders: int) -> None:
        if str(given[1]).endswith("base.toml"):
            raise OSError(28, "No space left on device")
        replace(*given, **folders)

    replace: Any = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        assert run("check", "base", "--fix").code == 2
    assert run("undo").code == 0
    assert (project / "profiles" / "old.toml").read_text() == OLD


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_a_file_that_was_changed_since_is_named_and_nothing_is_written(how: str, project: Path, run: Run) -> None:
    run("inject", "run.sh", "old")
    path = project / "run.sh"
    path.write_text("mine\n") if how == "changed" else path.unlink()
    before = content(project)
    said = run("undo")
    assert said.code == 2
    assert "NP927" in said.err
    assert "run.sh" in said.err
    assert content(project) == before


def test_what_is_kept_can_be_read_by_nobody_else_and_is_no_file_of_the_repository(project: Path, run: Run) -> None:
    run("set", "old", "hccl_timeout=600")
    kept = project / ".git" / "npuprof" / "undo.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) & 0o077 == 0
    assert [path.name for path in kept.parent.iterdir()] == ["undo.json"]


def test_each_work_tree_has_its_own_last_edit(project: Path, run: Run, repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", str(tmp_path / "other"))
    run("set", "old", "hccl_timeout=600")
    monkeypatch.chdir(tmp_path / "other")
    assert run("undo").code == 2
    run("set", "base", "hccl_timeout=700")
    assert run("undo").code == 0
    assert (tmp_path / "other" / "profiles" / "base.toml").read_text() == BASE
    assert "hccl_timeout = 600" in (project / "profiles" / "old.toml").read_text()


def test_without_git_the_users_state_keeps_it_project_by_project(store: Any, tmp_path: Path, run: Run) -> None:
    folder = store({"old": OLD})
    other = tmp_path / "elsewhere" / "profiles"
    other.mkdir(parents=True)
    (other / "a.toml").write_text(OLD)
    run("set", "old", "hccl_timeout=600")
    run("set", "a", "hccl_timeout=600", "--store", other)
    assert run("undo").code == 0
    assert (folder / "old.toml").read_text() == OLD
    assert "hccl_timeout = 600" in (other / "a.toml").read_text()
    assert run("undo", "--store", other).code == 0
    assert (other / "a.toml").read_text() == OLD


def test_the_edit_of_a_personal_layer_is_undone(project: Path, run: Run) -> None:
    run("set", "--personal", "old", "hccl_timeout=600")
    assert "hccl_timeout" in run("show", "old").out
    said = run("undo")
    assert said.code == 0, said.err
    assert "hccl_timeout" not in run("show", "old").out


@pytest.mark.parametrize("path", ["/etc/x", "{home}/.bashrc", "{top}/.git/hooks/post-commit", "{top}/../x", "x"])
def test_no_file_elsewhere_is_put_back(path: str, project: Path, run: Run, tmp_path: Path) -> None:
    run("set", "old", "hccl_timeout=600")
    kept = project / ".git" / "npuprof" / "undo.json"
    said = json.loads(kept.read_text())
    named = path.format(home=os.environ["HOME"], top=project)
    said["files"] = [{"path": named, "before": b64encode(b"x").decode(), "after": None, "mode": None}]
    kept.write_text(json.dumps(said))
    done = run("undo")
    assert (done.code, "NP926" in done.err) == (2, True)
    assert not os.path.exists(named)


def test_a_link_that_leads_out_is_not_followed(project: Path, run: Run, tmp_path: Path) -> None:
    run("new", "team/fresh")
    (project / "profiles" / "team" / "fresh.toml").unlink()
    run_before = project / ".git" / "npuprof" / "undo.json"
    said = json.loads(run_before.read_text())
    row = said["files"][0]
    row["before"], row["after"] = row["after"], None
    run_before.write_text(json.dumps(said))
    (project / "profiles" / "team").rmdir()
    (tmp_path / "out").mkdir()
    (project / "profiles" / "team").symlink_to(tmp_path / "out")
    done = run("undo")
    assert (done.code, "NP941" in done.err) == (2, True)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"schema": "npuprof.undo/1", "command": "x", "files": [{"path": 1}]}', b"\xff"])
def test_what_is_no_record_is_said(raw: bytes, project: Path, run: Run) -> None:
    (project / ".git" / "npuprof").mkdir()
    (project / ".git" / "npuprof" / "undo.json").write_bytes(raw)
    said = run("undo")
    assert (said.code, "NP926" in said.err) == (2, True)


def test_an_edit_that_cannot_be_kept_is_made_and_that_is_said(project: Path, run: Run) -> None:
    (project / ".git" / "npuprof").write_text("")
    said = run("set", "old", "hccl_timeout=600")
    assert said.code == 0
    assert "cannot be undone" in said.err
    assert "hccl_timeout = 600" in (project / "profiles" / "old.toml").read_text()


KILLED = pytest.mark.parametrize("edit", [("check", "--fix"), ("rename", "p0", "team/p9")], ids=lambda edit: edit[0])


@pytest.mark.parametrize("edit", [("rename", "p0", "team/p9")], ids=["rename"])
def test_an_edit_or_its_undoing_that_is_killed_can_be_undone(edit: tuple[str, ...], store: Any, tmp_path: Path) -> None:
    kill_at_calls(edit, RENAMING, store, tmp_path)


@KILLED
@pytest.mark.nightly("test_commands_undo.py::test_an_edit_or_its_undoing_that_is_killed_can_be_undone")
def test_an_edit_or_its_undoing_that_is_killed_at_any_call_can_be_undone(edit: tuple[str, ...], store: Any, tmp_path: Path) -> None:
    kill_at_calls(edit, CALLS, store, tmp_path)


def kill_at_calls(edit: tuple[str, ...], calls: tuple[str, ...], store: Any, tmp_path: Path) -> None:
    """Kill an edit, and its undoing, at each of some calls, and undo it."""
    texts = {"p0": BASE, "p1": BASE, "p2": '[profile]\nextends = ["p0"]\n', "p3": '[profile]\nextends = ["p1", "p0"]\n'}
    before = {f"{name}.toml": text.encode() for name, text in texts.items()}
    folder = tmp_path / "profiles"

    def lay_out() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        store(texts)

    def count_calls(*words: str) -> int:
        whole = fail_at(0, "kill", calls, *words)
        assert whole.stderr is not None
        return int(whole.stderr.read().rpartition(b"calls ")[2])

    def read() -> dict[str, bytes]:
        return {name: raw for name, raw in content(folder).items() if ".npuprof-" not in name}

    lay_out()
    count = count_calls(*edit)
    after = read()
    assert after != before
    for number in range(1, count + 1):
        lay_out()
        assert fail_at(number, "kill", calls, *edit).returncode == -signal.SIGKILL
        start("undo").wait()
        assert read() == before, number
    lay_out()
    fail_at(0, "kill", calls, *edit)
    count = count_calls("undo")
    for number in range(1, count + 1):
        lay_out()
        fail_at(0, "kill", calls, *edit)
        assert read() == after
        assert fail_at(number, "kill", calls, "undo").returncode == -signal.SIGKILL
        start("undo").wait()
        assert read() in (after, before), number
