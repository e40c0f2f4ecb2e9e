"""Revisions with sources that are missing on this machine are unknown, with a hint to get them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run
from support.teams import BASE, Team


@pytest.fixture
def moved_on(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Repo:
    """A repository that was released with a source, and takes presets of another one now.

    Nothing was fetched here but that.
    """
    assert run("release", "--all", "--yes").code == 0
    other = Team(tmp_path / "second")
    other.publish({"base": BASE.format(600)}, "1.0.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "remove", "team", "--force").code == 0
    assert run("source", "add", "team", other.url).code == 0
    app.write(
        {
            "job": (
                '[profile]\nextends = ["team:base"]\n[options]\n'
                "deterministic = 1\nhccl_timeout = 500\n"
            )
        }
    )
    app.commit(message="another source")
    return app


@pytest.mark.parametrize(
    ("arguments", "rev"), [("release job", "job/v1.0.0"), ("release --all --yes", "")]
)
def test_no_number_is_proposed_from_a_release_whose_source_is_not_here(
    arguments: str, rev: str, moved_on: Repo, run: Run
) -> None:
    tags = moved_on.git("tag")
    result = run(*arguments.split())
    output = " ".join((result.out + result.err).split())
    assert result.code == 2, output
    assert "NP043" in output, output
    assert "--uncompared" in output, output
    assert f"npuprof source sync --rev {rev}" in output
    assert moved_on.git("tag") == tags
    for step in [rev] if rev else moved_on.git("tag", "-l", "v*").split():
        assert run("source", "sync", "--rev", step).code == 0
    result = run(*arguments.split())
    assert result.code == 0, result.err
    assert "major" not in result.out + result.err, result.err


@pytest.mark.parametrize(
    "arguments", ["show job@HEAD~1", "diff job@job/v1.0.0 job", "check job@1.0.0"]
)
def test_a_source_that_only_the_lock_of_a_revision_names_is_had_by_its_hint(
    arguments: str, moved_on: Repo, run: Run
) -> None:
    result = run(*arguments.split())
    output = " ".join((result.out + result.err).split())
    assert result.code == 2, output
    assert "NP043" in output, output
    (hint,) = set(re.findall(r"npuprof (source sync(?: --rev \S+| --history)?)", output))
    assert run(*hint.split()).code == 0
    again = run(*arguments.split())
    assert again.code == 0, again
    assert "NP043" not in again.out + again.err, again


def test_what_a_history_lacks_is_had_by_its_hint(moved_on: Repo, run: Run) -> None:
    result = run("log", "job")
    assert "npuprof source sync --history" in result.out + result.err
    assert (
        "a source is not on this machine: npuprof source sync --history"
        in run("whatran", "0" * 16).err
    )
    assert run("source", "sync", "--history").code == 0
    assert "NP043" not in (again := run("log", "job")).out + again.err
