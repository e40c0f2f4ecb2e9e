"""Copies of sources in the repository: written whole, or so that the next run writes them."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.repositories import Repo
from support.running import Run, expect
from support.teams import BASE, Team

#: Dies at the call of that number; exits with 99 where there were fewer.
FAILING = """\
import os, signal
from npuprof.__main__ import main
calls = 0
def wrap(call):
    def counted(*given, **named):
        global calls
        calls += 1
        if calls == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return counted
for name in ("mkdir", "replace"):
    setattr(os, name, wrap(getattr(os, name)))
code = main(["source", "vendor", "team"])
os._exit(code if calls >= {number} else 99)
"""


def test_a_copy_that_a_run_left_unwritten_is_written_by_the_next(app: Repo, run: Run) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    before = {name: (app.folder / name).read_bytes() for name in ("npuprof.toml", "npuprof.lock")}
    for number in range(1, 100, 2):
        code = FAILING.format(number=number)
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, check=False
        )
        if done.returncode == 99:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        expect(run("source", "vendor", "team"), 0)
        assert not list((app.folder / "vendor").rglob(".npuprof-*")), number
        assert run("source", "sync").code == 0
        app.git("clean", "-fdxq")
        for name, text in before.items():
            (app.folder / name).write_bytes(text)
    assert number > 4, "it dies before the copy is begun, and after it"


@pytest.mark.parametrize(
    ("there", "into", "hint"),
    [
        ("vendor/team/notes.txt", (), "move them away, or name an empty or a new folder: --into"),
        ("vendor/team/a/base.toml", (), "vendor/team/a/base.toml"),
        ("other/.npuprof-x", ("--into", "other"), "--into vendor/team"),
    ],
)
def test_files_of_others_are_named_with_a_way_out(
    there: str, into: tuple[str, ...], hint: str, app: Repo, run: Run
) -> None:
    (app.folder / there).parent.mkdir(parents=True)
    (app.folder / there).write_text("mine")
    expect(run("source", "vendor", "team", *into), 2, "NP940", hint)
    assert (app.folder / there).read_text() == "mine"


# -- whose the folder is --------------------------------------------------------------------------


def name_folder(app: Repo, folder: str) -> None:
    path = app.folder / "npuprof.toml"
    path.write_text(f'{path.read_text()}vendor = "{folder}"\n')


@pytest.mark.parametrize("folder", ["profiles", "conf", "./profiles"])
@pytest.mark.parametrize("arguments", ["source update --yes", "source vendor team"])
def test_a_folder_that_npuprof_toml_names_loses_no_file_that_no_copy_put_there(
    arguments: str, folder: str, app: Repo, team: Team, run: Run
) -> None:
    app.write({"mine": "options.deterministic = 1\n", "x/deep": "options.deterministic = 1\n"})
    (app.folder / "conf").mkdir()
    (app.folder / "conf/notes.toml").write_text("mine = 1\n")
    name_folder(app, folder)
    before = {
        path: path.read_bytes()
        for path in app.folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }
    team.publish({"base": BASE.format(7)}, "1.1.0")
    expect(run(*arguments.split()), 2, "NP040" if "." in folder else "NP940", "vendor/team")
    assert {
        path: path.read_bytes()
        for path in app.folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    } == before


def test_what_is_no_longer_in_a_source_goes_from_its_copy_unless_somebody_edited_it(
    app: Repo, team: Team, run: Run
) -> None:
    team.publish({"base": BASE.format(7), "old": BASE.format(8), "older": BASE.format(9)}, "1.1.0")
    assert run("source", "update", "--yes").code == 0
    assert run("source", "vendor", "team").code == 0
    copy = app.folder / "vendor/team"
    (copy / "older.toml").write_text("mine = 1\n")
    team.publish({"base": BASE.format(10), "old": None, "older": None}, "1.2.0")
    assert run("source", "update", "--yes").code == 0
    assert sorted(path.name for path in copy.glob("*.toml")) == [
        "base.toml",
        "older.toml",
        "other.toml",
    ]
    assert (copy / "older.toml").read_text() == "mine = 1\n"


def test_a_forged_list_makes_no_copy_replace_or_remove_a_file_of_yours(
    app: Repo, team: Team, run: Run
) -> None:
    assert run("source", "vendor", "team").code == 0
    app.git("add", ".")
    copy = app.folder / "vendor/team"
    (copy / "notes.txt").write_text("TODO\n")
    with open(copy / ".digests", "a") as file:
        file.write(f"notes.txt {hashlib.sha256((copy / 'notes.txt').read_bytes()).hexdigest()}\n")
    team.publish({"base": BASE.format(7), "third": BASE.format(8)}, "1.1.0")
    (copy / "third.toml").write_text("mine")
    with open(copy / ".digests", "a") as file:
        file.write(f"third.toml {'0' * 64}\n")
    expect(run("source", "update", "--yes"), 2, "vendor/team/third.toml differs from the copy")
    (copy / "third.toml").unlink()
    assert run("source", "update", "--yes").code == 0
    assert (copy / "notes.txt").read_text() == "TODO\n"


@pytest.mark.parametrize(("name", "place"), [("team", "vendor/team"), (".", "profiles/.released")])
def test_a_copy_is_written_through_no_link(
    name: str, place: str, app: Repo, team: Team, run: Run
) -> None:
    folder = app.folder / place
    (app.folder / "own").mkdir()
    (app.folder / "own/mine.toml").write_text("mine")
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to("../own")
    expect(run("source", "vendor", name), 2, "NP941")
    assert (app.folder / "own/mine.toml").read_text() == "mine"


@pytest.mark.parametrize("line", [b"\xff x\n", b"a.toml\n"])
def test_a_list_that_is_none_is_a_finding(
    line: bytes, app: Repo, team: Team, run: Run, lock: Path
) -> None:
    assert run("source", "vendor", "team").code == 0
    listed = app.folder / "vendor/team/.digests"
    listed.write_bytes(listed.read_bytes() + line)
    lock.write_text(
        re.sub(
            r'copy = "[^"]*"',
            f'copy = "sha256:{hashlib.sha256(listed.read_bytes()).hexdigest()}"',
            lock.read_text(),
        )
    )
    for arguments in (["check"], ["source", "sync"]):
        expect(run(*arguments), 2, ".digests is not a list of files")


def test_an_edit_that_only_the_work_tree_has_is_not_replaced_by_a_copy(app: Repo, run: Run) -> None:
    assert run("source", "vendor", "team").code == 0
    app.git("add", ".")
    (app.folder / "vendor/team/base.toml").write_text("mine")
    expect(run("source", "vendor", "team"), 2, "git restore vendor/team/base.toml")
    assert (app.folder / "vendor/team/base.toml").read_text() == "mine"
    app.git("add", ".")
    assert run("source", "vendor", "team").code == 0
