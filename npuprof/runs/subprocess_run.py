"""``run`` in a program that has other threads: npuprof is started as a process of its own, which has none.

The kernel gives a signal to any thread that does not block it, and only the main thread may set handlers. So a program with threads can
neither wait for signals as ``supervisor`` does, nor fork safely.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence

from npuprof.system import processes

#: Starts npuprof without what a site adds to Python, which may include threads.
_START = """
import sys
sys.path += {paths!r}
from npuprof.runs.supervisor import die_with
die_with({parent}, {signal})
from npuprof.__main__ import script
script()
"""


def has_other_threads() -> bool:
    """Return whether this process has another thread, of Python or of a library."""
    try:
        return len(os.listdir("/proc/self/task")) > 1
    except OSError:  # not Linux
        import threading

        return threading.active_count() > 1


def run_in_subprocess(words: Sequence[str]) -> int:
    """Run a command of npuprof in a process of its own; return its exit code.

    It shares our streams, folder, environment and process group. If we are killed, it gets SIGTERM.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [os.path.dirname(package), *filter(os.path.isabs, sys.path)]
    start = _START.format(paths=paths, parent=os.getpid(), signal=int(signal.SIGTERM))
    return run_child([sys.executable, "-I", "-S", "-c", start, *words], os.environ)


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command as a child and pass interrupts on to it; return its exit code, 128 + N for a command that signal N ended.

    Raises OSError where it cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    process = processes.start_user_command(command, env=environment, close_fds=False)
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
        else:
            return code if code >= 0 else 128 - code
