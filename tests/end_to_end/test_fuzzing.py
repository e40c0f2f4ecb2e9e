"""Random commands end with a documented exit code and write nothing elsewhere.

``NPUPROF_FUZZ=12000`` rolls so many cases, ``NPUPROF_FUZZ_SEED=2`` others. A case that fails is
named ``SEED:NUMBER``.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.fuzzing import Case, roll_case, write_files
from support.repositories import Repo
from support.running import Run

COUNT = int(os.environ.get("NPUPROF_FUZZ", "300"))
SEED = os.environ.get("NPUPROF_FUZZ_SEED", "1")
#: 0 fine, 1 not clean, 2 could not answer; `run` hands on 126 and 127; 130 and 141 are an interrupt
#: and a closed pipe.
CODES = {0, 1, 2, 126, 127, 130, 141}
#: Seconds of the processor that a case may take: a hundred times what most take.
MOST_SECONDS = 10


class Handed(BaseException):
    """``run`` has handed its process over to the command."""


def hand_over(*arguments: object) -> None:
    raise Handed


def stop(*arguments: object) -> None:
    raise TimeoutError(f"took more than {MOST_SECONDS} s")


@contextmanager
def limit_time() -> Iterator[None]:
    """Limit the processor time of each case.

    Real time differs with the machine and its other load.
    """
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        signal.signal(
            signal.SIGPIPE, signal.SIG_IGN
        )  # `run` gives the command what a shell would have


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with three commits and a release."""
    made = Repo(tmp_path_factory.mktemp("history") / "repo")
    for value in (1, 2, 3):
        made.commit(
            {
                "base": f"[options]\nhccl_timeout = {value}\n",
                "leaf": 'profile.extends = ["base"]\n',
                "odd": "[options]\n",
            }
        )
    made.release("leaf", "1.0.0")
    return made.folder / ".git"


def describe_failure(case: Case, code: object, out: str, err: str) -> str:
    """Return what is wrong with what a command did, empty where nothing is."""
    if code not in CODES or "Traceback" in err or "a bug in npuprof" in err:
        return f"exit {code!r}: {err[-300:]}"
    filed = {"-o", "--output", "merge-driver", "diff-driver", "textconv"} & set(case.words)
    return "exit 2 without a word" if code == 2 and not (out + err).strip() and not filed else ""


def run_case(
    case: Case, folder: Path, history: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> tuple[object, str]:
    """Run a case in a folder of its own; return how it ended, and what is wrong with that."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    write_files(work, case.files)
    if case.committed:
        shutil.copytree(history, work / ".git")
    own = {
        "GIT_CONFIG_GLOBAL": home / "gitconfig",
        "TMPDIR": home,
        "HOME": home,
        "XDG_CACHE_HOME": home / "cache",
    }
    code, out, err = None, "", ""
    with monkeypatch.context() as patch:
        patch.chdir(work)
        patch.setattr(os, "execvpe", hand_over)
        patch.setattr(tempfile, "tempdir", str(home))
        for name, value in {
            "GIT_CEILING_DIRECTORIES": folder,
            "XDG_STATE_HOME": home / "state",
            **own,
            **case.environ,
        }.items():
            patch.setenv(name, str(value))
        try:
            with limit_time():
                code, out, err = run(*case.words, stdin=case.stdin)
        except SystemExit as ended:  # the framework, where a shell asks it for completions
            code = ended.code
        except Handed:
            code = 0
        except Exception as error:
            err = f"Traceback: {error!r}"
    strays = sorted(set(os.listdir(folder)) - {"work", "home"})
    shutil.rmtree(folder)
    return code, describe_failure(case, code, out, err) or (
        f"written elsewhere: {strays}" if strays else ""
    )


def test_every_command_line_ends_in_a_documented_way(
    tmp_path: Path, history: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    failures, ends = [], Counter[object]()
    for number in range(COUNT):
        case = roll_case(f"{SEED}:{number}")
        code, failure = run_case(case, tmp_path / "case", history, run, monkeypatch)
        ends[code] += 1
        if failure:
            failures.append(f"{SEED}:{number} {case.words!r:.300} {case.environ}: {failure}")
    assert not failures, f"{len(failures)} of {COUNT}:\n" + "\n".join(failures[:200])
    assert min(ends[0], ends[2]) > COUNT / 10, ends
