"""Releases of a repository with a source: compared with the last ones, also without the source."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Team


def rewrite(team: Team) -> None:
    """Have the source begin anew: what was locked is gone for good."""
    team.repo.git("checkout", "-q", "--orphan", "fresh")
    team.repo.commit({"base": BASE.format(900)})
    team.repo.git("tag", "-a", "v1.1.0", "-m", "1.1.0")
    team.repo.git("push", "-q", str(team.bare), "v1.1.0")
    tags = (f":refs/tags/{tag}" for tag in ("v1.0.0", "base/v1.0.0"))
    team.repo.git("push", "-q", "-f", str(team.bare), "fresh:main", *tags)
    team.repo.git(f"--git-dir={team.bare}", "gc", "-q", "--prune=now")


@pytest.fixture
def lost(app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A fresh clone of a repository that was released with a commit of its source that is lost."""
    app.write({"same": 'profile.extends = ["team:other"]\n'})
    app.commit()
    assert run("release", "--all", "--yes").code == 0
    rewrite(team)
    assert run("source", "update", "--yes", "--moved").code == 0
    app.commit(message="on")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "sync").code == 0
    return app


@pytest.mark.parametrize("arguments", ["--all --yes", "--changed --yes", "job"])
def test_what_nobody_can_compare_any_more_is_released_as_a_major_step_by_who_says_so(
    arguments: str, lost: Repo, run: Run
) -> None:
    result = run("release", *arguments.split())
    output = " ".join(result.err.split())
    assert result.code == 2, output
    assert "NP043" in output, output
    assert lost.git("tag").count("v1.1") == 0, output
    assert "npuprof source sync --rev" in output
    assert "if it is lost: --uncompared releases it as a major step" in output
    dry = run("release", *arguments.split(), "--uncompared", "--dry-run")
    assert dry.code == 0, dry.out + dry.err
    assert ("job/v2.0.0" in dry.out or "job@2.0.0" in dry.out) is True, dry.out + dry.err
    result = run("release", *arguments.split(), "--uncompared")
    output = " ".join(result.err.split())
    assert result.code == 0, output
    assert (
        "job@2.0.0 was not compared with 1.0.0, so the size of the step is unknown: the "
        "source 'team' cannot be read"
    ) in output
    message = lost.git("tag", "-l", "--format=%(contents)", "job/v2.0.0")
    assert "not compared with 1.0.0, which could not be read" in message
    assert "machine" not in message, "what this machine lacks is nothing that a release is made of"
    assert not lost.git("tag", "-l", "own/v1.0.1", "own/v2.0.0", "same/v2.0.0"), (
        "what is the same by its digest is no new version"
    )
    if arguments.startswith("--all"):
        assert "v2.0.0" in lost.git("tag").split()
        assert "not compared with unreadable presets" in lost.git(
            "tag", "-l", "--format=%(contents)", "v2.0.0"
        )
        assert run("release", "--all", "--yes").code == 2, "there is nothing left to release"


def test_a_repository_that_has_taken_its_source_in_needs_nothing_else_in_a_fresh_clone(
    app: Repo, team: Team, run: Run, fresh: Callable[[], Path]
) -> None:
    app.write({"job": 'profile.extends = ["team:base@1.0.0"]\n'})
    assert run("source", "update", "--yes").code == 0
    app.commit()
    assert run("release", "--all", "--yes").code == 0
    assert run("source", "vendor", "team").code == 0
    app.commit(message="vendor")
    app.write({"own": "options.deterministic = 1\n"})
    app.commit(message="two")
    shutil.move(team.bare, team.bare.with_suffix(".gone"))
    fresh()
    result = run("release", "--all", "--yes")
    assert result.code == 0, result.out + result.err
    assert "own@2.0.0" in result.out, result.out + result.err
    assert "job@" not in result.out, result.out + result.err
    assert run("verify", "--tags").code == 0
    expect(run("blame", "job"), 0, f"{team.repo.head[:7]} copied")
    log = run("log", "job")
    assert log.code == 0, log.out + log.err
    assert "unknown" not in log.out, log.out + log.err
    assert "hccl_timeout 600 s" in log.out, log.out + log.err


def test_a_release_of_the_store_with_a_lock_that_was_typed_over_does_not_hold(
    app: Repo, run: Run, lock: Path
) -> None:
    assert run("release", "--all", "--yes").code == 0
    lock.write_text(lock.read_text().replace('tag = "v1.0.0"', 'tag = "v1.0.1"'))
    expect(
        run("verify", "--tags"),
        0,
        "the files here now are not verified by it: npuprof.lock has no fitting seals",
    )
    app.commit()
    app.git("tag", "-a", "v1.0.1", "-m", app.git("tag", "-l", "--format=%(contents)", "v1.0.0"))
    result = run("verify", "--tags", "@")
    output = " ".join(result.out.split())
    assert result.code == 1, output
    assert "the sources of v1.0.1: npuprof.lock has no fitting seals" in output, output
