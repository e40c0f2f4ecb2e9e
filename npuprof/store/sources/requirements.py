"""``requires``: which npuprof a repository, or a source, needs; asked for before anything else of it is read."""

from __future__ import annotations

import os
from contextlib import suppress

from npuprof.document import Document, parse_document
from npuprof.model import Finding, NpuprofError, Origin
from npuprof.store import Folder
from npuprof.store.sources import project as projects
from npuprof.store.sources.beside import read_file_beside, read_project
from npuprof.store.sources.project import Project
from npuprof.store.sources.ranges import parse_version_range
from npuprof.store.versions import parse_version_text


def refuse_unmet_requirement(home: Folder) -> None:
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


def refuse_unmet_requirement_of(project: Project) -> None:
    """Raise NpuprofError (NP041) where ``requires`` does not mean this npuprof."""
    document = project.document
    if document is not None and (unmet := find_unmet_requirement(document, "this repository", "install one of them, or widen requires")):
        raise NpuprofError([unmet])


def find_unmet_requirement(document: Document, who: str, hint: str) -> Finding | None:
    """Return that npuprof.toml needs another npuprof, None where it needs none."""
    from npuprof.model import __version__

    said = document.data.get("requires")
    wanted, here = parse_version_range(said) if isinstance(said, str) else None, parse_version_text(__version__)
    if wanted is None or here is None or wanted.accepts(here):
        return None
    what = f"{who} needs npuprof {said}, and this is {__version__}"
    why = "Its presets were written for that one; another may read them otherwise."
    return Finding("NP041", what, why, hint, Origin(document, ("requires",)), "requires")
