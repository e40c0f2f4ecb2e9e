"""Whatever a command is given: an exit code that is documented, words where it could not answer, and nothing written elsewhere.

``NPUPROF_FUZZ=12000`` rolls so many cases, ``NPUPROF_FUZZ_SEED=2`` others. A case that fails is named ``SEED:NUMBER``.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fuzzing import Case, roll_case, write_files
from repositories import Repo

COUNT = int(os.environ.get("NPUPROF_FUZZ", "300"))
SEED = os.environ.get("NPUPROF_FUZZ_SEED", "1")
#: 0 fine, 1 not clean, 2 could not answer; `run` hands on 126 and 127; 130 and 141 are an interrupt and a closed pipe.
CODES = {0, 1, 2, 126, 127, 130, 141}
#: Seconds of the processor that a case may take: a hundred times what most take.
MOST_SECONDS = 10


class Handed(BaseException):
    """``run`` has handed its process over to the command."""


def hand_over(*given: Any) -> None:
    raise Handed


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


def describe_failure(case: Case, code: object, err: str, strays: list[str]) -> str:
    """Return what is wrong with what a command did, empty where nothing is."""
    if isinstance(code, BaseException):
        return repr(code) if str(code) else ""
    if code not in CODES or "Traceback" in err or "a bug in npuprof" in err:
        return f"exit {code}: {err[-300:]}"
    if code == 2 and not err.strip() and "-driver" not in " ".join(case.words) and "textconv" not in case.words:
        return "exit 2 without a word"
    return f"written elsewhere: {strays}" if strays else ""


def run_case(case: Case, folder: Path, history: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a case in a folder of its own; return what is wrong with what came of it."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    write_files(work, case.files)
    if case.committed:
        shutil.copytree(history, work / ".git")
    code: object
    err = ""
    with monkeypatch.context() as patch:
        patch.chdir(work)
        patch.setattr(os, "execvpe", hand_over)
        patch.setenv("GIT_CEILING_DIRECTORIES", str(folder))
        for name, value in {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_STATE_HOME": str(home / "state"), **case.environ}.items():
            patch.setenv(name, value)
        try:
            with limit_time():
                code, _, err = run(*case.words, stdin=case.stdin)
        except (Handed, Exception, SystemExit) as error:
            code = error
    strays = sorted(set(os.listdir(folder)) - {"work", "home"})
    shutil.rmtree(folder)
    return describe_failure(case, code, err, strays)


def test_every_command_line_ends_in_a_documented_way(
    tmp_path: Path, history: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []
    for number in range(COUNT):
        seed = f"{SEED}:{number}"
        case = roll_case(seed)
        if failure := run_case(case, tmp_path / "case", history, run, monkeypatch):
            failures.append(f"{seed} {case.words!r:.300} {case.environ}: {failure}")
    assert not failures, f"{len(failures)} of {COUNT}:\n" + "\n".join(failures[:200])
