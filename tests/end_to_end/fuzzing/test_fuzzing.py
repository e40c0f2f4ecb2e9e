"""Whatever a command is given: an exit code that is documented, words where it could not answer, and nothing written elsewhere.

``NPUPROF_FUZZ=12000`` rolls so many cases, ``NPUPROF_FUZZ_SEED=2`` others. A case that fails is named ``SEED:NUMBER``.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from npuprof.system.tree import Tree
from support.building import REPOSITORY
from support.fuzzing import Case, roll_case, write_files
from support.repositories import Repo
from support.running import Run

COUNT = int(os.environ.get("NPUPROF_FUZZ", "300"))
SEED = os.environ.get("NPUPROF_FUZZ_SEED", "1")
#: 0 fine, 1 not clean, 2 could not answer; `run` hands on 126 and 127; 130 and 141 are an interrupt and a closed pipe.
CODES = {0, 1, 2, 126, 127, 130, 141}
#: Seconds of the processor that a case may take: a hundred times what most take.
MOST_SECONDS = 10


class Handed(BaseException):
    """``run`` has handed its process over to the command, or the case was stopped."""


def hand_over(*given: Any) -> None:
    raise Handed


class Fence:
    """Lets a case touch nothing outside of its folder, and tells what it tried: Python asks it before it does anything.

    Files may be read elsewhere, as modules are; folders may not be listed there, nor may what stands in for the kernel be read.
    """

    def __init__(self) -> None:
        self.folder = ""
        self.crossed: list[str] = []
        sys.addaudithook(self.watch)
        self._watch_trees()

    def _watch_trees(self) -> None:
        """Python does not tell in which folder a file is opened that a tree opens."""
        open_file = Tree.open_file

        def open_watched(tree: Tree, name: str, flags: int, mode: int = 0o666) -> int:
            self.watch("open", (tree.find_path(name), None, flags))
            return open_file(tree, name, flags, mode)

        Tree.open_file = open_watched  # type: ignore[method-assign]

    def watch(self, event: str, given: tuple[Any, ...]) -> None:
        """Refuse what would leave the folder of the case that runs."""
        if not self.folder or event not in WATCHED:
            return
        if event == "open":
            flags = given[2] if isinstance(given[2], int) else 0
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
            kernel = self._resolve(given[0]).startswith(("/proc", "/sys", "/dev"))
            asked = re.fullmatch(r"/proc/\d+/environ", str(given[0])) is not None  # whatran --pid: what a live process was given
            allowed = not writes and (not kernel or asked)
            allowed = allowed or given[0] in (os.devnull, "/dev/urandom")
            paths = [] if allowed else [given[0]]
        else:
            own = given[0] in ("/proc/self/fd", "/proc/self/task")  # run: what it would hand on to the command, and whether it can
            folders = given[FOLDERS[event] :] if event in FOLDERS else ()
            places = WATCHED[event]
            paths = [] if own else [self._join(given[place], folders[at : at + 1]) for at, place in enumerate(places) if place < len(given)]
        for path in paths:
            place = self._resolve(path)
            if place and place != self.folder and not place.startswith((f"{self.folder}/", *(PACKAGE if event in READS else ()))):
                folder, self.folder = self.folder, ""
                self.crossed.append(f"{event} {place[:200]}")
                self.folder = folder
                raise Handed(f"left its folder: {event} {place[:200]}")

    @staticmethod
    def _join(path: Any, folder: tuple[Any, ...]) -> Any:
        """Return a path as seen from here, where it is below a folder that is open."""
        if not folder or not isinstance(folder[0], int) or folder[0] < 0 or not isinstance(path, (str, bytes)):
            return path
        return os.path.join(os.readlink(f"/proc/self/fd/{folder[0]}"), os.fsdecode(path))

    def _resolve(self, path: Any) -> str:
        if path is None or isinstance(path, int):
            return "" if path is not None else self.folder
        return os.path.realpath(os.fsdecode(path))


#: What Python tells of before it does it, and which of what it tells are paths.
WATCHED = {
    "open": (0,), "os.listdir": (0,), "os.scandir": (0,), "os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.rename": (0, 1),
    "os.link": (0, 1),
    "os.symlink": (1,), "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,), "os.chdir": (0,), "shutil.rmtree": (0,),
}  # fmt: skip
#: Where Python tells of the folders that paths are below, for one after the other.
FOLDERS = {"os.mkdir": 2, "os.remove": 1, "os.rmdir": 1, "os.rename": 2, "os.link": 2}
READS = ("os.listdir", "os.scandir")
PACKAGE = (str(REPOSITORY), sys.prefix, sys.base_prefix)
FENCE = Fence()


@contextmanager
def limit_time() -> Iterator[None]:
    """Let nothing run for ever: only the processor's time counts, as machines differ and others work on them."""

    def stop(*given: Any) -> None:
        raise Handed(f"took more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with three commits and a release."""
    made = Repo(tmp_path_factory.mktemp("history") / "repo")
    for value in (1, 2, 3):
        made.commit({"base": f"[options]\nhccl_timeout = {value}\n", "leaf": 'profile.extends = ["base"]\n', "odd": "[options]\n"})
    made.release("leaf", "1.0.0")
    return made.folder / ".git"


def describe_failure(case: Case, code: object, out: str, err: str, strays: list[str]) -> str:
    """Return what is wrong with what a command did, empty where nothing is."""
    if isinstance(code, BaseException):
        return repr(code) if str(code) else ""
    if code not in CODES or "Traceback" in err or "a bug in npuprof" in err:
        return f"exit {code}: {err[-300:]}"
    filed = any(word.startswith(("-o", "--output")) for word in case.words)
    if code == 2 and not (out + err).strip() and not filed and "-driver" not in " ".join(case.words) and "textconv" not in case.words:
        return "exit 2 without a word"
    return f"written elsewhere: {strays}" if strays else ""


def run_case(case: Case, folder: Path, history: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a case in a folder of its own; return what is wrong with what came of it."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    write_files(work, case.files)
    if case.committed:
        shutil.copytree(history, work / ".git")
    code: object
    out = err = ""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)  # what is imported here for the first time is compiled, and kept nowhere
        patch.chdir(work)
        patch.setattr(os, "execvpe", hand_over)
        patch.setattr(tempfile, "tempdir", str(home))
        patch.setenv("GIT_CEILING_DIRECTORIES", str(folder))
        # A device in the place of git's settings would be replaced by a file, as whoever may write there.
        for name, value in {
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "TMPDIR": str(home),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_STATE_HOME": str(home / "state"),
            **case.environ,
        }.items():
            patch.setenv(name, value)
        try:
            FENCE.folder = os.path.realpath(folder)
            with limit_time():
                if case.before:
                    run(*case.before)
                code, out, err = run(*case.words, stdin=case.stdin)
        except SystemExit as stop:  # the framework, where a shell asks it for completions
            code = stop.code
        except (Handed, Exception) as error:
            code = error
        finally:
            FENCE.folder = ""
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # `run` gives the command what a shell would have
    crossed, FENCE.crossed = FENCE.crossed, []
    strays = crossed + sorted(set(os.listdir(folder)) - {"work", "home"})
    shutil.rmtree(folder)
    return describe_failure(case, code, out, err, strays)


def test_every_command_line_ends_in_a_documented_way(tmp_path: Path, history: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = []
    for number in range(COUNT):
        seed = f"{SEED}:{number}"
        case = roll_case(seed)
        if failure := run_case(case, tmp_path / "case", history, run, monkeypatch):
            failures.append(f"{seed} {case.words!r:.300} {case.environ}: {failure}")
    assert not failures, f"{len(failures)} of {COUNT}:\n" + "\n".join(failures[:200])


@pytest.mark.parametrize(
    "words",
    [
        ("init", "../.."),
        ("init", "../../x"),
        ("scan", "/"),
        ("scan", "/sys"),
        ("schema", "-o", "../../x"),
        ("schema", "-o", "/proc/self/comm"),
    ],
)
def test_no_case_can_leave_its_folder(
    words: tuple[str, ...], tmp_path: Path, history: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case({}, list(words), b"", {}, False)
    before = sorted(tmp_path.rglob("*"))
    assert "left its folder" in run_case(case, tmp_path / "case" / "inner", history, run, monkeypatch)
    assert sorted(path for path in tmp_path.rglob("*") if "case" not in path.parts) == [path for path in before if "case" not in path.parts]
