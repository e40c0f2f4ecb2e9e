"""``source list``: where presets come from, and at which commits."""

from __future__ import annotations

from npuprof.commands.parameters import OUTPUT, STORE, formats
from npuprof.commands.verb import Verb
from npuprof.model import NpuprofError
from npuprof.report.answer import Answer
from npuprof.report.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.commands.source.place import ProjectPlace
    from npuprof.store.sources.project import Source


class List(Verb):
    """List the sources, the version and commit each is locked to, and whether that is on this machine."""

    group = "sources"

    format: str = formats("text", "json")
    store: str | None = STORE
    output: str | None = OUTPUT

    def run(self) -> Answer:
        """Return a row a source. Raises NpuprofError where npuprof.toml or the lock cannot be understood."""
        from npuprof.commands.source.place import ProjectPlace

        place = ProjectPlace(self.store)
        rows = [_describe_source(place, source) for source in place.project.sources.values()]
        header = ("source", "version", "commit", "rev", "state", "address")
        shown = [[row["name"], row["tag"] or "-", (row["commit"] or "-")[:7], row["rev"], row["state"], row["url"]] for row in rows]
        remarks = () if rows else (f"{place.cite('npuprof.toml')} names no sources; npuprof source add NAME GIT-URL makes one",)
        return Answer(
            {"text": lambda: Table(shown, header=header), "json": lambda: {"schema": "npuprof.sources/1", "sources": rows}}, remarks
        )


def _describe_source(place: ProjectPlace, source: Source) -> dict[str, str]:
    from npuprof.store.sources.reading import find_sources

    found = place.lock.sources.get(source.name)
    state = "ready"
    try:
        store = find_sources(place.home).open_source(source.name)
        store.names()
        state = "copied" if store.is_copied else state
    except NpuprofError as error:
        states = {"NP043": "not fetched", "NP044": "lock out of date" if found else "not locked", "NP054": "damaged"}
        state = states.get(error.findings[0].code, "unusable")
    return {
        "name": source.name, "url": source.url, "path": source.path, "rev": source.rev, "tag": found.tag if found else "",
        "commit": found.commit if found else "", "digest": found.digest if found else "", "state": state,
    }  # fmt: skip


VERB = List
