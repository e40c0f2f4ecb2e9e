"""Processes of a trial are found and ended wherever they have gone, those too that are just being started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from npuprof.trials import marks
from npuprof.trials.marks import MARK, find_marked
from npuprof.trials.processes import Pool

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="the system does not show environments")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    code = "import sys, time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-S", "-c", code], env={MARK: "here-1"}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_process_that_shows_no_environment_yet_is_looked_at_again(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another program is loaded into a process its environment is empty: one in 150 was overlooked then, and stayed."""
    read, looks = marks._read_environment, []

    def hide(name: str) -> bytes:
        if name == str(child.pid):
            looks.append(name)
            return b"" if len(looks) < 4 else read(name)
        return read(name)

    monkeypatch.setattr(marks, "_read_environment", hide)
    assert find_marked("here-1") == [child.pid]
    assert len(looks) == 4


def test_a_process_without_an_environment_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = subprocess.Popen(["sleep", "60"], env={})
    try:
        time.sleep(0.2)
        find_marked("nobody")
        looks: list[str] = []
        read = marks._read_environment
        monkeypatch.setattr(marks, "_read_environment", lambda name: (looks.append(name), read(name))[1])
        assert find_marked("nobody") == []
        assert looks.count(str(bare.pid)) == 1
    finally:
        bare.kill()
        bare.wait()


@pytest.mark.parametrize(
    "command",
    [
        "(setsid sh -c 'sleep 61' &); (setsid sh -c 'sleep 61' &); sleep 61 & wait",
        "trap 'setsid sleep 61 & exit' TERM; sleep 61 & wait",
        "(setsid sh -c \"trap 'sleep 61 & wait' TERM; sleep 61 & wait\" &); sleep 61 & wait",
    ],
)
@pytest.mark.parametrize("moment", [0.0, 0.002, 0.005, 0.2])
def test_nothing_of_a_command_that_is_stopped_stays(command: str, moment: float) -> None:
    pool, mark = Pool(), f"stopped-{os.getpid()}-{time.monotonic_ns()}"
    pool.start("one", ["sh", "-c", command], dict(os.environ), mark)
    time.sleep(moment)
    pool.stop()
    time.sleep(0.05)
    assert find_marked(mark) == []


def test_a_stop_after_an_interrupt_while_a_pipe_was_closed_closes_it_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, close, closed = Pool(), os.close, []

    def interrupt(number: int) -> None:
        close(number)
        closed.append(number)
        if len(closed) == 1:
            raise KeyboardInterrupt

    pool.start("one", ["sh", "-c", "exec >&- 2>&-; sleep 5"], dict(os.environ), f"closed-{os.getpid()}-{time.monotonic_ns()}")
    monkeypatch.setattr(os, "close", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(pool.wait(5))
    pool.stop()
    assert len(closed) == len(set(closed))
