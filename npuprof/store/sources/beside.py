"""What lies beside a store's folder, ``npuprof.toml`` and ``npuprof.lock``: where it is, and how it is read."""

from __future__ import annotations

import os
import posixpath

from npuprof.model import Finding, NpuprofError
from npuprof.report.output import read_plain_file
from npuprof.store import Folder, find_project_folder
from npuprof.store.sources import lock as locks
from npuprof.store.sources import project as projects
from npuprof.store.sources.project import Project


def read_project(home: Folder) -> Project:
    """Return what npuprof.toml beside a store in a folder says, read once. Raises NpuprofError where it cannot be understood."""
    if not isinstance(home.project, Project):
        path = os.path.join(find_project_folder(home), projects.FILE)
        raw = read_file_beside(path)
        home.project = projects.parse_project(os.path.relpath(path), raw) if raw is not None else Project()
    return home.project


def list_project_paths(prefix: str) -> tuple[str, str]:
    """Return the paths of npuprof.toml and npuprof.lock from the top of a repository whose store is in the folder ``prefix``."""
    place = posixpath.dirname(prefix.rstrip("/"))
    return posixpath.join(place, projects.FILE), posixpath.join(place, locks.FILE)


def read_file_beside(path: str) -> bytes | None:
    """Return a file beside a store, None where there is none. Raises NpuprofError where it cannot be read."""
    try:
        return read_plain_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        from npuprof.report.output import describe_os_error

        what = f"cannot read {os.path.relpath(path)}: {describe_os_error(error, path)}"
        raise NpuprofError([Finding("NP040", what, "", "mend or remove it")]) from None
