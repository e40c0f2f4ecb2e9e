"""One side of a comparison: the files of a work tree or revision, and its resolved presets."""

from __future__ import annotations

import hashlib
import os
import re

from npuprof.model import Context, NpuprofError
from npuprof.resolve.config import Config
from npuprof.store import spec
from npuprof.store.enclosing_repository import has_sparse_checkout
from npuprof.store.folder import Folder
from npuprof.store.gitstore.repository import TreeFile
from npuprof.store.gitstore.revisions import Revision
from npuprof.store.layout import Layout
from npuprof.store.worktree import list_absent_files
from npuprof.system import decode_safely
from npuprof.system.files import read_plain_file

#: A TOML string on one line, with its quotes.
_STRING = re.compile(rb"""("[^"\n]*"|'[^'\n]*')""")
_NOT_PLAIN = (b"\\", b'"""', b"'''")  # escapes, multi-line strings


class WorkTree:
    """A store in a folder, with git's ids of its files.

    Includes files excluded by a sparse checkout.
    """

    def __init__(self, folder: Folder, before: Revision) -> None:
        self._texts: dict[str, bytes] = {}
        self.store = folder
        folder.read_ahead = self._texts
        self.absent: dict[str, TreeFile] = {}
        self._repository = before.repository
        existing = set(folder.names())
        # git is only asked if a file may be excluded: it costs a process
        if has_sparse_checkout(folder.root) or before.files.keys() - existing:
            layout = Layout(before.repository.prefix, folder.layout.globs)
            absent = list_absent_files(before.repository, layout)
            self.absent = {name: file for name, file in absent.items() if name not in existing}
            folder.read_absent = lambda name: (
                self.read_profile_text(name) if name in self.absent else None
            )

    def load_texts(self, names: set[str]) -> None:
        """Load the files missing in the folder together; other files are read on demand."""
        requested = {
            name: self.absent[name].oid
            for name in names
            if name in self.absent and name not in self._texts
        }
        contents = self._repository.git.read_contents(requested.values()) if requested else {}
        self._texts |= {name: contents[oid] for name, oid in requested.items()}

    def read_profile_text(self, name: str) -> bytes:
        """Return the text of a file; empty if it cannot be read (the resolver reports why)."""
        if name in self.absent:
            self.load_texts({name})
        if name not in self._texts:
            try:
                self._texts[name] = read_plain_file(self.store.profile_path(name))
            except OSError:
                self._texts[name] = b""
        return self._texts[name]

    def is_same_file(self, name: str, file: TreeFile) -> bool:
        """Return whether a file equals git's version, ignoring line endings."""
        if name in self.absent:
            return self.absent[name] == file
        text = self.read_profile_text(name)
        # git may have checked the file out with CRLF
        for content in {text, text.replace(b"\r\n", b"\n")}:
            if compute_blob_id(content, len(file.oid)) == file.oid:
                # the content is that of the link's target
                return not os.path.islink(self.store.profile_path(name))
        return False


def compute_blob_id(content: bytes, length: int) -> str:
    """Return git's id of a file content; ``length`` selects the repository's hash function."""
    hash_function = hashlib.sha256 if length == 64 else hashlib.sha1
    return hash_function(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class ResolvedSide:
    """One state: its names and its resolved presets."""

    def __init__(self, workspace: spec.Workspace, store: Revision | Folder) -> None:
        self.workspace = workspace
        self.store = store
        self.names = set(store.names())

    def resolve_preset(self, name: str) -> Config | NpuprofError | None:
        """Return a preset resolved, its error if that fails, None if it does not exist."""
        if name not in self.names:
            return None
        try:
            return self.workspace.resolver.resolve_profile(self.store.profile(name))
        except NpuprofError as error:
            return error


class StoreSide(ResolvedSide):
    """One state of a repository, with the texts of its presets."""

    def __init__(self, store: Revision | Folder, context: Context, before: Revision) -> None:
        super().__init__(spec.Workspace(None, context, opened=store), store)
        self.texts = store if isinstance(store, Revision) else WorkTree(store, before)
        if isinstance(self.texts, WorkTree):
            self.names |= self.texts.absent.keys()

    def is_same_file(self, name: str, file: TreeFile) -> bool:
        """Return whether a file certainly equals the other state's.

        The target of a link may have changed.
        """
        if file.is_link:
            return False
        if isinstance(self.texts, WorkTree):
            return self.texts.is_same_file(name, file)
        return self.texts.files[name] == file

    def read_parent_names(self, name: str) -> list[str] | None:
        """Return all names that a file may extend, without parsing plain texts.

        None if it cannot be read.
        """
        try:
            names = read_plain_parents(self.texts.read_profile_text(name))
            return list(self.store.profile(name).extends) if names is None else names
        except NpuprofError:
            return None


def read_plain_parents(text: bytes) -> list[str] | None:
    """Return the names that a preset's text may extend: all its strings, if it extends any.

    None if parsing is needed.
    """
    # an escape may hide a name, and a multi-line string a quote
    if any(mark in text for mark in _NOT_PLAIN):
        return None
    if b"extends" not in text:
        return []
    return [decode_safely(name[1:-1]) for name in _STRING.findall(text)]
