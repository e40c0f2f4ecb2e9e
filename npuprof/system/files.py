"""Input files and standard input, folders for output. ``writing`` writes files."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable

from npuprof.model import TYPE_CHECKING, NpuprofError, build_error

if TYPE_CHECKING:
    from typing import IO


#: The maximum size of files that npuprof reads, in bytes: presets, scripts, rank tables, standard
#: input.
LARGEST_FILE = 64 * 1024 * 1024


#: The hint for a path that is not a file: pipes opened by the shell are read, named pipes would
#: block.
HAND_OVER = (
    "name a file; pass the content of a pipe as standard input (-), or let the shell open it: "
    "<(cat PIPE)"
)
#: The first bytes of pipes from the shell that were peeked at: pipes can be read only once.
_AHEAD: dict[str, bytes] = {}
#: Contents that are read instead of files, by full path: of standard input, under a file's name.
REPLACED: dict[str, bytes] = {}
#: The standard input that was peeked at: Python callers may replace it.
_INPUT: list[object] = []
#: How a note is shown: the last of these, which ``report.output`` adds.
_PRINTERS: list[Callable[[str], object]] = [lambda note: sys.stderr.write(f"npuprof: {note}\n")]


class UnfitFileError(OSError):
    """Raised for a path that cannot be read as a file: a pipe, a device, or too large a file."""


#: What helps against reasons of the operating system.
_REMEDIES = {
    "permission denied": "change the permissions of the file and its folder, or name another one",
    "is a directory": "name a file in it",
    "it is a folder": "name a file in it",
}


def find_packages(name: str) -> list[str]:
    """Return the folders of a package in the environment of npuprof; the first one counts."""
    # python -m puts the current folder first, which may be a clone of the package
    folders = (each for each in sys.path if os.path.isabs(each) and each != os.getcwd())
    return [path for folder in folders if os.path.isdir(path := os.path.join(folder, name))]


def show_note(note: str) -> None:
    """Show a note to the user while files are locked or written."""
    _PRINTERS[-1](note)


def show_notes_with(show: Callable[[str], object]) -> None:
    """Show notes by another function from now on."""
    _PRINTERS.append(show)


def read_file_content(path: str, hint: str = "check the path and its permissions") -> bytes:
    """Return the bytes of a file.

    Raises NpuprofError (NP003) if it is unreadable, not a file, or too large.
    """
    try:
        return read_plain_file(path)
    except (OSError, ValueError) as error:
        what = f"cannot read {path}: {describe_os_error(error, path)}"
        if isinstance(error, UnfitFileError):
            hint = HAND_OVER
        raise build_error("NP003", what, "", suggest_remedy(what, hint)) from None


def read_plain_file(path: str, most: int = LARGEST_FILE, whole: bool = True) -> bytes:
    """Return the bytes of a file; every read of npuprof goes through this function.

    Pipes, sockets and devices are never opened, except those that the caller's shell passes
    (``/dev/stdin``, ``/dev/fd/N``). Unless ``whole``, return at most the first ``most`` bytes.
    Raises OSError, and UnfitFileError for larger files.
    """
    if REPLACED and (replaced := REPLACED.get(os.path.abspath(path))) is not None:
        return replaced
    is_handed = is_handed_over(path)
    if not is_handed:
        # checked before opening, too: opening alone would wake the writer of a pipe
        _require_plain_file(os.stat(path).st_mode)
    # a file that may have become a pipe is opened without blocking
    file = os.open(path, os.O_RDONLY | (not is_handed and os.O_NONBLOCK))
    try:
        status = os.fstat(file)
        size = status.st_size
        if not is_handed:
            # the name may lead to another file since it was checked above
            _require_plain_file(status.st_mode)
        if whole and size > most:
            raise _build_too_long_error(most)
        # a peek leaves the bytes for the read that follows
        ahead = _AHEAD.pop(path, b"") if whole else b""
        # one byte more than the size: the kernel reports 0 for /proc, and a log may grow meanwhile
        pieces = [ahead + os.read(file, min(size, most) + 1)]
        total = len(pieces[0])
        ended = size and total == size and stat.S_ISREG(status.st_mode)  # a short read
        while pieces[-1] and total <= most and not ended:
            pieces.append(os.read(file, 65536))
            total += len(pieces[-1])
    except IsADirectoryError as error:
        error.filename = path
        raise
    finally:
        os.close(file)
    if total > most:
        if whole:
            raise _build_too_long_error(most)
        return b"".join(pieces)[:most]
    # most files come in one piece, which need not be copied
    return pieces[0] if len(pieces) == 1 or not pieces[1] else b"".join(pieces)


def peek_handed_over(path: str, least: int) -> bytes:
    """Return the first bytes of a file that the shell passes; they stay available to later reads.

    Raises OSError.
    """
    if path in _AHEAD:
        return _AHEAD[path]
    with open(path, "rb", buffering=0) as file:
        head = piece = _read_piece(file, least)
        while piece and len(head) < least:
            piece = _read_piece(file, least - len(head))
            head += piece
        # regular files are reopened by each read
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            _AHEAD[path] = head
    return head


def pop_peeked(path: str) -> bytes:
    """Return the peeked bytes of a path, which a later open would miss."""
    ahead = _AHEAD.pop(path, b"")
    return ahead if path != "-" or _INPUT[:] == [sys.stdin] else b""


def _read_piece(file: IO[bytes], size: int) -> bytes:
    piece: bytes | None = file.read(size)
    if piece is None:  # a non-blocking read without data: not the end
        raise OSError(0, "nothing can be read from it yet")
    return piece


def read_standard_input() -> bytes:
    """Return the content of standard input.

    Raises OSError if it is closed, UnfitFileError if it is too large.
    """
    ahead = pop_peeked("-")
    try:
        data = ahead + _read_piece(sys.stdin.buffer, LARGEST_FILE + 1 - len(ahead))
    except AttributeError:
        # Python has no sys.stdin if the shell closed it (<&-)
        raise OSError(0, "it is closed") from None
    if len(data) > LARGEST_FILE:
        raise _build_too_long_error(LARGEST_FILE)
    return data


def read_input(hint: str = "") -> bytes:
    """Return the content of standard input. Raises NpuprofError (NP003)."""
    try:
        return read_standard_input()
    except OSError as error:  # closed, a folder, or endless
        what = f"cannot read standard input: {describe_os_error(error)}"
        raise build_error("NP003", what, "", hint) from None


def peek_standard_input(least: int) -> bytes:
    """Return the first bytes of standard input; they stay available to later reads.

    Raises OSError.
    """
    if "-" in _AHEAD and _INPUT[:] == [sys.stdin]:
        return _AHEAD["-"]
    try:
        _AHEAD["-"] = _read_piece(sys.stdin.buffer, least)
    except AttributeError:
        raise OSError(0, "it is closed") from None
    _INPUT[:] = [sys.stdin]
    return _AHEAD["-"]


def is_handed_over(path: str) -> bool:
    """Return whether a path is an open file descriptor: a shell's ``<(command)``, or a stream."""
    folder, _, name = path.rpartition("/")
    if folder in ("/dev/fd", "/proc/self/fd"):
        return name.isdigit()
    return path in ("/dev/stdin", "/dev/stdout", "/dev/stderr")


def name_special_file(mode: int) -> str:
    """Return the type of a special file, an empty string for files and folders."""
    for test, name in (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return name
    return ""


def _require_plain_file(mode: int) -> None:
    if not stat.S_ISREG(mode) and (name := name_special_file(mode)):
        raise UnfitFileError(0, f"it is {name}, not a file")


def _build_too_long_error(most: int) -> UnfitFileError:
    bound = f"{most // 1024 // 1024} MiB" if most >= 1024 * 1024 else f"{most} bytes"
    return UnfitFileError(0, f"it is longer than {bound}")


def describe_os_error(error: Exception, path: str = "") -> str:
    """Return why a file cannot be used, with the path that is in the way if it is another."""
    above = ""
    if isinstance(error, (NotADirectoryError, FileExistsError)):
        above = os.path.dirname(path)
    while above:
        if os.path.lexists(above) and not os.path.isdir(above):
            return f"{above} is a file, not a folder"
        further = os.path.dirname(above)
        # the parent of the root is the root: the loop would not end
        above = further if further != above else ""
    reason = str(getattr(error, "strerror", None) or error)
    return reason[:1].lower() + reason[1:]


def is_stream(path: str) -> bool:
    """Return whether a path is a device, a pipe, or already open: written to, not replaced."""
    if is_handed_over(path):
        return True
    try:
        return bool(name_special_file(os.stat(path).st_mode))
    except (OSError, ValueError):
        return False


def is_file(path: str | None) -> bool:
    """Return whether output to a path, or to standard output (None, ``-``), stays in a file.

    The shell may have redirected standard output; ksh reads a command's output from a file that it
    has deleted.
    """
    is_standard = path in (None, "-")
    try:
        status = os.fstat(sys.stdout.fileno()) if is_standard else os.stat(path or "")
    except (OSError, ValueError, AttributeError):
        return not is_standard
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 0


def make_folder(path: str) -> list[str]:
    """Create a folder and its missing parents; return the created folders, innermost first.

    Raises NpuprofError.
    """
    from npuprof.system.tree import make_tree, reject_link_out

    reject_link_out(path)
    created = []
    above = path
    while above and not os.path.lexists(above):
        created.append(above)
        above = os.path.dirname(above.rstrip(os.sep))
    try:
        make_tree(path)
    except OSError as error:
        remove_folders(created)
        # a name below the folder, as the file in the way may be at the folder's own path
        reason = describe_os_error(error, os.path.join(path, "x"))
        what = f"{path}, for the folder cannot be made: {reason}"
        raise build_write_error(what, "Nothing was written.") from None
    return created


def remove_folders(created: list[str]) -> None:
    """Remove the folders that ``make_folder`` created, if they are empty."""
    from contextlib import suppress

    from npuprof.system.tree import Tree

    for folder in created:
        above, name = os.path.split(os.path.abspath(folder))
        with suppress(OSError):
            Tree(above).remove_empty_folders(name)


def suggest_remedy(what: str, otherwise: str) -> str:
    """Return what helps against the reason at the end of a message of the operating system."""
    return _REMEDIES.get(what.rpartition(": ")[2], otherwise)


def build_write_error(what: str, why: str) -> NpuprofError:
    """Return the error for a file that cannot be written."""
    hint = suggest_remedy(what, "check the path, its permissions, and the space that is left")
    return build_error("NP012", f"cannot write {what}", why, hint)
