"""Repositories without a work tree, and server hooks: presets are read from commits.

Only the user's own repositories are read.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.building import REPOSITORY
from support.repositories import ENVIRONMENT, Repo
from support.running import Run, expect
from support.templates import copy_built

BASE = "[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["base"]\n[options]\ndeterministic = 1\n'
WRONG = "[options]\nprecision_mode_v2 = 'fp61'\n"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare clone, worked in; it holds a second store in a folder of another name."""

    def build(empty: Path) -> None:
        repo = Repo(empty / "cloned")
        repo.commit({"base": BASE.format(1800), "leaf": LEAF}, "first")
        (repo.folder / "team/presets").mkdir(parents=True)
        (repo.folder / "team/presets/own.toml").write_text(BASE.format(7))
        repo.commit({"base": BASE.format(600)}, "second")
        repo.release("leaf", "1.0.0")
        repo.commit({"base": BASE.format(700), "wrong": WRONG}, "third")
        repo.git("clone", "-q", "--bare", ".", "../hub.git")

    copy_built("bare hub", tmp_path, build)
    monkeypatch.chdir(tmp_path / "hub.git")
    return tmp_path / "hub.git"


#: What is asked in the bare repository, the exit code, and what is said.
REQUESTED = {
    "show leaf@HEAD~1": (0, "hccl_timeout = 600"),
    "show leaf@1.0.0 --origin": (0, "profiles/base.toml:2"),
    "show leaf@HEAD+base@HEAD": (0, "hccl_timeout = 700"),
    "env leaf@main": (0, "NPUPROF_HCCL_TIMEOUT"),
    "log leaf": (0, "hccl_timeout 1800 → 600"),
    "blame leaf@HEAD": (0, "Ada"),
    "explain leaf@HEAD hccl_timeout": (0, "hccl_timeout = 700"),
    "diff --rev HEAD~2..HEAD~1": (0, "hccl_timeout 1800 → 600"),
    "list --versions": (0, "1.0.0"),
    "check --rev HEAD": (1, "NP203"),
    "check --rev HEAD leaf": (0, "1 preset checked"),
    "check --rev main --store team/presets": (0, "1 preset checked"),
    "show own@main --store team/presets": (0, "hccl_timeout = 7"),
    "check --rev main --store nowhere": (2, "there are no presets in nowhere at"),
    "list": (2, "has no work tree"),
    "show leaf": (2, "npuprof show leaf@HEAD"),
    "check": (2, "npuprof check --rev HEAD"),
    "diff --rev HEAD~1": (2, "has no work tree"),
    "set leaf hccl_timeout=5": (2, "has no work tree"),
    "commit": (2, "has no work tree"),
    "release leaf 2.0.0": (2, "has no work tree"),
    "restore leaf@HEAD~1 -o -": (0, "extends"),
    "new fresh --extends leaf": (2, "has no work tree"),
    "migrate leaf --cann 9.0.0": (2, "has no work tree"),
    "trust": (2, "has no work tree"),
    "show bert-training --store builtin:": (0, "BERT"),
}


@pytest.mark.parametrize(
    ("arguments", "place"),
    [*zip(REQUESTED, ["top", "inside", "named by GIT_DIR"] * 9, strict=False)],
)
def test_revisions_are_read_where_there_is_no_work_tree(
    hub: Path, run: Run, monkeypatch: pytest.MonkeyPatch, arguments: str, place: str
) -> None:
    if place == "inside":
        monkeypatch.chdir(hub / "refs/heads")
    elif place == "named by GIT_DIR":
        (hub.parent / "elsewhere").mkdir()
        monkeypatch.chdir(hub.parent / "elsewhere")
        monkeypatch.setenv("GIT_DIR", "../hub.git")
    code, output = REQUESTED[arguments]
    before = sorted(os.listdir(hub))
    done = run(*arguments.split())
    assert done.code == code, done
    assert output in done.out + done.err, done
    assert "Traceback" not in done.err
    assert sorted(os.listdir(hub)) == before


def test_a_bare_repository_of_somebody_else_is_refused_until_it_is_called_safe(
    hub: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    subprocess.run(
        ["git", "--git-dir=.", "config", "safe.directory", "*"], check=True
    )  # its own word counts for nothing
    for arguments in ("show leaf@HEAD", "log leaf", "check --rev HEAD~1"):
        expect(run(*arguments.split()), 2, "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    for lines, code in (
        (f"directory = {hub}\n", 0),
        ("directory = *\n", 0),
        (f"directory = {hub}\ndirectory =\n", 2),
        (f"directory = {hub}x\n", 2),
        (f"directory = {hub.parent}/*\n", 0),
        ("directory = ~/hub.git\n", 2),
    ):
        (tmp_path / "config").write_text(f"[safe]\n{lines}")
        assert run("show", "leaf@HEAD").code == code, lines


def test_what_lies_in_a_work_tree_is_no_repository_of_its_own_unless_it_is_named(
    hub: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = Repo(hub.parent / "outer")
    hub.rename(outer.folder / "planted.git")
    monkeypatch.chdir(outer.folder / "planted.git")
    expect(run("show", "leaf@HEAD"), 2, "NP010")
    monkeypatch.setenv("GIT_DIR", ".")
    assert run("show", "leaf@HEAD").code == 0


# -- the hook of a server -------------------------------------------------------------------------


@pytest.fixture
def server(repo: Repo, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare repository with our hook, and nothing else in it.

    The pushing repository is worked in.
    """
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]),
    )
    folder = tmp_path / "it's a server.git"
    repo.git("init", "-q", "--bare", str(folder))
    monkeypatch.chdir(folder)
    expect(run("git", "install", "--server"), 0)
    monkeypatch.chdir(repo.folder)
    repo.commit({"base": BASE.format(600), "leaf": LEAF}, "good")
    return folder


def push(repo: Repo, server: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "push", str(server), *arguments]
    return subprocess.run(
        command,
        cwd=repo.folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **ENVIRONMENT},
    )


def test_a_server_takes_no_branch_whose_presets_have_errors(server: Path, repo: Repo) -> None:
    done = push(repo, server, "main")
    assert done.returncode == 0, done.stderr
    assert "remote:" not in done.stderr, "what is well is no news"
    repo.commit({"base": "[options]\nhccl_timout = 600\n"}, "wrong")
    done = push(repo, server, "main")
    assert done.returncode == 1
    assert "profiles/base.toml:2:1: error NP201" in done.stderr
    assert "not taken: main: 1 error" in done.stderr
    repo.commit({"base": BASE.format(601)}, "mended")
    assert push(repo, server, "main").returncode == 0, "the tip counts, not each commit on the way"
    repo.commit({"base": None}, "deleted")
    done = push(repo, server, "main")
    assert done.returncode != 0, "an heir loses its parent"
    assert "leaf.toml" in done.stderr, "an heir loses its parent"


def test_what_was_wrong_already_is_no_reason_to_refuse_a_push(server: Path, repo: Repo) -> None:
    hook = server / "hooks" / "pre-receive"
    text = hook.read_text()
    hook.unlink()
    repo.commit({"old": "[options]\nhccl_timeout = 'x'\n"})
    assert push(repo, server, "main").returncode == 0
    hook.write_text(text)
    hook.chmod(0o755)
    repo.commit({"base": BASE.format(700)})
    assert push(repo, server, "main").returncode == 0, "the branch had that error"
    assert push(repo, server, "main:refs/heads/new").returncode == 0, (
        "and so had the commit that it begins at"
    )
    repo.commit({"other": "[options]\nhccl_timeout = 'x'\n"})
    done = push(repo, server, "main")
    assert done.returncode == 1
    assert "other.toml" in done.stderr
    assert "old.toml" not in done.stderr


@pytest.mark.parametrize("line", ["garbage", "0 1 refs/heads/x"])
def test_what_is_no_line_of_a_hook_is_refused(
    line: str, server: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(server)
    expect(
        run("git", "receive", stdin=f"{line}\n".encode()),
        2,
        "NP902",
        f'"{line[:60]}',
        "is not input of a git hook",
    )


@pytest.mark.parametrize("name", ["$(touch>x)", "a;b'c\"d", "x\u202ey"])
def test_a_branch_may_have_any_name(server: Path, repo: Repo, name: str) -> None:
    ref = f"HEAD:refs/heads/{name}"
    assert push(repo, server, ref).returncode == 0
    repo.commit({"base": "torn = ["}, "wrong")
    done = push(repo, server, ref)
    assert done.returncode == 1
    assert "NP001" in done.stderr
    assert "\u202e" not in done.stderr.partition("To ")[0]
    assert not (server / "x").exists()


def test_the_hook_of_a_server_is_written_once_and_taken_away(
    server: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = server / "hooks/pre-receive"
    before = hook.read_text()
    monkeypatch.chdir(server)
    assert "already set up" in run("git", "install", "--server").err
    assert hook.read_text() == before
    hook.write_text(f"{before}echo more\n")
    assert "removed" in run("git", "uninstall", "--server").err
    assert hook.read_text() == "#!/bin/sh\necho more\n"
    expect(run("git", "install", "--server"), 2, "git receive || exit 1")
    assert "nothing was set up" in run("git", "uninstall", "--server").err


def test_only_a_server_gets_the_hook_of_one(
    repo: Repo, run: Run, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "without a work tree" in run("git", "install", "--server").err
    monkeypatch.chdir(server)
    expect(run("git", "install", "--server", "--hook"), 2, "--server goes with no other option")


# -- a whole tree at a revision -------------------------------------------------------------------


def test_a_tree_is_checked_at_a_revision_as_it_is_in_a_work_tree(repo: Repo, run: Run) -> None:
    repo.commit(
        {
            "base": BASE.format(1800),
            "leaf": LEAF.replace("base", "gone"),
            "wrong": WRONG,
            "torn": "x = [",
        }
    )
    (repo.folder / "profiles/a b.toml").write_text("")
    repo.commit({}, "stray")
    for arguments in (
        [],
        ["--severity", "info"],
        ["leaf", "wrong"],
        ["--cann", "8.0.0", "--cann", "9.0.0"],
    ):
        now = run("check", *arguments, "--format", "json")
        then = run("check", *arguments, "--rev", "HEAD", "--format", "json")
        cited = (
            then.out.replace(f'"{repo.head[:7]}:', '"')
            .replace(f"profiles at {repo.head[:7]}", "profiles")
            .replace("NP023", "NP008")
        )
        assert then.code == now.code, arguments
        assert [row | {"hint": ""} for row in json.loads(cited)["findings"]] == [
            row | {"hint": ""} for row in json.loads(now.out)["findings"]
        ]
    repo.write({"leaf": "broken", "base": None, "wrong": None})
    assert run("check", "--rev", "HEAD", "base").code == 0
    assert run("check", "--rev", "HEAD", "profiles/base.toml").code == 0
    assert run("check", "--rev", "HEAD", "nope").code == 2
    assert run("check", "--rev", "nope").code == 2
    assert (
        '"profiles/wrong.toml"' in run("check", "--rev", "HEAD", "wrong", "--format", "sarif").out
    )
