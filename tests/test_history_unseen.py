"""What is told of revisions whose sources are not on this machine: that they are not, and where they are had; never a guess."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repositories import Repo
from teams import BASE, Team

pytestmark = pytest.mark.slow

Run = Callable[..., Any]


@pytest.fixture
def moved_on(app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository that was released with a source, and takes presets of another one now; nothing was fetched here but that."""
    assert run("release", "--all", "--yes").code == 0
    other = Team(tmp_path / "second")
    other.publish({"base": BASE.format(600)}, "1.0.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "remove", "team", "--force").code == 0
    assert run("source", "add", "team", other.url).code == 0
    app.write({"job": '[profile]\nextends = ["team:base"]\n[options]\ndeterministic = 1\nhccl_timeout = 500\n'})
    app.commit(message="another source")
    return app


@pytest.mark.parametrize(
    ("words", "rev"),
    [
        ("release job", "job/v1.0.0"),
        ("release --changed --yes", "job/v1.0.0"),
        ("release --all --yes", ""),
        ("release --all --dry-run", ""),
    ],
)
def test_no_number_is_proposed_from_a_release_whose_source_is_not_here(words: str, rev: str, moved_on: Repo, run: Run) -> None:
    tags = moved_on.git("tag")
    result = run(*words.split())
    said = " ".join((result.out + result.err).split())
    assert (result.code, "NP043" in said, "major" in said) == (2, True, False), said
    assert f"npuprof source sync --rev {rev}" in said
    assert moved_on.git("tag") == tags
    for step in [rev] if rev else moved_on.git("tag", "-l", "v*").split():
        assert run("source", "sync", "--rev", step).code == 0
    result = run(*words.split())
    assert (result.code, "major" in result.out + result.err) == (0, False), result.err


def test_a_number_that_is_given_needs_no_proposal(moved_on: Repo, run: Run) -> None:
    assert run("release", "job", "3.0.0").code == 0
    assert "job/v3.0.0" in moved_on.git("tag")
