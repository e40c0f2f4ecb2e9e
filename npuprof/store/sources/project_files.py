"""Reads and writes ``npuprof.toml`` and ``npuprof.lock``, the files that declare and lock the
sources of a repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import tomlkit

from npuprof.document import parse_toml_text
from npuprof.model import Finding, NpuprofError, Origin, build_error, did_you_mean
from npuprof.store import FILE, LOCK_FILE, is_source_reference
from npuprof.store import project as projects
from npuprof.store.enclosing_repository import BareStore
from npuprof.store.folder import Folder, find_project_folder
from npuprof.store.project import Project, Source
from npuprof.store.sources import lock as locks
from npuprof.store.sources.lock import Lock, LockedSource
from npuprof.store.sources.opening import read_sources
from npuprof.store.sources.vendored import VendoredCopy, find_copy_folder
from npuprof.system import writing
from npuprof.system.writing import PlannedWrite

_BOM = b"\xef\xbb\xbf"


class ProjectFiles:
    """The two files of a repository as read.

    Raises NpuprofError if they are invalid, or there is no work tree.

    ``home`` may be a future store, as a repository may use sources before it has presets;
    ``absence`` is then the error that there is none.
    """

    def __init__(
        self, home: Folder, needs_lock: bool = True, absence: NpuprofError | None = None
    ) -> None:
        self.home = home
        self._absence = absence
        if isinstance(self.home, BareStore):
            raise NpuprofError(self.home.build_sources_finding())
        self.folder = find_project_folder(self.home)
        self.texts = {
            name: writing.read_known_file(self.find_path(name)) for name in (FILE, LOCK_FILE)
        }
        told, locked = self.texts[FILE], self.texts[LOCK_FILE]
        self.project = (
            projects.parse_project(self.cite(FILE), told) if told is not None else Project()
        )
        self.lock = Lock()
        self.is_lock_unread = False
        try:
            self.lock = (
                locks.parse_lock(self.cite(LOCK_FILE), locked) if locked is not None else Lock()
            )
        except NpuprofError as error:
            if needs_lock or isinstance(error, locks.NewerLockError):
                raise
            self.is_lock_unread = True  # it will be rewritten
            self.lock = self._read_committed_lock()

    def _read_committed_lock(self) -> Lock:
        """Return HEAD's lock: the state before a merge or an editor broke it.

        Empty if HEAD has none.
        """
        try:
            return Lock(
                sources=read_sources(self.home.repository.load_named_revision("HEAD")).lock.sources
            )
        except NpuprofError:
            return Lock()

    def reject_shipped(self) -> None:
        """Raise NpuprofError (NP920) for the store that npuprof ships, whose folder belongs to the
        package.
        """
        if self.home.is_shipped:
            why = "These presets come with npuprof and are the same for everybody."
            raise build_error(
                "NP920",
                "builtin: is read-only, and has no sources",
                why,
                "omit --store, or name a store of your own",
            )

    def find_path(self, name: str) -> str:
        """Return the path of one of the files."""
        return os.path.join(self.folder, name)

    def cite(self, name: str) -> str:
        """Return the path of one of the files for display."""
        return os.path.relpath(self.find_path(name))

    def open_copy(self, folder: str) -> VendoredCopy:
        """Return the vendored copy in a folder that npuprof.toml names.

        Raises NpuprofError for a link on the way.
        """
        return VendoredCopy(find_copy_folder(self.folder, folder))

    def require_file(self) -> None:
        """Raise NpuprofError (NP010) if there is neither a store nor an npuprof.toml: probably the
        wrong folder.
        """
        if (
            self.texts[FILE] is None
            and self._absence is not None
            and not os.path.isdir(self.home.root)
        ):
            raise self._absence

    def select_sources(self, names: Iterable[str]) -> list[Source]:
        """Return the sources with some names, all if none is given.

        Raises NpuprofError for an unknown one.
        """
        known = self.project.sources
        problems = []
        for name in names:
            if name not in known:
                hint = (
                    did_you_mean(name, known, f"known are {', '.join(known)}")
                    if known
                    else "npuprof source add makes one"
                )
                problems.append(
                    Finding("NP042", f"there is no source {name!r} in {self.cite(FILE)}", "", hint)
                )
        if problems:
            self.require_file()
            raise NpuprofError(problems)
        return [known[name] for name in dict.fromkeys(names)] or list(known.values())

    def list_references(self) -> dict[str, set[str]]:
        """Return the references of readable presets: ``NAME[@VERSION]`` by source name."""
        found: dict[str, set[str]] = {}
        for _, reference, _ in self.iterate_references():
            source, _, preset = reference.partition(":")
            found.setdefault(source, set()).add(preset)
        return found

    def find_reference(self, source: str, reference: str) -> Origin | None:
        """Return the place of the first reference to a source's preset, by preset name.

        None if there is none.
        """
        wanted = f"{source}:{reference}"
        return next(
            (origin for _, known, origin in self.iterate_references() if known == wanted), None
        )

    def iterate_references(self) -> Iterator[tuple[str, str, Origin]]:
        """Yield the references of readable presets to sources: the name of the preset, the
        reference, and its place.
        """
        for name in self.home.names():
            with suppress(NpuprofError):
                for reference, origin in self.home.profile(name).iterate_references():
                    if is_source_reference(reference):
                        yield name, reference, origin

    def write(
        self,
        wanted_sources: Mapping[str, dict[str, Any] | None] | None,
        locked: Mapping[str, LockedSource],
    ) -> list[str]:
        """Write both files: changed sources of npuprof.toml (None removes one), and the whole lock;
        return the changed paths.

        Other content of npuprof.toml stays, including comments. Raises NpuprofError, and then
        writes nothing.
        """
        self.reject_shipped()
        wanted = []
        if wanted_sources:
            wanted.append(self._edit_project(wanted_sources))
        if locked or self.texts[LOCK_FILE] is not None:
            wanted.append(
                PlannedWrite(
                    self.find_path(LOCK_FILE),
                    locks.format_lock(dict(locked)).encode(),
                    self.texts[LOCK_FILE],
                )
            )
        changed = [one for one in wanted if one.content != one.known]
        writing.write_planned_files(changed)
        return [os.path.relpath(one.path) for one in changed]

    def _edit_project(self, wanted_sources: Mapping[str, dict[str, Any] | None]) -> PlannedWrite:
        import tomlkit
        import tomlkit.exceptions

        known = self.texts[FILE]
        bom = _BOM if known is not None and known.startswith(_BOM) else b""
        text = (known or b"").removeprefix(_BOM).decode()
        document = tomlkit.parse(text)
        try:
            _edit_sources(document, wanted_sources)
        except (ValueError, TypeError, tomlkit.exceptions.TOMLKitError) as error:
            what = f"{self.cite(FILE)} cannot be edited as it is written: {error}"
            raise build_error(
                "NP922",
                what,
                "Nothing was written.",
                "write each source as a table: [sources.team]",
            ) from None
        made = tomlkit.dumps(document)
        if parse_toml_text(made) != document.unwrap():
            what = f"{self.cite(FILE)} cannot be edited so that it is read back the same"
            raise build_error("NP922", what, "Nothing was written.", "edit it by hand")
        if "\r\n" in text:
            made = made.replace("\r\n", "\n").replace("\n", "\r\n")
        return PlannedWrite(self.find_path(FILE), bom + made.encode(), known)


def _edit_sources(
    document: tomlkit.TOMLDocument, wanted: Mapping[str, dict[str, Any] | None]
) -> None:
    import tomlkit

    if "sources" not in document:
        document["sources"] = tomlkit.table(is_super_table=True)
    tables: Any = document["sources"]
    for name, said in wanted.items():
        if said is None:
            tables.pop(name, None)
            continue
        table = tables[name] if name in tables else tomlkit.table()
        for key, value in said.items():
            table[key] = value
        if name not in tables:
            tables[name] = table
    if not tables:
        del document["sources"]
