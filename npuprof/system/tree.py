"""Folders whose contents are written, renamed and deleted without following a link: nothing below one leads out of it.

A stranger's repository may contain links wherever npuprof writes. A folder is opened once, and each name below it is looked up in the open
folder, where a link is rejected. A name that becomes a link while npuprof runs leads nowhere else either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from npuprof.model import Finding, NpuprofError, Place
from npuprof.system import find_repository_top, is_below, lazy_pattern

#: Intermediate folders need only be searchable, not readable, if the system has O_PATH.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)

#: A file that is being written, and one that is about to be replaced.
_UNDER_WAY = lazy_pattern(r"\.npuprof-[0-9a-f]{16}\.(?:new|old)")
#: More links than this on one path lead in a circle.
_MOST_LINKS = 40


def refuse_link_out(path: str) -> None:
    """Raise NpuprofError (NP941) where a typed path leads, by a link in a work tree, out of that: the link may be a clone's.

    Any other link is the user's own, or the system's, and is followed.
    """
    here, links = os.sep, 0
    todo = os.path.join(os.getcwd(), path).split(os.sep)[::-1]
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = os.path.dirname(here)
            continue
        below = os.path.join(here, part)
        if not os.path.islink(below):
            here = below
            continue
        links += 1
        if links > _MOST_LINKS:
            return
        target = os.readlink(below)
        top, real = find_repository_top(here), os.path.realpath(os.path.join(here, target))
        if top and not is_below(real, top):
            what = f"{path} leads out of {top}, to {real}: {below} is a link"
            why = "A clone may bring such a link; nothing was written."
            raise NpuprofError([Finding("NP941", what, why, "remove the link, or name where it leads", where=Place(path))])
        todo += target.split(os.sep)[::-1]
        here = os.sep if os.path.isabs(target) else here


def name_under_way(folder: str = "") -> str:
    """Return a name for a file to be written in a folder: short, so that it has room beside whatever name it will take."""
    return os.path.join(folder, f".npuprof-{os.urandom(8).hex()}.new")


def is_under_way(name: str) -> bool:
    """Return whether a file of a name is one that a run has under way, or that a killed one has left."""
    return _UNDER_WAY.fullmatch(name) is not None


def is_plain_name(name: str) -> bool:
    """Return whether a name that was read from a file is a relative path of printable characters that stays below its folder."""
    return name.isprintable() and not {"", ".", ".."}.intersection(name.split("/"))


def make_tree(path: str, mode: int = 0o777) -> Tree:
    """Return the folder at a path, created with its missing parents. Raises OSError and NpuprofError."""
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
    """A folder that stays open. Names are paths below it, with ``/`` between folders.

    All that it does raises NpuprofError (NP941) where a folder on the way is a link or no folder, and OSError for what the system says.
    """

    def __init__(self, top: str, handle: int | None = None) -> None:
        """Open a folder, links to it followed; one that is open already has a ``handle``, which is ours from here on."""
        self.top = top
        self._handle = -1
        self._handle = os.open(top, _FOLDER) if handle is None else handle

    def close(self) -> None:
        """Let go of the folder."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()

    def open_below(self, name: str) -> Tree:
        """Return a folder below this one."""
        with self._open_folder(name) as handle:
            return Tree(self.find_path(name), os.dup(handle))

    def find_path(self, name: str) -> str:
        """Return the path of a name, to be shown, or handed to a command."""
        return os.path.join(self.top, name)

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Make a folder and those above it, as far as they are not there."""
        with self._open_folder(name, mode):
            pass

    def find_status(self, name: str) -> os.stat_result:
        """Return what ``os.lstat`` does. Raises FileNotFoundError where there is nothing of that name."""
        with self._open_parent(name) as (parent, last):
            return os.stat(last or ".", dir_fd=parent, follow_symlinks=False)

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Return a handle of a file, as ``os.open`` does; a link is no file."""
        with self._open_parent(name) as (parent, last):
            try:
                return os.open(last, flags | _FILE, mode, dir_fd=parent)
            except OSError as error:
                raise self._explain(name, error) from None

    def open_reader(self, name: str) -> IO[bytes]:
        """Return a file, open to be read: a pipe or a device is none, and not waited for."""
        handle = self.open_file(name, os.O_RDONLY)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is no file", self.find_path(name))
        return open(handle, "rb")

    def list_names(self, name: str) -> list[str]:
        """Return what is in a folder, sorted; nothing where there is none."""
        try:
            with self._open_folder(name) as handle:
                listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)
        except FileNotFoundError:
            return []
        try:
            return sorted(os.listdir(listed))
        finally:
            os.close(listed)

    def walk(self, name: str = "") -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield each folder below one, with the names of folders, which may be taken out, and those of all else in it.

        A link is no folder. What cannot be read is left out.
        """
        with self._open_folder(name) as handle:
            for where, folders, names, here in os.fwalk(".", dir_fd=handle):
                links = [folder for folder in folders if stat.S_ISLNK(os.stat(folder, dir_fd=here, follow_symlinks=False).st_mode)]
                folders[:] = [folder for folder in folders if folder not in links]
                path = os.path.normpath(os.path.join(name, where))
                yield "" if path == "." else path, folders, [*names, *links]

    def create_file(self, name: str, mode: int = 0o666) -> int:
        """Return a handle of a file that is new, to be written and read. Raises FileExistsError where there is one."""
        return self.open_file(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def write_file(self, name: str, content: bytes, mode: int = 0o666) -> None:
        """Write a file: whoever reads it sees it as it was, or whole."""
        temporary = name_under_way(os.path.dirname(name))
        handle = self.create_file(temporary, mode)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            self.rename(temporary, name)
        except BaseException:
            with suppress(OSError):
                self.remove_file(temporary)
            raise

    def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files one after the other, and the folders that they lie in."""
        for name, content in files.items():
            if os.path.dirname(name):
                self.make_folder(os.path.dirname(name))
            self.write_file(name, content)

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, in place of whatever has that."""
        with self._open_parent(name) as (parent, last), self._open_parent(new) as (there, new_last):
            os.replace(last, new_last, src_dir_fd=parent, dst_dir_fd=there)

    def link_file(self, name: str, new: str) -> None:
        """Give a file a second name. Raises FileExistsError where something has that, OSError where the system has no such thing."""
        with self._open_parent(name) as (parent, last), self._open_parent(new) as (there, new_last):
            os.link(last, new_last, src_dir_fd=parent, dst_dir_fd=there, follow_symlinks=False)

    def copy_in(self, path: str, name: str) -> None:
        """Copy the file at a path, with its times, mode and further attributes, to a new one."""
        import shutil

        with open(path, "rb") as source, open(self.create_file(name, 0o600), "wb") as file:  # read first: there may be none
            shutil.copyfileobj(source, file)
            file.flush()
            shutil.copystat(path, file.fileno())  # type: ignore[arg-type]

    def make_executable(self, name: str) -> None:
        """Let whoever may read a file run it."""
        handle = self.open_file(name, os.O_RDONLY)
        try:
            mode = os.fstat(handle).st_mode
            os.fchmod(handle, mode | (mode & 0o444) >> 2)
        finally:
            os.close(handle)

    def remove_file(self, name: str) -> None:
        """Remove a file, or a link; what that leads to stays."""
        with self._open_parent(name) as (parent, last):
            os.unlink(last, dir_fd=parent)

    def remove(self, name: str) -> None:
        """Remove whatever has a name, as far as the system allows; of a link the link."""
        try:
            self.remove_file(name)
        except OSError:
            self.remove_folder(name)

    def remove_empty_folders(self, name: str) -> None:
        """Remove a folder and those above it, as far as nothing is in them."""
        while name:
            try:
                with self._open_parent(name) as (parent, last):
                    os.rmdir(last, dir_fd=parent)
            except OSError:
                return
            name = os.path.dirname(name)

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all that is in it, as far as the system allows; of a link in it, the link."""
        import shutil

        with suppress(OSError), self._open_parent(name) as (parent, last), self._open_folder(name):  # what is no folder stays
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
                if part in (".", ".."):
                    raise ValueError(name)
                if make is not None:
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
        """Return why a name cannot be reached: the first on the way that is a link, or what the system said."""
        path = self.top
        for part in name.split("/"):
            path = os.path.join(path, part)
            if os.path.islink(path):
                what = f"{path} is a link, to {os.readlink(path)}"
                why = f"What npuprof keeps below {self.top} lies there and nowhere else; nothing was changed."
                return NpuprofError([Finding("NP941", what, why, f"remove the link: rm {path}", where=Place(path))])
        return error
