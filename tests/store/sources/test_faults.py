"""Faults in real repositories: mirrors that are damaged or foreign, full disks, lost commits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npuprof.store.sources.mirror import LOCKED, find_cache_folder, find_mirror_folder
from support.repositories import Repo
from support.running import Run, expect
from support.teams import (
    BASE,
    HEIR,
    Shared,
    Team,
    copy_shared,
    copy_team,
    make_unreachable,
    publish_first,
)


def publish_two(team: Team) -> None:
    team.publish({"base": BASE.format(300)}, "", "base/v0.9.0")
    publish_first(team)


@pytest.fixture
def shared(tmp_path: Path, run: Run, committer: None) -> Shared:
    return copy_shared(tmp_path, run, begin=publish_two)


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return copy_team(tmp_path, publish_two)


def list_mirror_refs(team: Team) -> set[str]:
    arguments = [
        "git",
        f"--git-dir={find_mirror_folder(team.url)}",
        "for-each-ref",
        "--format=%(refname)",
    ]
    return set(subprocess.run(arguments, capture_output=True, check=True, text=True).stdout.split())


def push_bad_object(team: Team, ref: str) -> str:
    """Let a ref of the remote lead to a commit that git's check refuses; return its id."""
    tree = team.repo.git("rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor A <a@b>1 +0000\ncommitter A <a@b> 1 +0000\n\nbad\n"
    oid = team.repo.git(
        f"--git-dir={team.bare}",
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--literally",
        "--stdin",
        stdin=text.encode(),
    )
    team.repo.git(f"--git-dir={team.bare}", "update-ref", ref, oid)
    return oid


# What a sync fetches


def test_a_sync_fetches_the_locked_commit_and_the_versions_that_lead_to_it_and_nothing_else(
    app: Repo, team: Team, run: Run, forget: Callable[..., None]
) -> None:
    locked = team.repo.head
    team.publish({"base": BASE.format(900)}, "1.1.0", "base/v1.1.0")
    team.repo.git("checkout", "-q", "-b", "huge")
    team.repo.commit({"huge": "options.deterministic = 1\n"})
    team.repo.git("push", "-q", str(team.bare), "huge")
    push_bad_object(team, "refs/heads/bad")
    push_bad_object(team, "refs/tags/job/v9.9.9")
    forget()
    done = run("source", "sync")
    assert done.code == 0
    assert done.err == "npuprof: fetched team 1.0.0\n"
    assert list_mirror_refs(team) == {
        f"{LOCKED}{locked}",
        "refs/tags/v1.0.0",
        "refs/tags/base/v1.0.0",
        "refs/tags/base/v0.9.0",
    }
    make_unreachable(team)
    assert run("check").code == 0
    assert "300" in run("show", "team:base@0.9.0").out
    assert run("source", "sync").err == "npuprof: everything that npuprof.lock names is here\n"


@pytest.mark.parametrize("tagged", [True, False])
def test_a_server_that_gives_no_commit_by_its_id_is_asked_for_what_leads_there(
    tagged: bool,
    app: Repo,
    team: Team,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    forget: Callable[..., None],
) -> None:
    team.publish({"base": BASE.format(900)})
    if not tagged:
        team.repo.git("push", "-q", str(team.bare), ":refs/tags/v1.0.0", ":refs/tags/base/v1.0.0")
    forget()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "0")
    assert run("source", "sync").code == 0
    make_unreachable(team)
    assert "hccl_timeout = 600\n" in run("show", "job").out


# Mirrors that are damaged


def cut_pack(mirror: Path) -> None:
    for pack in mirror.glob("objects/pack/*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:100])


def put_in_place(mirror: Path, put: Callable[[Path], object]) -> None:
    shutil.rmtree(mirror)
    put(mirror)


#: What may have become of a mirror, and the code that reading it ends with; a folder and a link are
#: replaced by a sync.
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pack is cut off": (cut_pack, "NP054"),
    "its objects are gone": (lambda mirror: shutil.rmtree(mirror / "objects"), "NP054"),
    "its head is gone": (lambda mirror: (mirror / "HEAD").unlink(), "NP054"),
    "its refs are nonsense": (
        lambda mirror: (mirror / "packed-refs").write_text("nonsense\n"),
        "NP054",
    ),
    "a file": (lambda mirror: put_in_place(mirror, Path.touch), "NP054"),
    "a folder": (
        lambda mirror: put_in_place(mirror, lambda path: (path / "something").mkdir(parents=True)),
        "NP054",
    ),
    "a link": (
        lambda mirror: put_in_place(mirror, lambda path: path.symlink_to("nowhere")),
        "NP043",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_mirror_is_reported_with_the_command_that_replaces_it(
    damage: str, team: Team, app: Repo, run: Run, forget: Callable[..., None]
) -> None:
    mirror = Path(find_mirror_folder(team.url))
    forget("presets")
    spoil, code = DAMAGES[damage]
    spoil(mirror)
    for arguments in ("check", "show team:base", "blame job"):
        done = run(*arguments.split())
        assert done.code in (1, 2), done
        assert code in done.err + done.out, done
        assert "team" in done.err + done.out, done
    before = {str(path) for path in mirror.parent.rglob("*")}
    done = run("source", "sync")
    assert done.code == (0 if damage in ("a folder", "a link") else 2), done.err
    assert {path for path in before if os.path.lexists(path)} == before
    if damage == "a file":
        assert "NP053" in done.err, done.err
        mirror.unlink()
    elif done.code:
        (arguments,) = [
            line.partition("again: ")[2] for line in done.err.splitlines() if "mv " in line
        ]
        subprocess.run(arguments.partition(" && ")[0].split(), check=True)
    assert run("source", "sync").code == 0
    make_unreachable(team)
    assert run("check").code == run("blame", "job").code == 0


# Caches that are somebody else's, and disks that are full


@pytest.mark.parametrize("part", ["top", "mirror"])
def test_a_cache_of_somebody_else_is_refused_with_the_repair(
    part: str, app: Repo, team: Team, run: Run, forget: Callable[..., None]
) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    forget("presets")
    os.chown(
        find_mirror_folder(team.url) if part == "mirror" else find_cache_folder(), 65534, 65534
    )
    assert run("source", "list").code == 0
    for arguments in ("check", "show team:base", "source sync", "source update", "blame job"):
        output = expect(
            run(*arguments.split()), 2, "NP053", "belongs to somebody else", "XDG_CACHE_HOME"
        )
        assert not {trace for trace in ("__del__", "NP021") if trace in output}


def test_a_text_that_somebody_else_has_put_into_the_cache_is_not_taken(
    app: Repo, team: Team, run: Run
) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    assert "600" in run("show", "team:base").out
    (text,) = Path(find_cache_folder()).glob("presets/*/base.toml")
    forged = text.read_bytes().partition(b"\n# npuprof sha256:")[0].replace(b"600", b"666")
    shutil.rmtree(Path(find_cache_folder(), "presets"))
    _seal_forged(text, forged)
    assert "666" in run("show", "team:base").out
    os.chown(text.parent, 65534, 65534)
    assert "600" in run("show", "team:base").out


def _seal_forged(path: Path, text: bytes) -> None:
    from npuprof.store.sources import mirror

    path.parent.mkdir(parents=True)
    path.write_bytes(text + mirror._SEAL + mirror._seal_text("base.toml", text))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of some hundred kilobytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    ).returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("room", [0, 12, 44, 120])
def test_a_full_disk_is_told_with_its_folder_and_leaves_everything_as_it_was(
    room: int, app: Repo, team: Team, run: Run, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = (app.folder / "npuprof.lock").read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_disk))
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(max(0, file.tell() - room * 1024))
    done = run("source", "sync")
    if done.code:
        assert done.code == 2
        assert "NP053" in done.err, done.err
        assert str(small_disk / "npuprof") in done.err
        assert "XDG_CACHE_HOME" in done.err
    assert (app.folder / "npuprof.lock").read_bytes() == lock
    filler.unlink()
    assert run("source", "sync").code == 0
    assert run("check").code == 0


# What is unknown without a source


def move_on(team: Team, app: Repo, run: Run) -> None:
    """Release 1.1.0 of the source, and commit an update to it."""
    team.publish({"base": BASE.format(900)}, "1.1.0", "base/v1.1.0")
    assert run("source", "update", "--yes").code == 0
    app.commit(message="two")


def test_a_release_cannot_be_verified_without_its_source_and_does_not_fail(
    app: Repo, team: Team, run: Run, forget: Callable[..., None]
) -> None:
    assert run("release", "job", "1.0.0").code == 0
    move_on(team, app, run)
    assert run("verify", "--tags").code == 0
    forget()
    done = run("verify", "--tags")
    assert done.code == 2, done.out
    assert "does not match" not in done.out, done.out
    expect(done, 2, "unknown", "NP029", "npuprof source sync --rev job/v1.0.0")
    assert run("source", "sync", "--rev", "job/v1.0.0").code == 0
    done = run("verify", "--tags")
    assert done.code == 0, done.out
    assert "unknown" not in done.out, done.out


def test_a_history_without_the_mirror_of_a_source_says_that_it_cannot_be_told(
    app: Repo, team: Team, run: Run, forget: Callable[..., None]
) -> None:
    move_on(team, app, run)
    app.commit({"job": f"{HEIR}hccl_timeout = 7\n"}, message="three")
    whole = run("log", "job")
    assert [whole.out.count(word) for word in ("one", "two", "three")] == [1, 1, 1]
    spans = {rev: run("diff", "--rev", rev).out for rev in ("HEAD~1", "HEAD~2..HEAD~1", "HEAD~2")}
    assert all("hccl_timeout" in output for output in spans.values())
    forget()
    for arguments in (
        ("log", "job"),
        ("log", "job", "hccl_timeout"),
        ("blame", "job"),
        ("log", "team:base"),
    ):
        expect(run(*arguments), 2, "NP043", "npuprof source sync")
    assert run("log", "job").out.count("unknown here") == 1
    for rev in spans:
        done = run("diff", "--rev", rev)
        assert done.code == 2, done
        assert "cannot compare job" in done.err, done
        assert "npuprof source sync" in done.err, done
        assert "hccl_timeout" not in done.out
        assert "1 preset differs" not in done.out
        assert "unknown here: job" in done.out
        done = run("diff", "--rev", rev, "--format", "json")
        assert done.code == 2
        assert json.loads(done.out)["presets"][0]["status"] == "unknown"
        assert json.loads(done.out)["untouched"] == 1
        assert (
            "- unknown here: NP043 `the source 'team' cannot be "
            "read: it was never fetched on this machine`: `job`"
        ) in run("diff", "--rev", rev, "--format", "markdown").out
    assert run("source", "sync").code == 0  # what is locked now has older commits with it
    assert {rev: run("diff", "--rev", rev).out for rev in spans} == spans


def test_a_commit_that_was_rewritten_away_is_told_by_who_locks_it_and_with_how_it_comes_back(
    app: Repo, team: Team, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = team.repo.head
    team.repo.git("checkout", "-q", "--orphan", "fresh")
    team.repo.commit({"base": BASE.format(900)})
    team.repo.git("tag", "-a", "v1.1.0", "-m", "1.1.0")
    team.repo.git("push", "-q", str(team.bare), "--tags")
    team.repo.git(
        "push",
        "-q",
        "-f",
        str(team.bare),
        "fresh:main",
        *(f":refs/tags/{tag}" for tag in ("v1.0.0", "base/v1.0.0", "base/v0.9.0")),
    )
    team.repo.git(f"--git-dir={team.bare}", "gc", "-q", "--prune=now")
    assert run("source", "update", "--yes", "--moved").code == 0
    app.commit(message="two")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    done = run("source", "sync", "--history")
    assert done.code == 2, done.err
    assert done.err.count("no longer has the commit") == 1, done.err
    assert f"{gone}:refs/tags/kept/{gone[:7]}" in done.err
    assert run("source", "sync").code == 0, "what is locked now is here"
    assert run("check").code == 0
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home/cache"))
    arguments = done.err.partition("was synced: ")[2].partition(";")[0].split()
    arguments[1] = f"--git-dir={find_mirror_folder(team.url)}"
    subprocess.run(arguments, check=True, capture_output=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
    assert run("source", "sync", "--history").code == 0
    assert "600" in run("log", "job").out


# Repositories without a work tree


def test_a_review_has_the_sources_of_both_sides(
    app: Repo, team: Team, run: Run, monkeypatch: pytest.MonkeyPatch, forget: Callable[..., None]
) -> None:
    before = app.head
    move_on(team, app, run)
    job = {
        "GITLAB_CI": "true",
        "CI_MERGE_REQUEST_IID": "5",
        "CI_MERGE_REQUEST_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example.org/team/app",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": before,
        "CI_COMMIT_SHA": app.head,
    }
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NPUPROF_TOKEN", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    forget()
    expect(run("review"), 2, "NP043", "npuprof source sync --rev")
    expect(run("review", "--sync"), 0, "600 → 900")
    forget()
    make_unreachable(team)
    expect(run("review", "--sync"), 2, "NP045")
