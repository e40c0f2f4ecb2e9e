"""Copy the standard error of a command to a file while it is shown: the adapter for TensorFlow 2 writes its options only there.

``tee`` copies in a session of its own, so that no signal for the command ends it, and goes on as long as any process can write.
"""

from __future__ import annotations

import os
import time

from npuprof.system.processes import DEVNULL, start_user_command
from npuprof.system.tree import Tree

_STDERR = 2
#: How long tee may take to show what was written, in seconds, before a process that still has the pipe is assumed.
_PATIENCE = 2.0


class StderrCopy:
    """What a command writes to ``stream`` is shown on our standard error and appended to the file at ``path``.

    After ``settle``, ``is_complete`` is whether nothing is missing from the file, and ``is_open`` whether a process may still write to it.
    Raises OSError if the file or tee cannot be used, or this process has no standard error.
    """

    def __init__(self, path: str) -> None:
        os.fstat(_STDERR)
        self.path = path
        self.is_complete = self.is_open = False
        folder, name = os.path.split(path)
        copy = Tree(folder).open_file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        read, self.stream = os.pipe()
        try:
            words = ("tee", "-a", f"/dev/fd/{copy}")
            self._tee = start_user_command(words, stdin=read, stdout=_STDERR, stderr=DEVNULL, pass_fds=(copy,), start_new_session=True)
        except OSError:
            os.close(self.stream)
            raise
        finally:
            os.close(read)
            os.close(copy)

    def settle(self) -> None:
        """Wait until all that the command has written is shown and copied."""
        os.close(self.stream)
        until = time.monotonic() + _PATIENCE
        while self._tee.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        self.is_open = self._tee.returncode is None
        self.is_complete = self._tee.returncode in (0, None)
