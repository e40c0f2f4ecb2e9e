"""Committing, releasing and restoring: what is written to a repository, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import npuprof
from npuprof.history import git_writing
from npuprof.history.proposed import propose_commit
from npuprof.store.gitstore.repository import Repository
from support.repositories import ENVIRONMENT, Repo
from support.running import Run

BASE = '[options]\nhccl_timeout = {}\nprecision_mode_v2 = "{}"\n'
LEAF = (
    '[profile]\ndescription = "{}"\nextends = ["base"]\n'
    'scenario = "training"\n[options]\niterations_per_loop = 1\n'
)


@pytest.fixture
def repo(repo: Repo) -> Repo:
    repo.commit({"base": BASE.format(1, "fp16"), "leaf": LEAF.format("x")}, "start")
    return repo


def state(repo: Repo) -> tuple[str, ...]:
    return (
        repo.git("for-each-ref"),
        repo.git("status", "--porcelain"),
        repo.git("stash", "list"),
        repo.head,
    )


def expect(repository: Repository, paths: list[str]) -> git_writing.ExpectedCommit:
    """Return what a commit of these paths would be made of."""
    head = repository.resolve_commit("HEAD")
    with propose_commit(repository, head, paths) as proposed:
        return git_writing.ExpectedCommit(head, proposed.commit)


def test_a_commit_holds_the_profile_files_and_nothing_else(repo: Repo, run: Run) -> None:
    (repo.folder / "staged.txt").write_text("x")
    repo.git("add", "staged.txt")
    (repo.folder / "loose.txt").write_text("x")
    repo.write({"base": BASE.format(2, "fp16"), "new": LEAF.format("y"), "leaf": LEAF.format("z")})
    done = run("commit")
    assert done.code == 0, done.err
    assert repo.git("show", "--name-only", "--format=").split() == [
        "profiles/base.toml",
        "profiles/leaf.toml",
        "profiles/new.toml",
    ]
    assert repo.git("status", "--porcelain") == "A  staged.txt\n?? loose.txt"
    message = repo.git("log", "-1", "--format=%B")
    assert "~ 2 presets: hccl_timeout 1 → 2 s" in message
    assert len(message.splitlines()[0]) <= 72
    assert done.out == f"{repo.head[:7]} {message.splitlines()[0]}\n"


def test_removed_and_renamed_profiles_are_committed(repo: Repo, run: Run) -> None:
    repo.git("mv", "profiles/leaf.toml", "profiles/moved.toml")
    assert run("commit").code == 0
    assert repo.git("log", "-1", "--format=%s") == "Rename leaf to moved"
    repo.write({"moved": None})
    assert run("commit").code == 0
    assert repo.git("log", "-1", "--format=%s") == "Remove moved"
    assert repo.git("status", "--porcelain") == ""


def test_commit_can_be_tried_limited_named_and_empty(repo: Repo, run: Run) -> None:
    assert run("commit").code == 1
    repo.write({"base": BASE.format(2, "fp16"), "leaf": LEAF.format("y")})
    before = state(repo)
    assert run("commit", "--dry-run").out.startswith("2 presets: hccl_timeout 1 → 2 s\n\n")
    assert state(repo) == before
    assert run("commit", "leaf", "-m", "Say more\nEvil: trailer").code == 0
    assert repo.git("show", "--name-only", "--format=").split() == ["profiles/leaf.toml"]
    assert run("commit", "nope").code == 2


@pytest.mark.parametrize(
    ("head", "deed"), [("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")]
)
def test_commit_is_refused_while_git_merges_or_picks(
    head: str, deed: str, repo: Repo, run: Run
) -> None:
    (repo.folder / ".git" / head).write_text(f"{repo.head}\n")
    done = run("commit", "--dry-run")
    assert done.code == 2, done.err
    assert f"{deed} is under way, and git then commits everything or nothing" in done.err, done.err


def test_the_first_commit_of_a_repository_can_be_made(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    fresh = Repo(tmp_path / "fresh")
    monkeypatch.chdir(fresh.folder)
    fresh.write({"base": BASE.format(1, "fp16"), "other": BASE.format(2, "fp16")})
    assert run("commit").code == 0
    assert fresh.git("log", "--format=%s") == "Add base, other"


def test_a_release_is_refused_where_it_would_not_hold(repo: Repo, run: Run) -> None:
    assert run("release", "leaf", "1.2.0").code == 0
    for arguments, result in (
        (("leaf",), "nothing has changed"),
        (("leaf", "1.2.0"), "released already"),
        (("leaf", "1.1.9"), "would go back"),
        (("leaf", "1.3"), "three numbers"),
        (("leaf@HEAD",), "cannot release"),
        (("leaf+base", "2.0.0"), "one preset"),
        (("nope",), "no preset"),
    ):
        before = state(repo)
        done = run("release", *arguments)
        assert done.code == 2, arguments
        assert done.out == "", arguments
        assert result in done.err, arguments
        assert state(repo) == before
    assert run("release", "leaf", "1.2.1").code == 0  # asked for by number
    repo.git("tag", "leaf/v1.2.2")  # lightweight, in the way
    repo.commit({"leaf": LEAF.format("new words")})
    done = run("release", "leaf")
    assert done.code == 2
    assert done.out == ""
    assert "exists already" in done.err


#: What lies in the work tree when ``leaf`` is released, and what is said; nothing where it is
#: released.
BESIDE: dict[str, tuple[dict[str, str | None], str]] = {
    "its own draft": (
        {"leaf": LEAF.format("draft") + "hccl_timeout = 5\n"},
        "leaf is not committed as it is",
    ),
    "a parent that is gone": ({"base": None}, "base is not committed as it is"),
    "another preset": ({"other": "broken = ["}, ""),
    "an untracked parent put in": (
        {"new": BASE.format(5, "fp16"), "leaf": LEAF.format("x").replace("base", "new")},
        "leaf is not committed",
    ),
}


@pytest.mark.parametrize("message", BESIDE)
def test_a_release_is_of_the_last_commit_whatever_the_work_tree_holds(
    repo: Repo, run: Run, message: str
) -> None:
    presets, result = BESIDE[message]
    digest = npuprof.open_store().resolve("leaf@HEAD").digest
    repo.write(presets)
    done = run("release", "leaf")
    assert done.code == (2 if result else 0)
    assert result in done.err
    assert "NP001" not in done.err
    if not result:
        assert f"Digest: {digest}" in repo.git("cat-file", "tag", "leaf/v1.0.0")


def test_restore_writes_the_file_back_to_the_byte(repo: Repo, run: Run) -> None:
    text = b"# by hand\r\n[options]\r\nhccl_timeout   =  5\r\n"
    repo.commit({"odd": text})
    repo.release("odd", "1.0.0")
    repo.commit({"odd": None})
    done = run("restore", "odd@1")
    assert done.code == 0
    assert done.out == ""
    assert (repo.folder / "profiles/odd.toml").read_bytes() == text
    repo.write({"base": "mistake ["})
    assert run("restore", "base@HEAD").code == 2
    assert (repo.folder / "profiles/base.toml").read_text() == "mistake ["
    assert run("restore", "base@HEAD", "--force").code == 0
    assert (repo.folder / "profiles/base.toml").read_text() == BASE.format(1, "fp16")


def test_restore_resolved_gives_a_flat_preset_that_resolves_as_it_did(repo: Repo, run: Run) -> None:
    digest = npuprof.open_store().resolve("leaf").digest
    repo.commit({"base": BASE.format(9, "fp16")})
    assert run("restore", "leaf@HEAD~1", "--resolved").code == 0
    config = npuprof.open_store().resolve("leaf")
    assert config.digest == digest
    assert [profile.name for profile in config.lineage] == ["leaf"]


def test_restore_can_be_tried(repo: Repo, run: Run) -> None:
    repo.commit({"base": BASE.format(9, "fp16")})
    before = state(repo)
    assert "hccl_timeout = 1" in run("restore", "base@HEAD~1", "--dry-run").out
    for arguments in (
        ("base",),
        ("base@nope",),
        ("nope@HEAD",),
        ("base@HEAD~1", "--store", "builtin:"),
        ("base+leaf@HEAD",),
    ):
        done = run("restore", *arguments)
        assert done.code == 2, arguments
        assert done.out == "", arguments
    assert state(repo) == before
    assert sorted(os.listdir(repo.folder / "profiles")) == ["base.toml", "leaf.toml"]


@pytest.mark.parametrize(
    ("command", "shown", "why"),
    [
        ("echo not today", "not today", ""),
        ("echo first >&2; echo second >&2", "first", "first second"),
        ("echo error: not this >&2", "not this", ""),
    ],
)
def test_what_git_refuses_is_told_in_its_words_and_undone(
    command: str, shown: str, why: str, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    repo.write({"new": "x = 1\n"})
    repository = Repository("profiles")
    paths = ["profiles/new.toml"]
    expected = expect(repository, paths)
    hook = repo.folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{command}\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(npuprof.NpuprofError) as error:
        git_writing.commit_paths(repository, paths, paths, "new", expected)
    finding = error.value.findings[0]
    assert finding.code == "NP022"
    assert finding.message == f"git failed: {shown}"
    assert finding.why == why
    assert repo.git("status", "--porcelain") == "?? profiles/new.toml"
    assert os.listdir(tmp_path / "temporary") == []


def test_a_tag_that_is_there_is_not_moved(repo: Repo) -> None:
    repo.git("tag", "leaf/v1.0.0")
    before = repo.git("for-each-ref")
    with pytest.raises(npuprof.NpuprofError) as error:
        git_writing.create_tags(Repository("profiles"), repo.head, {"leaf/v1.0.0": "x"})
    (finding,) = error.value.findings
    assert finding.code == "NP026"
    assert finding.message == "the tag leaf/v1.0.0 exists already"
    assert finding.hint == "release the next number"
    with pytest.raises(npuprof.NpuprofError, match="not a valid tag name"):
        git_writing.create_tags(Repository("profiles"), repo.head, {"a..b": "x"})
    assert repo.git("for-each-ref") == before


@pytest.mark.parametrize(
    ("typed", "code", "tags"), [(b"YES\n", 0, 3), (b"n\n", 1, 0), (b"\x04", 1, 0)]
)
def test_a_terminal_is_asked_before_many_are_tagged(
    typed: bytes, code: int, tags: int, repo: Repo
) -> None:
    terminal, side = os.openpty()
    os.write(terminal, typed)
    arguments = [sys.executable, "-m", "npuprof", "release", "--all"]
    done = subprocess.run(
        arguments,
        cwd=repo.folder,
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=side,
        timeout=60,
        check=False,
    )
    shown = b""
    while b"[y/N]" not in shown:  # a terminal may give the echo of what was typed first
        shown += os.read(terminal, 4096)
    for end in (terminal, side):
        os.close(end)
    assert done.returncode == code, shown
    assert len(repo.git("tag").split()) == tags, shown
    assert b"the whole store" in done.stdout


def test_a_version_of_the_whole_store_is_verified(repo: Repo, run: Run) -> None:
    assert run("release", "--all", "--yes").code == 0
    first = repo.head
    verified = run("verify", "--tags")
    assert verified.code == 0
    assert "@" in verified.out
    message = repo.git("for-each-ref", "--format=%(contents)", "refs/tags/v1.0.0")
    repo.commit({"base": BASE.format(3, "fp16")})
    edited = re.sub(r"^Digest: .", "Digest: z", message, flags=re.MULTILINE)
    for text, target, is_told in (
        (message, repo.head, True),
        (edited, first, True),
        ("by hand", repo.head, False),
    ):
        repo.git("tag", "-f", "-a", "v1.0.0", "-m", text, target)
        done = run("verify", "--tags")
        assert done.code == int(is_told), text
        assert ("NP028" in done.out) == is_told, text
        assert run("verify", "--tags", "leaf").code == 0
