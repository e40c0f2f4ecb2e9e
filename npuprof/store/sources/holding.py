"""The folder of a mirror: made, held by one run at a time, mended, and made anew beside the old one where that is damaged."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from npuprof.model import Record
from npuprof.report.locks import hold_file, lock_folders
from npuprof.report.output import describe_os_error
from npuprof.store.sources.failures import build_cache_error, build_os_error
from npuprof.store.sources.mirror import find_mirror_folder, refuse_foreign, refuse_foreign_cache
from npuprof.store.sources.mirrorgit import MirrorGit
from npuprof.system.tree import Tree, make_tree

try:
    import fcntl
except ImportError:  # no locks there: git's own keep two from writing one ref
    fcntl = None  # type: ignore[assignment]

#: Seconds after which a git that a killed run has left is waited for no longer.
PATIENCE = 60.0
_NEW = ".new"  # what the folder of a mirror ends with until it is complete
_OLD = ".old"  # and what one ends with that another is about to replace

#: The whole configuration of a mirror: whatever else is found there is not ours.
_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\tlogAllRefUpdates = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
{extensions}"""
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"


class HeldMirror(Record):
    """The folder of a mirror that is ours alone, and a handle that git is to keep open; ``told`` names its source in messages.

    ``old`` is the folder of the one that it is to replace, an empty text where there is none.
    """

    folder: str
    hold: int | None
    told: str
    old: str = ""

    @property
    def is_new(self) -> bool:
        """Whether it is made now."""
        return self.folder.endswith(_NEW)

    def open_git(self) -> MirrorGit:
        """Return a git that reads and writes it."""
        return MirrorGit(self.folder, self.told)

    def use_long_ids(self) -> None:
        """Make it one of objects with SHA-256 ids. Raises NpuprofError."""
        try:
            Tree(self.folder).write_file("config", _build_config(True).encode())
        except OSError as error:
            raise build_os_error(self.folder, error) from None


@contextmanager
def hold_mirror(url: str, told: str, remake: bool = False) -> Iterator[HeldMirror]:
    """Give the folder of a mirror, ours alone until the end; with ``remake`` a new one, whatever is there.

    A new one lies beside its place until all went well, and is gone where it did not: what was there stays then.
    Raises NpuprofError.
    """
    mirror = find_mirror_folder(url)
    cache = os.path.dirname(mirror)
    _make_cache_folder(cache)
    while True:
        folder = mirror if not remake and is_mirror(mirror) else f"{mirror}{_NEW}"
        found = _identify_folder(folder)
        with lock_folders([folder, mirror] if os.path.isdir(mirror) else [folder]):
            if found != _identify_folder(folder, make=False) or (folder != mirror and not remake and is_mirror(mirror)):
                continue  # another run made it, or gave it up, while this one waited
            try:
                if _take_back(mirror):
                    continue
                if remake:
                    _empty_folder(folder)
                _mend_mirror(folder)
                hold = _hold_alive(folder)
            except OSError as error:
                raise build_os_error(cache, error) from None
            try:
                yield HeldMirror(folder, hold, told, mirror if remake and os.path.isdir(mirror) else "")
                if folder != mirror:
                    _replace_mirror(folder, mirror)
            except BaseException:
                if folder != mirror:
                    Tree(cache).remove(os.path.basename(folder))
                raise
            finally:
                if hold is not None:
                    os.close(hold)
            return


def is_mirror(folder: str) -> bool:
    """Return whether a folder is a mirror, or was one and can be mended in its place."""
    return os.path.isdir(os.path.join(folder, "objects"))


def _replace_mirror(folder: str, mirror: str) -> None:
    """Put a new mirror in its place. Raises NpuprofError."""
    cache, name = os.path.split(mirror)
    try:
        tree = Tree(cache)
        if os.path.lexists(mirror):
            tree.remove(f"{name}{_OLD}")
            tree.rename(name, f"{name}{_OLD}")
        tree.rename(os.path.basename(folder), name)
    except OSError as error:
        raise build_os_error(cache, error) from None
    tree.remove(f"{name}{_OLD}")


def _take_back(mirror: str) -> bool:
    """Put a mirror back that a killed run was about to replace; return whether there was one. Raises OSError."""
    cache, name = os.path.split(mirror)
    old = f"{name}{_OLD}"
    if not os.path.lexists(f"{mirror}{_OLD}"):
        return False
    if os.path.lexists(mirror):  # its successor took its place
        Tree(cache).remove(old)
        return False
    Tree(cache).rename(old, name)
    return True


def _make_cache_folder(cache: str) -> None:
    try:
        make_tree(cache, 0o700)
    except OSError as error:
        raise build_cache_error(cache, f"It cannot be made: {describe_os_error(error, os.path.join(cache, 'x'))}.") from None
    refuse_foreign_cache()
    if not os.access(cache, os.R_OK | os.W_OK | os.X_OK):
        raise build_cache_error(cache, "It cannot be written.")


def _identify_folder(folder: str, make: bool = True) -> tuple[int, int]:
    """Return what tells a folder from all others, (0, 0) where there is none. Raises NpuprofError."""
    try:
        if make and not os.path.lexists(folder):
            Tree(os.path.dirname(folder)).make_folder(os.path.basename(folder), 0o700)
        found = os.lstat(folder)
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise build_os_error(folder, error) from None
    if not stat.S_ISDIR(found.st_mode):
        raise build_cache_error(folder, "It is no folder.")
    if make:
        refuse_foreign(folder)
    return found.st_dev, found.st_ino


def _mend_mirror(folder: str) -> None:
    """Make a folder a mirror, or give one back what it has to hold. Raises OSError."""
    tree = Tree(folder)
    for name in ("objects/pack", "objects/info", "refs/heads", "refs/tags"):
        tree.make_folder(name)
    known = _read_text(os.path.join(folder, "config"))
    if known not in (_build_config(False), _build_config(True)):
        is_long = re.search(r"(?i)^\s*objectformat\s*=\s*\"?sha256", known, re.MULTILINE) is not None
        tree.write_file("config", _build_config(is_long).encode())
    if not _read_text(os.path.join(folder, "HEAD")).startswith("ref: refs/heads/"):
        tree.write_file("HEAD", b"ref: refs/heads/main\n")


def _build_config(is_long: bool) -> str:
    return _CONFIG.format(version=int(is_long), extensions=_SHA256 if is_long else "")


def _read_text(path: str) -> str:
    with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read(65536)
    return ""


def _hold_alive(folder: str) -> int | None:
    """Return a handle that marks the mirror as one in use as long as anybody has it open, once nobody else has.

    A run that is killed leaves its git alive for a while; then locks are those of a living one. They are removed once there is
    none. Raises NpuprofError where it lives on.
    """
    if fcntl is None:
        return None
    handle = os.open(os.path.join(folder, "HEAD"), os.O_RDONLY)
    try:
        started = time.monotonic()
        while stale := _list_leftovers(folder):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() - started > PATIENCE:
                    raise build_cache_error(
                        folder, f"Another git, which a killed run has left, works there: {os.path.join(folder, stale[0])}."
                    ) from None
                time.sleep(0.05)
                continue
            except OSError:
                pass  # a file system without locks
            for name in _list_leftovers(folder):
                Tree(folder).remove_file(name)
            break
        hold_file(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _list_leftovers(folder: str) -> list[str]:
    """Return the files that a git has under way in a mirror, or that one which was killed has left."""
    found = []
    for place, folders, files in Tree(folder).walk():
        in_objects = place.split("/", 1)[0] == "objects"
        found += [
            os.path.join(place, name)
            for name in files
            if name.endswith(".lock") or (in_objects and name.startswith("tmp_")) or (not place and name == "packed-refs.new")
        ]
        if in_objects:
            folders[:] = [name for name in folders if place == "objects" and not name.startswith(".")]
    return found


def _empty_folder(folder: str) -> None:
    """Remove all that is in a folder, which stays the one that is locked. Raises OSError."""
    tree = Tree(folder)
    for name in tree.list_names(""):
        tree.remove(name)
