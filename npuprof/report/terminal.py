"""The user's terminal: the pager, and progress of long operations."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain

from npuprof.system import processes

ShowProgress = Callable[[str], None]

_DELAY = 0.4  # seconds before progress is shown


def page_answer(pieces: Iterable[bytes], write: Callable[[Iterable[bytes]], None]) -> None:
    """Show an answer in the user's pager, piece by piece; without a pager, ``write`` it.

    An answer that fits the screen needs none. The pager is ``$NPUPROF_PAGER``, else ``$PAGER``,
    else ``less`` if it is installed. ``cat`` or an empty value means no pager.
    """
    pieces = iter(pieces)
    first = []
    for piece in pieces:
        first.append(piece)
        if b"".join(first).count(b"\n") >= shutil.get_terminal_size().lines:
            break
    else:
        write(first)
        return
    pieces = chain(first, pieces)
    configured = os.environ.get("NPUPROF_PAGER", os.environ.get("PAGER"))
    if configured is None:
        command = [processes.find_program("less") or "cat"]
    else:
        command = shlex.split(configured)
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        write(pieces)
        return
    sys.stdout.flush()
    # the user's own variables win
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    with processes.start_user_command(command, stdin=processes.PIPE, env=environment) as pager:
        assert pager.stdin is not None
        try:
            for piece in pieces:
                pager.stdin.write(piece)
                pager.stdin.flush()
            pager.stdin.close()
        except (BrokenPipeError, KeyboardInterrupt):  # the user quit it early
            pass
        while True:
            try:
                pager.wait()
                break
            except KeyboardInterrupt:  # for the pager
                continue


@contextmanager
def progress_line() -> Iterator[ShowProgress]:
    """Return a function that shows a text in the last line of the terminal, a few times a second.

    The elapsed seconds follow the text. The line is cleared at the end.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    started = last_shown = time.monotonic()
    shown = False

    def show_progress(text: str) -> None:
        nonlocal last_shown, shown
        now = time.monotonic()
        if now - started > _DELAY and now - last_shown > 0.1:
            last_shown = now
            shown = True
            sys.stderr.write(f"\r\033[Knpuprof: {text}, {now - started:.0f} s")
            sys.stderr.flush()

    try:
        yield show_progress
    finally:
        if shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


@contextmanager
def repeat_progress(show: Callable[[], None]) -> Iterator[None]:
    """Call ``show`` after half a second and then each second, also while an item takes long.

    A timer and no thread: a process with threads is not forked.
    """

    def repeat(number: int, frame: object) -> None:
        with suppress(RuntimeError):  # the terminal is just being written to
            show()

    before = signal.signal(signal.SIGALRM, repeat)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
