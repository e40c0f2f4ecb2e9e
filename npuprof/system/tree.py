"""Folders whose contents are written, renamed and deleted without following links.

A foreign repository may contain links at any place to which npuprof writes. A folder is opened
once, and each name below it is looked up in the open folder, rejecting links. A name that becomes a
link meanwhile leads nowhere else either.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from npuprof.model import Place, build_error
from npuprof.system import find_repository_top, is_below, join_normal

#: Intermediate folders need only be searchable, not readable, if the system has O_PATH.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# without O_NONBLOCK, a pipe in the place of the file would block the open
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

#: A file being written, and one about to be replaced.
_UNDER_WAY = re.compile(r"\.npuprof-[0-9a-f]{16}\.(?:new|old)")
#: More links on one path form a cycle.
_MOST_LINKS = 40


def reject_link_out(path: str) -> None:
    """Raise NpuprofError (NP941) if a path leads out of a work tree through a link in it.

    The link may be a clone's. Other links belong to the user or the system, and are followed.
    """
    folder = os.sep
    links = 0
    remaining = os.path.join(os.getcwd(), path).split(os.sep)[::-1]  # the next part is last
    while remaining:
        part = remaining.pop()
        if part in ("", "."):
            continue
        if part == "..":
            # links on the way are resolved already, so this is the parent that the system takes
            folder = os.path.dirname(folder)
            continue
        below = os.path.join(folder, part)
        if not os.path.islink(below):
            folder = below
            continue
        links += 1
        # the system rejects such a path by itself
        if links > _MOST_LINKS:
            return
        target = os.readlink(below)
        top = find_repository_top(folder)
        real = os.path.realpath(os.path.join(folder, target))
        if top and not is_below(real, top):
            what = f"{path} leads out of {top}, to {real}: {below} is a link"
            why = "A clone may bring such a link; nothing was written."
            hint = "remove the link, or name where it leads"
            raise build_error("NP941", what, why, hint, where=Place(path))
        # the parts of the target may be links, too
        remaining += target.split(os.sep)[::-1]
        if os.path.isabs(target):
            folder = os.sep


def name_under_way(folder: str) -> str:
    """Return a temporary file name in a folder: short, to stay within the name limit."""
    return os.path.join(folder, f".npuprof-{os.urandom(8).hex()}.new")


def is_under_way(name: str) -> bool:
    """Return whether a name is that of a temporary file of a running or killed process."""
    return _UNDER_WAY.fullmatch(name) is not None


def is_plain_name(name: str) -> bool:
    """Return whether a name read from a file is a printable path that stays below its folder."""
    return name.isprintable() and not {"", ".", ".."}.intersection(name.split("/"))


def make_tree(path: str, mode: int = 0o777) -> Tree:
    """Return the folder at a path, created with its missing parents.

    Raises OSError and NpuprofError.
    """
    with suppress(FileNotFoundError):
        os.stat(path)  # raises for a path that is too long or leads through a file
    top = real = os.path.realpath(path)
    while not os.path.lexists(top):
        top = os.path.dirname(top)
    tree = Tree(top)
    if top == real:
        return tree
    name = os.path.relpath(real, top)
    tree.make_folder(name, mode)
    return tree.open_below(name)


def truncate_file(handle: int, size: int) -> None:
    """Truncate an open file to a size in bytes."""
    os.ftruncate(handle, size)


class Tree:
    """A folder that stays open. Names are relative paths with ``/``.

    All methods raise NpuprofError (NP941) if a folder on the way is a link or not a folder, and
    OSError for system errors.
    """

    def __init__(self, top: str, handle: int | None = None) -> None:
        """Open a folder, following links to it.

        An open one is passed as ``handle``, which is owned from now on.
        """
        self.top = top
        self._handle = -1
        self._handle = os.open(top, _FOLDER) if handle is None else handle

    def close(self) -> None:
        """Close the folder."""
        if self._handle >= 0:
            os.close(self._handle)
            # before the open, which may fail: __del__ reads it in any case
            self._handle = -1

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()

    def open_below(self, name: str) -> Tree:
        """Return a folder below this one."""
        with self._open_folder(name) as handle:
            return Tree(self.find_path(name), os.dup(handle))

    def find_path(self, name: str) -> str:
        """Return the path of a name, for display or for a command."""
        return os.path.join(self.top, name)

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Create a folder and its missing parents."""
        with self._open_folder(name, mode):
            pass

    def find_status(self, name: str) -> os.stat_result:
        """Return the result of ``os.lstat``.

        Raises FileNotFoundError if the name does not exist.
        """
        with self._open_parent(name) as (parent, last):
            return os.stat(last or ".", dir_fd=parent, follow_symlinks=False)

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Return a handle of a file, as ``os.open`` does; links are rejected."""
        with self._open_parent(name) as (parent, last):
            try:
                return os.open(last, flags | _FILE, mode, dir_fd=parent)
            except OSError as error:
                raise self._explain(name, error) from None

    def open_reader(self, name: str) -> IO[bytes]:
        """Return a file opened for reading; pipes and devices are rejected without waiting."""
        handle = self.open_file(name, os.O_RDONLY)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is not a file", self.find_path(name))
        return open(handle, "rb")

    def list_names(self, name: str) -> list[str]:
        """Return the names in a folder, sorted; empty if it does not exist."""
        try:
            with self._open_folder(name) as handle:
                # a handle with O_PATH cannot be listed
                listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        except FileNotFoundError:
            return []
        try:
            return sorted(os.listdir(listed))
        finally:
            os.close(listed)

    def walk(self, name: str = "") -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield each folder below one, its folder names, which may be removed, and other names.

        These are tuples as of ``os.walk``. Links are not folders. Unreadable folders are omitted.
        """
        with self._open_folder(name) as handle:
            for below, folders, names, current in os.fwalk(".", dir_fd=handle):
                # os.fwalk counts links to folders as folders
                links = [
                    folder
                    for folder in folders
                    if stat.S_ISLNK(os.stat(folder, dir_fd=current, follow_symlinks=False).st_mode)
                ]
                # in place: os.fwalk enters the folders that are left
                folders[:] = [folder for folder in folders if folder not in links]
                path = join_normal(name, below)
                yield "" if path == "." else path, folders, [*names, *links]

    def create_file(self, name: str, mode: int = 0o666) -> int:
        """Return a handle of a new file for writing and reading.

        Raises FileExistsError if it exists.
        """
        return self.open_file(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def write_file(
        self, name: str, content: bytes, mode: int = 0o666, durable: bool = False
    ) -> None:
        """Write a file atomically, and sync it to disk if ``durable``."""
        temporary = name_under_way(os.path.dirname(name))
        handle = self.create_file(temporary, mode)
        try:
            with open(handle, "wb") as file:
                file.write(content)
                if durable:
                    file.flush()
                    # the rename may reach the disk before the content, and a crash would leave an
                    # empty file
                    os.fsync(handle)
            self.rename(temporary, name)
        except BaseException:
            with suppress(OSError):
                self.remove_file(temporary)
            raise

    def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files one after the other, with their folders."""
        for name, content in files.items():
            if os.path.dirname(name):
                self.make_folder(os.path.dirname(name))
            self.write_file(name, content)

    def rename(self, name: str, new: str) -> None:
        """Rename a file, replacing an existing one."""
        with self._open_parent(name) as (parent, last):
            if os.path.dirname(name) == os.path.dirname(new):
                os.replace(last, os.path.basename(new), src_dir_fd=parent, dst_dir_fd=parent)
                return
            with self._open_parent(new) as (there, new_last):
                os.replace(last, new_last, src_dir_fd=parent, dst_dir_fd=there)

    def link_file(self, name: str, new: str) -> None:
        """Hard-link a file.

        Raises FileExistsError if the new name exists, OSError if links are not supported.
        """
        with self._open_parent(name) as (parent, last), self._open_parent(new) as (there, new_last):
            os.link(last, new_last, src_dir_fd=parent, dst_dir_fd=there, follow_symlinks=False)

    def copy_in(self, path: str, name: str) -> None:
        """Copy a file, with its times, mode and attributes, to a new one."""
        # the source is opened first: it may not exist
        with open(path, "rb") as source, open(self.create_file(name, 0o600), "wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            # after the flush: another write would set the time again
            shutil.copystat(path, file.fileno())  # type: ignore[arg-type]

    def make_executable(self, name: str) -> None:
        """Make a file executable for everyone who may read it."""
        handle = self.open_file(name, os.O_RDONLY)
        try:
            mode = os.fstat(handle).st_mode
            os.fchmod(handle, mode | (mode & 0o444) >> 2)
        finally:
            os.close(handle)

    def remove_file(self, name: str) -> None:
        """Remove a file or link; the target of a link stays."""
        with self._open_parent(name) as (parent, last):
            os.unlink(last, dir_fd=parent)

    def remove(self, name: str) -> None:
        """Remove a file, folder or link, as far as the system allows."""
        try:
            self.remove_file(name)
        except OSError:
            self.remove_folder(name)

    def remove_empty_folders(self, name: str) -> None:
        """Remove a folder and its parents, if they are empty."""
        while name:
            try:
                with self._open_parent(name) as (parent, last):
                    # fails if the folder is not empty; its parents are not empty then either
                    os.rmdir(last, dir_fd=parent)
            except OSError:
                return
            name = os.path.dirname(name)

    def remove_folder(self, name: str) -> None:
        """Remove a folder with its content, as far as the system allows.

        Links in it are removed, not their targets.
        """
        with (
            suppress(OSError),
            self._open_parent(name) as (parent, last),
            self._open_folder(name),  # raises for a file, which stays
        ):
            shutil.rmtree(last, ignore_errors=True, dir_fd=parent)

    @contextmanager
    def _open_parent(self, name: str) -> Iterator[tuple[int, str]]:
        folder, _, last = name.rpartition("/")
        with self._open_folder(folder) as handle:
            yield handle, last

    @contextmanager
    def _open_folder(self, name: str, make: int | None = None) -> Iterator[int]:
        handle = os.dup(self._handle)
        try:
            for part in filter(None, name.split("/")):
                # O_NOFOLLOW rejects links, and '..' is none
                if part in (".", ".."):
                    raise ValueError(name)
                if make is not None:
                    # it may exist, as anything: opening it shows whether it is a folder
                    with suppress(FileExistsError):
                        os.mkdir(part, make, dir_fd=handle)
                try:
                    below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                except OSError as error:
                    raise self._explain(name, error) from None
                os.close(handle)
                handle = below
            yield handle
        finally:
            os.close(handle)

    def _explain(self, name: str, error: OSError) -> Exception:
        """Return why a name cannot be reached: the first link on the way, or the system error."""
        path = self.top
        for part in name.split("/"):
            path = os.path.join(path, part)
            if os.path.islink(path):
                what = f"{path} is a link, to {os.readlink(path)}"
                why = f"npuprof only writes below {self.top}; nothing was changed."
                return build_error(
                    "NP941", what, why, f"remove the link: rm {path}", where=Place(path)
                )
        return error
