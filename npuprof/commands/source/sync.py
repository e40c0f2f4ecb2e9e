"""``source sync``: have what the lock names on this machine."""

from __future__ import annotations

from npuprof.commands.parameters import STORE
from npuprof.commands.verb import Verb, arguments
from npuprof.model import Finding, NpuprofError
from npuprof.report.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.store.sources.reading import Sources


class Sync(Verb):
    """Fetch exactly what npuprof.lock names; it is not changed. Everything else works without a network then."""

    group = "sources"

    names: list[str] = arguments("NAME...", "Sources; all if none is named.")
    store: str | None = STORE

    def run(self) -> Answer:
        """Fetch what is missing. Raises NpuprofError with all that could not be had."""
        from npuprof.commands.source.locking import fetch_sources_of, sync_source
        from npuprof.commands.source.place import ProjectPlace
        from npuprof.store.sources.reading import find_sources

        place = ProjectPlace(self.store)
        known = find_sources(place.home)
        problems: list[Finding] = []
        fetched: list[str] = []
        wanted = place.select_sources(self.names)
        for source in wanted:
            try:
                locked = known.require_lock(source.name)
                faults = _list_copy_faults(known, source.name) if source.vendor else []
                problems += faults
                if source.vendor and not faults:
                    known.open_source(source.name).refuse_unmet_requirement()
                    continue
                if sync_source(source.name, locked):  # of a copy that is no good, what a new one is made of
                    fetched.append(f"{source.name} {locked.shown}")
                fetch_sources_of(source.name, locked)
            except NpuprofError as error:
                problems += error.findings
        if problems:
            raise NpuprofError(problems)
        if not wanted:
            return Answer(None, (f"{place.cite('npuprof.toml')} names no sources",))
        return Answer(None, (f"fetched {', '.join(fetched)}" if fetched else "everything that npuprof.lock names is here",))


def _list_copy_faults(known: Sources, name: str) -> list[Finding]:
    from npuprof.store.sources.reading import find_edited_copies

    try:
        return find_edited_copies(known.open_source(name))
    except NpuprofError as error:
        return list(error.findings)


VERB = Sync
