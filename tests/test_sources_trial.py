"""What only shows what would change leaves nothing behind that a later command sees: refs, texts, both files, the copies."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lanes import product_at_night
from repositories import Repo
from teams import BASE, Team
from waiting import read_until

from npuprof.store.sources.mirror import find_cache_folder, find_mirror_folder

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of our own for temporary files."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def snapshot(*folders: Path | str) -> dict[str, bytes]:
    """Return all files in some folders, but for what git keeps of the repository itself."""
    files = [path for folder in folders for path in Path(folder).rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in files}


def move_tag(team: Team) -> None:
    team.repo.git("tag", "-f", "-a", "v1.0.0", "-m", "again", team.publish({"base": BASE.format(700)}))
    team.repo.git("push", "-q", "-f", str(team.bare), "--tags")


def release(team: Team) -> None:
    team.publish({"base": BASE.format(800)}, "1.1.0", "base/v1.1.0")


def yank(team: Team) -> None:
    team.repo.git("tag", "-a", "v1.0.0.yanked", "-m", "it is slow")
    release(team)


def remove_tag(team: Team) -> None:
    team.publish({"base": BASE.format(750)}, "1.0.2")
    team.repo.git("push", "-q", str(team.bare), ":refs/tags/v1.0.0")


def delete_branch(team: Team) -> None:
    team.repo.git("branch", "-m", "other")
    team.repo.git("push", "-q", str(team.bare), "other", ":main", check=False)
    release_late(team)


def release_late(team: Team) -> None:
    team.repo.git("tag", "-a", "base/v1.0.1", "-m", "late", "v1.0.0^{commit}")
    team.repo.git("push", "-q", str(team.bare), "--tags")


#: How an update is asked for that changes nothing, and whether there is a copy of the source.
ASKED = [
    (("--dry-run", "--moved"), False), (("--dry-run", "--moved"), True), (("--dry-run",), False), (("--dry-run", "--yes"), False),
    (("--frozen",), False), (("--frozen", "--yes"), True), ((), False), (("--moved",), True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("happens", "asked"), product_at_night(6, [move_tag, release, yank, remove_tag, delete_branch, release_late], ASKED)
)
def test_what_only_shows_an_update_leaves_everything_as_it_was(
    happens: Callable[[Team], None], asked: tuple[tuple[str, ...], bool], app: Repo, team: Team, run: Run, temporary: Path
) -> None:
    words, copied = asked
    app.write({"range": 'profile.extends = ["team:base@1"]\n'})
    assert run("source", "update", "--yes").code == 0
    if copied:
        assert run("source", "vendor", "team").code == 0
    assert run("check").code == 0
    happens(team)
    before = snapshot(app.folder, find_cache_folder())
    answers = [run("check"), run("show", "team:base@1.0"), run("list", "--store", "team:", "--format", "json"), run("source", "list")]
    before |= {path: text for path, text in snapshot(find_cache_folder()).items() if path not in before}  # what reading keeps
    done = run("source", "update", *words)
    assert done.code in (0, 1, 2), done
    if done.err != "npuprof: npuprof.lock is up to date\n":
        assert snapshot(app.folder, find_cache_folder()) == before
    assert [
        run("check"),
        run("show", "team:base@1.0"),
        run("list", "--store", "team:", "--format", "json"),
        run("source", "list"),
    ] == answers
    assert not list(temporary.iterdir()), "nor is anything left elsewhere"
    taken = run("source", "update", "--yes", "--moved")
    assert taken.code == 0, taken
    assert run("check").code == 0


def test_a_dry_run_shows_what_the_update_does(app: Repo, team: Team, run: Run) -> None:
    move_tag(team)
    assert "NP046" in run("source", "update", "--dry-run").err
    for form in ("text", "markdown", "json"):
        shown = run("source", "update", "--dry-run", "--moved", "--format", form)
        assert (shown.code, "700" in shown.out) == (0, True), shown
    shown = run("source", "update", "--dry-run", "--moved")
    assert "NP046" in run("source", "update", "--yes").err, "the moved tag was not taken"
    assert run("source", "update", "--yes", "--moved").out == shown.out


def test_a_damaged_mirror_is_named_by_its_own_place_in_a_dry_run(app: Repo, team: Team, run: Run, temporary: Path) -> None:
    release(team)
    for path in Path(find_mirror_folder(team.url), "objects").rglob("*.pack"):
        os.chmod(path, 0o600)
        path.write_bytes(path.read_bytes()[:50])
    before = snapshot(find_cache_folder())
    shown = run("source", "update", "--dry-run")
    assert (shown.code, "800" in shown.out) == (0, True), shown
    assert snapshot(find_cache_folder()) == before
    shutil.move(team.bare, team.bare.with_suffix(".gone"))
    told = run("source", "update", "--dry-run")
    assert (told.code, str(temporary) in told.err) == (2, False), told
    assert snapshot(find_cache_folder()) == before


@pytest.mark.parametrize("answer", ["n", "y", "y, but it changes meanwhile"])
def test_who_is_asked_and_says_no_has_taken_nothing(answer: str, app: Repo, team: Team, run: Run) -> None:
    move_tag(team)
    before = snapshot(app.folder, find_cache_folder())
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "npuprof", "source", "update", "--moved"]
    child = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, cwd=app.folder)
    os.close(slave)
    said = read_until(master, b"[y/N]")
    assert b"700" in said
    assert snapshot(app.folder, find_cache_folder()) == before
    if "meanwhile" in answer:
        release(team)
    os.write(master, f"{answer[0]}\n".encode())
    while True:
        try:
            said += os.read(master, 4096)
        except OSError:
            break
    os.close(master)
    expected = {"n": 1, "y": 0}.get(answer, 2)
    assert (child.wait(), b"changed meanwhile" in said) == (expected, expected == 2), said
    if answer == "n":
        assert snapshot(app.folder, find_cache_folder()) == before
    assert ("hccl_timeout = 700" in run("show", "job").out) == (answer == "y")
