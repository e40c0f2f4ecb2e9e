"""``run`` called by a program that has other threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.building import build_store

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
def test_a_program_with_other_threads_is_told_to_start_a_process(way: str, flags: list[str]) -> None:
    done = subprocess.run([*write_program(way), *flags, "--", "echo", "ran"], capture_output=True, timeout=60, check=False, text=True)
    assert (done.stdout, "NP914" in done.stderr) == ("returned 2\n", True), done.stderr
    assert not Path("out").exists()
