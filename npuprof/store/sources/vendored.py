"""A source's store vendored into the repository that uses it, and read instead of the mirror."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from npuprof.model import TYPE_CHECKING, Finding, Record, build_error
from npuprof.report.isolating import collect_errors
from npuprof.store import is_profile_name
from npuprof.store.base import CachedStore
from npuprof.store.folder import Folder
from npuprof.system import decode_safely, is_below
from npuprof.system.files import read_plain_file

if TYPE_CHECKING:
    from npuprof.store.gitstore.revisions import Revision
    from npuprof.store.sources.lock import LockedSource, LockedVersion
    from npuprof.store.sources.manifest import Proof

#: The folder of a copy with the stores at the commits of referenced versions.
VERSIONS = ".versions"
#: The folder of a copy with the source's own sources, recursively; each store at each commit once.
NESTED = ".sources"
#: The targets of references with an @ between presets of a copied store, which has no tags.
REFERENCES = ".references"
#: The commit of a copied source.
MARK = ".commit"
#: Files next to a store with its sources and rules; in a copy, their names start with a dot.
PROJECT_FILES = ("npuprof.toml", "npuprof.lock")


class VendoredCopy:
    """A vendored store: in a folder of the work tree, or at a commit.

    Texts are read by name, None if missing. With a ``proof``, each text is verified; ``place`` is
    the folder of the store in the copy, followed by ``/``.
    """

    def __init__(self, folder: str, revision: Revision | None = None) -> None:
        self._folder = folder
        self._revision = None if revision is None else _open_below(revision, folder)
        self._store: CachedStore = self._revision or _open_folder(folder)
        self.proof: Proof | None = None
        self.place = ""

    def read_commit(self) -> str:
        """Return the commit of the copy, an empty string if it is unknown."""
        return decode_safely(self.read_unproven(MARK) or b"").strip()

    def read_file(self, name: str) -> bytes | None:
        """Return one of the ``PROJECT_FILES`` next to the store, None if there was none.

        Raises NpuprofError.
        """
        return self._read_beside(f".{name}")

    def read_references(self) -> dict[str, LockedVersion]:
        """Return the copied targets of references with an @ between presets of the store.

        Raises NpuprofError.
        """
        from npuprof.store.sources.lock import parse_locked_version

        references = {}
        for line in decode_safely(self._read_beside(REFERENCES) or b"").splitlines():
            reference, _, text = line.rpartition(" = ")
            if version := parse_locked_version(text):
                references[reference] = version
        return references

    def list_faults(self) -> list[Finding]:
        """Return the changed files of the whole copy. Raises NpuprofError if that is unknown."""
        assert self.proof is not None, "only copies that npuprof.toml names are verified"
        paths = [*self.proof.listed]
        others = {
            *(f"{name}.toml" for name in self.names()),
            *(f".{name}" for name in PROJECT_FILES),
            REFERENCES,
        }
        paths += sorted(others.difference(paths))
        faults: list[Finding] = []
        for path, raw in zip(paths, self._read_files(paths), strict=True):
            with collect_errors(faults):
                self.proof.require(path, raw)
        return faults

    def read_unproven(self, name: str) -> bytes | None:
        """Return a file of the copy, by path, without verification; None if there is none."""
        return self._read_files([name])[0]

    def _read_beside(self, name: str) -> bytes | None:
        raw = self.read_unproven(name)
        return raw if self.proof is None else self.proof.require(f"{self.place}{name}", raw)

    def _read_files(self, paths: Sequence[str]) -> list[bytes | None]:
        if self._revision is not None:
            prefix = f"{self._revision.commit}:{self._revision.repository.prefix}"
            return self._revision.repository.git.read_files([f"{prefix}{path}" for path in paths])
        return [_read_below(self._folder, path) for path in paths]

    def names(self) -> list[str]:
        """Return the names of the presets. Raises NpuprofError if the folder cannot be read."""
        return self._store.names()

    def read_text(self, name: str) -> bytes | None:
        """Return the text of a preset, None if there is none; links out of the copy do not count.

        Raises NpuprofError.
        """
        # a name with ".." would leave the copy
        return self._read_beside(f"{name}.toml") if is_profile_name(name) else None


def _read_below(folder: str, path: str) -> bytes | None:
    full = os.path.join(folder, path)
    if not is_below(full, folder):
        return None
    try:
        return read_plain_file(full)
    except OSError:
        return None


class CopyPlace(Record):
    """The place of a vendored copy: ``folder`` below ``top``, optionally at a ``version``.

    ``top`` is the copy named by this repository. ``open_folder`` opens the folder of a copy,
    ``proof`` lists its expected files.
    """

    open_folder: Callable[[str], VendoredCopy]
    top: str
    proof: Proof
    folder: str = ""
    version: str = ""

    def open(self) -> VendoredCopy:
        """Return the copy. Raises NpuprofError if it cannot be read."""
        version = f"{VERSIONS}/{self.version}" if self.version else ""
        below = [part for part in (self.folder, version) if part]
        vendored = self.open_folder("/".join([self.top, *below]))
        vendored.proof, vendored.place = self.proof, "".join(f"{part}/" for part in below)
        return vendored

    def find_nested(self, locked: LockedSource) -> CopyPlace:
        """Return the place of a source's own source."""
        return self._replace(folder=name_nested_folder(locked), version="")


def name_nested_folder(locked: LockedSource) -> str:
    """Return the folder in a copy for a source's own source: one per store and commit."""
    from npuprof.store.urls import mark_texts, normalize_url

    return f"{NESTED}/{mark_texts(normalize_url(locked.url), locked.path)}-{locked.commit}"


def find_copy_folder(base: str, folder: str) -> str:
    """Return the path of a copy, ``folder`` relative to npuprof.toml.

    Raises NpuprofError (NP941) for a link on the way.
    """
    path = os.path.join(base, folder)
    real, top = os.path.realpath(path), os.path.realpath(base)
    parts = os.path.normpath(folder).split(os.sep)
    # .GIT is git's folder, too, if the file system ignores case
    is_outside = any(part.lower() in ("..", ".git") for part in parts)
    if real == os.path.join(top, *parts) and not is_outside:
        return path
    why = (
        "The folder of a copy is part of this repository and is reached through no link; nothing "
        "was read or written."
    )
    hint = "remove the link, or name another folder: npuprof source vendor NAME --into FOLDER"
    raise build_error("NP941", f"{folder} leads to {real}", why, hint)


def _open_below(revision: Revision, folder: str) -> Revision:
    from npuprof.store.gitstore.revisions import Revision

    repository = revision.repository.with_store_prefix(f"{folder}/")
    repository.is_source = True
    return Revision(repository, revision.commit)


def _open_folder(folder: str) -> Folder:
    store = Folder(folder)
    store.is_source = True
    return store
