"""Stored results of trials by digest.

Each run is one line, written at once, so that a killed npuprof can resume.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from npuprof.model import NpuprofError, Place, Record, __version__, build_error
from npuprof.resolve.digests import compute_digest
from npuprof.system import decode_safely
from npuprof.system.files import build_write_error, describe_os_error
from npuprof.system.tree import Tree, truncate_file
from npuprof.trials.metrics import read_json_object

SCHEMA = "npuprof.trials/1"
HOME = ".npuprof/trials"
_FILE = "journal.jsonl"
#: The wait for a lock in seconds: a run that a killed npuprof was starting holds it until its
#: command begins.
_LOCK_PATIENCE = 1.0


class Result(Record):
    """One run of a trial: how it ended, its duration, and the numbers in its output."""

    digest: str
    exit: int | None
    signal: int | None = None
    seconds: float = 0.0
    hung: bool = False
    metrics: dict[str, float] = {}
    log: str = ""
    device: str = ""
    files: dict[str, str] = {}  #: size and time of the files in the command


#: The types of a stored result's fields; True is not an exit code.
_TYPES: dict[str, tuple[type, ...]] = {
    "digest": (str,),
    "exit": (int, type(None)),
    "signal": (int, type(None)),
    "seconds": (int, float),
    "hung": (bool,),
    "metrics": (dict,),
    "log": (str,),
    "device": (str,),
    "files": (dict,),
}


def _read_result(row: Mapping[str, Any]) -> Result | None:
    """Return a result from a journal line, None if it is invalid.

    Fields missing in older versions have defaults.
    """
    fields = {name: row.get(name, getattr(Result, name, None)) for name in Result._fields}
    if not row.keys() >= {"digest", "exit"} or any(
        type(fields[name]) not in types for name, types in _TYPES.items()
    ):
        return None
    has_ended = fields["exit"] is not None or fields["signal"] is not None or fields["hung"]
    has_numbers = all(type(value) in (int, float) for value in fields["metrics"].values())
    return (
        Result(**fields)
        if has_ended
        and has_numbers
        and all(type(value) is str for value in fields["files"].values())
        else None
    )


class Journal:
    """The results of one command, with one kind of judgement, in one context and folder."""

    def __init__(self, request: Mapping[str, Any], fresh: bool = False) -> None:
        """Open and lock the journal. Raises NpuprofError if it is locked, or of another version."""
        self.requested = dict(request)
        self.key = compute_digest({"asked": json.dumps(self.requested, sort_keys=True)})[:16]
        self.folder = os.path.join(HOME, self.key)
        self.results = defaultdict[str, list[Result]](list)
        self.file = os.path.join(self.folder, _FILE)
        self.tree = self._open_tree()
        self._lock = self._take_lock()
        try:
            if fresh:
                self._forget()
            self._open()
        except BaseException:
            os.close(self._lock)
            raise

    def _open_tree(self) -> Tree:
        """Return the folder of the journal, creating it if necessary.

        Raises NpuprofError if the path is something else.
        """
        with require_writable(os.path.join(self.folder, "logs"), "Nothing was run."):
            here = Tree(os.curdir)
            for name in ("logs", "code"):
                here.make_folder(f"{self.folder}/{name}")
            with suppress(FileExistsError):
                handle = here.open_file(f"{HOME}/.gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                with open(handle, "w", encoding="utf-8") as file:
                    # git then ignores the folder, without a change of the user's own .gitignore
                    file.write("*\n")
            return here.open_below(self.folder)

    def _take_lock(self) -> int:
        """Return the handle of the lock. Raises NpuprofError if another process has it."""
        with require_writable(os.path.join(self.folder, "lock"), "Nothing was run."):
            handle = self.tree.open_file("lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not _lock_file(handle):
            holder = decode_safely(os.pread(handle, 100, 0)).strip() or "another process"
            os.close(handle)
            what = f"{self.folder} is in use by {holder}: the same command is being tried there"
            raise build_error("NP950", what, "", "wait for it, or end it; its results are kept")
        with suppress(OSError):  # the owner is informational: only the lock counts
            truncate_file(handle, 0)
            os.write(handle, f"process {os.getpid()} on {os.uname().nodename}\n".encode())
        return handle

    def _forget(self) -> None:
        for name in ("logs", "code", "results"):
            self.tree.remove_folder(name)
            # results of jobs are created by the job's script
            if name != "results":
                self.tree.make_folder(name)
        with suppress(OSError):
            self.tree.rename(_FILE, f"{_FILE}.old")

    def _open(self) -> None:
        with require_writable(self.file, "Results would be lost."):
            self._handle = handle = self.tree.open_file(
                _FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600
            )
        raw = os.pread(handle, os.fstat(handle).st_size, 0)
        complete = raw[: raw.rfind(b"\n") + 1]  # a killed npuprof leaves an incomplete last line
        if len(complete) != len(raw):
            truncate_file(handle, len(complete))
        head, *rows = map(read_json_object, complete.splitlines() or [b""])
        if not complete:
            # arguments may contain secrets, and the folder's name identifies them
            self._append(
                {
                    "schema": SCHEMA,
                    "npuprof": __version__,
                    **self.requested,
                    "command": self.requested["command"][:1],
                }
            )
        elif head.get("schema") != SCHEMA:
            raise self._build_content_error(
                1,
                (
                    "was written by another npuprof "
                    f"({head.get('schema', 'no schema')}), not as {SCHEMA}"
                ),
            )
        for number, row in enumerate(rows, 2):
            result = _read_result(row)
            if result is None:
                raise self._build_content_error(number, "is not the result of a trial")
            self.results[result.digest].append(result)

    def _build_content_error(self, line: int, what: str) -> NpuprofError:
        hint = "say --fresh, which keeps the file as journal.jsonl.old"
        why = "Results are counted right or not at all."
        return build_error(
            "NP951", f"{self.file}:{line} {what}", why, hint, where=Place(self.file, line)
        )

    def add(self, result: Result) -> None:
        """Append a result and sync it to disk. Raises NpuprofError if that fails."""
        self._append(result._asdict())
        self.results[result.digest].append(result)

    def _append(self, row: Mapping[str, Any]) -> None:
        line = (json.dumps(row, default=str) + "\n").encode()
        with require_writable(
            self.file, "A result that is not saved would be run again; the file is unchanged."
        ):
            size = os.fstat(self._handle).st_size
            # a part of a line would make the whole journal unreadable
            if os.write(self._handle, line) != len(line):
                truncate_file(self._handle, size)
                raise OSError(28, "no space left on device")
            os.fsync(self._handle)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._handle)
        os.close(self._lock)
        self.tree.close()


@contextmanager
def require_writable(path: str, why: str) -> Iterator[None]:
    """Turn OSError into NpuprofError: a trial file cannot be written."""
    try:
        yield
    except OSError as error:
        raise build_write_error(f"{path}: {describe_os_error(error, path)}", why) from None


def _lock_file(handle: int) -> bool:
    """Lock a file; return whether that succeeded."""
    until = time.monotonic() + _LOCK_PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:  # a file system without locks
            return True
    return False
