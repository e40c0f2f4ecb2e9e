"""``run --prove`` in a shell with job control on a real terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from npuprof.catalog.wire import list_tf2_standing_keys
from support.building import build_store
from support.logged import write_tf2_block
from support.waiting import PATIENCE

RUN = [sys.executable, "-m", "npuprof", "run", "leaf", "--record", "out", "--prove", "--"]
PRESET = '[options]\nprecision_mode_v2 = "mixed_float16"\ndeterministic = 1\n'


class Terminal:
    """A shell with job control on a terminal."""

    def __init__(self) -> None:
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "$ "
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.seen = ""

    def send(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def expect(self, text: str) -> str:
        while text not in self.seen:
            if not select.select([self.handle], [], [], PATIENCE)[0]:
                pytest.fail(f"no {text!r} in {self.seen!r}")
            self.seen += os.read(self.handle, 4096).decode()
        before, _, self.seen = self.seen.partition(text)
        return before

    def close(self) -> None:
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.handle)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "profiles", {"leaf": PRESET})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def test_on_a_terminal_ctrl_c_ends_the_command_and_what_it_said_is_told(terminal: Terminal) -> None:
    block = dict.fromkeys(list_tf2_standing_keys("TF 2 2026-07"), "0") | {
        "ge.exec.precision_mode_v2": "mixed_float16"
    }
    Path("said").write_text(write_tf2_block({**block, "ge.deterministic": "1"}))
    terminal.expect("$ ")
    script = (
        "import time; print(open('said').read() + 'ready', "
        "file=sys.stderr, flush=True); time.sleep(30)"
    )
    Path("say.py").write_text(
        f"import sys; {script}\n"
    )  # a shell may miss a signal that comes while it starts what it waits for
    terminal.send(f"{' '.join(RUN)} {sys.executable} say.py\n")
    terminal.expect("ready\r\n")
    terminal.send("\x03")
    terminal.expect("2 in force")
    terminal.expect("$ ")
    terminal.send("echo code $?\n")
    terminal.expect("code 130")
    assert json.loads(Path("out/leaf.0.run.json").read_bytes())["exit"] == {
        "code": None,
        "signal": "SIGINT",
    }
