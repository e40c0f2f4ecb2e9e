"""Reads and writes ``npuprof.toml`` and ``npuprof.lock``, which declare and lock sources."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import tomlkit

from npuprof.document import parse_toml_text
from npuprof.model import (
    Finding,
    NpuprofError,
    Origin,
    Record,
    TomlTable,
    build_error,
    did_you_mean,
)
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


class SourceReference(Record):
    """A reference to a preset of a source: the referring preset, the reference, and its origin."""

    preset: str
    reference: str
    origin: Origin


class ProjectFiles:
    """The two files of a repository as read.

    ``home`` may be a future store, as a repository may use sources before it has presets;
    ``absence`` is then the error that there is none. Raises NpuprofError if the files are invalid,
    or there is no work tree.
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
        self.project = Project()
        if (text := self.texts[FILE]) is not None:
            self.project = projects.parse_project(self.cite(FILE), text)
        self.lock = Lock()
        self.is_lock_unread = False
        try:
            if (text := self.texts[LOCK_FILE]) is not None:
                self.lock = locks.parse_lock(self.cite(LOCK_FILE), text)
        except NpuprofError as error:
            # an older npuprof would drop what it does not know
            if needs_lock or isinstance(error, locks.NewerLockError):
                raise
            self.is_lock_unread = True  # it will be rewritten
            self.lock = self._read_committed_lock()

    def _read_committed_lock(self) -> Lock:
        """Return HEAD's lock: the state before a merge or an editor broke it.

        Empty if HEAD has none.
        """
        try:
            head = self.home.repository.load_named_revision("HEAD")
            return Lock(sources=read_sources(head).lock.sources)
        except NpuprofError:
            return Lock()

    def reject_shipped(self) -> None:
        """Raise NpuprofError (NP920) for the store that npuprof ships: it is read-only."""
        if self.home.is_shipped:
            what = "builtin: is read-only, and has no sources"
            why = "These presets come with npuprof and are the same for everybody."
            raise build_error("NP920", what, why, "omit --store, or name a store of your own")

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
        """Raise NpuprofError (NP010) if there is neither a store nor an npuprof.toml.

        It is probably the wrong folder.
        """
        has_any = self.texts[FILE] is not None or os.path.isdir(self.home.root)
        if self._absence is not None and not has_any:
            raise self._absence

    def select_sources(self, names: Iterable[str]) -> list[Source]:
        """Return the sources with some names, all if none is given.

        Raises NpuprofError for an unknown one.
        """
        known = self.project.sources
        problems = []
        for name in names:
            if name not in known:
                hint = "npuprof source add makes one"
                if known:
                    hint = did_you_mean(name, known, f"known are {', '.join(known)}")
                what = f"there is no source {name!r} in {self.cite(FILE)}"
                problems.append(Finding("NP042", what, "", hint))
        if problems:
            self.require_file()
            raise NpuprofError(problems)
        return [known[name] for name in dict.fromkeys(names)] or list(known.values())

    def list_references(self) -> dict[str, set[str]]:
        """Return the references of readable presets: ``NAME[@VERSION]`` by source name."""
        by_source = defaultdict(set)
        for parent in self.iterate_references():
            source, _, preset = parent.reference.partition(":")
            by_source[source].add(preset)
        return by_source

    def find_reference(self, source: str, reference: str) -> Origin | None:
        """Return the origin of the first reference to a source's preset, by preset name.

        None if there is none.
        """
        for parent in self.iterate_references():
            if parent.reference == f"{source}:{reference}":
                return parent.origin
        return None

    def iterate_references(self) -> Iterator[SourceReference]:
        """Yield the references of readable presets to sources."""
        for name in self.home.names():
            with suppress(NpuprofError):
                for reference, origin in self.home.profile(name).iterate_references():
                    if is_source_reference(reference):
                        yield SourceReference(name, reference, origin)

    def write(
        self,
        changed_sources: Mapping[str, TomlTable | None] | None,
        locked: Mapping[str, LockedSource],
    ) -> list[str]:
        """Write changed sources of npuprof.toml (None removes one) and the whole lock.

        Return the changed paths. Other content of npuprof.toml stays, including comments. Raises
        NpuprofError, and then writes nothing.
        """
        self.reject_shipped()
        files = []
        if changed_sources:
            files.append(self._edit_project(changed_sources))
        known = self.texts[LOCK_FILE]
        # a repository without sources gets no lock, but one that had some gets an empty one
        if locked or known is not None:
            text = locks.format_lock(dict(locked)).encode()
            files.append(PlannedWrite(self.find_path(LOCK_FILE), text, known))
        # an equal file keeps its time
        changed = [file for file in files if file.content != file.known]
        writing.write_planned_files(changed)
        return [os.path.relpath(file.path) for file in changed]

    def _edit_project(self, changed_sources: Mapping[str, TomlTable | None]) -> PlannedWrite:
        import tomlkit
        import tomlkit.exceptions

        known = self.texts[FILE]
        bom = _BOM if known is not None and known.startswith(_BOM) else b""
        text = (known or b"").removeprefix(_BOM).decode()
        document = tomlkit.parse(text)
        try:
            _edit_sources(document, changed_sources)
        except (ValueError, TypeError, tomlkit.exceptions.TOMLKitError) as error:
            what = f"{self.cite(FILE)} cannot be edited as it is written: {error}"
            hint = "write each source as a table: [sources.team]"
            raise build_error("NP922", what, "Nothing was written.", hint) from None
        new = tomlkit.dumps(document)
        # tomlkit may write a text that is parsed differently
        if parse_toml_text(new) != document.unwrap():
            what = f"{self.cite(FILE)} cannot be edited so that it is read back the same"
            raise build_error("NP922", what, "Nothing was written.", "edit it by hand")
        if "\r\n" in text:  # tomlkit writes new lines with \n
            new = new.replace("\r\n", "\n").replace("\n", "\r\n")
        return PlannedWrite(self.find_path(FILE), bom + new.encode(), known)


def _edit_sources(document: tomlkit.TOMLDocument, changed: Mapping[str, TomlTable | None]) -> None:
    import tomlkit

    if "sources" not in document:
        document["sources"] = tomlkit.table(is_super_table=True)
    tables = document["sources"]
    for name, values in changed.items():
        if values is None:
            tables.pop(name, None)
            continue
        table = tables[name] if name in tables else tomlkit.table()
        table.update(values)
        if name not in tables:
            tables[name] = table
    # [sources] would stay without a source in it
    if not tables:
        del document["sources"]
