"""``team:base@VERSION`` without an entry in the lock: the same on every machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import find_cache_folder
from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Shared, Team, copy_shared, make_unreachable


@pytest.fixture
def shared_grown(tmp_path: Path, run: Run, committer: None) -> Shared:
    def grow(shared: Shared) -> None:
        team, app = shared
        team.publish({"base": BASE.format(7)}, "", "base/v1.1.0")
        team.publish({"base": BASE.format(8)}, "1.2.0", "base/v1.2.0", "base/v1.2.0.yanked")
        app.write({"job": 'profile.extends = ["team:other"]\n'})
        assert run("source", "update", "--yes").code == 0
        app.commit(message="locked")

    return copy_shared(tmp_path, run, grow)


@pytest.fixture
def grown(shared_grown: Shared, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository whose source is locked at 1.2.0, and has later releases, also of old commits."""
    monkeypatch.chdir(shared_grown.app.folder)
    return shared_grown.app


def release_late(team: Team) -> None:
    team.repo.commit({"other": "options.deterministic = 0\n"})  # the clock moves with each commit
    team.repo.git("tag", "-a", "base/v1.1.5", "-m", "late", "v1.2.0^{commit}")
    team.repo.git("tag", "-a", "base/v1.1.0.yanked", "-m", "late", "v1.2.0^{commit}")
    team.repo.git("tag", "-a", "base/v1.3.0", "-m", "newer")
    team.push()


def move(team: Team) -> None:
    team.repo.commit({"base": BASE.format(99)})
    team.repo.git("tag", "-f", "-a", "base/v1.1.0", "-m", "again")
    team.push("--force")


def fetch_again(
    how: str, app: Repo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make the mirror that of an old machine, one with recent fetches, or a new one."""
    if how == "fresh":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        assert run("source", "sync").code == 0
    elif how == "updated":
        lock = (app.folder / "npuprof.lock").read_bytes()
        assert run("source", "update", "--yes", "--moved").code == 0
        (app.folder / "npuprof.lock").write_bytes(lock)
    elif how == "emptied":  # the mirror stays, what was kept of it is gone
        cache = tmp_path / "emptied"
        shutil.copytree(Path(find_cache_folder()) / "sources", cache / "npuprof/sources")
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


#: How a version of the source is asked for, and what is said.
REFERENCES = [
    ("1.1.0", "hccl_timeout = 7"),
    ("1.0.0", "hccl_timeout = 600"),
    ("v1.1.0", "hccl_timeout = 7"),
    ("base/v1.1.0", "hccl_timeout = 7"),
    ("1", "hccl_timeout = 7"),
    ("1.2", "hccl_timeout = 8"),
    ("HEAD", "hccl_timeout = 8"),
    ("HEAD~1", "hccl_timeout = 7"),
    ("{v1.0.0}", "hccl_timeout = 600"),
    ("{v1.0.0:.9}", "hccl_timeout = 600"),
    ("1.1.5", "team:base@1.1.5 is neither a version nor a commit that the lock of team knows"),
    ("1.3.0", "released are 1.2.0, 1.1.0, 1.0.0; npuprof source update team locks"),
    ("9", "team:base@9 is neither a version nor a commit"),
    ("{late}", "is neither a version nor a commit that the lock of team knows"),
    ("main", "team:base@main is neither a version nor a commit"),
    ("nope", "team:base@nope is neither a version nor a commit"),
    ("HEAD~90", "team:base@HEAD~90 is neither a version nor a commit"),
]


@pytest.mark.parametrize(
    ("how", "requested"),
    [
        (("old", "emptied", "updated", "fresh")[number % 4], row)
        for number, row in enumerate(REFERENCES)
    ],
)
def test_a_version_that_the_lock_does_not_spell_is_what_it_was_when_the_source_was_locked(
    how: str,
    requested: tuple[str, str],
    grown: Repo,
    team: Team,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference, expected = requested
    release_late(team)
    first = team.repo.git("rev-parse", "v1.0.0^{commit}").strip()
    reference = (
        reference.replace("{v1.0.0}", first)
        .replace("{v1.0.0:.9}", first[:9])
        .replace("{late}", team.repo.head)
    )
    fetch_again(how, grown, run, tmp_path, monkeypatch)
    result = run("show", f"team:base@{reference}")
    is_value = expected.startswith("hccl")
    output = result.out if is_value else " ".join(result.err.split())
    assert result.code == (0 if is_value else 2), result.out + result.err
    assert expected in output, result.out + result.err


@pytest.mark.parametrize("how", ["old", "updated", "fresh"])
def test_tags_that_are_not_what_was_locked_give_no_other_value(
    how: str, grown: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(team)
    fetch_again(how, grown, run, tmp_path, monkeypatch)
    result = run("show", "team:base@1.1.0")
    if how == "fresh":
        assert result.code == 2, result.err
        assert "some were moved, deleted" in " ".join(result.err.split()), result.err
    else:
        assert result.code == 0, result.err
        assert "hccl_timeout = 7\n" in result.out, result.err


def test_what_a_preset_extends_at_head_is_the_locked_commit(
    grown: Repo, team: Team, run: Run
) -> None:
    grown.write({"pinned": 'profile.extends = ["team:base@HEAD~1"]\n'})
    result = run("source", "update", "--yes")
    assert result.code == 0, result.err
    assert "hccl_timeout = 7\n" in run("show", "pinned").out, result.err


# Sources of sources, and versions that a source takes from elsewhere


@pytest.mark.parametrize("requested", ["own", "base@1.0"])
def test_sync_fetches_the_sources_that_only_an_older_release_names(
    requested: str, run: Run, tmp_path: Path, committer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams = [
        Team(tmp_path / name) for name in ("deep", "old", "hub") if not (tmp_path / name).mkdir()
    ]
    deep, old, hub = teams
    deep.publish({"dust": BASE.format(70)}, "", "dust/v1.0.0")
    deep.publish({"dust": BASE.format(80)}, "1.0.0")
    monkeypatch.chdir(old.repo.folder)
    assert run("source", "add", "deep", deep.url).code == 0
    old.publish({"sand": 'profile.extends = ["deep:dust@1.0.0"]\n'}, "", "sand/v1.0.0")
    assert run("source", "remove", "deep", "--force").code == 0
    old.publish({"sand": BASE.format(90)}, "1.0.0")
    monkeypatch.chdir(hub.repo.folder)
    assert run("source", "add", "old", old.url).code == 0
    hub.publish({"base": 'profile.extends = ["old:sand@1.0.0"]\n'}, "", "base/v1.0.0")
    assert run("source", "remove", "old", "--force").code == 0
    hub.publish({"base": BASE.format(5), "own": 'profile.extends = ["base@1.0.0"]\n'}, "1.0.0")
    app = Repo(tmp_path / "app")
    app.write({"job": f'profile.extends = ["hub:{requested}"]\n'})
    monkeypatch.chdir(app.folder)
    assert run("source", "add", "hub", hub.url).code == 0
    shown = run("show", "job").out
    assert "hccl_timeout = 70" in shown
    shutil.rmtree(find_cache_folder())
    done = run("source", "sync")
    assert done.code == 0
    assert done.err == "npuprof: fetched hub 1.0.0, hub/old 1.0.0, hub/old/deep 1.0.0\n"
    for team in teams:
        make_unreachable(team)
    assert run("show", "job").out == shown
    assert run("check").code == 0
    assert run("source", "vendor", "hub").code == 0
    shutil.rmtree(find_cache_folder())
    done = run("show", "job")
    assert done.code == 0, done.err
    assert done.out == shown, done.err


def test_a_range_in_a_source_is_locked_and_a_late_release_is_told_by_update_log_and_release(
    app: Repo, team: Team, run: Run
) -> None:
    late = team.publish({"base": BASE.format(650)})
    team.publish(
        {
            "mid": 'profile.extends = ["base@1"]\n',
            "top": 'profile.extends = ["mid"]\n',
            "base": BASE.format(700),
        },
        "1.1.0",
    )
    app.write({"job": 'profile.extends = ["team:top"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert run("commit").code == 0
    assert run("release", "job", "1.0.0").code == 0
    team.repo.git("tag", "-a", "base/v1.0.1", "-m", "late", late)
    team.push()
    before = run("show", "job").out
    assert run("source", "sync").code == 0
    shutil.rmtree(find_cache_folder())
    assert run("source", "sync").code == 0
    assert run("show", "job").out == before, "what the lock says is what it was"
    expect(run("source", "update", "--yes"), 0, "team:base@1: 1.0.0 ")
    assert run("commit").code == 0
    changes = json.loads(run("log", "job", "hccl_timeout", "--format", "json").out)["commits"]
    assert len(changes) == 2, "the commit of the lock, and the first"
    expect(run("release", "job", "--dry-run"), 0, "600 → 650")
