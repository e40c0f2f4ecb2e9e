"""Locked versions: compared with what was locked wherever presets of a source are read."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Shared, Team, copy_shared


@pytest.fixture
def shared_pinned(tmp_path: Path, run: Run, committer: None) -> Shared:
    def pin(shared: Shared) -> None:
        team, app = shared
        team.publish({"base": BASE.format(7)}, "1.1.0", "base/v1.1.0")
        team.publish({"base": BASE.format(8)}, "1.2.0", "base/v1.2.0")
        app.write({"pinned": 'profile.extends = ["team:base@1.1"]\n'})
        assert run("source", "update", "--yes").code == 0
        app.commit(message="pinned")

    return copy_shared(tmp_path, run, pin)


@pytest.fixture
def pinned(shared_pinned: Shared, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository whose source is at 1.2.0, of which a preset takes base 1.1.0."""
    monkeypatch.chdir(shared_pinned.app.folder)
    return shared_pinned.app


def type_over(app: Repo, pattern: str, replacement: str) -> str:
    """Change the lock as somebody with an editor would; return what it was."""
    lock = app.folder / "npuprof.lock"
    before = lock.read_text()
    after = re.sub(pattern, replacement, before)
    assert after != before
    lock.write_text(after)
    return before


SEALS = r'(?s)seal = "[0-9a-f]{16}"\n|\n\[sources\.team\.seals\].*'
#: What is said of an entry that npuprof did not write.
UNSEALED = "npuprof.lock has no fitting seals for the source 'team'"


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r'"1\.1\.0 [0-9a-f]*"', '"1.1.0 {v1.0.0}"'),
        (r'"1\.1\.0 [0-9a-f]*"', '"0.9.0 {v1.0.0}"'),
        (r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.1 \1"'),
        (r'tag = "v1\.2\.0"', 'tag = "v1.1.0"'),
        (r'"base@1\.1" = "[0-9a-f]{16}"\n', ""),
        (r"\[sources\.team\.seals\]\n.*\n", ""),
    ],
)
@pytest.mark.parametrize("arguments", ["show pinned", "source sync", "release own 1.0.0"])
def test_a_version_that_was_typed_into_the_lock_is_told_offline_by_whatever_reads_it(
    arguments: str, pattern: str, replacement: str, pinned: Repo, team: Team, run: Run
) -> None:
    before = type_over(
        pinned,
        pattern,
        replacement.replace("{v1.0.0}", team.repo.git("rev-parse", "v1.0.0^{commit}").strip()),
    )
    shutil.move(team.bare, team.bare.with_suffix(".gone"))
    pinned.write({"own": "options.deterministic = 1\n"})
    if arguments.startswith("release"):
        pinned.commit()
        arguments = "release pinned 1.0.0"
    result = run(*arguments.split())
    output = " ".join((result.out + result.err).split())
    assert result.code == 2, output
    assert "NP044" in output, output
    assert (UNSEALED in output or "is not as npuprof writes it" in output) is True, output
    (pinned.folder / "npuprof.lock").write_text(before)
    assert run("show", "pinned").code == 0


def test_what_was_typed_into_the_lock_is_mended_by_an_update_that_says_so(
    pinned: Repo, run: Run
) -> None:
    before = type_over(pinned, r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.9 \1"')
    expect(run("source", "update", "--yes"), 0, "team:base@1.1: 1.1.9")
    assert (pinned.folder / "npuprof.lock").read_text() == before
    before = type_over(pinned, r'"base@1\.1" = "[0-9a-f]{16}"\n', "")
    expect(run("source", "update", "--yes"), 0, "team")
    assert (pinned.folder / "npuprof.lock").read_text() == before


@pytest.mark.parametrize("copied", [False, True])
def test_a_lock_without_seals_is_rejected_until_an_update_locks_it_again(
    copied: bool, pinned: Repo, run: Run
) -> None:
    if copied:
        assert run("source", "vendor", "team").code == 0
    before = type_over(pinned, SEALS, "")
    pinned.commit()
    pinned.write({"own": "options.deterministic = 1\n"})
    for arguments in (
        "show pinned",
        "check",
        "source sync",
        "source vendor team",
        "commit -m x",
        "release --all --yes",
    ):
        result = run(*arguments.split())
        output = " ".join((result.out + result.err).split())
        assert result.code == 2, (arguments, output)
        assert "NP044" in output, (arguments, output)
        assert UNSEALED in output, (arguments, output)
        assert "npuprof source update team" in output, (arguments, output)
    assert run("check", "own").code == 0, "it reads no source"
    assert run("source", "update", "--frozen").code == 1
    expect(run("source", "update", "--yes"), 0, "is rewritten")
    assert tomllib.loads((pinned.folder / "npuprof.lock").read_text()) == tomllib.loads(before)
    assert "hccl_timeout = 7\n" in run("show", "pinned").out
    assert run("source", "sync", "--history").code == 0, "an older lock without seals names nothing"


def test_what_is_done_with_one_source_seals_no_other(
    pinned: Repo, team: Team, run: Run, tmp_path: Path
) -> None:
    other = Team(tmp_path / "other")
    other.publish({"mid": "options.deterministic = 1\n"}, "1.0.0")
    type_over(pinned, r'"1\.1\.0 ([0-9a-f]*)"', r'"1.1.1 \1"')
    for arguments in (
        ("add", "mid", other.url),
        ("update", "mid", "--yes"),
        ("vendor", "mid"),
        ("remove", "mid"),
    ):
        assert run("source", *arguments).code == 0, arguments
        result = run("show", "pinned")
        assert result.code == 2, (
            arguments,
            result.err,
        )
        assert UNSEALED in " ".join(result.err.split()), (
            arguments,
            result.err,
        )


# -- what a source has withdrawn ------------------------------------------------------------------


@pytest.fixture
def withdraw(team: Team) -> Callable[[str], None]:
    """Delete a tag where the source is kept."""

    def delete(tag: str) -> None:
        team.repo.git("push", "-q", str(team.bare), f":refs/tags/{tag}")
        team.repo.git("tag", "-d", tag)

    return delete


@pytest.mark.parametrize(
    ("requested", "gone", "code"), [("base@1", "v1.2.0", 2), ("base@1.1.0", "v1.1.0", 0)]
)
@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_version_that_is_locked_and_was_withdrawn_is_told_before_an_older_one_takes_its_place(
    requested: str,
    gone: str,
    code: int,
    is_fresh: bool,
    pinned: Repo,
    run: Run,
    withdraw: Callable[[str], None],
    fresh: Callable[[], Path],
) -> None:
    pinned.write({"pinned": f'profile.extends = ["team:{requested}"]\n'})
    assert run("source", "update", "--yes").code == 0
    before, shown = (pinned.folder / "npuprof.lock").read_text(), run("show", "pinned").out
    withdraw(f"base/{gone}")
    if is_fresh:
        fresh()
        assert run("source", "sync").code == 0
    expect(
        run("source", "update", "--yes"), code, *([f"base/{gone} of the source"] if code else [])
    )
    assert not code or (pinned.folder / "npuprof.lock").read_text() == before
    assert run("show", "pinned").out == shown


# -- what is told ---------------------------------------------------------------------------------


def test_a_deprecated_preset_that_one_of_a_source_builds_on_is_told(
    app: Repo, team: Team, run: Run
) -> None:
    old = 'profile.deprecated = "use newer"\noptions.hccl_timeout = 600\n'
    team.publish(
        {"base": 'profile.extends = ["mid"]\n', "mid": 'profile.extends = ["old"]\n', "old": old},
        "1.1.0",
    )
    assert run("source", "update", "--yes").code == 0
    checked = run("check", "job")
    assert (
        "job extends team:base, which builds on team:old, and that is deprecated: use newer"
        in checked.out
    )
    assert "then: npuprof source update team" in checked.out
    app.write({"heir": 'profile.extends = ["job"]\n', "direct": 'profile.extends = ["team:old"]\n'})
    assert "deprecated" not in run("check", "heir").out, "it is told where the source is named"
    assert run("check", "direct").out.count("is deprecated") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("sync", 0), ("update", 0), ("list", 0), ("vendor team", 2), ("remove team", 2)],
)
def test_where_there_is_neither_store_nor_npuprof_toml_that_is_told(
    arguments: str, code: int, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    expect(run("source", *arguments.split()), 2, "NP010")
    (tmp_path / "elsewhere/npuprof.toml").write_text("")
    assert run("source", *arguments.split()).code == code
