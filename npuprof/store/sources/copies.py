"""Vendors a source into a repository: its files are collected from the mirrors, then written to a
folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from shlex import quote
from typing import NamedTuple

from npuprof.model import NpuprofError, Place, build_error
from npuprof.store import is_source_reference
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
    """Return the files of a copy by path: the store, referenced versions, the same for its own
    sources, and the file list.

    Raises NpuprofError.
    """
    found = _Collected()
    found.add_store(open_locked(locked.name, locked), "")
    return found.list_files()


class _Part(NamedTuple):
    """A store at a commit: the store's folder in the copy, and the commit's.

    Both end in ``/``, or are empty.
    """

    store: SourceStore
    top: str
    folder: str


class _Collected:
    """The files of a copy: each store completely at its commit, and referenced versions with their
    ancestors.
    """

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._references: dict[str, dict[str, str]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._lookups = Lookups()

    def list_files(self) -> dict[str, bytes]:
        """Return the files by path in the copy."""
        files = dict(self._files)
        for folder, meant in self._references.items():
            files[f"{folder}{REFERENCES}"] = "".join(
                sorted(f"{reference} = {version}\n" for reference, version in meant.items())
            ).encode()
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
        if f"{part.folder}{MARK}" in self._files:
            return False
        self._files[f"{part.folder}{MARK}"] = f"{part.store.commit}\n".encode()
        beside = {f"{part.folder}.{name}": part.store.read_file(name) for name in PROJECT_FILES}
        self._files |= {path: text for path, text in beside.items() if text is not None}
        return True

    def _add_preset(self, part: _Part, name: str) -> None:
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
                there = self._lookups.find_source_store(part.store, source)
                folder = f"{name_nested_folder(there.locked)}/"
                self.add_store(there, folder)
                if at:  # the lock need not list complete numbers
                    self._add_reference(_Part(there, folder, folder), reference.partition(":")[2])
        elif "@" in reference:
            self._add_reference(part, reference)
        elif part.store.is_version and reference in part.store.revision.files:
            self._add_preset(part, reference)

    def _add_reference(self, part: _Part, reference: str) -> None:
        """Add the target of a reference with an @, and the reference itself.

        Raises NpuprofError.
        """
        there = self._add_version(part, reference)
        number = there.shown.rpartition("/v")[2] if "/v" in there.shown else "-"
        self._references.setdefault(part.folder, {})[reference] = str(
            LockedVersion(number, there.commit)
        )

    def _add_version(self, part: _Part, reference: str) -> SourceStore:
        """Add a referenced preset at its version, with its ancestors. Raises NpuprofError."""
        there = part.store.find_version(reference, is_own=True)
        then = _Part(there, part.top, f"{part.top}{VERSIONS}/{there.commit}/")
        self._add_folder(then)
        self._add_preset(then, reference.partition("@")[0])
        return there


def find_fit_folder(
    place: ProjectFiles, source: Source, folder: str, texts: Mapping[str, bytes]
) -> str:
    """Return the path of a folder to which a copy may be written.

    Raises NpuprofError if it may not.

    A copy owns its folder: files missing in its list belong to somebody else.
    """
    hint = f"name an empty or a new folder: --into vendor/{source.name}"
    if fault := find_copy_fault(folder):
        raise build_error("NP040", f"--into {folder!r} {fault}", "", hint)
    top = find_copy_folder(place.folder, folder)
    why = "A copy replaces the contents of its folder."
    for other in place.project.sources.values():
        pair = [f"{path.lower()}/" for path in (other.vendor, folder)]
        if (
            other.name != source.name
            and other.vendor
            and (pair[0].startswith(pair[1]) or pair[1].startswith(pair[0]))
        ):
            raise build_error(
                "NP940",
                f"{folder} contains the copy of the source {other.name!r}, or is inside it",
                why,
                hint,
            )
    is_inside, is_around = is_below(top, place.home.root), is_below(place.home.root, top)
    if is_inside or is_around:
        what = f"{folder} and the store {place.home.label} overlap"
        why = (
            "Its presets would be presets of this repository "
            "as well, or be replaced by those of the source."
        )
        raise build_error("NP940", what, why, hint)
    known = read_manifest(top)
    reject_foreign_files(top, place.folder, texts, known)
    if file := find_foreign_file(top, known):
        what = (
            f"{folder} has files outside the copy of {source.name}: "
            f"{os.path.relpath(os.path.join(top, file), place.folder)}"
        )
        raise build_error("NP940", what, why, f"move them away, or {hint}")
    return top


def reject_foreign_files(
    top: str, base: str, texts: Mapping[str, bytes], known: Mapping[str, set[str]]
) -> None:
    """Raise NpuprofError (NP940) if a copy would replace an uncommitted edit or a file of the
    user's own.

    A file may be replaced if it is as copied (``known`` has the digests), as it will be, or as in
    git's index. Paths in messages are relative to ``base``.
    """
    git = Git(top)
    place = os.path.relpath(os.path.realpath(top), git.top) if git.top else ""
    for name in texts:
        path = os.path.join(top, name)
        if (
            name in (MANIFEST, MARK)
            or not os.path.lexists(path)
            or _is_as_copied(top, name, known.get(name, set()))
        ):
            continue
        there = read_plain_file(path).replace(b"\r\n", b"\n") if os.path.isfile(path) else b""
        (staged,) = (
            git.read_objects([f":{os.path.normpath(os.path.join(place, name))}"])
            if git.top
            else (None,)
        )
        if there not in (texts[name], staged.content.replace(b"\r\n", b"\n") if staged else None):
            shown = os.path.relpath(path, base)
            why = (
                "A copy replaces the contents of its folder, and "
                "git does not have this text; nothing was written."
            )
            hint = (
                f"take it back (git restore {quote(shown)}), or move it away (mv {quote(shown)} ..)"
            )
            raise build_error(
                "NP940", f"{shown} differs from the copy", why, hint, where=Place(shown)
            )


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
    return {
        **parse_manifest(raw),
        MANIFEST: set(),
        MARK: set(),
    }  # their content changes while a copy is written


def write_copy(top: str, texts: dict[str, bytes]) -> None:
    """Write the files of a copy, including its list, into a folder.

    Files of an earlier copy are removed. Raises NpuprofError.

    If ``texts`` has a commit mark, the mark says "not whole" until everything is written.
    """
    made = make_folder(top)
    try:
        with lock_folders([top]):
            files = {os.path.join(top, name): text for name, text in texts.items()}
            for name in texts:
                if _is_link(top, name):
                    path = os.path.join(top, name)
                    why = (
                        "The files of a copy are in its folder "
                        "and nowhere else; nothing was changed."
                    )
                    what = f"{path} leads to {os.path.realpath(path)} by a link"
                    raise build_error(
                        "NP941", what, why, f"remove the link: rm {path}", where=Place(path)
                    )
            for path in files:
                made = [*writing.make_folder_below(os.path.dirname(path), top), *made]
            gone = [path for path in _list_copied(top) if path not in files]
            mark, listed = os.path.join(top, MARK), os.path.join(top, MANIFEST)
            # after a crash from here on, the copy is invalid and all its files are listed
            writing.write_planned_files(
                [PlannedWrite(listed, _join_manifests(top, texts[MANIFEST]), below=top)]
            )
            if mark in files:
                writing.write_planned_files([PlannedWrite(mark, b"not whole\n", below=top)])
            last = [path for path in (listed, mark) if path in files]
            writing.write_planned_files(
                [
                    PlannedWrite(path, text, below=top)
                    for path, text in files.items()
                    if path not in last
                ]
            )
            writing.write_planned_files([PlannedWrite(path, None, below=top) for path in gone])
            for path in gone:
                writing.remove_empty_folders(path, top)
            writing.write_planned_files(
                [PlannedWrite(path, files[path], below=top) for path in last]
            )
    except BaseException:
        remove_folders(made)
        raise


def _is_link(top: str, name: str) -> bool:
    """Return whether a file of a copy, or a folder on the way to it, is a link."""
    return os.path.realpath(os.path.join(top, name)) != os.path.join(os.path.realpath(top), name)


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
