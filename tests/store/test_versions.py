"""Revisions with a plus, versions in lists, dates of releases, long messages, and merges."""

from __future__ import annotations

import json

import pytest

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


@pytest.mark.parametrize(
    "requested", ['leaf@"fix+more"', "leaf@'fix+more'", "leaf@'fix+more'+extra"]
)
def test_a_branch_with_a_plus_is_a_revision_in_quotes(repo: Repo, requested: str, run: Run) -> None:
    repo.git("branch", "fix+more")
    repo.commit({"base": BASE.format(600), "extra": "[options]\ngraph_run_mode = 1\n"})
    config = spec.Workspace().resolve_spec(requested)
    assert config.settings["hccl_timeout"] == 1800
    assert ("graph_run_mode" in config.settings) == ("extra" in requested)


def test_list_shows_the_newest_version_of_each_preset(repo: Repo, run: Run) -> None:
    for version in ("1.9.0", "1.10.0", "0.5.0"):
        repo.release("leaf", version)
    repo.git("tag", "base/v9.0.0")  # no annotated tag: no release
    assert run("list").out.splitlines() == [
        "base  abstract  -       -     -",
        "leaf  training  1.10.0  base  -",
    ]
    rows = json.loads(run("list", "--format", "json").out)["presets"]
    assert [row["version"] for row in rows] == [None, "1.10.0"]
    repo.git("pack-refs", "--all", "--prune")
    assert "1.10.0" in run("list").out
    repo.git("worktree", "add", "-q", "../other")
    assert "1.10.0" in run("list", "--store", "../other/profiles").out


def test_list_works_where_git_cannot_be_used(
    repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.release("leaf", "1.0.0")
    monkeypatch.setenv("PATH", "/nonexistent")
    result = run("list")
    assert result.code == 0
    assert result.out.splitlines()[1] == "leaf  training  -  base  -"


def test_a_name_with_a_line_end_is_one_name(repo: Repo) -> None:
    repo.commit({"a": "x"})
    names = ["HEAD:no\nHEAD:profiles/a.toml", "HEAD:profiles/a.toml", "HEAD:no"]
    assert Git(str(repo.folder)).read_files(names) == [None, b"x", None]


def test_more_requests_than_a_pipe_holds_are_answered(repo: Repo) -> None:
    head = repo.head
    assert {
        commit.oid for commit in Git(str(repo.folder)).read_objects([head] * 20_000) if commit
    } == {head}


@pytest.mark.parametrize(
    ("stamp", "zone", "date"),
    [
        (0, "+0000", "1970-01-01T00:00:00+00:00"),
        (1767225599, "+0530", "2026-01-01T05:29:59+05:30"),
        (0, "-0100", "1969-12-31T23:00:00-01:00"),
        (10**18, "+0000", str(10**18)),
    ],
)
def test_dates_are_those_of_the_author(stamp: int, zone: str, date: str) -> None:
    assert format_tag_date(stamp, zone) == date


def test_a_message_longer_than_a_command_line_is_committed(repo: Repo, run: Run) -> None:
    repo.write(
        {
            f"p{number}": f'[profile]\nextends = ["base"]\n[env]\nA = "{number}{"x" * 700}"\n'
            for number in range(300)
        }
    )
    repo.git("add", "-A")
    repo.git("commit", "-qm", "many")
    repo.write(
        {
            f"p{number}": f'[profile]\nextends = ["base"]\n[env]\nA = "{number}{"y" * 700}"\n'
            for number in range(300)
        }
    )
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
    assert done.code == 2
    assert done.out == ""
    assert "a merge is under way" in done.err
