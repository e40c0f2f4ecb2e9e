"""An update that only shows changes writes nothing, and changes no answer of a later command."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Team
from support.waiting import read_until


def read_files(folder: Path) -> dict[str, bytes]:
    """Return all files in a folder, but for what git keeps of the repository itself."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in files}


def move_tag(team: Team) -> None:
    team.repo.git(
        "tag", "-f", "-a", "v1.0.0", "-m", "again", team.publish({"base": BASE.format(700)})
    )
    team.repo.git("push", "-q", "-f", str(team.bare), "--tags")


def release(team: Team) -> None:
    team.publish({"base": BASE.format(800)}, "1.1.0", "base/v1.1.0")


def yank(team: Team) -> None:
    team.repo.git("tag", "-a", "v1.0.0.yanked", "-m", "it is slow")
    release(team)


def remove_tag(team: Team) -> None:
    team.publish({"base": BASE.format(750)}, "1.0.2")
    team.repo.git("push", "-q", str(team.bare), ":refs/tags/v1.0.0")


#: What happens, how an update is asked for that changes nothing, its code, and whether there is a
#: copy of the source.
SHOWN: list[tuple[Callable[[Team], None], str, int, bool]] = [
    (move_tag, "--dry-run --moved", 0, True),
    (release, "--frozen --yes", 1, True),
    (yank, "--dry-run --yes", 0, False),
    (remove_tag, "--moved", 1, False),
]


@pytest.mark.parametrize(("happens", "arguments", "code", "copied"), SHOWN)
def test_what_only_shows_an_update_leaves_everything_as_it_was(
    happens: Callable[[Team], None],
    arguments: str,
    code: int,
    copied: bool,
    app: Repo,
    team: Team,
    run: Run,
) -> None:
    app.write({"range": 'profile.extends = ["team:base@1"]\n'})
    assert run("source", "update", "--yes").code == 0
    assert not copied or run("source", "vendor", "team").code == 0
    happens(team)
    reading = ("check", "show team:base@1.0", "list --store team: --format json", "source list")
    before, answers = read_files(app.folder), [run(*requested.split()) for requested in reading]
    expect(run("source", "update", *arguments.split()), code)
    assert read_files(app.folder) == before
    assert [run(*requested.split()) for requested in reading] == answers
    expect(run("source", "update", "--yes", "--moved"), 0)
    assert run("check").code == 0


def test_a_dry_run_shows_what_the_update_does(app: Repo, team: Team, run: Run) -> None:
    move_tag(team)
    assert "NP046" in run("source", "update", "--dry-run").err
    for form in ("text", "markdown", "json"):
        shown = run("source", "update", "--dry-run", "--moved", "--format", form)
        assert shown.code == 0, shown
        assert "700" in shown.out, shown
    shown = run("source", "update", "--dry-run", "--moved")
    assert "NP046" in run("source", "update", "--yes").err, "the moved tag was not taken"
    assert run("source", "update", "--yes", "--moved").out == shown.out


@pytest.mark.parametrize("answer", ["n", "y, after a newer release"])
def test_the_lock_is_written_as_it_was_shown_and_only_after_a_yes(
    answer: str, app: Repo, team: Team, run: Run
) -> None:
    move_tag(team)
    before = read_files(app.folder)
    master, slave = pty.openpty()
    arguments = [sys.executable, "-m", "npuprof", "source", "update", "--moved"]
    child = subprocess.Popen(arguments, stdin=slave, stdout=slave, stderr=slave, cwd=app.folder)
    os.close(slave)
    output = read_until(master, b"[y/N]")
    assert b"700" in output
    assert read_files(app.folder) == before
    if "newer" in answer:
        release(team)
    os.write(master, f"{answer[0]}\n".encode())
    while True:
        try:
            output += os.read(master, 4096)
        except OSError:
            break
    os.close(master)
    assert child.wait() == (1 if answer == "n" else 0), output
    if answer == "n":
        assert read_files(app.folder) == before
    assert ("hccl_timeout = 700" in run("show", "job").out) == (answer != "n")
