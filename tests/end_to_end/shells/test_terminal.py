"""``run --record`` and ``run --prove`` in a shell with job control on a real terminal."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from end_to_end.shells.terminals import Terminal

from npuprof.catalog.wire import list_tf2_standing_keys
from support.building import build_store
from support.logged import write_tf2_block

RUN = [sys.executable, "-m", "npuprof", "run", "leaf", "--record", "out", "--"]
PRESET = '[options]\nprecision_mode_v2 = "mixed_float16"\ndeterministic = 1\n'
#: Says which signals it gets, one a line, until it gets SIGTERM a second time, or its standard input ends.
LISTENER = """
import os, signal, sys, time
def tell(number, frame):
    print(signal.Signals(number).name, flush=True)
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
    build_store(tmp_path / "profiles", {"leaf": PRESET})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def test_on_a_terminal_ctrl_c_arrives_once_and_the_command_has_the_foreground(terminal: Terminal) -> None:
    Path("listener.py").write_text(f"{LISTENER}".replace('print("ready"', 'print("fore", os.tcgetpgrp(0) == os.getpgid(0))\nprint("ready"'))
    terminal.expect("$ ")
    terminal.send(f"{' '.join(RUN)} {sys.executable} listener.py; echo code $?\n")
    terminal.expect("fore True")
    terminal.expect("ready ")
    terminal.expect("\r\n")
    terminal.send("\x03")
    terminal.expect("SIGINT")
    time.sleep(0.3)
    Path("stop").touch()
    assert "SIGINT" not in terminal.expect("code 5")


def test_on_a_terminal_ctrl_z_stops_the_job_and_fg_goes_on_with_it(terminal: Terminal) -> None:
    terminal.expect("$ ")
    terminal.send(f"{' '.join(RUN)} sh -c 'echo begun; sleep 2; echo ended'; echo code $?\n")
    terminal.expect("begun\r\n")
    terminal.suspend()
    terminal.expect("ended\r\n")
    terminal.expect("$ ")
    assert json.loads(Path("out/leaf.0.run.json").read_bytes())["exit"] == {"code": 0, "signal": None}


def test_on_a_terminal_ctrl_c_ends_the_command_and_what_it_said_is_told(terminal: Terminal) -> None:
    block = dict.fromkeys(list_tf2_standing_keys("TF 2 2026-07"), "0") | {"ge.exec.precision_mode_v2": "mixed_float16"}
    Path("said").write_text(write_tf2_block({**block, "ge.deterministic": "1"}))
    terminal.expect("$ ")
    script = "import time; print(open('said').read() + 'ready', file=sys.stderr, flush=True); time.sleep(30)"
    Path("say.py").write_text(f"import sys; {script}\n")  # a shell may miss a signal that comes while it starts what it waits for
    terminal.send(f"{' '.join([*RUN[:-1], '--prove', '--'])} {sys.executable} say.py\n")
    terminal.expect("ready\r\n")
    terminal.send("\x03")
    terminal.expect("2 in force")
    terminal.expect("$ ")
    terminal.send("echo code $?\n")
    terminal.expect("code 130")
    assert json.loads(Path("out/leaf.0.run.json").read_bytes())["exit"] == {"code": None, "signal": "SIGINT"}
