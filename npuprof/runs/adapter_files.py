"""Finds and opens the files of an adapter, or of other packages.

They are installed for the Python on PATH, or are a folder, a wheel or a library.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterator
from typing import IO

from npuprof.model import Record
from npuprof.runs.evidence.log_locations import build_read_error
from npuprof.system import find_repository_top, is_below
from npuprof.system.files import UnfitFileError, describe_os_error, name_special_file
from npuprof.system.processes import ask_python

#: The packages of the adapter: for TF 1, and for TF 2.
PACKAGES = ("npu_bridge", "npu_device")
#: Prints Python's import folders; the user's is omitted in isolated mode.
_ASK_FOLDERS = "import json, site, sys; print(json.dumps([*sys.path, site.getusersitepackages()]))"
#: Larger files are not adapter libraries, and searching them would take minutes.
_LARGEST = 1 << 29


class Source(Record):
    """The location of an adapter's files: their names, and how to open each."""

    shown: str
    names: tuple[str, ...]
    open: Callable[[str], IO[bytes]]


def find_installed(packages: tuple[str, ...] = PACKAGES) -> Iterator[Source]:
    """Yield the import folders of the Python on PATH that contain one of some packages."""
    for folder in list_import_folders():
        if any(os.path.isdir(os.path.join(folder, name)) for name in packages):
            yield _list_folder(folder, packages, only_packages=True)


def list_import_folders() -> list[str]:
    """Return the import folders of the Python on PATH, without those in the current work tree."""
    try:
        folders = json.loads(ask_python(_ASK_FOLDERS))
    except ValueError:
        return []
    # the Python that is asked ignores PYTHONPATH, as it runs in isolated mode
    listed = [
        folder
        for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if os.path.isabs(folder)
    ]
    top = find_repository_top(os.curdir)
    own = (entry for entry in listed if not (top and is_below(entry, top)))
    return [*dict.fromkeys([*own, *folders])]


def open_source(path: str, packages: tuple[str, ...] = PACKAGES) -> Source:
    """Return the files at a path, which may be the folder of a package.

    Raises NpuprofError if they are unreadable.
    """
    try:
        if os.path.isdir(path):
            os.scandir(path).close()  # raises if it is unreadable
            inside = os.path.basename(os.path.abspath(path)) in packages
            folder = os.path.dirname(os.path.abspath(path)) if inside else path
            return _list_folder(folder, packages, only_packages=inside)
        _require_readable(path)
        if zipfile.is_zipfile(path):
            archive = zipfile.ZipFile(path)
            return Source(path, tuple(archive.namelist()), lambda name: _open_member(archive, name))
        with _open_file(path):
            pass
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise build_read_error(
            path, describe_os_error(error, path), "name a folder, a wheel, or a shared library"
        ) from None
    folder = os.path.dirname(path)
    return Source(
        folder or os.curdir,
        (os.path.basename(path),),
        lambda name: _open_file(os.path.join(folder, name)),
    )


def _list_folder(folder: str, packages: tuple[str, ...], only_packages: bool) -> Source:
    names = []
    tops = [
        folder,
        *(link for name in packages if os.path.islink(link := os.path.join(folder, name))),
    ]  # links below are not followed
    if only_packages:
        tops = [os.path.join(folder, name) for name in packages]
        for suffix, file in ((".dist-info", "METADATA"), (".egg-info", "PKG-INFO")):
            names += [
                f"{entry}/{file}"
                for entry in os.listdir(folder)
                if entry.endswith(suffix) and entry.startswith(packages)
            ]
    for top in tops:
        for where, folders, files in os.walk(top):
            folders[:] = sorted(
                name for name in folders if not name.startswith(".") and name != "__pycache__"
            )
            names += [os.path.relpath(os.path.join(where, name), folder) for name in sorted(files)]
    return Source(folder, tuple(names), lambda name: _open_file(os.path.join(folder, name)))


def _open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    if archive.getinfo(name).file_size > _LARGEST:
        raise UnfitFileError(0, f"it is longer than {_LARGEST >> 20} MiB")
    return archive.open(name)


def _open_file(path: str) -> IO[bytes]:
    _require_readable(path)
    return open(path, "rb")


def _require_readable(path: str) -> None:
    """Raise UnfitFileError for a path that would block, or be read for a long time."""
    status = os.stat(path)
    if name := name_special_file(status.st_mode):
        raise UnfitFileError(0, f"it is {name}, not a file")
    # of a wheel, each member has the limit
    if status.st_size > _LARGEST and not zipfile.is_zipfile(path):
        raise UnfitFileError(0, f"it is longer than {_LARGEST >> 20} MiB")
