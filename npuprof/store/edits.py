"""Where the last edit of a project is kept: in its git folder, else in the user's state; and which files are the project's."""

from __future__ import annotations

import os

from npuprof.model import NpuprofError, Record
from npuprof.resolve.digests import load_sha256
from npuprof.store import find_project_folder, find_store
from npuprof.store.personal import find_personal_folder
from npuprof.store.trust import find_trust_file
from npuprof.system.tree import find_repository_top


class EditPlace(Record):
    """The file that keeps the last edit, and the folder whose files it may be about."""

    file: str
    top: str

    def find_folder_of(self, path: str) -> str:
        """Return the folder below which a file may be put back: the project's, or that of the personal layers; empty for any other."""
        if os.path.normpath(path) != path:
            return ""
        for folder in (self.top, os.path.realpath(find_personal_folder())):
            below = path.removeprefix(folder.rstrip(os.sep) + os.sep)
            if below != path and ".git" not in below.lower().split(os.sep):
                return folder
        return ""


def find_edit_place(store: str | None, project: str | None = None) -> EditPlace:
    """Return the place for a project: the folder given, else that of a store, else the current one where there is no store."""
    try:
        folder = os.path.realpath(project) if project is not None else find_project_folder(find_store(store, os.environ))
    except NpuprofError:
        folder = os.path.realpath(os.getcwd())
    top = find_repository_top(folder)
    git = os.path.join(top, ".git")
    if top and os.path.isdir(git) and not os.path.islink(git):  # elsewhere it may be anybody's
        return EditPlace(os.path.join(git, "npuprof", "undo.json"), os.path.realpath(top))
    mark = load_sha256()(os.fsencode(folder)).hexdigest()[:8]
    name = f"{os.path.basename(folder) or 'root'}-{mark}.json"
    return EditPlace(os.path.join(os.path.dirname(find_trust_file()), "undo", name), folder)
