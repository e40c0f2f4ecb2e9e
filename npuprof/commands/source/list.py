"""``source list``: list sources and the versions they are locked to."""

from __future__ import annotations

from collections.abc import Iterator

from npuprof.commands.framework import Verb
from npuprof.commands.framework.parameters import FORMAT, OUTPUT, STORE
from npuprof.model import NpuprofError
from npuprof.report import Answer
from npuprof.report.tables import Table
from npuprof.store import spec
from npuprof.store.sources.lookups import Lookups
from npuprof.store.sources.opening import Sources


class List(Verb):
    """List the sources and their locked versions.

    Includes the sources of sources, and shows whether each locked commit is on this machine.
    """

    group = "team"

    format = FORMAT
    store = STORE
    output = OUTPUT

    def run(self) -> Answer:
        """Return a row per source. Raises NpuprofError if npuprof.toml or the lock is invalid."""
        files = spec.open_project_files(self.store)
        lookups = Lookups()
        rows = list(_describe_sources(lookups, lookups.find_sources(files.home)))
        if not rows:
            files.require_file()
        header = ("source", "version", "commit", "rev", "state", "address")
        shown = [
            [
                row["name"],
                row["tag"] or "-",
                (row["commit"] or "-")[:7],
                row["rev"],
                row["state"],
                row["url"],
            ]
            for row in rows
        ]
        notes = (
            ()
            if rows
            else (
                (
                    f"{files.cite('npuprof.toml')} names no sources; "
                    "npuprof source add NAME GIT-URL makes one"
                ),
            )
        )
        return Answer(
            {
                "text": lambda: Table(shown, header=header),
                "json": lambda: {"schema": "npuprof.sources/1", "sources": rows},
            },
            notes,
        )


def _describe_sources(
    lookups: Lookups, sources: Sources, seen: set[tuple[str, str]] | None = None
) -> Iterator[dict[str, str]]:
    """Yield a row per source, followed by its own sources as ``team/core``.

    Sources at the same commit once.
    """
    seen = set() if seen is None else seen
    for source in sources.project.sources.values():
        locked = sources.lock.sources.get(source.name)
        nested: Sources | None = None
        state = "ready"
        try:
            store = sources.open_source(source.name)
            # fails if the commit is not here, which opening the source does not show
            store.names()
            if store.copy is not None:
                state = "edited" if not sources.label and store.find_edits() else "copied"
            nested = lookups.find_sources(store)
        except NpuprofError as error:
            states = {
                "NP043": "not fetched",
                "NP044": "lock out of date" if locked else "not locked",
                "NP049": "edited" if source.vendor else "lock edited",
                "NP054": "damaged",
            }
            state = states.get(error.findings[0].code, "unusable")
        yield {
            "name": f"{sources.label}{source.name}",
            "url": source.url,
            "path": source.path,
            "rev": source.rev,
            "tag": locked.tag if locked else "",
            "commit": locked.commit if locked else "",
            "digest": locked.digest if locked else "",
            "state": state,
        }
        mark = (locked.url, locked.commit) if locked else ("", "")
        if nested is not None and mark not in seen:
            seen.add(mark)
            yield from _describe_sources(lookups, nested, seen)


VERB = List
