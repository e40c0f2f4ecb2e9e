"""A copy of a source's store inside the repository that uses it: read in place of the mirror, so that nothing has to be fetched."""

from __future__ import annotations

import os
from collections.abc import Callable

from npuprof.model import Finding, NpuprofError, Record
from npuprof.report.output import read_plain_file
from npuprof.resolve.digests import load_sha256
from npuprof.store import Folder, ReadOnceStore, is_profile_name
from npuprof.store.sources.lock import LockedSource, LockedVersion, parse_locked_version
from npuprof.store.sources.urls import normalize_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.revision import Revision

#: Below this folder of a copy lie the stores at the commits of versions that are referred to.
VERSIONS = ".versions"
#: Below this folder of a copy lie the sources of the source, and theirs, each store at each commit once.
NESTED = ".sources"
#: Says what the presets of a copied store mean by each reference with an @ to a preset of their own store: no tags come with it.
REFERENCES = ".references"
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

    def read_references(self) -> dict[str, LockedVersion]:
        """Return what references with an @ to presets of the store itself mean, as far as they were copied with it."""
        said = (self._read_beside(REFERENCES) or b"").decode(errors="replace")
        pairs = (line.rpartition(" = ")[::2] for line in said.splitlines())
        return {reference: found for reference, text in pairs if (found := parse_locked_version(text))}

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


class CopyPlace(Record):
    """Where the copy of a source lies: in ``folder`` below ``top``, that of the copy which this repository names; there, at a ``version``.

    ``open_folder`` opens the folder of a copy.
    """

    open_folder: Callable[[str], VendoredCopy]
    top: str
    folder: str = ""
    version: str = ""

    def open(self) -> VendoredCopy:
        """Return the copy. Raises NpuprofError where it is not to be read."""
        version = name_version_folder(self.version) if self.version else ""
        return self.open_folder("/".join(filter(None, (self.top, self.folder, version))))

    def find_version(self, commit: str) -> CopyPlace:
        """Return where the store lies at the commit of a version that is referred to."""
        return self._replace(version=commit)

    def find_nested(self, locked: LockedSource) -> CopyPlace:
        """Return where a source of the source lies."""
        return self._replace(folder=name_nested_folder(locked), version="")


def name_version_folder(commit: str) -> str:
    """Return the folder, in the copy of a source, of its store at another commit."""
    return f"{VERSIONS}/{commit}"


def name_nested_folder(locked: LockedSource) -> str:
    """Return the folder, in the copy that a repository names, of a source of the source: one for a store at a commit, whoever names it."""
    mark = load_sha256()(f"{normalize_url(locked.url)}\n{locked.path}".encode(errors="surrogateescape")).hexdigest()[:16]
    return f"{NESTED}/{mark}-{locked.commit}"


def find_copy_folder(base: str, folder: str) -> str:
    """Return the path of a copy, ``folder`` below that of npuprof.toml. Raises NpuprofError (NP941) where a link leads it elsewhere."""
    path = os.path.join(base, folder)
    real, below = os.path.realpath(path), os.path.realpath(base).rstrip(os.sep) + os.sep
    if real.startswith(below) and ".git" not in real[len(below) :].lower().split(os.sep):
        return path
    what = f"{folder} leads out of {os.path.relpath(base)}, to {real}"
    why = "A copy is part of this repository: every clone has it, and nothing else is written or read."
    raise NpuprofError([Finding("NP941", what, why, "remove the link, or name another folder: npuprof source vendor NAME --into FOLDER")])


def _open_below(revision: Revision, folder: str) -> Revision:
    from npuprof.store.revision import Revision

    repository = revision.repository.with_store_prefix(f"{folder}/")
    repository.is_source = True
    return Revision(repository, revision.commit)


def _open_folder(folder: str) -> Folder:
    made = Folder(folder)
    made.is_source = True
    return made
