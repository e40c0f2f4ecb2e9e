"""Vendors a source into a repository: collects its files from mirrors, and writes a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from shlex import quote

from npuprof.model import NpuprofError, Place, Record, build_error
from npuprof.store import is_source_reference, strip_revision
from npuprof.store.gitstore.objects import Git
from npuprof.store.project import Source, find_copy_fault
from npuprof.store.sources.lock import LockedSource, LockedVersion
from npuprof.store.sources.lookups import Lookups
from npuprof.store.sources.manifest import (
    MANIFEST,
    build_manifest,
    find_equal_text,
    format_manifest,
    parse_manifest,
)
from npuprof.store.sources.opening import open_locked
from npuprof.store.sources.project_files import ProjectFiles
from npuprof.store.sources.stores import SourceStore
from npuprof.store.sources.vendored import (
    MARK,
    PROJECT_FILES,
    REFERENCES,
    VERSIONS,
    find_copy_folder,
    name_nested_folder,
)
from npuprof.store.sources.vendored_releases import RECORD
from npuprof.system import is_below, writing
from npuprof.system.files import make_folder, read_plain_file, remove_folders
from npuprof.system.locks import find_foreign_file, lock_folders
from npuprof.system.writing import PlannedWrite


def collect_files(locked: LockedSource) -> dict[str, bytes]:
    """Return the files of a copy by path, including its file list.

    They are the store, referenced versions, and the same for its own sources. Raises NpuprofError.
    """
    files = _CopyFiles()
    files.add_store(open_locked(locked.name, locked), "")
    return files.list_files()


class _Part(Record):
    """A store at a commit, the store's folder in the copy, and the commit's folder.

    Both folders end in ``/``, or are empty.
    """

    store: SourceStore
    top: str
    folder: str


class _CopyFiles:
    """The files of a copy: stores at their commits, and referenced versions with ancestors."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._references: dict[str, dict[str, str]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._lookups = Lookups()

    def list_files(self) -> dict[str, bytes]:
        """Return the files by path in the copy."""
        files = dict(self._files)
        for folder, versions in self._references.items():
            lines = [f"{reference} = {version}\n" for reference, version in versions.items()]
            files[f"{folder}{REFERENCES}"] = "".join(sorted(lines)).encode()
        return {**files, MANIFEST: build_manifest(files)}

    def add_store(self, store: SourceStore, folder: str) -> None:
        """Add a store, the referenced versions of its presets, and its sources.

        Raises NpuprofError.
        """
        part = _Part(store, folder, folder)
        if self._add_folder(part):
            names = store.revision.names()
            store.revision.load_texts(names)
            for name in names:
                self._add_preset(part, name)
            for nested in self._lookups.find_sources(store).list_locked():
                self.add_store(nested, f"{name_nested_folder(nested.locked)}/")
        for reference in store.locked.versions:
            self._add_version(part, reference)

    def _add_folder(self, part: _Part) -> bool:
        """Add a folder's commit mark and the files next to the store.

        Return whether the folder is new.
        """
        # two sources may share a third one
        if f"{part.folder}{MARK}" in self._files:
            return False
        self._files[f"{part.folder}{MARK}"] = f"{part.store.commit}\n".encode()
        for name in PROJECT_FILES:
            text = part.store.read_file(name)
            if text is not None:
                # with a dot, as names with one are not presets
                self._files[f"{part.folder}.{name}"] = text
        return True

    def _add_preset(self, part: _Part, name: str) -> None:
        # versions may extend each other
        if (part.folder, name) in self._seen:
            return
        self._seen.add((part.folder, name))
        self._files[f"{part.folder}{name}.toml"] = part.store.revision.read_profile_text(name)
        with suppress(NpuprofError):  # the reader reports it
            for reference in part.store.profile(name).extends:
                with suppress(NpuprofError):
                    self._add_parent(part, reference)

    def _add_parent(self, part: _Part, reference: str) -> None:
        if is_source_reference(reference):
            source, at, _ = reference.partition("@")
            if part.store.is_version or at:
                store = self._lookups.find_source_store(part.store, source)
                folder = f"{name_nested_folder(store.locked)}/"
                self.add_store(store, folder)
                if at:  # the lock need not list complete numbers
                    self._add_reference(_Part(store, folder, folder), reference.partition(":")[2])
        elif "@" in reference:
            self._add_reference(part, reference)
        # of the locked commit all presets are copied, of a version only the ancestors
        elif part.store.is_version and reference in part.store.revision.files:
            self._add_preset(part, reference)

    def _add_reference(self, part: _Part, reference: str) -> None:
        """Add the target of a reference with an @, and the reference itself.

        Raises NpuprofError.
        """
        store = self._add_version(part, reference)
        _, tag_mark, number = store.shown.rpartition("/v")
        version = LockedVersion(number if tag_mark else "-", store.commit)
        self._references.setdefault(part.folder, {})[reference] = str(version)

    def _add_version(self, part: _Part, reference: str) -> SourceStore:
        """Add a referenced preset at its version, with its ancestors. Raises NpuprofError."""
        store = part.store.find_version(reference, is_own=True)
        version = _Part(store, part.top, f"{part.top}{VERSIONS}/{store.commit}/")
        self._add_folder(version)
        self._add_preset(version, strip_revision(reference))
        return store


def find_fit_folder(
    project_files: ProjectFiles, source: Source, folder: str, texts: Mapping[str, bytes]
) -> str:
    """Return the path of a folder to which a copy may be written.

    A copy owns its folder: files missing in its list belong to somebody else. Raises NpuprofError
    if the copy may not be written.
    """
    hint = f"name an empty or a new folder: --into vendor/{source.name}"
    if fault := find_copy_fault(folder):
        raise build_error("NP040", f"--into {folder!r} {fault}", "", hint)
    base = project_files.folder
    top = find_copy_folder(base, folder)
    why = "A copy replaces the contents of its folder."
    for other in project_files.project.sources.values():
        if other.name != source.name and other.vendor and _overlap(other.vendor, folder):
            what = f"{folder} contains the copy of the source {other.name!r}, or is inside it"
            raise build_error("NP940", what, why, hint)
    store = project_files.home
    # either way: the store may also be inside the copy
    if is_below(top, store.root) or is_below(store.root, top):
        what = f"{folder} and the store {store.label} overlap"
        why = (
            "Its presets would be presets of this repository as well, or be replaced by those of "
            "the source."
        )
        raise build_error("NP940", what, why, hint)
    known = read_manifest(top)
    reject_foreign_files(top, base, texts, known)
    if file := find_foreign_file(top, known):
        shown = os.path.relpath(os.path.join(top, file), base)
        what = f"{folder} has files outside the copy of {source.name}: {shown}"
        raise build_error("NP940", what, why, f"move them away, or {hint}")
    return top


def _overlap(first: str, second: str) -> bool:
    """Return whether one of two folders contains the other; some file systems ignore case."""
    first, second = f"{first.lower()}/", f"{second.lower()}/"
    return first.startswith(second) or second.startswith(first)


def reject_foreign_files(
    top: str, base: str, texts: Mapping[str, bytes], known: Mapping[str, set[str]]
) -> None:
    """Raise NpuprofError (NP940) if a copy would replace an uncommitted edit or a user's file.

    A file may be replaced if it is as copied (``known`` has the digests), as it will be, or as in
    git's index. Paths in messages are relative to ``base``.
    """
    git = Git(top)
    prefix = os.path.relpath(os.path.realpath(top), git.top) if git.top else ""
    for name, text in texts.items():
        path = os.path.join(top, name)
        if (
            name in (MANIFEST, MARK)
            or not os.path.lexists(path)
            # the list and the mark are always written anew
            or _is_as_copied(top, name, known.get(name, set()))
        ):
            continue
        # git may have checked the file out with CRLF
        current = read_plain_file(path).replace(b"\r\n", b"\n") if os.path.isfile(path) else b""
        if current == text:
            continue
        if git.top:
            staged = git.read_object(f":{os.path.normpath(os.path.join(prefix, name))}")
            if staged and current == staged.content.replace(b"\r\n", b"\n"):
                continue
        shown = os.path.relpath(path, base)
        why = (
            "A copy replaces the contents of its folder, and git does not have this text; nothing "
            "was written."
        )
        hint = f"take it back (git restore {quote(shown)}), or move it away (mv {quote(shown)} ..)"
        raise build_error("NP940", f"{shown} differs from the copy", why, hint, where=Place(shown))


def _is_as_copied(top: str, name: str, digests: set[str]) -> bool:
    """Return whether a file of a copy has one of the digests, and is not behind a link."""
    path = os.path.join(top, name)
    if not os.path.isfile(path) or _is_link(top, name):
        return False
    return find_equal_text(read_plain_file(path), digests) is not None


def read_manifest(top: str) -> dict[str, set[str]]:
    """Return the names in a copy's list with their digests, including the list itself.

    Empty without a list.
    """
    try:
        raw = read_plain_file(os.path.join(top, MANIFEST))
    except OSError:
        return {}
    # the content of the list and the mark changes while a copy is written
    return {**parse_manifest(raw), MANIFEST: set(), MARK: set()}


def write_copy(top: str, texts: dict[str, bytes]) -> None:
    """Write the files of a copy, including its list, into a folder.

    Files of an earlier copy are removed. If ``texts`` has a commit mark, the mark says "not whole"
    until everything is written. Raises NpuprofError.
    """
    created = make_folder(top)
    try:
        with lock_folders([top]):
            files = {os.path.join(top, name): text for name, text in texts.items()}
            for name in texts:
                if _is_link(top, name):
                    raise _build_link_error(os.path.join(top, name))
            for path in files:
                created = [*writing.make_folder_below(os.path.dirname(path), top), *created]
            _replace_copy(top, files)
    except BaseException:
        remove_folders(created)
        raise


def _replace_copy(top: str, files: dict[str, bytes]) -> None:
    """Write the files of a copy by path, and remove the others of an earlier copy.

    After a crash, the copy is invalid, and its list has the files of both.
    """
    removed = [path for path in _list_copied(top) if path not in files]
    mark, manifest = os.path.join(top, MARK), os.path.join(top, MANIFEST)
    last = {path: files.pop(path) for path in (manifest, mark) if path in files}
    # first: after a crash, every file of either copy is still known as npuprof's
    _write_below(top, {manifest: _join_manifests(top, last[manifest])})
    if mark in last:
        _write_below(top, {mark: b"not whole\n"})
    _write_below(top, files)
    _write_below(top, dict.fromkeys(removed))
    for path in removed:
        writing.remove_empty_folders(path, top)
    # last: only the lock's list and a whole mark make the copy valid
    _write_below(top, last)


def _write_below(top: str, files: Mapping[str, bytes | None]) -> None:
    writing.write_planned_files(
        [PlannedWrite(path, text, below=top) for path, text in files.items()]
    )


def _is_link(top: str, name: str) -> bool:
    """Return whether a file of a copy, or a folder on the way to it, is a link."""
    # the folder of the copy itself may be below a link of the user's
    return os.path.realpath(os.path.join(top, name)) != os.path.join(os.path.realpath(top), name)


def _build_link_error(path: str) -> NpuprofError:
    what = f"{path} leads to {os.path.realpath(path)} by a link"
    why = "The files of a copy are in its folder and nowhere else; nothing was changed."
    return build_error("NP941", what, why, f"remove the link: rm {path}", where=Place(path))


def _join_manifests(top: str, new: bytes) -> bytes:
    """Return the list of a copy that is being replaced: the lines of both."""
    old, listed = read_manifest(top), parse_manifest(new)
    return format_manifest(
        {path: old.get(path, set()) | listed.get(path, set()) for path in {**old, **listed}}
    )


def _list_copied(top: str) -> list[str]:
    """Return the unchanged presets and marks of an earlier copy, by its list."""
    marks = (RECORD, MARK, REFERENCES, *(f".{name}" for name in PROJECT_FILES))
    known = read_manifest(top)
    names = [name for name in known if name.endswith(".toml") or os.path.basename(name) in marks]
    return [os.path.join(top, name) for name in names if _is_as_copied(top, name, known[name])]
