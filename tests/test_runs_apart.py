"""``run`` called by a program that has other threads: real threads, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from building import build_store
from terminals import Terminal
from waiting import read_line, wait_for

from npuprof.commands.framework.verb import parse_plain_words
from npuprof.commands.run import Run

#: Calls ``main`` with the arguments of the program, and prints what it returns.
CALL = "from npuprof.__main__ import main\nprint('returned', main(['run', 'leaf', *sys.argv[1:]]), flush=True)\n"
IDLE = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
#: Programs by the thread that calls, and by what other threads there are.
PROGRAMS = {
    "the main thread beside another": IDLE + CALL,
    "another thread": (
        f"def call():\n{textwrap.indent(CALL, '    ')}thread = threading.Thread(target=call)\nthread.start()\nthread.join()\n"
    ),
    "the main thread beside a library's": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)\n" + CALL
    ),
}
#: Appends the name of each signal that it gets to a file, until it gets SIGTERM.
LISTENER = """
import signal, sys, time
def note(number, frame):
    print(signal.Signals(number).name, file=open("got", "a"), flush=True)
    if number == signal.SIGTERM:
        sys.exit(5)
for name in ("INT", "TERM", "HUP"):
    signal.signal(getattr(signal, "SIG" + name), note)
print("ready", flush=True)
for _ in range(1200):
    time.sleep(0.05)
"""


@pytest.fixture(autouse=True)
def leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "profiles", {"leaf": "[options]\nhccl_timeout = 600\n"})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def write_program(way: str) -> list[str]:
    Path("program.py").write_text(f"import sys, threading, time\n{PROGRAMS[way]}")
    return [sys.executable, "program.py"]


@pytest.mark.parametrize("flags", [["--record", "out"], ["--prove"], []], ids=" ".join)
@pytest.mark.parametrize("way", PROGRAMS)
def test_the_exit_code_is_returned_and_the_program_goes_on(way: str, flags: list[str]) -> None:
    command = ["sh", "-c", 'read line; echo "$line $NPUPROF_HCCL_TIMEOUT"; exit 3']
    words = [*write_program(way), *flags, "--set", "hccl_timeout=7", "--", *command]
    done = subprocess.run(words, input=b"typed\n", capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == (b"typed 7\nreturned 3\n", 0), done.stderr
    if "--record" in flags:
        record = read_record()
        assert (record["exit"], record["asked"]["set"]) == ({"code": 3, "signal": None}, ["hccl_timeout=7"])


@pytest.mark.parametrize(("command", "code"), [(["sh", "-c", "kill -TERM $$"], 143), (["nothing-here"], 127)], ids=["killed", "missing"])
@pytest.mark.parametrize("way", PROGRAMS)
def test_a_command_that_ends_otherwise_has_the_code_of_a_shell(way: str, command: list[str], code: int) -> None:
    done = subprocess.run([*write_program(way), "--record", "out", "--", *command], capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == (f"returned {code}\n".encode(), 0), done.stderr


@contextmanager
def listening(way: str) -> Iterator[subprocess.Popen[str]]:
    words = [*write_program(way), "--record", "out", "--", sys.executable, "-c", LISTENER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert read_line(process) == "ready"
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def read_record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(Path("out/leaf.0.run.json").read_bytes())
    return record


def end_after_one_ctrl_c() -> None:
    """Wait for the first signal and for a second one that must not come, and end the command."""
    wait_for(lambda: Path("got").exists() and bool(Path("got").read_text()))
    time.sleep(0.3)
    os.kill(read_record()["process"]["pid"], signal.SIGTERM)
    wait_for(lambda: read_record()["state"] == "ended")
    assert Path("got").read_text() == "SIGINT\nSIGTERM\n"


def test_an_interrupt_of_the_program_alone_reaches_the_command_once() -> None:
    with listening("the main thread beside another") as process:
        process.send_signal(signal.SIGINT)
        end_after_one_ctrl_c()
        assert read_line(process) == "returned 5"


def test_ctrl_c_on_a_terminal_reaches_the_command_once(terminal: Terminal) -> None:
    Path("listener.py").write_text(LISTENER)
    words = [*write_program("the main thread beside another"), "--record", "out", "--", sys.executable, "listener.py"]
    terminal.expect("$ ")
    terminal.send(f"{' '.join(words)}\n")
    terminal.expect("ready\r\n")
    terminal.send("\x03")
    end_after_one_ctrl_c()
    terminal.expect("returned 5\r\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_is_killed_leaves_a_command_that_was_asked_to_end(number: signal.Signals) -> None:
    with listening("the main thread beside another") as process:
        process.send_signal(number)
        assert process.wait(60) == -number
        assert process.stdout is not None
        assert process.stdout.read() == ""  # its end comes when the last has gone that could write
        wait_for(lambda: read_record()["state"] == "ended")
    assert Path("got").read_text() == "SIGTERM\n"
    assert read_record()["exit"] == {"code": 5, "signal": None}


def test_it_is_given_what_this_one_was_given() -> None:
    given = {
        "spec": "leaf", "command": ["sh", "--set", "-"], "store": "-x", "set_": ["a=b=c", "d=-1"], "no_check": True, "record": "a b",
        "prove": False, "unset": [], "mixin": ["x+y"],
    }  # fmt: skip
    words = Run(given).list_words()
    assert words[0] == "run"
    again = parse_plain_words(Run, words[1:])
    assert again is not None
    assert vars(Run(again)) == vars(Run(given))
