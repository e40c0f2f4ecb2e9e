"""Locks on folders while their files are written, and removal of files left by killed processes."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from npuprof.model import NpuprofError
from npuprof.system import find_real_folder
from npuprof.system.files import build_write_error, show_note
from npuprof.system.tree import Tree, is_under_way

#: The maximum number of locks of one run; files beyond it are only compared.
MOST_LOCKS = 100

#: How long to wait for a lock silently, in seconds.
PATIENCE = 10.0
#: How long to wait for a lock at most, in seconds.
LONGEST_WAIT = 120.0

_held: set[tuple[int, int]] = set()


def find_foreign_file(folder: str, known: Collection[str]) -> str:
    """Return a file or link below a folder that is not ``known``, an empty string if there is none.

    Empty folders and temporary files are skipped: killed processes leave them.
    """
    for where, _, names in Tree(folder).walk() if os.path.isdir(folder) else ():
        for name in sorted(names):
            path = os.path.join(where, name)
            if path not in known and not is_under_way(name):
                return path
    return ""


@contextmanager
def lock_folders(folders: Iterable[str]) -> Iterator[None]:
    """Lock folders while one npuprof changes their files, and remove files of killed processes.

    The system releases the lock of a process that dies. Folders that this process has already
    locked stay locked. Without locks, files are still compared before they are replaced. Raises
    NpuprofError if another process holds a lock for minutes.
    """
    locks = []
    # sorted, so that two processes lock them in the same order
    in_order = sorted({os.path.realpath(folder or ".") for folder in {*folders}})
    try:
        for folder in in_order[:MOST_LOCKS]:
            lock = _lock_folder(folder)
            if lock is not None:
                locks.append(lock)
                # only under the lock: no other process is between creating a file and holding it
                _remove_leftovers(folder)
        yield
    finally:
        for handle, key in locks:
            _held.discard(key)
            os.close(handle)


def lock_files(*paths: str) -> AbstractContextManager[None]:
    """Lock the folders of files, as ``lock_folders`` does; links are followed."""
    return lock_folders(map(find_real_folder, paths))


def _lock_folder(folder: str) -> tuple[int, tuple[int, int]] | None:
    """Lock a folder.

    Return its handle and its identity, or None if it cannot be locked or already is.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    status = os.fstat(handle)
    key = (status.st_dev, status.st_ino)
    try:
        # flock belongs to the open file: a second handle of this process would wait for the first
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
    """Wait for the lock of a folder; print a message if that takes long.

    Raises OSError if locks are not supported, NpuprofError after the maximum wait.
    """
    started = time.monotonic()
    is_reported = False
    while True:
        try:
            # polled: a blocking call could print no message, and would never give up
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waited = time.monotonic() - started
        if waited > LONGEST_WAIT:
            raise build_write_error(
                f"into {folder}: another program keeps it locked", "Nothing was written."
            )
        if waited > PATIENCE and not is_reported:
            is_reported = True
            show_note(f"another npuprof is writing in {folder}; this one waits until it is done")
        time.sleep(0.01)


def _remove_leftovers(folder: str) -> None:
    """Remove the temporary files of killed processes in a locked folder.

    Files of living processes stay.
    """
    with suppress(OSError):
        tree = Tree(folder)
        for name in filter(is_under_way, tree.list_names("")):
            with suppress(OSError, NpuprofError):
                if not stat.S_ISREG(tree.find_status(name).st_mode):
                    continue
                handle = tree.open_file(name, os.O_RDONLY)
                try:
                    # fails for files of living processes, which hold_file has locked
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    tree.remove_file(name)
                finally:
                    os.close(handle)


def hold_file(handle: int) -> None:
    """Mark a file as belonging to a living process."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
