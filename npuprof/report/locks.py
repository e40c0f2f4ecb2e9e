"""Folders locked while their files are written, and what killed runs have left in them taken away."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

from npuprof.model import NpuprofError
from npuprof.report.output import build_write_error, tell_remark
from npuprof.system.tree import Tree, is_under_way

try:
    import fcntl
except ImportError:  # no locks there: what is written is still compared with what was read
    fcntl = None  # type: ignore[assignment]

#: More files or folders than this are not locked by one run; all are compared.
MOST_LOCKS = 100

#: How long a lock is waited for silently, in seconds.
PATIENCE = 10.0
#: And how long at all.
LONGEST_WAIT = 120.0

_held: set[tuple[int, int]] = set()


def find_foreign_file(folder: str, known: Collection[str]) -> str:
    """Return the path below a folder of a file or link that is not ``known``, an empty text if there is none.

    Empty folders and files under way are skipped: a killed run leaves them.
    """
    for where, _, names in Tree(folder).walk() if os.path.isdir(folder) else ():
        for name in sorted(names):
            path = os.path.join(where, name)
            if path not in known and not is_under_way(name):
                return path
    return ""


@contextmanager
def lock_folders(folders: Iterable[str]) -> Iterator[None]:
    """Let one npuprof at a time change the files of some folders, and take away what killed ones have left there.

    The system frees the lock of a process that dies. A folder that is locked already stays so. Where there are no
    locks, what is written is still compared with what was read. Raises NpuprofError where another keeps one for minutes.
    """
    locks: list[tuple[int, tuple[int, int]]] = []
    wanted = sorted({os.path.realpath(folder or ".") for folder in folders})
    try:
        for folder in wanted[:MOST_LOCKS]:
            lock = _lock_folder(folder)
            if lock is not None:
                locks.append(lock)
                _remove_leftovers(folder)
        yield
    finally:
        for handle, key in locks:
            _held.discard(key)
            os.close(handle)


def _lock_folder(folder: str) -> tuple[int, tuple[int, int]] | None:
    """Return the handle of a folder now locked and what identifies it; None where it cannot be, or is already."""
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    status = os.fstat(handle)
    key = (status.st_dev, status.st_ino)
    try:
        if key not in _held:
            _wait_for_lock(handle, folder)
            _held.add(key)
            return handle, key
    except OSError:  # a file system without locks
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _wait_for_lock(handle: int, folder: str) -> None:
    """Take the lock of a folder, and say what that waits for where it takes long.

    Raises OSError where there are no locks, NpuprofError where it is never given back: anybody may keep a folder locked.
    """
    started = time.monotonic()
    is_reported = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waited = time.monotonic() - started
        if waited > LONGEST_WAIT:
            raise build_write_error(f"into {folder}: another program keeps it locked", "Nothing was written.")
        if waited > PATIENCE and not is_reported:
            is_reported = True
            tell_remark(f"another npuprof is writing in {folder}; this one waits until it is done")
        time.sleep(0.01)


def _remove_leftovers(folder: str) -> None:
    """Remove the files that killed runs had under way in a folder that is locked; one that somebody holds stays."""
    with suppress(OSError):
        tree = Tree(folder)
        for name in filter(is_under_way, tree.list_names("")):
            with suppress(OSError, NpuprofError):
                if not stat.S_ISREG(tree.find_status(name).st_mode):
                    continue
                handle = tree.open_file(name, os.O_RDONLY)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    tree.remove_file(name)
                finally:
                    os.close(handle)


def hold_file(handle: int) -> None:
    """Mark a file as one of a living process."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
