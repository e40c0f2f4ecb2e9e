"""``run --record`` as the parent of a command.

The tests use real processes, signals, terminals and launchers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.building import build_store
from support.waiting import read_line, wait_for

NPUPROF = [sys.executable, "-m", "npuprof"]
RUN = [*NPUPROF, "run", "leaf", "--record", "out", "--"]
#: Says which signals it gets, one a line, until it gets SIGTERM a second time, or its standard
#: input ends.
LISTENER = """
import os, signal, sys, time
def tell(number, frame):  # print would fail while the line "ready" is being printed
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
for name in ("INT", "TERM", "HUP", "USR1", "USR2", "WINCH", "CONT", "QUIT"):
    signal.signal(getattr(signal, "SIG" + name), tell)
print("ready", os.getpid(), os.getpgid(0), flush=True)
for _ in range(1200):
    time.sleep(0.05)
    if os.path.exists("stop"):
        sys.exit(5)
"""


@pytest.fixture(autouse=True)
def leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "profiles", {"leaf": "[options]\nhccl_timeout = 600\n"})
    monkeypatch.chdir(tmp_path)


def read_record(name: str = "leaf.0") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"out/{name}.run.json").read_bytes())
    return found


@pytest.fixture
def listening() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*RUN, sys.executable, "-c", LISTENER],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [0, 7, 255])
def test_the_exit_code_is_the_commands_own(code: int) -> None:
    assert (
        subprocess.run(
            [*RUN, "sh", "-c", f"exit {code}"], capture_output=True, check=False
        ).returncode
        == code
    )
    assert read_record()["exit"] == {"code": code, "signal": None}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGPIPE"])
def test_it_dies_of_the_signal_that_the_command_died_of(name: str) -> None:
    number = getattr(signal, name)
    done = subprocess.run(
        [*RUN, "sh", "-c", f"kill -{name[3:]} $$"], capture_output=True, check=False
    )
    assert done.returncode == -number
    assert read_record()["exit"] == {"code": None, "signal": name}
    assert read_record()["state"] == "ended"
    assert not list(Path().glob("core*"))


def test_a_signal_to_it_reaches_the_command_once(listening: subprocess.Popen[str]) -> None:
    state, pid, group = read_line(listening).split()
    assert state == "ready"
    assert int(group) == listening.pid
    assert int(pid) != listening.pid
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"):
        listening.send_signal(getattr(signal, name))
        assert read_line(listening) == name
    assert read_line(listening, 0.3) == ""
    assert read_record()["state"] == "running"
    assert read_record()["process"]["pid"] == int(pid)
    Path("stop").touch()
    assert listening.wait(10) == 5


def test_a_signal_to_the_whole_group_reaches_the_command_once(
    listening: subprocess.Popen[str],
) -> None:
    read_line(listening)
    for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
        os.killpg(listening.pid, getattr(signal, name))
        assert read_line(listening) == name
        assert read_line(listening, 0.3) == ""
    listening.send_signal(signal.SIGTERM)  # what the group got before does not count for this one
    assert read_line(listening) == "SIGTERM"


def read_state(pid: int) -> str:
    """Return the letter of a process's state, X for one that is no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def test_a_stop_that_is_sent_to_it_stops_the_command_and_it_goes_on_with_it(tmp_path: Path) -> None:
    wait = "for _ in range(1200):\n  time.sleep(0.05 * (not os.path.exists('stop')))"
    script = f"import os, time\nprint('ready', flush=True)\n{wait}\nprint('done', flush=True)"
    # Of a group that no shell looks after, a stop from a terminal is ignored: so there is one.
    with subprocess.Popen(
        [*RUN, sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        try:
            assert read_line(process) == "ready"
            wait_for(
                lambda: read_record()["process"]["pid"]
            )  # it is written down while the command starts
            child = read_record()["process"]["pid"]
            process.send_signal(signal.SIGTSTP)
            wait_for(lambda: read_state(child) == read_state(process.pid) == "T")
            process.send_signal(signal.SIGCONT)
            Path("stop").touch()
            assert read_line(process) == "done"
            assert process.wait(10) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_who_kills_it_for_good_kills_the_command_and_the_record_says_that_it_was_running(
    listening: subprocess.Popen[str],
) -> None:
    pid = int(read_line(listening).split()[1])
    listening.kill()
    listening.wait(10)
    wait_for(lambda: read_state(pid) in "XZ")
    assert read_record()["state"] == "running"
    assert read_record()["exit"] is None


#: Programs that call ``main``, by the thread that calls and the other threads, with the flags of
#: the run.
CALL = (
    "from npuprof.__main__ import main\n"
    "print('returned', main(['run', 'leaf', *sys.argv[1:], '--', 'echo', 'ran']), flush=True)\n"
)
THREADED = {
    "the main thread beside another": (
        f"threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n{CALL}",
        ["--record", "out"],
    ),
    "another thread": (
        f"CALL = {CALL!r}\nthreading.Thread(target=lambda: exec(CALL)).start()\n",
        ["--prove"],
    ),
    "the main thread beside a library's": (
        (
            "import ctypes\nlibc = ctypes.CDLL(None)\n"
            f"libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)\n{CALL}"
        ),
        [],
    ),
}


@pytest.mark.parametrize("way", THREADED)
def test_a_program_with_other_threads_is_told_to_start_a_process(way: str) -> None:
    text, flags = THREADED[way]
    Path("program.py").write_text(f"import sys, threading, time\n{text}")
    done = subprocess.run(
        [sys.executable, "program.py", *flags],
        capture_output=True,
        timeout=60,
        check=False,
        text=True,
    )
    assert done.stdout == "returned 2\n", done.stderr
    assert "NP914" in done.stderr, done.stderr
    assert not Path("out").exists(), done.stderr


def test_signals_that_were_ignored_stay_ignored_and_no_others() -> None:
    script = "grep -E 'SigIgn|SigBlk' /proc/self/status"
    plain = subprocess.run(
        ["sh", "-c", f"trap '' HUP; {script}"], capture_output=True, check=True
    ).stdout
    done = subprocess.run(
        ["sh", "-c", f"trap '' HUP; exec {' '.join(RUN)} {script.replace(chr(39), chr(34))}"],
        capture_output=True,
        check=True,
    )
    assert done.stdout == plain


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed")
def test_under_open_mpi_each_rank_has_a_record_of_its_own() -> None:
    arguments = [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "-np",
        "3",
        *RUN,
        "sh",
        "-c",
        "exit 0",
    ]
    done = subprocess.run(arguments, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir("out")) == [f"leaf.{rank}.run.json" for rank in range(3)]
    assert [read_record(f"leaf.{rank}")["process"]["world_size"] for rank in range(3)] == [3, 3, 3]
