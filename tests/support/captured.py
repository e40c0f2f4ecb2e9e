"""What a command writes to a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

from support.building import REPOSITORY


def capture(arguments: list[str], columns: int, folder: Path, **environ: str) -> str:
    """Return what a command shows on a terminal."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        known = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "TERM": "xterm",
            "NPUPROF_PAGER": "",
            "PYTHONPATH": str(REPOSITORY),
        }
        os.execve(
            sys.executable, [sys.executable, "-m", "npuprof", *arguments], {**known, **environ}
        )
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    found = b""
    while True:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # the other side is gone
            break
        if not piece:
            break
        found += piece
    os.waitpid(pid, 0)
    os.close(screen)
    return found.decode().replace("\r\n", "\n")


def strip_colours(text: str) -> str:
    return re.sub(r"\033\[[0-9;]*m", "", text)
