"""Atomic file writes: all files or none.

Folders are locked, files are compared with what was read, written to temporary names, read back,
and renamed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache

from npuprof.model import NpuprofError, Place, Record, build_error
from npuprof.system import find_real_folder
from npuprof.system.files import (
    UnfitFileError,
    build_write_error,
    describe_os_error,
    is_handed_over,
    is_stream,
    make_folder,
    name_special_file,
    read_file_content,
    read_plain_file,
    show_note,
)
from npuprof.system.locks import MOST_LOCKS, hold_file, lock_folders
from npuprof.system.tree import Tree, name_under_way, reject_link_out

#: Accepts any existing content.
ANYTHING = b"\0whatever it holds"


class PlannedWrite(Record):
    """A file to write; without ``content``, to remove.

    ``known`` is its content when it was read, None if it did not exist: other content is somebody's
    change and is not overwritten. ``below`` is the folder that the user named, unless he named the
    file: links may not lead out of it. ``mode`` is the mode of a new file. Files that can be
    recreated need not be ``durable``: they are neither synced to disk nor read back.
    """

    path: str
    content: bytes | None
    known: bytes | None = ANYTHING
    below: str = ""
    mode: int | None = None
    durable: bool = True


class _Prepared(Record):
    """A file written to a temporary name, or to be removed.

    ``name`` and ``temporary`` are relative to the open folder, ``target`` is the path. ``links`` is
    the link count of the file that it ``replaces``.
    """

    plan: PlannedWrite
    target: str
    name: str
    temporary: str
    replaces: bool
    links: int


def read_known_file(path: str) -> bytes | None:
    """Return the content of a file, None if it does not exist.

    Raises NpuprofError if it cannot be read.
    """
    try:
        os.stat(path)
    except FileNotFoundError:
        return None
    except OSError:
        pass  # the reader reports it
    return read_file_content(path)


def write_planned_files(files: Sequence[PlannedWrite]) -> None:
    """Write files atomically: an error leaves all files unchanged.

    Readers see each file old or new. Files that already have the content are not written. Raises
    NpuprofError if a file cannot be written (NP012), was changed by somebody else since it was read
    (NP922), or is reached by a link out of the named folder (NP941).
    """
    streams = []
    targets: dict[str, PlannedWrite] = {}
    resolve = cache(os.path.realpath)  # thousands of files of a site are in a few folders
    for plan in files:
        # a device has no content to compare, and below a named folder nobody asked for one
        if not plan.below and plan.known is ANYTHING and is_stream(plan.path):
            streams.append(plan)
            continue
        first = targets.setdefault(find_target(plan.path, plan.below, resolve), plan)
        if first.content != plan.content:
            what = f"{first.path} and {plan.path} are one file"
            why = "A file that is reached under two names has one text."
            raise build_error("NP942", what, why, "name it once", where=Place(plan.path))
    with lock_folders(os.path.dirname(target) for target in targets):
        _replace_files(targets, streams)


def write_files_atomically(files: Mapping[str, str | bytes]) -> None:
    """Write files as ``write_planned_files`` does, over any content.

    Devices and pipes are written to directly. Raises NpuprofError.
    """
    for path in files:
        if path.endswith(os.sep):
            what = f"cannot write {path}: it names a folder"
            raise build_error("NP012", what, "One file is written.", "name a file in it")
    write_planned_files(
        [
            PlannedWrite(path, text if isinstance(text, bytes) else text.encode())
            for path, text in files.items()
        ]
    )


def find_target(path: str, below: str, resolve: Callable[[str], str] = os.path.realpath) -> str:
    """Return the file that a path leads to; ``resolve`` returns the real path of a folder.

    Raises NpuprofError (NP941) if the file is outside ``below``, or if the path is a link in a
    clone.
    """
    if not below:
        reject_link_out(path)
    folder, name = os.path.split(path)
    # ``resolve`` is cached by folder, so the file itself is resolved only if it is a link
    target = os.path.join(resolve(folder), name)
    if name in ("", ".", "..") or os.path.islink(target):
        target = os.path.realpath(path)
    if below:
        base = resolve(below)
        if not target.startswith(base.rstrip(os.sep) + os.sep):
            what = f"{path} is a link that leads out of {below}, to {target}"
            why = "Only paths below the named folder are written; nothing was changed."
            raise build_error(
                "NP941", what, why, "remove the link, or name the file itself", where=Place(path)
            )
    return target


def make_folder_below(path: str, below: str) -> list[str]:
    """Create a folder as ``make_folder`` does, but not through links that lead out of ``below``.

    Raises NpuprofError.
    """
    if os.path.realpath(path) != os.path.realpath(below):
        find_target(path, below)
    return make_folder(path)


def remove_empty_folders(path: str, below: str) -> None:
    """Remove the folder of a removed file and its parents up to ``below``, if they are empty."""
    folder = find_real_folder(path)
    top = os.path.realpath(below)
    if folder.startswith(top.rstrip(os.sep) + os.sep):
        Tree(top).remove_empty_folders(os.path.relpath(folder, top))


def _replace_files(targets: Mapping[str, PlannedWrite], streams: Sequence[PlannedWrite]) -> None:
    """Write files, by the path that each leads to, then streams. Raises NpuprofError."""
    current = ""
    try:
        if not targets:
            for stream in streams:
                current = stream.path
                _write_stream(stream)
            return
        current = next(iter(targets.values())).path
        tree = Tree(os.path.commonpath([os.path.dirname(target) for target in targets]))
    except OSError as error:
        what = f"{current}: {describe_os_error(error, current)}"
        raise build_write_error(what, "Nothing was changed.") from None
    _Replacing(tree).replace(targets, streams)


class _Replacing:
    """Files that are replaced together, all or none, in folders below ``tree``."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._prepared: list[_Prepared] = []
        self._placed: list[_Prepared] = []
        self._backups: dict[str, str] = {}
        self._handles: list[int] = []
        self._current = ""  # the path that an error is about

    def replace(self, targets: Mapping[str, PlannedWrite], streams: Sequence[PlannedWrite]) -> None:
        """Write files, then streams. Raises NpuprofError, with all files unchanged."""
        try:
            self._prepare_files(targets)
            self._place_files(has_streams=bool(streams))
            for stream in streams:
                self._current = stream.path
                _write_stream(stream)
            self._require_unsaved_backups()
        except BaseException as error:
            # an interrupt must leave no mixture of old and new files either
            self._undo()
            if not isinstance(error, (OSError, ValueError)):
                raise
            why = describe_os_error(error, self._current)
            raise build_write_error(f"{self._current}: {why}", "Nothing was changed.") from None
        finally:
            for handle in self._handles:
                os.close(handle)
        for name in self._backups.values():
            # only now: until here, an error restores the old files from them
            self._remove_quietly(name)
        for prepared in self._prepared:
            path = prepared.plan.path
            # a rename replaces one name of a hard-linked file
            if prepared.links > 1:
                show_note(f"{path} was a hard link; its other name keeps the text it had")
            if prepared.plan.durable and not _is_done(prepared.plan, prepared.target):
                why = "It was written as it should be, and then by another program."
                raise _build_changed_error(path, why)

    def _prepare_files(self, targets: Mapping[str, PlannedWrite]) -> None:
        # removals last: a crash then leaves too many files, not too few
        for target in sorted(targets, key=lambda target: targets[target].content is None):
            plan = targets[target]
            self._current = plan.path
            if not _compare_target(plan, target):
                self._prepared.append(self._prepare_file(plan, target))

    def _place_files(self, has_streams: bool) -> None:
        # one file alone is replaced by a rename, which needs no way back
        is_alone = len(self._prepared) == 1 and not has_streams
        for prepared in self._prepared:
            self._current = prepared.plan.path
            if prepared.replaces and (prepared.plan.known is not ANYTHING or not is_alone):
                self._backups[prepared.target] = self._back_up_file(prepared)
                # after the backup: an editor that saved by a rename meanwhile has put another file
                # here
                _require_unsaved(prepared, prepared.target)
            self._put_in_place(prepared)
            self._placed.append(prepared)

    def _require_unsaved_backups(self) -> None:
        """Raise NpuprofError if a replaced file was written until its replacement."""
        for prepared in self._placed:
            if prepared.target in self._backups:
                _require_unsaved(prepared, self._tree.find_path(self._backups[prepared.target]))

    def _undo(self) -> None:
        for prepared in reversed(self._placed):
            self._restore(prepared)
        for prepared in self._prepared:
            self._remove_quietly(prepared.temporary)
        for name in self._backups.values():
            self._remove_quietly(name)

    def _remove_quietly(self, name: str) -> None:
        with suppress(OSError, NpuprofError):
            self._tree.remove_file(name)

    def _prepare_file(self, plan: PlannedWrite, target: str) -> _Prepared:
        """Write a file to a temporary name, or prepare its removal. Raises OSError."""
        name = target[len(self._tree.top) :].lstrip(os.sep)
        temporary = name_under_way(os.path.dirname(name))
        prepared = _Prepared(plan, target, name, temporary, replaces=plan.content is None, links=1)
        return prepared if plan.content is None else self._write_beside(prepared, plan.content)

    def _write_beside(self, prepared: _Prepared, content: bytes) -> _Prepared:
        """Write content to a temporary file with the target's mode and owner.

        It is read back if it is durable. Raises OSError.
        """
        plan = prepared.plan
        try:
            old = os.stat(prepared.target)
        except FileNotFoundError:
            old = None
        # New files follow the umask; a replacement is private until it has the mode of its target.
        handle = self._tree.create_file(prepared.temporary, 0o666 if old is None else 0o600)
        self._handles.append(handle)
        try:
            hold_file(handle)
            rest = memoryview(content)
            while rest:
                # os.write may take less than it is given
                rest = rest[os.write(handle, rest) :]
            if plan.durable:
                # before the rename: after a power cut the name could lead to an empty file
                os.fsync(handle)
            if old is not None:
                _copy_attributes(handle, prepared.target, old)
            elif plan.mode is not None:
                os.fchmod(handle, plan.mode)
            written = self._tree.find_path(prepared.temporary)
            if plan.durable and not _has_content(written, content):
                raise OSError(5, "the written text cannot be parsed")
        except BaseException:
            self._tree.remove_file(prepared.temporary)
            raise
        # open files are limited; the lock of the folder protects the others
        if len(self._handles) > MOST_LOCKS:
            os.close(self._handles.pop())
        return prepared._replace(replaces=old is not None, links=old.st_nlink if old else 1)

    def _put_in_place(self, prepared: _Prepared) -> None:
        """Rename a written file to its target.

        Raises OSError, and NpuprofError if somebody has created the target.
        """
        plan = prepared.plan
        if plan.content is None:
            self._tree.remove_file(prepared.name)
            return
        if not prepared.replaces and plan.known is None:
            try:  # unlike a rename, a link replaces no file
                self._tree.link_file(prepared.temporary, prepared.name)
            except FileExistsError:
                raise _build_changed_error(plan.path) from None
            except OSError:  # a file system without links
                if os.path.lexists(prepared.target):
                    raise _build_changed_error(plan.path) from None
            else:
                self._tree.remove_file(prepared.temporary)
                return
        self._tree.rename(prepared.temporary, prepared.name)

    def _back_up_file(self, prepared: _Prepared) -> str:
        """Hard-link a file that is about to be replaced. Raises OSError."""
        name = f"{prepared.temporary.removesuffix('.new')}.old"
        try:
            self._tree.link_file(prepared.name, name)
        except OSError:  # a file system without links
            self._tree.copy_in(prepared.target, name)
        if len(self._handles) < MOST_LOCKS:
            with suppress(OSError):
                self._handles.append(self._tree.open_file(name, os.O_RDONLY))
                hold_file(self._handles[-1])
        return name

    def _restore(self, prepared: _Prepared) -> None:
        """Restore a replaced file from its backup; remove a new one."""
        backup = self._backups.get(prepared.target)
        with suppress(OSError, NpuprofError):
            if backup is not None:
                self._tree.rename(backup, prepared.name)
            elif not prepared.replaces:
                self._tree.remove_file(prepared.name)


def _is_done(plan: PlannedWrite, target: str) -> bool:
    """Return whether a file has the planned content, or is missing as planned."""
    if plan.content is None:
        return not os.path.lexists(target)
    return _has_content(target, plan.content)


def _require_unsaved(prepared: _Prepared, path: str) -> None:
    """Raise NpuprofError if a file differs from what was read: somebody saved it since."""
    known = prepared.plan.known
    if known is not ANYTHING and not _has_content(path, known or b""):
        raise _build_changed_error(prepared.plan.path)


def _compare_target(plan: PlannedWrite, target: str) -> bool:
    """Return whether a file has the planned content.

    Raises OSError, and NpuprofError if it differs from what was read.
    """
    known = plan.known
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        if known not in (None, ANYTHING):
            raise _build_changed_error(plan.path) from None
        return plan.content is None
    if os.path.isdir(target):
        raise IsADirectoryError(21, "it is a folder", target)
    if name := name_special_file(mode):
        raise UnfitFileError(0, f"it is {name}, not a file")
    # not a conflict, even if somebody else has written the same content
    if plan.content is not None and _has_content(target, plan.content):
        return True
    if known is None or (known is not ANYTHING and not _has_content(target, known)):
        raise _build_changed_error(plan.path)
    # A rename needs no permission for the file itself. root may write every file, so that the mode
    # counts, too.
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(0, "it is read-only, and stays as it is")
    return False


def _has_content(path: str, content: bytes) -> bool:
    """Return whether the content of a file equals some bytes."""
    try:
        # most changes differ in size, which needs no read
        if os.stat(path).st_size != len(content):
            return False
        return read_plain_file(path, len(content)) == content
    except UnfitFileError:
        return False


def _build_changed_error(
    path: str, why: str = "Another program wrote it while the change was being made."
) -> NpuprofError:
    what = f"{path} has changed meanwhile"
    return build_error("NP922", what, why, "try again", where=Place(path))


def _copy_attributes(handle: int, target: str, old: os.stat_result) -> None:
    """Copy the owner (if permitted) and the mode of a replaced file. Raises OSError."""
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(handle, old.st_uid, old.st_gid)
        except OSError:
            with suppress(OSError):
                # only root can give a file away, but a user can keep a group of his own
                os.fchown(handle, -1, old.st_gid)
    with suppress(OSError, AttributeError):
        for name in os.listxattr(target):
            # the system sets the others, such as labels of SELinux
            if name.startswith(("user.", "system.posix_acl")):
                os.setxattr(handle, name, os.getxattr(target, name))
    # last: a change of the owner clears the bits for setuid and setgid
    os.fchmod(handle, old.st_mode & 0o7777)


def _write_stream(stream: PlannedWrite) -> None:
    """Write to a device or a pipe, without waiting for a reader. Raises OSError."""
    mode = os.stat(stream.path).st_mode
    if stat.S_ISBLK(mode):
        raise UnfitFileError(0, "it is a disk, not a file")
    if is_handed_over(stream.path):
        _, _, name = stream.path.rpartition("/")
        number = int(name) if name.isdigit() else ("stdin", "stdout", "stderr").index(name)
        # Reopening would overwrite a file that the shell appends to.
        handle = os.dup(number)
    else:
        waits = stat.S_ISFIFO(mode)
        try:
            handle = os.open(stream.path, os.O_WRONLY | (os.O_NONBLOCK if waits else 0))
        except OSError as error:
            # what POSIX returns for a non-blocking open for writing if nobody reads
            if waits and error.errno == errno.ENXIO:
                raise UnfitFileError(0, "it is a named pipe without a reader") from None
            raise
        if waits:
            # only the open must not wait: a full pipe would be an error
            os.set_blocking(handle, True)
    with open(handle, "wb") as file:
        file.write(stream.content or b"")
