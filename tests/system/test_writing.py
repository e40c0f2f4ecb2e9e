"""Atomic writes: files are old or new, changes of others stay, and killed runs leave nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npuprof.model import NpuprofError
from npuprof.system import locks, writing
from npuprof.system.tree import Tree, make_tree
from npuprof.system.writing import PlannedWrite
from support.building import REPOSITORY
from support.lanes import more_at_night
from support.repositories import Repo
from support.running import Run, Store

PRESET = "[options]\nhccl_timeout = 1836\n"
SCRIPT = "#!/bin/bash\n# >>> npuprof good >>>\n# <<< npuprof <<<\n"
LISTS = (
    '[options]\nprecision_mode_v2 = "mixed_float16"\n'
    'modify_mixlist = { black-list = { to-add = ["MatMul"] } }\n'
)
#: Dies, or finds the disk full, at the call of that number; prints how many there were where it
#: came through.
FAILING = """\
import os, signal, sys
sys.path.insert(0, {root!r})
calls = 0
def wrap(call):
    def counted(*given, **named):
        global calls
        calls += 1
        if calls == int(sys.argv[1]):
            if sys.argv[2] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError({full}, "No space left on device")
        return call(*given, **named)
    return counted
from npuprof.__main__ import main
for name in {names!r}:
    setattr(os, name, wrap(getattr(os, name)))
code = main(sys.argv[3:])
sys.stdout.flush()
os.write(2, b"calls %d" % calls)
os._exit(code)
"""


def start(
    *arguments: str | Path, code: str = "from npuprof.__main__ import script; script()"
) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fail_at(
    number: int, how: str, names: tuple[str, ...], *arguments: str
) -> subprocess.Popen[bytes]:
    done = start(
        str(number),
        how,
        *arguments,
        code=FAILING.format(root=str(REPOSITORY), full=errno.ENOSPC, names=names),
    )
    done.wait()
    return done


def leftovers(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob(".npuprof-*")]


def content(folder: Path) -> dict[str, str]:
    """Return the text of each file, without the cache of npuprof."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "cache" not in path.parts
    }


#: The calls at which a run may be killed, and those of them that give a file a name.
CALLS = ("open", "fsync", "fchmod", "link", "replace", "unlink")
RENAMING = ("link", "replace")
VERBS = {
    "set": ["set", "good", "hccl_timeout=3604"],
    "inject --all": ["inject", ".", "--all"],
    "render -o": ["render", "lists", "-o", "out"],
    "import -o": ["import", "env.sh", "-o", "made.toml"],
    "init": ["init", "made"],
    "migrate": ["migrate", "old", "--cann", "9.0.0"],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("names", more_at_night([RENAMING], [(CALLS,)]))
def test_a_run_that_is_killed_leaves_old_or_new_and_the_next_one_cleans(
    names: tuple[str, ...], verb: str, tmp_path: Path, store: Store
) -> None:
    lay_out(tmp_path, store)
    before = content(tmp_path)
    whole = fail_at(0, "kill", names, *VERBS[verb])
    assert whole.returncode in (0, 1), whole.stderr and whole.stderr.read()
    assert whole.stderr is not None
    count = int(whole.stderr.read().rpartition(b"calls ")[2])
    after = content(tmp_path)
    assert after != before
    for number in range(1, count + 1):
        lay_out(tmp_path, store)
        done = fail_at(number, "kill", names, *VERBS[verb])
        assert done.returncode == -signal.SIGKILL, number
        found = {name: text for name, text in content(tmp_path).items() if ".npuprof-" not in name}
        assert all(text in (before.get(name), after.get(name)) for name, text in found.items()), (
            number
        )
        assert set(before) <= set(found), number
        if verb not in ("init", "import -o"):  # those refuse what a killed run has made
            fail_at(0, "kill", names, *VERBS[verb])
            assert content(tmp_path) == after, number
            assert leftovers(tmp_path) == [], number


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_leaves_everything_as_it_was(verb: str, tmp_path: Path, store: Store) -> None:
    """The disk is full at one in four of the calls of a run, the first and the last among them."""
    names = ("fsync", "fchmod", "link", "replace", "mkdir")
    lay_out(tmp_path, store)
    whole = fail_at(0, "full", names, *VERBS[verb])
    assert whole.stderr is not None
    count = int(whole.stderr.read().rpartition(b"calls ")[2])
    after, refused = content(tmp_path), 0
    for number in sorted({1, *range(count, 0, -4)}):
        lay_out(tmp_path, store)
        before = content(tmp_path)
        done = fail_at(number, "full", names, *VERBS[verb])
        assert done.stderr is not None
        output = done.stderr.read().decode()
        if done.returncode in (0, 1):  # there was another way, as without links
            assert content(tmp_path) == after, number
            continue
        assert done.returncode == 2, output
        assert "no space left on device" in output, output
        assert content(tmp_path) == before, number
        refused += 1
    assert refused


def lay_out(folder: Path, store: Store) -> None:
    for path in (*folder.iterdir(), folder / "home" / ".local"):
        if path.name != "home":
            subprocess.run(["rm", "-rf", str(path)], check=True)
    old = '[profile]\ncann = ">=8.0"\n[options]\nprecision_mode = "allow_mix_precision"\n'
    store({"good": PRESET, "lists": LISTS, "old": old})
    (folder / "run.sh").write_text(SCRIPT)
    (folder / "more.sh").write_text(SCRIPT)
    (folder / "env.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\n")
    (folder / "shown.toml").write_text("old")


@pytest.mark.parametrize(("verb", "number"), [("set", 12), ("inject", 12), ("new", 6)])
def test_writers_at_once_lose_nothing(verb: str, number: int, tmp_path: Path, store: Store) -> None:
    store({"all": "[options]\n", **{f"p{index}": PRESET for index in range(number)}})
    marks = "".join(f"# >>> npuprof p{index} >>>\n# <<< npuprof <<<\n" for index in range(number))
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{marks}")
    arguments = {
        "set": ("set", "all", "env.V{0}={0}", "--no-check"),
        "inject": ("inject", "run.sh", "p{0}"),
        "new": ("new", "only"),
    }[verb]
    running = [
        start(*(argument.format(index) for argument in arguments)) for index in range(number)
    ]
    output = [process.communicate()[1].decode() for process in running]
    wrote = sum("wrote" in text for text in output)
    assert all(
        process.returncode == 0 or ("NP923" in text or "NP922" in text)
        for process, text in zip(running, output, strict=True)
    ), output
    if verb == "set":
        assert wrote == (tmp_path / "profiles/all.toml").read_text().count("\nV") == number
    elif verb == "inject":
        assert wrote == (tmp_path / "run.sh").read_text().count("# digest: ") == number
    else:
        assert wrote == 1
    assert leftovers(tmp_path) == []


def test_what_was_written_since_it_was_read_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for known, now in ((b"read", "saved by an editor"), (None, "made meanwhile"), (b"read", None)):
        path.unlink(missing_ok=True)
        if now is not None:
            path.write_text(now)
        with pytest.raises(NpuprofError, match="has changed meanwhile"):
            writing.write_planned_files([PlannedWrite(str(path), b"ours", known)])
        assert (path.read_text() if path.exists() else None) == now
        assert leftovers(tmp_path) == []


def test_new_files_are_there_before_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_text("text")
    seen: list[bool] = []
    remove = Tree.remove_file

    def look(tree: Tree, name: str) -> None:
        if name == "old":
            seen.append((tmp_path / "new").exists())
        remove(tree, name)

    monkeypatch.setattr(Tree, "remove_file", look)
    writing.write_planned_files(
        [PlannedWrite(str(tmp_path / "old"), None), PlannedWrite(str(tmp_path / "new"), b"text")]
    )
    assert seen == [True]
    assert content(tmp_path) == {"new": "text"}


def test_a_file_that_somebody_makes_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def save(handle: int) -> None:
        (tmp_path / "b").write_text("somebody's")
        sync(handle)

    monkeypatch.setattr(os, "fsync", save)
    with pytest.raises(NpuprofError, match="meanwhile"):
        writing.write_planned_files(
            [PlannedWrite(str(tmp_path / name), b"ours", None) for name in ("a", "b")]
        )
    assert content(tmp_path) == {"b": "somebody's"}


@pytest.mark.parametrize(
    ("way", "moment"),
    [("in place", "fsync"), ("by another file", "fsync"), ("in place", "replace")],
)
@pytest.mark.parametrize("count", [1, 2])
def test_a_save_while_ours_is_written_stays(
    way: str, moment: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).write_text("read")
    real = getattr(os, moment)

    def save(*arguments: Any, **folders: int) -> None:
        if way == "in place":
            (tmp_path / "a").write_text("saved")
        else:
            (tmp_path / "new").write_text("saved")
            os.rename(tmp_path / "new", tmp_path / "a")
        monkeypatch.undo()
        real(*arguments, **folders)

    monkeypatch.setattr(os, moment, save)
    with pytest.raises(NpuprofError, match="has changed meanwhile"):
        writing.write_planned_files(
            [PlannedWrite(str(tmp_path / name), b"ours", b"read") for name in "ab"[:count]]
        )
    assert content(tmp_path) == {"a": "saved", "b": "read"}


def test_an_interruption_after_the_replacement_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    real = os.replace

    def interrupt(*arguments: Any, **folders: int) -> None:
        real(*arguments, **folders)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        writing.write_files_atomically({str(tmp_path / "a"): "new"})
    assert content(tmp_path) == {"a": "new"}


def test_what_a_killed_run_left_goes_and_what_a_living_one_holds_stays(tmp_path: Path) -> None:
    left = [
        tmp_path / f".npuprof-{'0' * 15}{number}.{ending}"
        for number, ending in enumerate(("new", "old"))
    ]
    leftover = tmp_path / f".npuprof-{'a' * 16}.new"
    others = [tmp_path / ".npuprof-notes", tmp_path / ".npuprof-0000000000000000.bak"]
    for path in (*left, leftover, *others):
        path.write_text("x")
    os.symlink("a", tmp_path / f".npuprof-{'b' * 16}.new")
    handle = os.open(leftover, os.O_RDONLY)
    locks.hold_file(handle)
    with locks.lock_folders([str(tmp_path)]):
        pass
    os.close(handle)
    assert {path for path in tmp_path.iterdir() if path.name != "home"} == {
        leftover,
        *others,
        tmp_path / f".npuprof-{'b' * 16}.new",
    }


def test_a_lock_that_another_run_keeps_is_told_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    notes: list[str] = []
    handle = os.open(tmp_path, os.O_RDONLY)
    locks.fcntl.flock(handle, locks.fcntl.LOCK_EX)

    def unlock(note: str) -> None:
        notes.append(note)
        os.close(handle)

    monkeypatch.setattr(locks, "show_note", unlock)
    writing.write_files_atomically({str(tmp_path / "a"): "x"})
    assert len(notes) == 1
    assert notes[0].startswith(f"another npuprof is writing in {tmp_path}")
    assert content(tmp_path) == {"a": "x"}


def test_a_lock_that_is_never_given_back_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LONGEST_WAIT", 0.1)
    handle = os.open(tmp_path, os.O_RDONLY)
    locks.fcntl.flock(handle, locks.fcntl.LOCK_EX)
    with pytest.raises(NpuprofError, match="keeps it locked"):
        writing.write_files_atomically({str(tmp_path / "a"): "x"})
    os.close(handle)
    assert content(tmp_path) == {}
    writing.write_files_atomically({str(tmp_path / "a"): "x"})


def test_a_hard_link_is_told_and_broken(run: Run, store: Store, tmp_path: Path) -> None:
    folder = store({"good": PRESET})
    os.link(folder / "good.toml", tmp_path / "other.toml")
    result = run("set", "good", "hccl_timeout=3604")
    assert result.code == 0
    assert "hard link" in result.err
    assert (tmp_path / "other.toml").read_text() == PRESET
    assert "3604" in (folder / "good.toml").read_text()
    assert "hard link" not in run("set", "good", "hccl_timeout=1836").err
    os.link(folder / "good.toml", tmp_path / "a\x1b[2J.toml")
    shown = run("show", "good", "-o", "a\x1b[2J.toml").err
    assert "npuprof: a\\x1b[2J.toml was a hard link" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "good", "hccl_timeout=3604"),
        ("restore", "good@HEAD~1"),
        ("show", "good", "-o", "profiles/good.toml"),
    ],
)
def test_a_file_that_is_read_only_is_not_replaced(
    arguments: tuple[str, ...], run: Run, repo: Repo
) -> None:
    repo.commit({"good": "[options]\nhccl_timeout = 68\n"})
    repo.commit({"good": PRESET})
    os.chmod("profiles/good.toml", 0o444)
    result = run(*arguments)
    assert result.code == 2
    assert "error NP012: cannot write profiles/good.toml: it is read-only" in result.err
    assert Path("profiles/good.toml").read_text() == PRESET
    os.chmod("profiles/good.toml", 0o644)
    assert run(*arguments).code == 0


@pytest.mark.parametrize(
    ("mask", "mode"), [(0o000, 0o666), (0o022, 0o644), (0o027, 0o640), (0o077, 0o600)]
)
def test_a_new_file_or_folder_has_the_mode_of_the_umask(
    mask: int, mode: int, tmp_path: Path, run: Run, store: Store
) -> None:
    folder = store({"good": PRESET})
    before = os.umask(mask)
    try:
        assert run("new", "fresh").code == 0
        assert run("show", "good", "-o", "shown.toml").code == 0
        Tree(str(tmp_path)).write_file("written", b"x")
        os.close(Tree(str(tmp_path)).open_file("opened", os.O_WRONLY | os.O_CREAT))
        make_tree(str(tmp_path / "made"))
    finally:
        os.umask(before)
    paths = [folder / "fresh.toml", *map(tmp_path.joinpath, ("shown.toml", "written", "opened"))]
    assert [oct(path.stat().st_mode & 0o7777) for path in paths] == [oct(mode)] * 4
    assert oct((tmp_path / "made").stat().st_mode & 0o7777) == oct(mode | (mode & 0o444) >> 2)


def test_mode_and_owner_stay(run: Run, store: Store) -> None:
    path = store({"good": PRESET}) / "good.toml"
    os.chmod(path, 0o640)
    if os.getuid() == 0:
        os.chown(path, 1234, 4321)
    before = os.stat(path)
    assert run("set", "good", "hccl_timeout=3604").code == 0
    after = os.stat(path)
    assert after.st_mode == before.st_mode
    assert after.st_uid == before.st_uid
    assert after.st_gid == before.st_gid


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1"])
def test_what_a_shell_appends_to_is_appended_to(path: str, store: Store) -> None:
    store({"good": PRESET})
    Path("log").write_text("before\n")
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with open("log", "ab") as log:
        subprocess.run(
            [sys.executable, "-m", "npuprof", "show", "good", "-o", path],
            check=True,
            env=environ,
            stdout=log,
        )
    assert Path("log").read_text().startswith("before\n[profile]\n")


def test_a_pipe_that_nobody_reads_is_told_and_not_waited_for(run: Run, store: Store) -> None:
    store({"good": PRESET})
    os.mkfifo("pipe.toml")
    result = run("show", "good", "-o", "pipe.toml")
    assert result.code == 2
    assert "without a reader" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "file/b"),
        ("render", "good", "-o", "file/b/"),
        ("show", "good", "-o", "file/b"),
        ("import", "env.sh", "-o", "file/b/c.toml"),
        ("import", "env.sh", "-o", "file/b/"),
        ("scan", "file/b"),
        ("inject", "file/b.py", "good"),
        ("show", "file/b.toml"),
        ("show", "good", "--store", "file/b"),
        ("render", "good", "--check", "file/b"),
    ],
)
def test_a_file_in_the_place_of_a_folder_is_told_in_words(
    arguments: tuple[str, ...], run: Run, store: Store
) -> None:
    store({"good": PRESET})
    Path("file").write_text("mine")
    Path("env.sh").write_text("export HCCL_CONNECT_TIMEOUT=600\n")
    result = run(*arguments)
    assert result.code in (1, 2)
    assert "rrno" not in result.err + result.out
    if "--store" not in arguments:
        assert "file is a file, not a folder" in result.err + result.out
    assert Path("file").read_text() == "mine"


def test_more_files_than_a_process_may_open_are_written(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    wanted = [
        PlannedWrite(str(tmp_path / f"{number}"), b"old", writing.ANYTHING) for number in range(700)
    ]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        writing.write_planned_files(wanted)
        writing.write_planned_files(
            [file._replace(content=b"new", known=b"old") for file in wanted]
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {path.read_text() for path in tmp_path.iterdir() if path.is_file()} == {"new"}
    assert leftovers(tmp_path) == []


def test_a_file_under_two_names_is_written_once_or_refused(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"old")
    link.symlink_to(file)
    same = [
        PlannedWrite(str(path), b"new", b"old") for path in (file, link, tmp_path / "missing/../b")
    ]
    writing.write_planned_files(same)
    assert file.read_bytes() == b"new"
    assert link.is_symlink()
    with pytest.raises(NpuprofError) as caught:
        writing.write_planned_files(
            [PlannedWrite(str(file), b"one", b"new"), PlannedWrite(str(link), b"two", b"new")]
        )
    assert caught.value.findings[0].code == "NP942"
    assert file.read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} <= {
        "a",
        "b",
        "home",
    }
