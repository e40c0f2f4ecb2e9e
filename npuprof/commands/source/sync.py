"""``source sync``: have what the lock names on this machine."""

from __future__ import annotations

from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, arguments
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer


class Sync(Verb):
    """Fetch exactly what npuprof.lock names; it is not changed. Everything else works without a network then."""

    group = "sources"

    names: list[str] = arguments("NAME...", "Sources; all if none is named.")
    store: str | None = STORE

    def run(self) -> Answer:
        """Fetch what is missing. Raises NpuprofError with all that could not be had."""
        from npuprof.commands.source.locking import fetch_nested, fetch_sources_of, sync_source, verify_copy
        from npuprof.commands.source.place import ProjectPlace
        from npuprof.store.sources.reading import find_sources

        place = ProjectPlace(self.store)
        known = find_sources(place.home)
        problems: list[Finding] = []
        fetched: list[str] = []
        wanted = place.select_sources(self.names)
        for source in wanted:
            try:
                store = known.open_source(source.name)
                locked = store.locked
                if store.is_copied:
                    verify_copy(store)
                    fetch_nested(source.name, store)
                    continue
                if sync_source(source.name, locked):
                    fetched.append(f"{source.name} {locked.shown}")
                fetch_sources_of(source.name, locked)
            except NpuprofError as error:
                problems += error.findings
        if problems:
            raise NpuprofError(problems)
        if not wanted:
            return Answer(None, (f"{place.cite('npuprof.toml')} names no sources",))
        return Answer(None, (f"fetched {', '.join(fetched)}" if fetched else "everything that npuprof.lock names is here",))


VERB = Sync
