"""Trials are ended by their process groups."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from npuprof.system.processes import DEVNULL, start_user_command
from npuprof.trials.process_groups import Ended, Pool
from support.waiting import wait_for


def is_running(pid: str) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="the system does not show processes"
)
def test_a_stopped_command_is_ended_with_its_process_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "trap '' TERM; echo $$ >> pids; sh -c 'echo $$ >> pids; sleep 61; sleep 61' & wait; wait"
    )
    monkeypatch.setattr("npuprof.trials.process_groups.GRACE", 0.2)
    pool, pids = Pool(), tmp_path / "pids"
    pool.start("one", ["sh", "-c", f"cd {tmp_path}; {script}"], os.environ, DEVNULL)
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    pool.stop()
    assert not len(pool)
    assert not any(map(is_running, pids.read_text().split()))


def test_a_command_that_starts_as_the_user_interrupts_is_ended_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, started = Pool(), []

    def start_and_interrupt(command: list[str], **how: Any) -> object:
        process = start_user_command(command, **how)
        started.append(process)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr("npuprof.trials.process_groups.start_user_command", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        pool.start("one", ["sleep", "61"], os.environ, DEVNULL)
    pool.stop()
    assert [process.returncode for process in started] == [-signal.SIGTERM]


def test_a_process_that_leaves_the_group_does_not_hold_a_command_up(tmp_path: Path) -> None:
    (tmp_path / "leave.py").write_text(
        "import os, time\nos.setsid()\n"
        "with open('pid', 'w') as file:\n    file.write(str(os.getpid()))\n"
        "time.sleep(100)\n"
    )
    pool, log = Pool(), os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    pool.start(
        "one",
        [
            "sh",
            "-c",
            f"{sys.executable} leave.py & wait_for={tmp_path}/pid; "
            "while [ ! -s $wait_for ]; do sleep 0.01; done; echo done",
        ],
        os.environ,
        log,
    )
    ended: list[Ended] = []
    wait_for(lambda: ended.extend(how for _, how in pool.wait()) or ended)
    os.close(log)
    assert [how.exit for how in ended] == [0]
    assert (tmp_path / "log").read_bytes() == b"done\n"
    os.kill(int((tmp_path / "pid").read_text()), 9)
