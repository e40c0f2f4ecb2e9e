"""Yanked versions are recorded by a tag, and reported by ranges, checks and lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

import npuprof
from support.repositories import Repo
from support.running import Run, expect

BASE = "[profile]\nabstract = true\n[options]\nhccl_timeout = {}\n"
HEIR = '[profile]\nextends = ["{}"]\nscenario = "training"\n[options]\niterations_per_loop = 10\n'


@pytest.fixture
def repo(repo: Repo, run: Run) -> Repo:
    """Return a base with versions 1.0.0, 1.1.0 and 2.0.0-rc.1, and presets that extend them.

    The store has version 5.0.0.
    """
    for timeout, number in ((1836, "1.0.0"), (1904, "1.1.0"), (1972, "2.0.0-rc.1")):
        repo.commit({"base": BASE.format(timeout)})
        assert run("release", "base", number).code == 0
    repo.git("tag", "-a", "v5.0.0", "-m", "5.0.0", "HEAD~1")
    spellings = {
        "exact": "base@1.1.0",
        "range": "base@1",
        "store": "base@v5.0.0",
        "plain": "base",
        "commit": "base@HEAD~1",
    }
    repo.commit({name: HEIR.format(parent) for name, parent in spellings.items()})
    return repo


def list_yank_findings(run: Run, *presets: str) -> list[dict[str, Any]]:
    """Return the findings about yanked versions, of some presets or of all."""
    findings = json.loads(run("check", *presets, "--format", "json").out)["findings"]
    return [finding for finding in findings if finding["code"] == "NP704"]


def timeout(spec: str) -> object:
    return npuprof.open_store().resolve(spec).options["hccl_timeout"]


def test_a_yank_adds_a_tag_with_the_reason_and_takes_nothing_away(repo: Repo, run: Run) -> None:
    before = repo.git("for-each-ref")
    done = run("yank", "base@1.1.0", "--why", "it  hangs\non A3", "--dry-run")
    assert done.code == 0
    assert repo.git("for-each-ref") == before
    done = run("yank", "base@1.1.0", "--why", "it  hangs\non A3")
    assert done.out == "base/v1.1.0.yanked\n"
    assert "1 preset extends it (NP704): exact" in done.err
    assert "share it with git push origin base/v1.1.0.yanked" in done.err
    assert set(before.splitlines()) < set(repo.git("for-each-ref").splitlines())
    assert repo.git("cat-file", "tag", "base/v1.1.0.yanked").endswith("\n\nit hangs on A3")
    assert repo.git("rev-parse", "base/v1.1.0.yanked^{commit}") == repo.git(
        "rev-parse", "base/v1.1.0^{commit}"
    )
    expect(
        run("yank", "base@1.1.0", "--why", "other"),
        2,
        "base/v1.1.0 is yanked already: it hangs on A3",
    )
    expect(run("release", "base", "1.1.0"), 2, "1.1.0 is released already")
    expect(run("release", "base", "--dry-run"), 0, "minor: 1.2.0 is next")


def test_a_range_takes_no_yanked_version_unless_there_is_no_other(repo: Repo, run: Run) -> None:
    assert [timeout("base@1"), timeout("range"), timeout("exact")] == [1904, 1904, 1904]
    assert run("yank", "base@1.1.0", "--why", "slow").code == 0
    assert [timeout("base@1"), timeout("range"), timeout("exact"), timeout("base@1.1")] == [
        1836,
        1836,
        1904,
        1904,
    ]
    assert run("yank", "base@1.0.0", "--why", "slow").code == 0
    assert [timeout("base@1"), timeout("range")] == [1904, 1904], (
        "the newest of those that are yanked"
    )


@pytest.mark.parametrize(
    ("yanked", "hints"),
    [
        (["base@1.1.0"], {"exact": 'write "base@1.0.0" in its place'}),
        (["base@1.0.0"], {}),
        (
            ["base@1.0.0", "base@1.1.0"],
            dict.fromkeys(
                ("exact", "range"), 'release base again, or write "base" without a version'
            ),
        ),
        (["@5.0.0"], {"store": 'write "base@v5.1.0" in its place'}),
    ],
)
def test_heirs_of_yanked_versions_are_warned_and_the_newest_that_is_not_yanked_is_named(
    yanked: list[str], hints: dict[str, str], repo: Repo, run: Run
) -> None:
    repo.git("tag", "-a", "v5.1.0", "-m", "5.1.0")
    for version in yanked:
        assert run("yank", version, "--why", "it is slow").code == 0
    findings = list_yank_findings(run)
    assert {
        finding["path"].removeprefix("profiles/").removesuffix(".toml"): finding["hint"]
        for finding in findings
    } == hints
    for finding in findings:
        assert finding["message"].endswith("in a version that was yanked: it is slow")


def test_lists_and_verification_tell_what_is_yanked(repo: Repo, run: Run) -> None:
    for version in ("base@1.1.0", "base@2.0.0-rc.1", "@5.0.0"):
        assert run("yank", version, "--why", "it is slow").code == 0
    listed = run("list", "--versions").out.splitlines()
    assert [line.split()[:2] for line in listed] == [
        ["base", "1.0.0"],
        ["base", "1.1.0"],
        ["base", "2.0.0-rc.1"],
        ["@", "5.0.0"],
    ]
    assert [line.endswith("  yanked: it is slow") for line in listed] == [False, True, True, True]
    rows = json.loads(run("list", "--versions", "--format", "json").out)["versions"]
    assert [(row["tag"], row["yanked"]) for row in rows[::3]] == [
        ("base/v1.0.0", None),
        ("v5.0.0", "it is slow"),
    ]
    done = run("verify", "--tags")
    assert done.code == 0
    assert [" ".join(line.split()[3:]) for line in done.out.splitlines()] == [
        "matches",
        *["matches yanked: it is slow"] * 2,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base@1.1.0"], "Missing option '--why'"),
        (["base@1.1.0", "--why", " "], "--why gives no reason"),
        (["base@9.9.9", "--why", "x"], "base has no released version 9.9.9"),
        (["base@1", "--why", "x"], "A version is yanked by its whole number"),
        (["base", "--why", "x"], "write base@2.0.0-rc.1"),
        (["plain@1.0.0", "--why", "x"], "plain has no released version 1.0.0"),
        (["@3.0.0", "--why", "x"], "released are 5.0.0"),
        (["team:base@1.0.0", "--why", "x"], "yank takes a preset of this repository"),
    ],
)
def test_what_cannot_be_yanked_is_refused(
    arguments: list[str], message: str, repo: Repo, run: Run
) -> None:
    before = repo.git("for-each-ref")
    expect(run("yank", *arguments), 2, message)
    assert repo.git("for-each-ref") == before


def test_whoever_builds_on_a_yanked_version_is_warned_however_far_below(
    repo: Repo, run: Run
) -> None:
    repo.commit({"leaf": HEIR.format("exact")})
    assert run("release", "range").code == 0
    repo.commit(
        {
            "behind": HEIR.format("range@1.0.0"),
            "below": HEIR.format("behind"),
            "free": HEIR.format("base@1.0.0"),
        }
    )
    assert run("yank", "base@1.1.0", "--why", "it is slow").code == 0
    warned = {
        finding["message"]: (finding["path"], finding["profiles"])
        for finding in list_yank_findings(run)
    }
    reason = "in a version that was yanked: it is slow"
    assert warned == {
        f"exact extends base@1.1.0 {reason}": ("profiles/exact.toml", ["exact", "leaf"]),
        f"behind extends range@1.0.0, which builds on base@1 {reason}": (
            "profiles/behind.toml",
            ["behind", "below"],
        ),
    }
    for requested in ("base@1.1.0", "range@1.0.0", "leaf", "below", "leaf+free"):
        assert len(list_yank_findings(run, requested)) == 1, requested
    assert "NP704" not in run("check", "free", "base@1.0.0").out
