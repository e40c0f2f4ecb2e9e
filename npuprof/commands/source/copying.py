"""What a copy of a source holds, so that its presets are read without a network: collected from the mirrors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from npuprof.model import Finding, NpuprofError
from npuprof.store.parents import is_source_reference
from npuprof.store.sources.lock import Lock, LockedSource, LockedVersion
from npuprof.store.sources.project import Project, Source
from npuprof.store.sources.reading import Sources, find_source_store, find_sources
from npuprof.store.sources.stores import SourceStore
from npuprof.store.sources.vendored import (
    MANIFEST,
    MARK,
    PROJECT_FILES,
    REFERENCES,
    format_manifest,
    name_nested_folder,
    name_version_folder,
)


def collect_files(locked: LockedSource) -> dict[str, bytes]:
    """Return the files of a copy by their paths: the store, versions that are referred to, the same of its sources, and their list.

    Raises NpuprofError.
    """
    project = Project(sources={locked.name: Source(locked.name, locked.url, locked.path, locked.rev)})
    found = _Collected()
    found.add_store(Sources(project, Lock(sources={locked.name: locked})).open_source(locked.name), "")
    files = found.list_files()
    _refuse_twins(locked.name, files)
    return files


def _refuse_twins(name: str, files: Iterable[str]) -> None:
    """Raise NpuprofError (NP049) where two files of a copy differ in case only: in a mirror both are there, on some disks only one."""
    seen: dict[str, str] = {}
    problems: list[Finding] = []
    for path in sorted(files):
        if (other := seen.setdefault(path.casefold(), path)) != path:
            what = f"the source {name!r} cannot be copied: its files {other} and {path} differ in case only"
            why = "Some file systems hold but one of them, and a clone there would not be what npuprof.lock says."
            hint = f"let its owners rename one of them; without a copy it is read as it is: npuprof source sync {name}"
            problems.append(Finding("NP049", what, why, hint))
    if problems:
        raise NpuprofError(problems)


class _Part(NamedTuple):
    """A store at a commit: the folder of the store in the copy, and the one of that commit; both end in ``/``, or are empty."""

    store: SourceStore
    top: str
    folder: str


class _Collected:
    """The files of a copy: of each store all that is at its commit, of versions of single presets those and what they build on."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._references: dict[str, dict[str, str]] = {}
        self._seen: set[tuple[str, str]] = set()

    def list_files(self) -> dict[str, bytes]:
        """Return the files by their paths in the copy."""
        said = {folder: sorted(f"{reference} = {meant}\n" for reference, meant in one.items()) for folder, one in self._references.items()}
        files = {**self._files, **{f"{folder}{REFERENCES}": "".join(lines).encode() for folder, lines in said.items()}}
        return {**files, MANIFEST: format_manifest(files)}

    def add_store(self, store: SourceStore, folder: str) -> None:
        """Add a store, the versions of its presets that are referred to, and its sources. Raises NpuprofError."""
        part = _Part(store, folder, folder)
        if self._add_folder(part):
            names = store.revision.names()
            store.revision.load_texts(names)
            for name in names:
                self._add_preset(part, name)
            for nested in find_sources(store).list_locked():
                self.add_store(nested, f"{name_nested_folder(nested.locked)}/")
        for reference in store.locked.versions:
            self._add_version(part, reference)

    def _add_folder(self, part: _Part) -> bool:
        """Add what says of which commit a folder is, and what lies beside the store there; return whether it was not there yet."""
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
        with suppress(NpuprofError):  # who reads it is told
            for reference in part.store.profile(name).extends:
                with suppress(NpuprofError):
                    self._add_parent(part, reference)

    def _add_parent(self, part: _Part, reference: str) -> None:
        if is_source_reference(reference):
            source, at, _ = reference.partition("@")
            if part.store.is_version or at:
                there = find_source_store(part.store, source)
                folder = f"{name_nested_folder(there.locked)}/"
                self.add_store(there, folder)
                if at:  # the lock need not say what a whole number is
                    self._add_reference(_Part(there, folder, folder), reference.partition(":")[2])
        elif "@" in reference:
            self._add_reference(part, reference)
        elif part.store.is_version and reference in part.store.revision.files:
            self._add_preset(part, reference)

    def _add_reference(self, part: _Part, reference: str) -> None:
        """Add what a reference with an @ names, and that it does. Raises NpuprofError."""
        there = self._add_version(part, reference)
        number = there.shown.rpartition("/v")[2] if "/v" in there.shown else "-"
        self._references.setdefault(part.folder, {})[reference] = str(LockedVersion(number, there.commit))

    def _add_version(self, part: _Part, reference: str) -> SourceStore:
        """Add the preset that a reference with an @ names, as it was then, and what it built on. Raises NpuprofError."""
        there = part.store.find_version(reference, is_own=True)
        then = _Part(there, part.top, f"{part.top}{name_version_folder(there.commit)}/")
        self._add_folder(then)
        self._add_preset(then, reference.partition("@")[0])
        return there
