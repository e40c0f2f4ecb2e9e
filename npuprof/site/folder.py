"""The folder of a site: written only where something changed, and never over what somebody else put there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from npuprof.model import Finding, NpuprofError, Place, Record
from npuprof.report import output
from npuprof.report.output import read_plain_file
from npuprof.report.writing import Wanted, make_folder_below, remove_empty_folders, write_wanted_files

#: Says which files are npuprof's: what it wrote and does not write any more is removed.
MARK = ".npuprof-site.json"
_SCHEMA = "npuprof.site/1"


class Written(Record):
    """How many files were written, removed, and left as they were."""

    written: int
    removed: int
    kept: int


def write_site(folder: str, files: Mapping[str, bytes | None]) -> Written:
    """Write the files of a site below a folder, by their paths in it; None stays as it is there.

    Raises NpuprofError (NP980) where the folder holds something else.
    """
    known = read_own_files(folder)
    output.make_folder(folder)
    changed = {name: content for name, content in files.items() if content is not None and not _holds(os.path.join(folder, name), content)}
    gone = [name for name in known if name not in files and os.path.isfile(os.path.join(folder, name))]
    if changed or gone:
        _write_mark(folder, {*known, *files})  # who dies on the way leaves a folder that the next run knows for its own
    for name in changed:
        make_folder_below(os.path.dirname(os.path.join(folder, name)), folder)
    # Pages are made again at any time, and what a crash of the machine left of one is no page that the next run keeps.
    wanted = [Wanted(os.path.join(folder, name), content, below=folder, durable=False) for name, content in sorted(changed.items())]
    write_wanted_files(wanted)
    for name in gone:
        path = os.path.join(folder, name)
        os.unlink(path)
        remove_empty_folders(path, folder)
    _write_mark(folder, files)
    return Written(len(changed), len(gone), len(files) - len(changed))


def _write_mark(folder: str, names: Iterable[str]) -> None:
    content = (json.dumps({"schema": _SCHEMA, "files": sorted(names)}, indent=1) + "\n").encode()
    write_wanted_files([Wanted(os.path.join(folder, MARK), content, below=folder)])


def read_own_files(folder: str) -> list[str]:
    """Return the files that the last run wrote. Raises NpuprofError where the folder is somebody else's."""
    try:
        held = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NpuprofError([Finding("NP012", f"cannot write {folder}: {output.describe_os_error(error, folder)}", "", "")]) from None
    if not held:
        return []
    path = os.path.join(folder, MARK)
    try:
        said = json.loads(read_plain_file(path))
        files = said["files"] if said["schema"] == _SCHEMA else None
    except (OSError, ValueError, KeyError, TypeError):
        files = None
    if not isinstance(files, list) or not all(map(_is_own_name, files)):
        what = f"{folder} holds something else than a site that npuprof wrote"
        why = "A site is written over only where npuprof wrote it: what lies there may be somebody's work."
        raise NpuprofError([Finding("NP980", what, why, "name an empty folder, or one that is not there yet", where=Place(folder))])
    return files


def _is_own_name(name: object) -> bool:
    return isinstance(name, str) and not name.startswith("/") and ".." not in name.split("/") and "\\" not in name


def _holds(path: str, content: bytes) -> bool:
    try:
        return os.path.getsize(path) == len(content) and read_plain_file(path) == content
    except (OSError, ValueError):
        return False
