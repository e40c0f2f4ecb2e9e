"""``source sync``: fetch the commits that the lock names."""

from __future__ import annotations

from npuprof.commands.framework import Verb, arguments, flag, option
from npuprof.commands.framework.parameters import STORE
from npuprof.model import build_usage_error
from npuprof.report import Answer
from npuprof.store import FILE
from npuprof.store.lock_sync import sync_sources


class Sync(Verb):
    """Fetch the locked sources.

    Fetches exactly what npuprof.lock names, without changing it. Afterwards, presets of the sources
    can be used offline. In a repository without a work tree, as on a server, npuprof reads the lock
    of HEAD.
    """

    group = "team"

    names = arguments("NAME...", "Sources to fetch [default: all]", "source")
    rev = option(
        "--rev",
        metavar="REV",
        text="Fetch the commits in the lock at this revision [default: the work tree]",
        complete="revision",
    )
    history = flag(
        "--history",
        text="Fetch the commits in the locks of all branches and tags, for log, diff and verify",
    )
    store = STORE

    def run(self) -> Answer:
        """Fetch what is missing. Raises NpuprofError with all failures."""
        if self.rev is not None and self.history:
            raise build_usage_error("--rev and --history name different locks", "say one of them")
        fetched = sync_sources(self.store, self.names, self.rev, self.history)
        if fetched is None:
            return Answer(None, (f"{FILE} names no sources",))
        return Answer(
            None,
            (
                f"fetched {', '.join(fetched)}"
                if fetched
                else "everything that npuprof.lock names is here",
            ),
        )


VERB = Sync
