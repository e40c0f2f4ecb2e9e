"""Revisions with a plus, versions in lists, remotes without a work tree, and reading many objects at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npuprof.model import NpuprofError
from npuprof.store import spec
from npuprof.store.gitstore.objects import Git
from npuprof.store.versions import format_tag_date
from support.repositories import Repo
from support.running import Run, expect

BASE = "[profile]\nabstract = true\n[options]\nhccl_timeout = {}\n"
LEAF = '[profile]\nextends = ["base"]\nscenario = "training"\n'


@pytest.fixture
def repo(repo: Repo) -> Repo:
    repo.commit({"base": BASE.format(1800), "leaf": LEAF}, "first")
    return repo


@pytest.mark.parametrize("asked", ['leaf@"fix+more"', "leaf@'fix+more'", "leaf@'fix+more'+extra"])
def test_a_branch_with_a_plus_is_a_revision_in_quotes(repo: Repo, asked: str, run: Run) -> None:
    repo.git("branch", "fix+more")
    repo.commit({"base": BASE.format(600), "extra": "[options]\ngraph_run_mode = 1\n"})
    config = spec.Workspace().resolve_spec(asked)
    assert config.settings["hccl_timeout"] == 1800
    assert ("graph_run_mode" in config.settings) == ("extra" in asked)


def test_list_shows_the_newest_version_of_each_preset(repo: Repo, run: Run) -> None:
    for version in ("1.9.0", "1.10.0", "0.5.0"):
        repo.release("leaf", version)
    repo.git("tag", "base/v9.0.0")  # no annotated tag: no release
    result = run("list")
    assert result.out.splitlines() == ["base  abstract  -       -     -", "leaf  training  1.10.0  base  -"]
    rows = json.loads(run("list", "--format", "json").out)["presets"]
    assert [row["version"] for row in rows] == [None, "1.10.0"]
    repo.git("pack-refs", "--all", "--prune")
    assert "1.10.0" in run("list").out
    repo.git("worktree", "add", "-q", "../other")
    assert "1.10.0" in run("list", "--store", "../other/profiles").out


def test_list_works_where_git_cannot_be_used(repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.release("leaf", "1.0.0")
    monkeypatch.setenv("PATH", "/nonexistent")
    result = run("list")
    assert (result.code, result.out.splitlines()[1]) == (0, "leaf  training  -  base  -")


@pytest.mark.parametrize("count", [3, 700])
def test_contents_are_read_alike_few_or_many_and_what_is_missing_is_left_out(repo: Repo, count: int) -> None:
    texts = [b"\n" * number + b"x\n0123 blob 5\n" for number in range(count)]
    for number, text in enumerate(texts):
        (repo.folder / f"f{number}").write_bytes(text)
    oids = repo.git("hash-object", "-w", "--stdin-paths", stdin="\n".join(f"f{number}" for number in range(count)).encode()).split()
    asked = [*oids[:2], "0" * 40, *oids[2:], "1" * 40]
    read = Git(str(repo.folder)).read_objects(asked)
    assert {blob.oid: blob.content for blob in read if blob} == dict(zip(oids, texts, strict=True))


def test_more_requests_than_a_pipe_holds_are_answered(repo: Repo) -> None:
    head = repo.head
    assert {commit.oid for commit in Git(str(repo.folder)).read_objects([head] * 20_000) if commit} == {head}


def test_contents_without_a_repository_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(NpuprofError):
        Git(str(tmp_path)).read_objects(["0" * 40] * 500)


@pytest.mark.parametrize(
    ("stamp", "zone", "date"),
    [
        (0, "+0000", "1970-01-01T00:00:00+00:00"), (1767225599, "+0530", "2026-01-01T05:29:59+05:30"),
        (0, "-0100", "1969-12-31T23:00:00-01:00"), (10**18, "+0000", str(10**18)),
    ],
)  # fmt: skip
def test_dates_are_those_of_the_author(stamp: int, zone: str, date: str) -> None:
    assert format_tag_date(stamp, zone) == date


@pytest.mark.parametrize("others", [0, 300])
def test_a_store_that_was_another_folder_keeps_its_history(repo: Repo, run: Run, others: int) -> None:
    repo.commit({"base": BASE.format(600)}, "second")
    repo.git("mv", "profiles", "presets")
    for number in range(others):
        (repo.folder / f"other{number}").write_text(str(number))
    repo.commit({}, "move")
    repo.git("mv", "presets", "profiles")
    repo.commit({"leaf": LEAF + "[options]\ngraph_run_mode = 1\n"}, "move back and change")
    for number in range(others):
        (repo.folder / f"more{number}").write_text(str(number))
    repo.git("mv", "profiles/leaf.toml", "profiles/blatt.toml")
    repo.commit({}, "rename")
    found = json.loads(run("log", "blatt", "--format", "json").out)["commits"]
    assert [(step["subject"], step["kind"]) for step in found] == [
        ("move back and change", "changed"), ("second", "changed"), ("first", "created"),
    ]  # fmt: skip
    assert [line.split()[1:3] for line in run("log", "blatt", "hccl_timeout").out.splitlines()[::2]][:1] == [["2026-01-02", "Ada"]]
    by = {row["key"]: row["subject"] for row in json.loads(run("blame", "blatt", "--format", "json").out)["values"]}
    assert by == {"graph_run_mode": "move back and change", "hccl_timeout": "second"}


def test_revisions_from_before_the_store_moved_are_read_where_it_was(repo: Repo, run: Run) -> None:
    repo.git("mv", "profiles", "presets")
    repo.commit({}, "elsewhere")
    repo.release("leaf", "1.0.0")
    repo.git("mv", "presets", "profiles")
    repo.commit({"base": BASE.format(600)}, "back")
    assert spec.Workspace().resolve_spec("leaf@1").settings == {"hccl_timeout": 1800}
    done = run("diff", "--rev", "HEAD~1")
    assert "~ 2 presets: hccl_timeout 1800 → 600 s" in done.out
    assert "presets/base.toml:4" in done.out
    assert done.out.endswith("2 presets differ, 0 do not\n")
    assert run("restore", "base@leaf/v1.0.0", "--dry-run").out == BASE.format(1800)
    by = json.loads(run("blame", "leaf@HEAD~1", "--format", "json").out)["values"]
    assert [row["subject"] for row in by] == ["first"]
    found = json.loads(run("log", "leaf@HEAD~1", "--format", "json").out)["commits"]
    assert [step["subject"] for step in found] == ["first"]
    assert "1.1.0 is next" in run("release", "leaf", "--dry-run").out


def test_commit_leaves_alone_what_is_no_preset_and_says_what_was_mended(repo: Repo, run: Run) -> None:
    for name in (".hidden", "a b", "a!", ".git-like/x", "x.toml"):
        path = repo.folder / "profiles" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("[options]\n")
    assert run("commit").code == 1
    repo.write({"leaf": "broken = ["})
    repo.git("commit", "-qam", "broken")
    repo.write({"leaf": LEAF})
    assert run("commit").out.endswith(" Mend leaf\n")
    assert sorted(repo.git("ls-files", "profiles").splitlines()) == ["profiles/base.toml", "profiles/leaf.toml"]


def test_a_message_longer_than_a_command_line_is_committed(repo: Repo, run: Run) -> None:
    repo.write({f"p{number}": f'[profile]\nextends = ["base"]\n[env]\nA = "{number}{"x" * 700}"\n' for number in range(300)})
    repo.git("add", "-A")
    repo.git("commit", "-qm", "many")
    repo.write({f"p{number}": f'[profile]\nextends = ["base"]\n[env]\nA = "{number}{"y" * 700}"\n' for number in range(300)})
    expect(run("commit"), 0)
    assert len(repo.git("log", "-1", "--format=%B")) > 200_000


def test_a_merge_under_way_is_named_as_the_reason(repo: Repo, run: Run) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"base": BASE.format(600)})
    repo.git("checkout", "-q", "main")
    repo.commit({"base": BASE.format(700)})
    repo.git("merge", "side", check=False)
    repo.write({"base": BASE.format(650)})
    done = run("commit")
    assert (done.code, done.out) == (2, "")
    assert "a merge is under way" in done.err
