"""The edge: files in; answers to standard output or, all or nothing, to files; talk to standard error."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping

from npuprof.model import Finding, NpuprofError, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.report.answer import Text


def read_file_content(path: str, hint: str = "check the path and its permissions") -> bytes:
    """Return the bytes of a file. Raises NpuprofError (NP003) where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        what = f"cannot read {path}: {str(error.strerror).lower()}"
        raise NpuprofError([Finding("NP003", what, "", hint)]) from None


def write_answer(pieces: Iterable[bytes], path: str | None = None) -> None:
    """Write an answer to standard output, piece by piece as it comes, or to a file that appears whole or not at all.

    Raises NpuprofError when it cannot be written.
    """
    if path is not None and path != "-":
        write_files_atomically({path: b"".join(pieces)})
        return
    sys.stdout.flush()
    for piece in pieces:
        try:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk, or a shell that closed it
            raise _build_write_error(f"standard output: {str(error.strerror).lower()}", "What came out is not the whole answer.") from None


def encode_pieces(text: Text, path: str | None, coloured: bool) -> Iterator[bytes]:
    """Yield the pieces of an answer as they are written: UTF-8, line endings as they are; tables are laid out on a terminal."""
    if isinstance(text, (str, bytes)):
        yield text.encode() if isinstance(text, str) else text
    elif isinstance(text, dict):
        from npuprof.report import format_json_answer

        yield format_json_answer(text).encode()
    elif isinstance(text, Record):  # a table; its module is loaded where one is made
        on_terminal = path is None and sys.stdout.isatty()
        yield (text.format_terminal(coloured) if on_terminal else text.format_plain(coloured)).encode()
    else:
        for piece in text:
            yield piece.encode()


def write_to_stderr(text: str) -> None:
    """Say something that is not the answer."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")


def write_files_atomically(files: Mapping[str, str | bytes]) -> None:
    """Write files so that a reader sees each old or new, never half, and an error leaves all as they were.

    Raises NpuprofError.
    """
    prepared: list[tuple[str, str]] = []
    kept: list[tuple[str, str | None]] = []
    try:
        for path, text in files.items():
            if not is_stream(path):
                target = os.path.realpath(path)  # a link stays a link
                prepared.append((_write_temporary_file(target, text), target))
        for temporary, target in prepared:
            if len(prepared) > 1:
                kept.append((target, _back_up_file(target, f"{temporary}.old")))
            os.replace(temporary, target)
        for path, text in files.items():
            if is_stream(path):
                with open(path, "wb") as stream:
                    stream.write(text if isinstance(text, bytes) else text.encode())
    except BaseException as error:
        for target, old in reversed(kept):
            _restore_backup(target, old)
        kept.clear()
        for temporary, _ in prepared:
            if os.path.exists(temporary):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        what = f"{error.filename2 or path}: {str(error.strerror).lower()}"  # the error itself may name the temporary file
        raise _build_write_error(what, "Nothing was changed.") from None
    for _, old in kept:
        if old is not None:
            os.unlink(old)


def is_stream(path: str) -> bool:
    """Return whether a path is a device or a pipe: written to, never replaced by a file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _back_up_file(target: str, name: str) -> str | None:
    """Give a file that is about to be replaced a second name; None where there is no file yet."""
    if not os.path.exists(target):
        return None
    try:
        os.link(target, name)
    except OSError:  # a file system without links
        import shutil

        shutil.copy2(target, name)
    return name


def _restore_backup(target: str, old: str | None) -> None:
    """Bring back what ``_back_up_file`` kept."""
    try:
        if old is not None:
            os.replace(old, target)
            if os.path.exists(old):  # two names of one file: the replacement had not been made
                os.unlink(old)
        elif os.path.isfile(target):
            os.unlink(target)
    except OSError:
        if old is not None and os.path.exists(old):
            os.unlink(old)


def _write_temporary_file(target: str, text: str | bytes) -> str:
    """Write a temporary file next to its target, with the target's permissions."""
    import tempfile

    folder, name = os.path.split(target)
    if os.path.isdir(target):
        raise IsADirectoryError(21, "it is a folder", target)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            mode = os.stat(target).st_mode & 0o7777
        else:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask
        os.chmod(temporary, mode)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def is_colour_wanted(choice: str, stream: object = None) -> bool:
    """Return whether to colour a stream: ``always``, ``never``, or ``auto`` (a terminal, no NO_COLOR)."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    target = stream if stream is not None else sys.stdout
    return bool(getattr(target, "isatty", lambda: False)())


def make_folder(path: str) -> list[str]:
    """Make a folder and those above it, if they are not there; return those that were made, innermost first.

    Raises NpuprofError.
    """
    made: list[str] = []
    above = path
    while above and not os.path.lexists(above):
        made.append(above)
        above = os.path.dirname(above.rstrip(os.sep))
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        remove_folders(made)
        what = f"{path}, for the folder cannot be made: {str(error.strerror).lower()}"
        raise _build_write_error(what, "Nothing was written.") from None
    return made


def remove_folders(made: list[str]) -> None:
    """Take back what ``make_folder`` made, as far as nothing is in it."""
    for folder in made:
        try:
            os.rmdir(folder)
        except OSError:
            continue


def _build_write_error(what: str, why: str) -> NpuprofError:
    hint = "check the path, its permissions, and the space that is left"
    return NpuprofError([Finding("NP012", f"cannot write {what}", why, hint)])
