"""A transparent parent of a command: signals, the terminal, exit codes and streams are as without npuprof.

The command stays in our process group, so that the terminal and the shell treat both as one job. What the kernel sends for the
terminal (Ctrl-C, Ctrl-Z, a new size) reaches the command by itself. What another process sends may have been meant for us
alone, and is handed on, or for the whole group, and must not arrive twice. The kernel does not say which; so a third process waits in
the group, and whether it got the signal as well tells.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from npuprof.model import Finding, NpuprofError, Record
from npuprof.system import processes

#: Signals that no process hands on: those that cannot be caught, faults of our own, and a terminal's word to who is in the background.
_OURS = {
    getattr(signal, name)
    for name in ("SIGKILL", "SIGSTOP", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS", "SIGTTIN", "SIGTTOU", "SIGPIPE",
                 "SIGXFSZ", "SIGXCPU")
    if hasattr(signal, name)
}  # fmt: skip
#: Stops that a terminal brings about; of any other, whoever sent it takes care.
_TERMINAL_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_BY_KERNEL = 0x80  # SI_KERNEL
#: How long the kernel may take to give a signal to all of a group, in seconds.
_GROUP_DELAY = 0.02
_PR_SET_PDEATHSIG = 1


class Ending(Record):
    """How a command ended: its exit code, or the signal that it died of; ``error`` is why it could not be started.

    Signals to us are held back until ``release`` is called, so that what is kept of the end is kept whole; ``mask`` are those that were
    held back before.
    """

    code: int = 0
    signal: int = 0
    error: OSError | None = None
    mask: frozenset[int] = frozenset()

    def release(self) -> None:
        """Let signals through again; those that came meanwhile were for the command."""
        pending = signal.pthread_sigmask(signal.SIG_BLOCK, ()) - set(self.mask)
        while pending and signal.sigtimedwait(pending, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    started: Callable[[int], None],
    errors: int | None = None,
) -> Ending:
    """Run a command as a child until it ends; ``started`` is called with its process id.

    ``errors`` is a file descriptor that becomes its standard error in place of ours.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    watched: set[int] = {number for number in signal.valid_signals() if number not in _OURS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    child_signal = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored by who started us, it would take the exit code with it
    witness = _Witness(watched)
    read, write = os.pipe()
    parent = os.getpid()
    child = processes.fork()
    if child == 0:
        _become(command, environment, write, before, child_signal, parent, errors)
    os.close(write)
    with open(read, "rb") as failed:
        reason = failed.read()
    if reason:
        os.waitpid(child, 0)
        witness.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        number = int(reason)
        return Ending(error=OSError(number, os.strerror(number)), mask=frozenset(before))
    _leave_streams()
    started(child)
    status = _wait(child, watched, witness)
    witness.close()
    if os.WIFSIGNALED(status):
        return Ending(signal=os.WTERMSIG(status), mask=frozenset(before))
    return Ending(os.WEXITSTATUS(status), mask=frozenset(before))


def die_of(number: int) -> None:
    """End this process by a signal, as the command did; without a core file, of which there is one already. May return where it cannot."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    report: int,
    mask: set[int],
    child_signal: object,
    parent: int,
    errors: int | None,
) -> None:
    """Be the command, in a process that was made for it; never returns."""
    try:
        _die_with(parent, signal.SIGKILL)
        if errors is not None:
            os.dup2(errors, 2)
        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays ignored in the command
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if child_signal is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        processes.exec_user_command(command, environment)
    except OSError as error:
        os.write(report, str(error.errno or 0).encode())
    finally:
        os._exit(127)


def _die_with(parent: int, number: int) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    with suppress(Exception):  # another system, or a Python without ctypes
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _leave_streams() -> None:
    """Let go of what the command has as well: the reader of a pipe sees its end when the command closes it, not when we end."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.close(null)


def _wait(child: int, watched: set[int], witness: _Witness) -> int:
    """Return the status that a child ends with; signals to us reach it meanwhile."""
    suspended = False
    while True:
        info = signal.sigwaitinfo(watched)
        number = info.si_signo
        if number == signal.SIGCHLD:
            status = _collect_states(child)
            if status is not None and not os.WIFSTOPPED(status):
                return status
            if status is not None and os.WSTOPSIG(status) in _TERMINAL_STOPS and (suspended or _has_terminal()):
                status = _stop_with(child)
                if status is not None:
                    return status
                suspended = False
        elif number == signal.SIGCONT:
            suspended = False
            _send(child, number)  # a second one does no harm
        elif info.si_code == _BY_KERNEL:
            if number == signal.SIGHUP and os.getsid(0) == os.getpid():
                _send(child, number)  # of a line that is hung up only the first process of the session hears
        elif not witness.saw(number):
            suspended = suspended or number == signal.SIGTSTP
            _send(child, number)


def _collect_states(child: int) -> int | None:
    """Return the status that a child has now where it has ended or stopped, None where it runs."""
    latest: int | None = None
    while True:
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not pid:
            return latest
        if os.WIFSIGNALED(status) or os.WIFEXITED(status):
            return status
        latest = status if os.WIFSTOPPED(status) else None


def _stop_with(child: int) -> int | None:
    """Stop like the command, so that the shell notices, and continue with it; return its status if it has ended meanwhile."""
    time.sleep(_GROUP_DELAY)
    pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
    if pid and (os.WIFSIGNALED(status) or os.WIFEXITED(status)):
        return status
    # Who continued the group has reached us first, and may just be about to reach the command: to stop now would be for ever.
    if not (pid and os.WIFCONTINUED(status)) and signal.SIGCONT not in signal.sigpending():
        os.kill(os.getpid(), signal.SIGSTOP)
    _send(child, signal.SIGCONT)
    return None


def _send(child: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(child, number)


def _has_terminal() -> bool:
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


class _Witness:
    """A process in our group that waits for signals and reports, if asked, which of them it got."""

    def __init__(self, watched: set[int]) -> None:
        questions, self._ask = os.pipe()
        self._answer, answers = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = processes.fork()
        if self._pid == 0:
            try:
                self._watch(questions, answers, watched)
            finally:
                os._exit(0)
        os.close(questions)
        os.close(answers)

    def saw(self, number: int) -> bool:
        """Return whether a signal that came to us went to the whole group; False if the witness has been killed."""
        time.sleep(_GROUP_DELAY)
        with suppress(BrokenPipeError):
            os.write(self._ask, b"?")
        return number in os.read(self._answer, 256)

    def close(self) -> None:
        """End it."""
        os.close(self._ask)
        os.close(self._answer)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _watch(self, questions: int, answers: int, watched: set[int]) -> None:
        for before, number in pairwise((-1, *sorted((questions, answers)), 1 << 20)):  # nothing that readers wait for stays open here
            os.closerange(before + 1, number)
        with suppress(BrokenPipeError):
            while os.read(questions, 1):
                seen = {0}
                while (info := signal.sigtimedwait(watched, 0)) is not None:
                    seen.add(info.si_signo)
                os.write(answers, bytes(sorted(seen)))


def require_lone_thread() -> None:
    """Raise NpuprofError if this process has another thread, of Python or of a library: with one it can neither fork nor wait safely."""
    with suppress(OSError):  # not Linux
        if len(os.listdir("/proc/self/task")) > 1:
            what = "npuprof run needs a process of its own, and this one has other threads"
            raise NpuprofError([Finding("NP914", what, "", "start it with subprocess: npuprof run NAME -- CMD")])
