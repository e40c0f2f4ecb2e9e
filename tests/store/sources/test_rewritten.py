"""An upstream that was rewritten, seen from a clone that never fetched it: what is told leads out."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run
from support.teams import BASE, Team


def rewrite(team: Team) -> None:
    """Make the history of a source another one, without what it had released."""
    team.repo.git("push", "-q", str(team.bare), *(f":refs/tags/{tag}" for tag in team.repo.git("tag").split()))
    for tag in team.repo.git("tag").split():
        team.repo.git("tag", "-d", tag)
    team.repo.git("checkout", "-q", "--orphan", "anew")
    team.repo.commit({"base": BASE.format(5)})
    team.repo.git("branch", "-M", "main")
    team.repo.git("tag", "-a", "v1.5.0", "-m", "anew")
    team.push("--force")
    team.repo.git(f"--git-dir={team.bare}", "reflog", "expire", "--expire=now", "--all")
    team.repo.git(f"--git-dir={team.bare}", "gc", "-q", "--prune=now")


def test_what_a_source_of_a_source_has_lost_is_mended_where_that_is_kept(
    repo: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mid = Team(tmp_path / "middle")
    monkeypatch.chdir(mid.repo.folder)
    mid.repo.write({"mid": 'profile.extends = ["up:base"]\n'})
    assert run("source", "add", "up", team.url).code == 0
    mid.publish({}, "1.0.0")
    monkeypatch.chdir(repo.folder)
    repo.write({"job": 'profile.extends = ["mid:mid"]\n'})
    assert run("source", "add", "mid", mid.url).code == 0
    rewrite(team)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    for words in ("sync", "update"):
        result = run("source", words)
        assert (result.code, "'mid/up' no longer has the commit" in result.err) == (2, True), result.err
        assert "that the lock of mid names" in result.err
        assert "lock another one: npuprof source update mid" in " ".join(result.err.split())
        assert ":refs/tags/kept/" in result.err
    monkeypatch.chdir(mid.repo.folder)
    assert run("source", "update", "up", "--yes", "--moved").code == 0
    mid.publish({}, "1.1.0")
    monkeypatch.chdir(repo.folder)
    assert run("source", "update", "mid", "--yes").code == 0
    assert "hccl_timeout = 5\n" in run("show", "job").out


def test_a_version_that_a_source_has_lost_is_told_with_the_preset_that_names_it(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.write({"pinned": 'profile.extends = [\n  "team:base@1.0.0",\n]\n'})
    assert run("source", "update", "--yes").code == 0
    rewrite(team)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    result = run("source", "update", "--yes", "--moved")
    said = " ".join(result.err.split())
    assert (result.code, "profiles/pinned.toml:2:" in said, "team: base has no released version 1.0.0" in said) == (2, True, True), said
