"""Standard error of a command, kept while it is shown: there the adapter for TensorFlow 2 writes its options, and nowhere else.

A process of its own hands on what comes, for as long as anybody writes: also when the command has left somebody behind. What was a
terminal stays one for the command, of the same size; and where the reader of a pipe has gone, whoever writes next is told as before.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

from npuprof.runs.supervisor import Companion, close_others
from npuprof.system.tree import Tree

_ERRORS = 2
_SIZE = 1 << 16
#: What is kept: everything, as nobody writes any more, all that was written so far, or a part of it.
_ALL, _SO_FAR, _PART = b"a", b"f", b"p"
#: How long what was written to a terminal may be on its way, in seconds.
_DELAY = 0.05


class KeptErrors:
    """What a command writes to ``stream`` in place of its standard error is shown on ours and kept in the file at ``path``.

    Once it has settled, the file ``is_whole`` where nothing of that is missing, and ``is_open`` where somebody may write on.
    Raises OSError where the file cannot be made, or this process has no standard error.
    """

    def __init__(self, path: str) -> None:
        os.fstat(_ERRORS)
        self.path = path
        self.is_whole = self.is_open = False
        folder, name = os.path.split(path)
        kept = Tree(folder).open_file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        read, self.stream, is_terminal = _open_line()
        delay = _DELAY if is_terminal else 0
        self._process = Companion(lambda asked, answers: _HandingOn(read, kept, asked, answers, delay).run())
        os.close(read)
        os.close(kept)

    def settle(self) -> None:
        """Wait until all that the command has written is shown and kept."""
        os.close(self.stream)
        answer = self._process.ask()[-1:]  # the last word counts, where the end comes meanwhile
        self._process.close()
        self.is_whole, self.is_open = answer in (_ALL, _SO_FAR), answer == _SO_FAR


def _open_line() -> tuple[int, int, bool]:
    """Return where is read what is written to the second; and whether it is a terminal, which it is in place of one."""
    if os.isatty(_ERRORS):
        import tty

        with suppress(OSError):  # a system that has none to give
            read, write = os.openpty()
            tty.setraw(write)  # the terminal itself does what a terminal does with what is written
            _take_size(read)
            return read, write, True
    return (*os.pipe(), False)


def _take_size(line: int) -> None:
    """Give a terminal the size of ours."""
    import fcntl
    import termios

    with suppress(OSError):
        fcntl.ioctl(line, termios.TIOCSWINSZ, fcntl.ioctl(_ERRORS, termios.TIOCGWINSZ, bytes(8)))


class _HandingOn:
    """Who reads what the command writes, shows it and keeps it; no signal that is meant for the command ends it."""

    def __init__(self, read: int, kept: int, asked: int, answers: int, delay: float) -> None:
        self._read, self._kept, self._asked, self._answers, self._delay = read, kept, asked, answers, delay
        self._is_whole = self._is_shown = True
        close_others(_ERRORS, read, asked, answers, kept)
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - {signal.SIGWINCH})
        signal.signal(signal.SIGWINCH, lambda number, frame: _take_size(read))

    def run(self) -> None:
        """Hand on until nobody writes any more, or nobody reads."""
        waited = [self._read, self._asked]
        while self._read in waited:
            ready = select.select(waited, (), ())[0]
            if self._read in ready:
                if not self._hand_on():
                    break
            elif not os.read(self._asked, 1):
                waited.remove(self._asked)  # nobody will ask any more
            else:
                while select.select([self._read], (), (), self._delay)[0] and self._hand_on():
                    pass
                self._answer(_SO_FAR)
        self._answer(_ALL)

    def _answer(self, kept: bytes) -> None:
        with suppress(OSError):
            os.write(self._answers, kept if self._is_whole else _PART)

    def _hand_on(self) -> bool:
        """Hand on what is there; return whether more can come."""
        try:
            data = os.read(self._read, _SIZE)
        except OSError:  # the end of a terminal
            return False
        if not data:
            return False
        if self._is_whole:
            try:
                _write_all(self._kept, data)
            except OSError:  # a full disk; the command is not to notice
                self._is_whole = False
        if self._is_shown:
            try:
                _write_all(_ERRORS, data)
            except BrokenPipeError:
                self._is_whole = False
                return False
            except OSError:  # a terminal that was hung up
                self._is_shown = False
        return True


def _write_all(number: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(number, data) :]
        except BlockingIOError:  # whoever shares it wants it so
            select.select((), [number], ())
