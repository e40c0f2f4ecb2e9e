"""What lies beside a store's folder, ``npuprof.toml`` and ``npuprof.lock``: where it is, and how it is read."""

from __future__ import annotations

import os
import posixpath
from contextlib import suppress

from npuprof.document import Document, parse_document
from npuprof.model import Finding, NpuprofError, Origin, __version__
from npuprof.report.output import describe_os_error, read_plain_file
from npuprof.store import Folder, find_project_folder
from npuprof.store.sources import lock as locks
from npuprof.store.sources import project as projects
from npuprof.store.sources.project import Project
from npuprof.store.sources.ranges import parse_version_range
from npuprof.store.versions import parse_version_text


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
        what = f"cannot read {os.path.relpath(path)}: {describe_os_error(error, path)}"
        raise NpuprofError([Finding("NP040", what, "", "mend or remove it")]) from None


def require_fitting_store(home: Folder) -> None:
    """Raise NpuprofError (NP041) where ``requires`` in npuprof.toml does not mean this npuprof, NP040 where the file is not understood."""
    document, fault = None, None
    try:
        document = read_project(home).document
    except NpuprofError as error:  # what is wrong may be what a later npuprof understands
        fault = error
        with suppress(NpuprofError):
            document = parse_document(projects.FILE, os.path.relpath(home.project_file), read_file_beside(home.project_file) or b"")
    if document is not None and (unmet := find_unmet_requirement(document, "this repository", "install one of them, or widen requires")):
        raise NpuprofError([unmet])
    if fault is not None:
        raise fault


def require_fitting_project(project: Project) -> None:
    """Raise NpuprofError (NP041) where ``requires`` does not mean this npuprof."""
    document = project.document
    if document is not None and (unmet := find_unmet_requirement(document, "this repository", "install one of them, or widen requires")):
        raise NpuprofError([unmet])


def find_unmet_requirement(document: Document, who: str, hint: str) -> Finding | None:
    """Return that npuprof.toml needs another npuprof, None where it needs none."""
    requires = document.data.get("requires")
    wanted, here = parse_version_range(requires) if isinstance(requires, str) else None, parse_version_text(__version__)
    if wanted is None or here is None or wanted.accepts(here):
        return None
    what = f"{who} needs npuprof {requires}, and this is {__version__}"
    why = "Its presets were written for that one; another may read them otherwise."
    return Finding("NP041", what, why, hint, Origin(document, ("requires",)), "requires")
