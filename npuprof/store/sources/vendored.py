"""A copy of a source's store inside the repository that uses it: read in place of the mirror, so that nothing has to be fetched."""

from __future__ import annotations

import os

from npuprof.report.output import read_plain_file
from npuprof.store import Folder, ReadOnceStore, is_profile_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.revision import Revision

#: Below this folder of a copy lie the stores at the commits of versions that are referred to.
VERSIONS = ".versions"
#: Says which commit a copy is of.
MARK = ".commit"
#: What lies beside a store and says where its presets come from, and which rules bind them; a dot stands before the names in a copy.
PROJECT_FILES = ("npuprof.toml", "npuprof.lock")


class VendoredCopy:
    """A copied store: in a folder of the work tree, or in one as a commit has it. Texts are read by name, None where there is none."""

    def __init__(self, folder: str, revision: Revision | None = None) -> None:
        self._folder = folder
        self._revision = None if revision is None else _open_below(revision, folder)
        self._there: ReadOnceStore = self._revision or _open_folder(folder)

    def read_commit(self) -> str:
        """Return the commit that was copied, an empty text where nobody says so."""
        return (self._read_beside(MARK) or b"").decode(errors="replace").strip()

    def read_file(self, name: str) -> bytes | None:
        """Return one of the ``PROJECT_FILES`` that lay beside the store, None where there was none."""
        return self._read_beside(f".{name}")

    def _read_beside(self, name: str) -> bytes | None:
        if self._revision is not None:
            prefix = self._revision.repository.prefix
            found = self._revision.repository.git.read_objects([f"{self._revision.commit}:{prefix}{name}"])[0]
            return found.content if found else None
        try:
            return read_plain_file(os.path.join(self._folder, name))
        except OSError:
            return None

    def names(self) -> list[str]:
        """Return the names of the presets. Raises NpuprofError where the folder cannot be read."""
        return self._there.names()

    def read_text(self, name: str) -> bytes | None:
        """Return the text of a preset, None where there is none; a link out of the copy is none. Raises NpuprofError."""
        if not is_profile_name(name):
            return None
        if self._revision is not None:
            return self._revision.read_profile_text(name) if name in self._revision.files else None
        path = os.path.join(self._folder, f"{name}.toml")
        top = os.path.realpath(self._folder)
        if not os.path.realpath(path).startswith(top + os.sep):
            return None
        try:
            return read_plain_file(path)
        except OSError:
            return None


def _open_below(revision: Revision, folder: str) -> Revision:
    from npuprof.store.revision import Revision

    repository = revision.repository.with_store_prefix(f"{folder}/")
    repository.is_source = True
    return Revision(repository, revision.commit)


def _open_folder(folder: str) -> Folder:
    made = Folder(folder)
    made.is_source = True
    return made
