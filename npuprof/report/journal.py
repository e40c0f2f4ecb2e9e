"""The last edit of a project, kept so that it can be undone: the writer notes what it is about to replace, before it does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report import output
from npuprof.report.locks import lock_folders
from npuprof.system.tree import Tree, make_tree

_SCHEMA = "npuprof.undo/1"


class FileChange(Record):
    """A file by its real path, what it held and what it holds then; None where there is no file. ``mode`` is that of the old one."""

    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None


class Edit(Record):
    """What one command changed, and the command as it is told."""

    command: str
    changes: tuple[FileChange, ...]


class _Recorder:
    """What one command has changed so far; where it is kept is asked when there is something to keep."""

    def __init__(self, command: str, find_file: Callable[[], str]) -> None:
        self._command = command
        self._find_file = find_file
        self._changes: dict[str, FileChange] = {}

    def note(self, changes: Sequence[FileChange]) -> Callable[[], None]:
        """Keep changes that are about to be made; return what takes that back."""
        file = self._find_file()
        earlier, kept = dict(self._changes), _read_bytes(file)
        for change in changes:
            first = self._changes.get(change.path)
            self._changes[change.path] = change._replace(before=first.before, mode=first.mode) if first else change
        try:
            _keep(file, _format_edit(Edit(self._command, tuple(self._changes.values()))))
        except OSError as error:
            output.tell_remark(f"this cannot be undone by npuprof undo: cannot write {file}: {output.describe_os_error(error, file)}")

        def take_back() -> None:
            self._changes = earlier
            with suppress(OSError):
                _keep(file, kept) if kept is not None else Tree(os.path.dirname(file)).remove_file(os.path.basename(file))

        return take_back


_recorder: _Recorder | None = None


@contextmanager
def record_edits(command: str, find_file: Callable[[], str]) -> Iterator[None]:
    """Keep what is written meanwhile as one edit, in the file that ``find_file`` names. Raises NpuprofError where that does."""
    global _recorder
    _recorder = _Recorder(command, find_file)
    try:
        yield
    finally:
        _recorder = None


def note_changes(list_changes: Callable[[], Sequence[FileChange]]) -> Callable[[], None]:
    """Keep what is about to be changed, where a command that can be undone is under way; return what takes that back."""
    changes = list_changes() if _recorder is not None else ()
    return _recorder.note(changes) if _recorder is not None and changes else lambda: None


def read_last_edit(file: str) -> Edit | None:
    """Return the edit that a file keeps, None where there is none. Raises NpuprofError where it cannot be understood."""
    raw = _read_bytes(file)
    if raw is None:
        return None
    import json
    from base64 import b64decode

    def decode(text: str | None) -> bytes | None:
        return None if text is None else b64decode(text, validate=True)

    try:
        said = json.loads(raw)
        if said["schema"] != _SCHEMA:
            raise ValueError
        return Edit(
            str(said["command"]),
            tuple(
                FileChange(str(row["path"]), decode(row["before"]), decode(row["after"]), None if row["mode"] is None else int(row["mode"]))
                for row in said["files"]
            ),
        )
    except (ValueError, LookupError, TypeError, RecursionError):
        what, why = f"{file} is no record of an edit", "What cannot be read might put back anything."
        raise NpuprofError([Finding("NP926", what, why, "remove it; git has what was committed", where=Place(file))]) from None


def _format_edit(edit: Edit) -> bytes:
    import json
    from base64 import b64encode

    def encode(content: bytes | None) -> str | None:
        return None if content is None else b64encode(content).decode()

    rows = [
        {"path": one.path, "before": encode(one.before), "after": encode(one.after), "mode": one.mode} for one in edit.changes
    ]  # fmt: skip
    return (json.dumps({"schema": _SCHEMA, "command": edit.command, "files": rows}, indent=1) + "\n").encode()


def _read_bytes(file: str) -> bytes | None:
    try:
        return output.read_plain_file(file)
    except OSError:
        return None


def _keep(file: str, content: bytes) -> None:
    """Write the file so that it is there whole or as it was, for nobody else to read: it holds what presets hold. Raises OSError."""
    folder, name = os.path.split(file)
    above, last = os.path.split(folder)
    tree = make_tree(above, 0o700)
    tree.make_folder(last, 0o700)  # which is no link: a clone may bring one
    with lock_folders([folder]):
        tree.write_file(f"{last}/{name}", content, 0o600)
