"""Runs a command as a transparent parent.

Signals, terminal, exit codes and streams behave as without npuprof.

The command stays in npuprof's process group, so that terminal and shell treat both as one job.
Terminal signals (Ctrl-C, Ctrl-Z, resize) reach the command directly. A signal from another process
may be for npuprof alone, and is forwarded, or for the whole group, and must not arrive twice. The
kernel does not report which, so a third process in the group, the witness, reports whether it
received the signal too.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from npuprof.model import Record, build_error
from npuprof.system import processes

#: Signals that are not forwarded: uncatchable ones, npuprof's own faults, and terminal access from
#: the background.
_NOT_FORWARDED = {
    getattr(signal, name)
    for name in (
        "SIGKILL",
        "SIGSTOP",
        "SIGSEGV",
        "SIGBUS",
        "SIGFPE",
        "SIGILL",
        "SIGTRAP",
        "SIGSYS",
        "SIGTTIN",
        "SIGTTOU",
        "SIGPIPE",
        "SIGXFSZ",
        "SIGXCPU",
    )
    if hasattr(signal, name)
}
#: Stops caused by the terminal: the shell waits for npuprof, which must stop too.
#: Whoever sends another stop sends it to the processes that it means.
_TERMINAL_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
#: ``si_code`` of a signal that the kernel sent, as the terminal does: ``SI_KERNEL`` of Linux.
_BY_KERNEL = 0x80
#: The time in seconds for the kernel to deliver a signal to a whole group.
_GROUP_DELAY = 0.02
#: The option of ``prctl``, which Python does not name.
_PR_SET_PDEATHSIG = 1


class Ending(Record):
    """How a command ended: its exit code, or its fatal signal.

    ``error`` is why it could not be started.

    Signals are blocked until ``release`` is called, so that the record of the end is complete;
    ``mask`` are the signals that were blocked before.
    """

    code: int = 0
    signal: int = 0
    error: OSError | None = None
    mask: frozenset[int] = frozenset()

    def release(self) -> None:
        """Unblock signals.

        Pending ones are discarded: they were for the command.
        """
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

    ``errors`` is a file descriptor that replaces its standard error.
    """
    sys.stdout.flush()  # or both processes write the buffered text
    sys.stderr.flush()
    watched: set[int] = {
        number for number in signal.valid_signals() if number not in _NOT_FORWARDED
    }
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    # if the caller ignores it, the exit code is lost
    child_signal = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # before the command: it must get its copy of every signal to the group
    witness = _Witness(watched)
    # the end for writing closes when the command starts: then nothing was written
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
    """End this process by the command's signal, without a second core file.

    May return if that fails.
    """
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
    """Replace a new child process with the command; never returns.

    If it cannot be started, the number of the error is written to ``report``.
    """
    try:
        _die_with(parent, signal.SIGKILL)
        if errors is not None:
            os.dup2(errors, 2)
        # Python ignores these signals, and the command would inherit that
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
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
    """Make the kernel send this process a signal when its parent ends."""
    with suppress(Exception):  # another system, or a Python without ctypes
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew
        os.kill(os.getpid(), number)


def _leave_streams() -> None:
    """Close streams shared with the command.

    Readers of a pipe then see its end when the command closes it.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    os.close(null)


def _wait(child: int, watched: set[int], witness: _Witness) -> int:
    """Return the final status of a child, forwarding signals to it."""
    suspended = False
    while True:
        info = signal.sigwaitinfo(watched)
        number = info.si_signo
        if number == signal.SIGCHLD:
            status = _collect_states(child)
            if status is not None and not os.WIFSTOPPED(status):
                return status
            if status is None or os.WSTOPSIG(status) not in _TERMINAL_STOPS:
                continue
            if suspended or _has_terminal():
                status = _stop_with(child)
                if status is not None:
                    return status
                suspended = False
        elif number == signal.SIGCONT:
            suspended = False
            _send(child, number)  # a second one is harmless
        elif info.si_code == _BY_KERNEL:
            if number == signal.SIGHUP and os.getsid(0) == os.getpid():
                _send(child, number)  # on hangup, only the session leader gets the signal
        elif not witness.saw(number):
            suspended |= number == signal.SIGTSTP
            _send(child, number)


def _collect_states(child: int) -> int | None:
    """Return the status of a child that has ended or stopped, None while it runs."""
    latest: int | None = None
    while True:
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        if not pid:
            return latest
        if os.WIFSIGNALED(status) or os.WIFEXITED(status):
            return status
        latest = status if os.WIFSTOPPED(status) else None


def _stop_with(child: int) -> int | None:
    """Stop like the command, so that the shell notices, and continue with it.

    Return its status if it has ended meanwhile.
    """
    time.sleep(_GROUP_DELAY)
    pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
    if pid and (os.WIFSIGNALED(status) or os.WIFEXITED(status)):
        return status
    # The command may be about to get the same SIGCONT: stopping now would never end.
    if not (pid and os.WIFCONTINUED(status)) and signal.SIGCONT not in signal.sigpending():
        os.kill(os.getpid(), signal.SIGSTOP)
    _send(child, signal.SIGCONT)
    return None


def _send(child: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(child, number)


def _has_terminal() -> bool:
    """Return whether this process has a controlling terminal."""
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


class _Witness:
    """A process in the same group that reports which signals it received."""

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
        """Return whether a signal was sent to the whole group; False if the witness was killed."""
        time.sleep(_GROUP_DELAY)
        with suppress(BrokenPipeError):
            os.write(self._ask, b"?")
        return number in os.read(self._answer, 256)

    def close(self) -> None:
        """End the witness."""
        os.close(self._ask)
        os.close(self._answer)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _watch(self, questions: int, answers: int, watched: set[int]) -> None:
        """Answer each question with the signals that arrived since the last one."""
        lower, upper = sorted((questions, answers))
        # keep no pipe open whose end others wait for
        os.closerange(0, lower)
        os.closerange(lower + 1, upper)
        os.closerange(upper + 1, 1 << 20)
        with suppress(BrokenPipeError):
            while os.read(questions, 1):
                seen = {0}  # an empty answer cannot be sent
                while (info := signal.sigtimedwait(watched, 0)) is not None:
                    seen.add(info.si_signo)
                os.write(answers, bytes(sorted(seen)))


def require_lone_thread() -> None:
    """Raise NpuprofError if this process has other threads, with which fork and wait are unsafe."""
    with suppress(OSError):  # not Linux
        if len(os.listdir("/proc/self/task")) > 1:
            what = "npuprof run needs a process of its own, and this one has other threads"
            raise build_error(
                "NP914", what, "", "start it with subprocess: npuprof run NAME -- CMD"
            )
